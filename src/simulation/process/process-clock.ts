// SPDX-License-Identifier: Apache-2.0
// The clock of one controller process. It follows the world's, but may be wrong, and it ends with the process.
import { BaseClock, type Timer, type VirtualClock } from '../../base/clock.ts';

/** Wall time may be off and jump; durations are true. No timer fires in a process that hangs, and none after its death. */
export class ProcessClock extends BaseClock {
  readonly #world: VirtualClock;
  readonly #timers: ProcessTimer[] = [];
  /** What fell due while the process hung, in order; undefined while it runs. */
  #held: ProcessTimer[] | undefined;
  #dead = false;
  #skewMs = 0;
  /** When wall time jumped last, in the world's time. */
  correctedAt = Number.NEGATIVE_INFINITY;

  readonly #onDue = (timer: ProcessTimer): void => {
    if (this.#held) this.#held.push(timer);
    else timer.fire();
  };

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
    const timer = new ProcessTimer(callback, this.#timers, this.#onDue);
    if (!this.#dead) timer.start(this.#world, ms);
    return timer;
  }

  breathe(): Promise<void> {
    return Promise.resolve();
  }

  /** Timers that are set: they must not pile up. */
  get pendingTimers(): number {
    return this.#timers.length;
  }

  hang(): void {
    this.#held ??= [];
  }

  /** Fires what fell due meanwhile. */
  resume(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const timer of held) if (!this.#dead) timer.fire();
  }

  die(): void {
    this.#dead = true;
    while (this.#timers.length > 0) this.#timers.at(-1)!.cancel();
    this.#held = undefined;
  }
}

/**
 * Knows its place among those that are set, in an array and not in a Set: a Set that many go through is made anew again and
 * again, each in the hands of the one before, and with them lives on, for the garbage collector, whatever they held.
 */
class ProcessTimer implements Timer {
  readonly #callback: () => void;
  readonly #all: ProcessTimer[];
  readonly #onDue: (timer: ProcessTimer) => void;
  #place = -1;
  #timer: Timer | undefined;
  #cancelled = false;

  constructor(callback: () => void, all: ProcessTimer[], onDue: (timer: ProcessTimer) => void) {
    this.#callback = callback;
    this.#all = all;
    this.#onDue = onDue;
  }

  start(world: VirtualClock, ms: number): void {
    this.#place = this.#all.push(this) - 1;
    this.#timer = world.after(ms, () => {
      this.#leave();
      this.#onDue(this);
    });
  }

  fire(): void {
    if (!this.#cancelled) this.#callback();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#timer?.cancel();
    this.#leave();
  }

  #leave(): void {
    if (this.#place < 0) return;
    const last = this.#all.pop()!;
    if (last !== this) {
      this.#all[this.#place] = last;
      last.#place = this.#place;
    }
    this.#place = -1;
    this.#timer = undefined;
  }
}
