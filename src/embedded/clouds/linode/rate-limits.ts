// SPDX-License-Identifier: Apache-2.0
// How often a token may call: the documented limits, counted in windows that begin with their first call.
import type { Clock } from '../../../base/clock.ts';
import { Refusal } from './refusal.ts';

export interface Limit {
  readonly calls: number;
  readonly windowMs: number;
}

/** The kinds of operations that are counted apart. */
export interface RateLimits {
  /** GETs of lists that come in pages. */
  readonly lists: Limit;
  readonly createLinode: Limit;
  readonly listImages: Limit;
  readonly others: Limit;
}

export const documentedLimits: RateLimits = {
  lists: { calls: 200, windowMs: 60_000 },
  createLinode: { calls: 20, windowMs: 15_000 },
  listImages: { calls: 20, windowMs: 60_000 },
  others: { calls: 1600, windowMs: 60_000 },
};

interface Window {
  readonly ends: number;
  used: number;
}

/** Counts calls by token and kind of operation. */
export class RateLimiter {
  readonly #clock: Clock;
  readonly #limits: RateLimits | undefined;
  readonly #windows = new Map<string, Window>();

  /** Without limits nothing is ever refused. */
  constructor(clock: Clock, limits: RateLimits | undefined) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Counts one call and returns the headers that tell what is left. Throws a Refusal (429) when nothing is. */
  count(token: string, kind: keyof RateLimits): Readonly<Record<string, string>> {
    if (!this.#limits) return {};
    const { calls, windowMs } = this.#limits[kind];
    const now = this.#clock.now();
    const key = `${kind} ${token}`;
    let window = this.#windows.get(key);
    if (!window || window.ends <= now) {
      window = { ends: now + windowMs, used: 0 };
      this.#windows.set(key, window);
    }
    const headers = {
      'x-ratelimit-limit': String(calls),
      'x-ratelimit-remaining': String(Math.max(0, calls - window.used - 1)),
      'x-ratelimit-reset': String(Math.ceil(window.ends / 1000)),
    };
    if (window.used >= calls) {
      const seconds = Math.max(1, Math.ceil((window.ends - now) / 1000));
      throw new Refusal(429, [{ reason: 'Too many requests' }], { ...headers, 'retry-after': String(seconds) });
    }
    window.used++;
    return headers;
  }
}
