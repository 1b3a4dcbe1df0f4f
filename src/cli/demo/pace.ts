// SPDX-License-Identifier: Apache-2.0
// Moves virtual time while something is awaited: as fast as it goes, or so many times as fast as real time.
import { RealClock, settle, type VirtualClock } from '../../base/clock.ts';

/** Turns without a timer before it is clear that nothing will happen any more. */
const patience = 100;

/** Resolves and rejects as `work` does. `times` is how many times as fast as real time; none: as fast as it goes. */
export async function drive<T>(clock: VirtualClock, work: Promise<T>, times?: number): Promise<T> {
  let isDone = false;
  const settled = work.finally(() => (isDone = true));
  // Whoever called gets the failure from the end of this function.
  settled.catch(() => undefined);
  const real = new RealClock();
  let idle = 0;
  for (await settle(); !isDone; await settle()) {
    const due = clock.nextDue();
    if (due === undefined) {
      if (++idle > patience) throw new Error('nothing is scheduled, and what is awaited has not come about');
      continue;
    }
    idle = 0;
    const wait = Math.max(0, due - clock.now());
    if (times !== undefined && wait > 0) await real.sleep(wait / times);
    await clock.step(wait);
  }
  return settled;
}
