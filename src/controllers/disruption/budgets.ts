// SPDX-License-Identifier: Apache-2.0
// How many nodes of each pool may be disrupted now: what its budgets allow, less those that are on their way out or
// not in service for whatever reason.
import { allowedDisruptions, type BudgetWindow, budgetProblem } from '../../api/budgets.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { planted } from '../../base/defects.ts';
import type { StateNode } from '../../state/state-node.ts';
import { isInWindow } from './cron-window.ts';
import type { Machines } from './snapshot.ts';

/** The budgets of one pool for one reason, at one moment. */
export interface PoolBudget {
  readonly pool: NodePool;
  /** Nodes in service: shares are of these. */
  readonly nodes: number;
  /** Those of them that go, or are not ready. */
  readonly disrupting: number;
  /** How many its budgets allow to be disrupted at once. */
  readonly allowed: number;
  /** Why one of its budgets cannot be understood: then nothing is allowed. */
  readonly problem: string | undefined;
}

export interface BudgetOptions {
  readonly machines: Machines;
  readonly pools: Iterable<NodePool>;
  readonly reason: string;
  readonly now: number;
}

/** The budgets of pools for a reason. */
export function poolBudgets({ machines, pools, reason, now }: BudgetOptions): PoolBudget[] {
  const budgets: PoolBudget[] = [];
  for (const pool of pools) {
    let nodes = 0;
    let disrupting = 0;
    for (const machine of machines.nodesOfPool(pool.metadata.name ?? '')) {
      if (!isInService(machine)) continue;
      nodes++;
      if (machine.markedForDeletion || !machine.ready) disrupting++;
    }
    const { budgets: own } = pool.spec.disruption ?? {};
    const isActive = (window: BudgetWindow): boolean => isInWindow(window, now);
    const allowed = allowedDisruptions(own, { nodeCount: nodes, reason, isActive });
    budgets.push({ pool, nodes, disrupting, allowed, problem: budgetProblem(own, isActive) });
  }
  return budgets;
}

/**
 * A machine that is still coming up serves nobody: counting it would let a share grow by nodes that replace others. One
 * whose instance is going already is past all budgets.
 */
function isInService({ initialized, managed, instanceTerminating }: StateNode): boolean {
  return initialized && managed && !instanceTerminating;
}

/** What is left of budgets while a method chooses. */
export class BudgetLedger {
  readonly #left = new Map<string, number>();
  readonly #allowed = new Map<string, number>();
  /** Pools of which not all nodes may go at once. */
  readonly #tight = new Set<string>();

  constructor(budgets: Iterable<PoolBudget>) {
    for (const { pool, allowed, disrupting, nodes } of budgets) {
      this.#allowed.set(pool.metadata.name ?? '', allowed);
      if (allowed < nodes) this.#tight.add(pool.metadata.name ?? '');
      this.#left.set(
        pool.metadata.name ?? '',
        Math.max(0, allowed - disrupting + (planted('budget-off-by-one') ? 1 : 0)),
      );
    }
  }

  left(pool: NodePool): number {
    return this.#left.get(pool.metadata.name ?? '') ?? 0;
  }

  /** How many may be on their way out at once. */
  allowed(pool: NodePool): number {
    return this.#allowed.get(pool.metadata.name ?? '') ?? 0;
  }

  /** Whether only some of its nodes may go at a time. */
  isTight(pool: NodePool): boolean {
    return this.#tight.has(pool.metadata.name ?? '');
  }

  /** Takes one disruption from the pool's budget; false when there is none left. */
  take(pool: NodePool): boolean {
    const left = this.left(pool);
    if (left > 0) this.#left.set(pool.metadata.name ?? '', left - 1);
    return left > 0;
  }
}
