// SPDX-License-Identifier: Apache-2.0
// The policy Balanced: a consolidation must save a share of the pool's cost that is worth the share of its pods it moves.
import type { StateNode } from '../../state/state-node.ts';
import type { Candidate } from './candidates.ts';
import { priceOf, TypesByName } from './candidates.ts';
import type { DisruptionSnapshot } from './snapshot.ts';

/** What a pool costs and what it would cost to disturb all of it. */
interface Totals {
  readonly cost: number;
  readonly disruption: number;
}

/** How a consolidation scores in one pool. */
export interface Score {
  readonly pool: string;
  readonly score: number;
}

/** Half of what is saved by the way things are is enough. */
const leastScore = 0.5;

/** Scores consolidations by pools with the policy Balanced. */
export class Balance {
  readonly #snapshot: DisruptionSnapshot;
  readonly #totals = new Map<string, Totals>();

  readonly #onPoor: ((score: Score) => void) | undefined;

  constructor(snapshot: DisruptionSnapshot, onPoor?: (score: Score) => void) {
    this.#snapshot = snapshot;
    this.#onPoor = onPoor;
  }

  /** The first score that is too low for the policy; undefined when every pool agrees. */
  poor(candidates: readonly Candidate[], savings: number): Score | undefined {
    const found = this.scores(candidates, savings).find(({ score }) => score < leastScore);
    if (found) this.#onPoor?.(found);
    return found;
  }

  /** One score for each Balanced pool that loses nodes. Savings are shared by what each pool's nodes cost. */
  scores(candidates: readonly Candidate[], savings: number): Score[] {
    if (!candidates.some(({ nodePool }) => nodePool.spec.disruption?.consolidationPolicy === 'Balanced')) return [];
    const price = candidates.reduce((sum, candidate) => sum + candidate.price, 0);
    const byPool = Map.groupBy(candidates, ({ nodePool }) => nodePool);
    const scores: Score[] = [];
    for (const [pool, own] of byPool) {
      if (pool.spec.disruption?.consolidationPolicy !== 'Balanced') continue;
      const name = pool.metadata.name ?? '';
      const { cost, disruption } = this.#totalsOf(name);
      const share = price > 0 ? own.reduce((sum, candidate) => sum + candidate.price, 0) / price : 0;
      const moved = own.reduce((sum, candidate) => sum + candidate.rescheduleCost, 0);
      const gained = cost > 0 ? Math.max(0, savings * share) / cost : 0;
      scores.push({ pool: name, score: gained / (moved / disruption) });
    }
    return scores;
  }

  #totalsOf(pool: string): Totals {
    let totals = this.#totals.get(pool);
    if (!totals) {
      const types = new TypesByName(this.#snapshot.catalog);
      let [cost, disruption] = [0, 0];
      for (const machine of this.#snapshot.machines.nodesOfPool(pool)) {
        cost += priceOf(types.ofMachine(machine), machine.labels);
        disruption += costOf(machine);
      }
      totals = { cost, disruption };
      this.#totals.set(pool, totals);
    }
    return totals;
  }
}

function costOf(machine: StateNode): number {
  return machine.rescheduleCost();
}
