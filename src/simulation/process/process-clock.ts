// SPDX-License-Identifier: Apache-2.0
// The clock of one controller process. It follows the world's, but may be wrong, and it ends with the process.
import { BaseClock, type Timer, type VirtualClock } from '../../base/clock.ts';

/** Wall time may be off and jump; durations are true. No timer fires in a process that hangs, and none after its death. */
export class ProcessClock extends BaseClock {
  readonly #world: VirtualClock;
  readonly #timers = new Set<Timer>();
  /** What fell due while the process hung, in order; undefined while it runs. */
  #held: (() => void)[] | undefined;
  #dead = false;
  #skewMs = 0;
  /** When wall time jumped last, in the world's time. */
  correctedAt = Number.NEGATIVE_INFINITY;

  constructor(world: VirtualClock) {
    super();
    this.#world = world;
  }

  /** How far wall time is off. */
  get skewMs(): number {
    return this.#skewMs;
  }

  set skewMs(ms: number) {
    this.#skewMs = ms;
    this.correctedAt = this.#world.now();
  }

  now(): number {
    return this.#world.now() + this.#skewMs;
  }

  monotonic(): number {
    return this.#world.monotonic();
  }

  after(ms: number, callback: () => void): Timer {
    if (this.#dead) return { cancel: () => undefined };
    let cancelled = false;
    const fire = (): void => {
      if (!cancelled && !this.#dead) callback();
    };
    const timer = this.#world.after(ms, () => {
      this.#timers.delete(timer);
      if (this.#held) this.#held.push(fire);
      else fire();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
        this.#timers.delete(timer);
      },
    };
  }

  breathe(): Promise<void> {
    return Promise.resolve();
  }

  /** Timers that are set: they must not pile up. */
  get pendingTimers(): number {
    return this.#timers.size;
  }

  hang(): void {
    this.#held ??= [];
  }

  /** Fires what fell due meanwhile. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const fire of held) fire();
  }

  die(): void {
    this.#dead = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
    this.#held = undefined;
  }
}
