// SPDX-License-Identifier: Apache-2.0
// Members that could not make a machine lately: not for sale for a while, then tried again.
import type { Clock } from '../../base/clock.ts';

const forMs = 3 * 60_000;

export class UnavailableMembers {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mark(key: string): void {
    this.#until.set(key, this.#clock.monotonic() + forMs);
  }

  /** Those that are not for sale now, as one text. */
  get signature(): string {
    return [...this.#until.keys()].filter((key) => this.has(key)).join(' ');
  }

  has(key: string): boolean {
    const until = this.#until.get(key);
    if (until === undefined) return false;
    if (until > this.#clock.monotonic()) return true;
    this.#until.delete(key);
    return false;
  }
}
