// SPDX-License-Identifier: Apache-2.0
// How long to wait before the next try: longer each time, never the same for two clients.
import type { Random } from '../base/random.ts';

/** Delays that double from `baseMs` to `maxMs`, each spread over [d, 2d) so that many clients do not come back at once. */
export class Backoff {
  readonly #baseMs: number;
  readonly #maxMs: number;
  readonly #random: Random;
  #failures = 0;

  constructor({ baseMs, maxMs, random }: { baseMs: number; maxMs: number; random: Random }) {
    this.#baseMs = baseMs;
    this.#maxMs = maxMs;
    this.#random = random;
  }

  /** The delay after one more failure. */
  next(): number {
    const delay = Math.min(this.#maxMs, this.#baseMs * 2 ** Math.min(this.#failures, 30));
    this.#failures++;
    return delay * (1 + this.#random.next());
  }

  /** It works again: the next failure waits `baseMs`. */
  reset(): void {
    this.#failures = 0;
  }
}
