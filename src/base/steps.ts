// SPDX-License-Identifier: Apache-2.0
// Long work in steps: a generator that yields wherever it may pause. Whoever needs the result at once runs it to its end;
// whoever shares the process with others lets them have their turn.
import type { Clock } from './clock.ts';

/** Work that gives a T in the end, and may pause at each yield. */
export type Steps<T> = Generator<void, T, void>;

/** Runs all steps without a pause. */
export function finish<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

/** The result, and whether others had a turn meanwhile: then what was read before may be out of date. */
export interface Finished<T> {
  readonly result: T;
  readonly paused: boolean;
}

/** Runs steps for `sliceMs` at a time; sockets and timers are served in between. A step that takes longer is not cut. */
export async function finishInSlices<T>(steps: Steps<T>, clock: Clock, sliceMs: number): Promise<Finished<T>> {
  let paused = false;
  let end = clock.monotonic() + sliceMs;
  for (;;) {
    const { done, value } = steps.next();
    if (done) return { result: value, paused };
    if (clock.monotonic() < end) continue;
    paused = true;
    await clock.breathe();
    end = clock.monotonic() + sliceMs;
  }
}
