// SPDX-License-Identifier: Apache-2.0
// Plans that a launch has found sold out: not offered for a few minutes, whatever the list of availability says.
import type { Clock } from '../../base/clock.ts';

const forMs = 3 * 60_000;
/** Stands for every plan. */
const everything = '*';

export class UnavailablePlans {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();
  #changes = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  mark(plan: string): void {
    this.#until.set(plan, this.#clock.monotonic() + forMs);
    this.#changes++;
  }

  /** Nothing can be had at all: a limit of the account or of the cluster is reached. */
  markAll(): void {
    this.mark(everything);
  }

  has(plan: string): boolean {
    const now = this.#clock.monotonic();
    return [plan, everything].some((key) => (this.#until.get(key) ?? 0) > now);
  }

  /** Changes whenever an answer of `has` may. */
  get signature(): string {
    const now = this.#clock.monotonic();
    for (const [key, until] of this.#until) {
      if (until > now) continue;
      this.#until.delete(key);
      this.#changes++;
    }
    return String(this.#changes);
  }
}
