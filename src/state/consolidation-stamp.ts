// SPDX-License-Identifier: Apache-2.0
// Says whether anything happened that could make consolidation find something it did not find before.
import type { Clock } from '../base/clock.ts';

/** After this long everything is looked at again, whatever happened: prices and times change without an event. */
const longestRestMs = 300_000;

/** A number that changes with every relevant change, and by itself every five minutes. */
export class ConsolidationStamp {
  readonly #clock: Clock;
  #count = 0;
  #bumpedAt: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bumpedAt = clock.monotonic();
  }

  bump(): void {
    this.#count++;
    this.#bumpedAt = this.#clock.monotonic();
  }

  read(): number {
    if (this.#clock.monotonic() - this.#bumpedAt >= longestRestMs) this.bump();
    return this.#count;
  }
}
