// SPDX-License-Identifier: Apache-2.0
// The test of time: what a method proposes is carried out only if it proposes it again after a while, about machines
// that concerned it all along.
import type { Proposal } from './method.ts';

export interface TrialOptions {
  /** How long each machine must have concerned the method. */
  readonly lengthMs: number;
  /** Whether to decide about many together where that is possible: the first then wait for later ones, as long again at most. */
  readonly gathers: boolean;
}

const none: ReadonlySet<string> = new Set();

/** The machines a method may soon decide about. Times are monotonic. */
export class Trial {
  readonly #options: TrialOptions;
  /** By key: since when it has concerned the method. */
  readonly #since = new Map<string, number>();
  /** Those of them whose budget is used up: time decides nothing about them. */
  #starved: ReadonlySet<string> = none;
  readonly #begunAt: number;
  /** What was proposed at first; none once that was decided. */
  proposals: readonly Proposal[];

  /** `stood`: those of `keys` that stood their trial before, and only waited since. */
  constructor(
    proposals: readonly Proposal[],
    keys: Iterable<string>,
    now: number,
    options: TrialOptions,
    stood: Iterable<string> = [],
  ) {
    this.#options = options;
    this.#begunAt = now;
    this.proposals = proposals;
    this.keep(stood, now);
    this.look(keys, now);
  }

  /**
   * These concern the method now: those that were not known are on trial from here, those that are missing no longer. `starved`:
   * those that cannot go before others have gone.
   */
  look(keys: Iterable<string>, now: number, starved: ReadonlySet<string> = none): void {
    const seen = new Set(keys);
    this.#starved = starved;
    for (const key of this.#since.keys()) if (!seen.has(key)) this.#since.delete(key);
    for (const key of seen) if (!this.#since.has(key)) this.#since.set(key, now);
    // Nobody knows when they can go: others may have them until then.
    if (seen.size > 0 && starved.size >= seen.size) this.proposals = [];
  }

  /** These stood their trial before, and only waited since: for later ones, too. */
  keep(keys: Iterable<string>, now: number): void {
    for (const key of keys) this.#since.set(key, now - 2 * this.#options.lengthMs);
  }

  /** The trial of this one begins anew. */
  restart(key: string, now: number): void {
    if (this.#since.has(key)) this.#since.set(key, now);
  }

  /** When to decide; infinite while budgets let nobody go. */
  get dueAt(): number {
    const { lengthMs, gathers } = this.#options;
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const [key, since] of this.#since)
      if (!this.#starved.has(key)) [first, last] = [Math.min(first, since), Math.max(last, since)];
    if (this.#since.size === 0) return this.#begunAt + lengthMs;
    if (first === Number.POSITIVE_INFINITY) return first;
    return gathers ? Math.min(last, first + lengthMs) + lengthMs : first + lengthMs;
  }

  /** Ends the trial of those that have stood it, and gives them: a decision is about these only. */
  conclude(now: number): Set<string> {
    const stood = new Set<string>();
    for (const [key, since] of this.#since) if (since + this.#options.lengthMs <= now) stood.add(key);
    for (const key of stood) this.#since.delete(key);
    this.proposals = [];
    return stood;
  }

  /** Whether nobody is left. */
  get isOver(): boolean {
    return this.#since.size === 0;
  }
}
