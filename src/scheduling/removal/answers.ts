// SPDX-License-Identifier: Apache-2.0
// What was found out in a search about replacing nodes. Every strategy asks much the same again, of clusters that differ only in which
// other nodes are gone: most questions have been answered before.
import type { Purchase, Removal } from './removals.ts';

/** What is bought for the pods of some nodes; or why nothing is, where it is not the price. */
export interface Answer {
  readonly purchase: Purchase | undefined;
  readonly whyNot: (() => string) | undefined;
}

interface Refusal {
  /** What was gone by then, as numbers that stand for removals. */
  readonly gone: ReadonlySet<number>;
  readonly budget: number;
  readonly answer: Answer;
}

export class Answers {
  /** Removals by what they did: a number for each. */
  readonly #removals = new Map<string, number>();
  /** Numbers for what was bought: the same purchase is the same list. */
  readonly #bought = new Map<Removal['claims'], number>();
  /** What is gone now. */
  #gone = new Set<number>();
  #state = '';
  /** By state and question. */
  readonly #known = new Map<string, Answer>();
  /** By nodes: when they could not be replaced. */
  readonly #refused = new Map<string, Refusal[]>();

  /**
   * The answer, if it is known. What was too dear to be replaced before is so when more nodes are gone, whose pods need room as well: in
   * clusters of 20 to 60 nodes that was wrong for one question in fifty. Where a limit was in the way, say, it may no longer be.
   */
  of(slots: readonly number[], budget: number): Answer | undefined {
    const nodes = slots.toSorted((a, b) => a - b).join();
    const known = this.#known.get(this.#question(nodes, budget));
    if (known) return known;
    return this.#refused
      .get(nodes)
      ?.find(({ gone, budget: asked }) => asked >= budget * (1 - 1e-6) && this.#areGone(gone))?.answer;
  }

  /** Notes the answer for the cluster as it is. */
  note(slots: readonly number[], budget: number, answer: Answer): void {
    const nodes = slots.toSorted((a, b) => a - b).join();
    this.#known.set(this.#question(nodes, budget), answer);
    if (answer.purchase || answer.whyNot) return;
    const refusal = { gone: new Set(this.#gone), budget, answer };
    const known = this.#refused.get(nodes);
    if (known) known.push(refusal);
    else this.#refused.set(nodes, [refusal]);
  }

  /** The cluster is without these nodes from now on. */
  keep({ slots, moves, claims }: Removal): void {
    let bought = claims.length === 0 ? 0 : this.#bought.get(claims);
    if (bought === undefined) this.#bought.set(claims, (bought = this.#bought.size + 1));
    const text = `${slots.join()} ${moves.map(({ pod, slot }) => `${pod}:${slot}`).join()} ${bought}`;
    let id = this.#removals.get(text);
    if (id === undefined) this.#removals.set(text, (id = this.#removals.size));
    this.#gone.add(id);
    this.#state = [...this.#gone].sort((a, b) => a - b).join();
  }

  /** Nothing is gone. */
  reset(): void {
    this.#gone = new Set();
    this.#state = '';
  }

  #areGone(removals: ReadonlySet<number>): boolean {
    for (const removal of removals) if (!this.#gone.has(removal)) return false;
    return true;
  }

  #question(nodes: string, budget: number): string {
    return `${this.#state};${nodes};${budget}`;
  }
}
