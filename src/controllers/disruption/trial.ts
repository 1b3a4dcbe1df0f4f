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

/** The machines a method may soon decide about. Times are monotonic. */
export class Trial {
  readonly #options: TrialOptions;
  /** By key: since when it has concerned the method. */
  readonly #since = new Map<string, number>();
  readonly #begunAt: number;
  /** What was proposed at first; none once that was decided. */
  proposals: readonly Proposal[];

  constructor(proposals: readonly Proposal[], keys: Iterable<string>, now: number, options: TrialOptions) {
    this.#options = options;
    this.#begunAt = now;
    this.proposals = proposals;
    this.look(keys, now);
  }

  /** These concern the method now: those that were not known are on trial from here, those that are missing no longer. */
  look(keys: Iterable<string>, now: number): void {
    const seen = new Set(keys);
    for (const key of this.#since.keys()) if (!seen.has(key)) this.#since.delete(key);
    for (const key of seen) if (!this.#since.has(key)) this.#since.set(key, now);
  }

  /** When to decide. */
  get dueAt(): number {
    const { lengthMs, gathers } = this.#options;
    let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    for (const since of this.#since.values()) [first, last] = [Math.min(first, since), Math.max(last, since)];
    if (this.#since.size === 0) return this.#begunAt + lengthMs;
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
