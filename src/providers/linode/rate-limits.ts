// SPDX-License-Identifier: Apache-2.0
// Linode's documented limits per token, kept on our side: so many calls in any stretch of so many seconds, in the order
// in which they were asked for.
import type { Clock, Timer } from '../../base/clock.ts';

/** At most `calls` in any `windowMs`. */
export interface RateLimit {
  readonly calls: number;
  readonly windowMs: number;
}

export type LimitName = 'list' | 'launch' | 'other';

/**
 * A tenth below what Linode documents (paginated GETs 200 and others 1600 a minute, 20 new Linodes in 15 s): people and
 * the cloud controller manager use the same account. The windows are a second longer, because answers travel.
 */
export const linodeLimits: Readonly<Record<LimitName, RateLimit>> = {
  list: { calls: 180, windowMs: 61_000 },
  launch: { calls: 18, windowMs: 16_000 },
  other: { calls: 1440, windowMs: 61_000 },
};

interface Waiter {
  readonly go: () => void;
}

/** Lets callers through one after the other. */
export class SlidingWindow {
  readonly #limit: RateLimit;
  readonly #clock: Clock;
  /** When the latest calls went through, oldest first; never more than the limit. */
  readonly #passed: number[] = [];
  readonly #waiting = new Set<Waiter>();
  #timer: Timer | undefined;
  #closedUntil = 0;

  constructor(limit: RateLimit, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Nobody goes through for so long: the API said so. */
  pause(ms: number): void {
    this.#closedUntil = Math.max(this.#closedUntil, this.#clock.monotonic() + ms);
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#serve();
  }

  /** Resolves when the caller may go; rejects with the signal's reason when it aborts first. */
  pass(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(waiter);
        reject(signal?.reason as Error);
      };
      const waiter: Waiter = {
        go: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#serve();
    });
  }

  #serve(): void {
    const now = this.#clock.monotonic();
    for (const waiter of this.#waiting) {
      const ready = this.#readyAt();
      if (ready > now) {
        this.#timer ??= this.#clock.after(Math.ceil(ready - now), () => {
          this.#timer = undefined;
          this.#serve();
        });
        return;
      }
      this.#passed.push(now);
      if (this.#passed.length > this.#limit.calls) this.#passed.shift();
      this.#waiting.delete(waiter);
      waiter.go();
    }
  }

  #readyAt(): number {
    const oldest = this.#passed.length < this.#limit.calls ? undefined : this.#passed[0];
    return Math.max(this.#closedUntil, oldest === undefined ? 0 : oldest + this.#limit.windowMs);
  }
}
