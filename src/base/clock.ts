// SPDX-License-Identifier: Apache-2.0
// Time as something that is handed in: the real clock in production, a virtual one in tests and simulation, so that a
// fifteen-minute timeout is tested in a millisecond and a whole cluster replays from a seed.
import { Heap, type HeapEntry } from './heap.ts';

/** A pending timer; `cancel` is idempotent and safe after it fired. */
export interface Timer {
  cancel(): void;
}

/** The only source of time in the house. */
export interface Clock {
  /** Milliseconds since the Unix epoch. May jump when the machine's clock is set: use it for timestamps. */
  now(): number;
  /** Milliseconds from an arbitrary start that never goes back: use it for durations. */
  monotonic(): number;
  /** Calls `callback` once, `ms` from now (at least once the current turn has ended, also for 0). */
  after(ms: number, callback: () => void): Timer;
  /** Resolves `ms` from now; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Lets the process serve its sockets and timers before going on: for loops that would hold it for long. */
  breathe(): Promise<void>;
}

/** What clocks share: sleeping is a timer that a signal may end. */
export abstract class BaseClock implements Clock {
  abstract now(): number;
  abstract monotonic(): number;
  abstract after(ms: number, callback: () => void): Timer;
  abstract breathe(): Promise<void>;

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        timer.cancel();
        reject(signal?.reason as Error);
      };
      const timer = this.after(ms, () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      });
      signal?.addEventListener('abort', onAbort, { once: true });
    });
  }
}

/** Node's timers cap at 2^31-1 ms and fire at once beyond it; longer waits are cut into steps. */
const longestTimer = 2 ** 31 - 1;

/** The machine's own clock. */
export class RealClock extends BaseClock {
  now(): number {
    return Date.now();
  }

  monotonic(): number {
    return performance.now();
  }

  after(ms: number, callback: () => void): Timer {
    let handle: NodeJS.Timeout;
    const arm = (left: number): void => {
      handle =
        left > longestTimer
          ? setTimeout(() => arm(left - longestTimer), longestTimer)
          : setTimeout(callback, Math.max(0, left));
    };
    arm(wholeWait(ms));
    return { cancel: () => clearTimeout(handle) };
  }

  breathe(): Promise<void> {
    return settle();
  }
}

/** A timer of a virtual clock, and its own handle: worlds set ten thousand in an hour, and most are cancelled. */
class Pending implements Timer, HeapEntry {
  readonly due: number;
  readonly order: number;
  readonly callback: () => void;
  heapIndex = -1;
  readonly #all: Heap<Pending>;

  constructor(due: number, order: number, callback: () => void, all: Heap<Pending>) {
    this.due = due;
    this.order = order;
    this.callback = callback;
    this.#all = all;
  }

  cancel(): void {
    this.#all.remove(this);
  }
}

/**
 * A clock that moves only when told to. Timers due at the same instant fire in the order they were set; a callback
 * that sets further timers within the step sees them fire within the same step.
 */
export class VirtualClock extends BaseClock {
  #now: number;
  readonly #start: number;
  #order = 0;
  readonly #pending = new Heap<Pending>((a, b) => a.due < b.due || (a.due === b.due && a.order < b.order));

  constructor(start: number = Date.UTC(2026, 0, 1)) {
    super();
    this.#now = start;
    this.#start = start;
  }

  now(): number {
    return this.#now;
  }

  monotonic(): number {
    return this.#now - this.#start;
  }

  after(ms: number, callback: () => void): Timer {
    const timer = new Pending(this.#now + wholeWait(ms), this.#order++, callback, this.#pending);
    this.#pending.push(timer);
    return timer;
  }

  /** Nothing else waits for a turn of a virtual world: goes on at once. */
  breathe(): Promise<void> {
    return Promise.resolve();
  }

  /** When the next timer is due, or undefined when none is set. */
  nextDue(): number | undefined {
    return this.#pending.peek()?.due;
  }

  /** How many timers are set: a component that was stopped must leave none behind. */
  get pendingTimers(): number {
    return this.#pending.size;
  }

  /**
   * Moves time forward by `ms`, firing every timer that falls due, each at its own instant. Between timers, promise
   * continuations run (one macrotask turn), so that code awaiting a timer reacts before the next one fires.
   */
  async step(ms: number): Promise<void> {
    const target = this.#now + ms;
    await settle();
    for (;;) {
      const due = this.nextDue();
      if (due === undefined || due > target) break;
      const entry = this.#pending.pop()!;
      this.#now = Math.max(this.#now, entry.due);
      entry.callback();
      await settle();
    }
    // A callback may itself have stepped further.
    this.#now = Math.max(this.#now, target);
  }

  /** Steps from timer to timer until `done` holds; throws after `limitMs` of virtual time without it. */
  async until(done: () => boolean, limitMs = 3_600_000): Promise<void> {
    const limit = this.#now + limitMs;
    await settle();
    while (!done()) {
      const due = this.nextDue();
      if (due === undefined) throw new Error('nothing is scheduled, and the awaited state has not come about');
      if (due > limit) throw new Error(`the awaited state did not come about within ${limitMs} ms of virtual time`);
      await this.step(Math.max(0, due - this.#now));
    }
  }

  /** Waits for a promise while time passes; throws after `limitMs` of virtual time in which it did not settle. */
  async finish<T>(promise: Promise<T>, limitMs?: number): Promise<T> {
    let done = false;
    promise.then(
      () => (done = true),
      () => (done = true),
    );
    await this.until(() => done, limitMs);
    return promise;
  }
}

/** A wait that is not a number would never fall due, or at once: that is a bug of the caller. */
function wholeWait(ms: number): number {
  if (Number.isNaN(ms)) throw new RangeError('a timer needs a number of milliseconds, got NaN');
  return Math.max(0, ms);
}

/** Lets everything that is ready run: promise continuations and the messages they trigger. */
export function settle(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
