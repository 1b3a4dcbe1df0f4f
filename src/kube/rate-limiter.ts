// SPDX-License-Identifier: Apache-2.0
// A token bucket: bursts up to its size, and on average no more than its rate.
import type { Clock, Timer } from '../base/clock.ts';

interface Waiter {
  readonly proceed: () => void;
}

/**
 * Hands out tokens: `burst` at once, then `qps` per second, to waiters in the order they came. It starts full, as
 * client-go's does. A waiter that gives up takes no token.
 */
export class TokenBucket {
  readonly #qps: number;
  readonly #burst: number;
  readonly #clock: Clock;
  readonly #waiting = new Set<Waiter>();
  #tokens: number;
  #countedAt: number;
  #timer: Timer | undefined;

  constructor({ qps, burst, clock }: { qps: number; burst: number; clock: Clock }) {
    if (!(qps > 0)) throw new RangeError(`qps must be positive, not ${qps}`);
    if (!(burst >= 1)) throw new RangeError(`burst must be at least 1, not ${burst}`);
    this.#qps = qps;
    this.#burst = burst;
    this.#clock = clock;
    this.#tokens = burst;
    this.#countedAt = clock.monotonic();
  }

  /** How many callers wait for a token. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Takes a token if there is one and nobody waits for it. */
  tryTake(): boolean {
    this.#refill();
    if (this.#waiting.size > 0 || this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** Resolves once this caller's token is there; rejects with the signal's reason when it aborts first. */
  take(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    if (this.tryTake()) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        this.#waiting.delete(waiter);
        this.#arm();
        reject(signal?.reason as Error);
      };
      const waiter: Waiter = {
        proceed: () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(waiter);
      this.#arm();
    });
  }

  #refill(): void {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#countedAt) / 1000) * this.#qps);
    this.#countedAt = now;
  }

  /** Sets the timer for the next token, when somebody waits and none is set. */
  #arm(): void {
    if (this.#waiting.size === 0) {
      this.#timer?.cancel();
      this.#timer = undefined;
      return;
    }
    if (this.#timer) return;
    this.#refill();
    const wait = Math.max(0, ((1 - this.#tokens) / this.#qps) * 1000);
    // Rounded up: a timer that fires a hair early would find no token and spin.
    this.#timer = this.#clock.after(Math.ceil(wait), () => {
      this.#timer = undefined;
      this.#serve();
      this.#arm();
    });
  }

  #serve(): void {
    this.#refill();
    for (const waiter of this.#waiting) {
      if (this.#tokens < 1) return;
      this.#tokens -= 1;
      this.#waiting.delete(waiter);
      waiter.proceed();
    }
  }
}
