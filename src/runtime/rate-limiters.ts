// SPDX-License-Identifier: Apache-2.0
// How long a key waits before it is tried again: per key, over all keys, and the standard combinations; and how many
// keys a controller works on at once.
import type { Clock } from '../base/clock.ts';

/** Decides how long the next try of a key waits. `forget` ends a run of failures. */
export interface RateLimiter<K> {
  /** The wait in milliseconds before the next try; each call counts as one failure. */
  when(key: K): number;
  forget(key: K): void;
  /** Failures since the last `forget`. */
  numRequeues(key: K): number;
}

/** Each failure of a key doubles its wait, from `baseMs` up to `maxMs`. */
export class ExponentialBackoff<K> implements RateLimiter<K> {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #failures = new Map<K, number>();

  constructor(baseMs: number, maxMs: number) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
  }

  when(key: K): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return Math.min(this.#baseMs * 2 ** failures, this.#maxMs);
  }

  forget(key: K): void {
    this.#failures.delete(key);
  }

  numRequeues(key: K): number {
    return this.#failures.get(key) ?? 0;
  }
}

/** All keys together are let through `qps` times a second, with bursts up to `burst`. */
export class BucketLimiter<K> implements RateLimiter<K> {
  readonly #clock: Clock;
  readonly #qps: number;
  readonly #burst: number;
  #tokens: number;
  #at: number;

  constructor(clock: Clock, qps: number, burst: number) {
    this.#clock = clock;
    this.#qps = qps;
    this.#burst = burst;
    this.#tokens = burst;
    this.#at = clock.monotonic();
  }

  when(): number {
    const now = this.#clock.monotonic();
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#at) / 1000) * this.#qps);
    this.#at = now;
    // Below zero the bucket is in debt: later callers queue behind those who wait already.
    this.#tokens -= 1;
    return this.#tokens >= 0 ? 0 : (-this.#tokens / this.#qps) * 1000;
  }

  forget(): void {
    // The bucket does not know keys.
  }

  numRequeues(): number {
    return 0;
  }
}

/** The longest wait of several limiters. */
export class MaxOfLimiter<K> implements RateLimiter<K> {
  readonly #limiters: readonly RateLimiter<K>[];

  constructor(...limiters: readonly RateLimiter<K>[]) {
    this.#limiters = limiters;
  }

  when(key: K): number {
    // Each of them must count the failure, so none may be skipped.
    return Math.max(0, ...this.#limiters.map((limiter) => limiter.when(key)));
  }

  forget(key: K): void {
    for (const limiter of this.#limiters) limiter.forget(key);
  }

  numRequeues(key: K): number {
    return Math.max(0, ...this.#limiters.map((limiter) => limiter.numRequeues(key)));
  }
}

/** The limiter a controller gets when it names none: 5 ms doubling up to 1000 s per key. */
export function defaultLimiter<K>(): RateLimiter<K> {
  return new ExponentialBackoff(5, 1_000_000);
}

/** For controllers that call out: 100 ms to 1 min per key, and 10 a second (100 at once) over all keys. */
export function reasonableLimiter<K>(clock: Clock): RateLimiter<K> {
  return new MaxOfLimiter(new ExponentialBackoff(100, 60_000), new BucketLimiter(clock, 10, 100));
}

/** How many keys to work on at once: `min` on one core, `max` on sixty, a straight line between. */
export function linearScaleReconciles(cpuMillicores: number, min: number, max: number): number {
  const cores = Math.ceil(cpuMillicores / 1000);
  const scaled = Math.floor(((max - min) / 59) * (cores - 1)) + min;
  return Math.min(max, Math.max(min, scaled));
}

/** Tokens a second and the burst of a bucket that grows with a controller's concurrency. */
export function scaledBucket(
  minQps: number,
  minReconciles: number,
  concurrent: number,
): { readonly qps: number; readonly burst: number } {
  const qps = Math.ceil((concurrent * minQps) / minReconciles);
  return { qps, burst: qps * 10 };
}
