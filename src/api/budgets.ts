// SPDX-License-Identifier: Apache-2.0
// How many nodes of a pool may be disrupted at once: the arithmetic of its budgets. Whether a budget with a schedule
// holds right now is asked of the caller, who has a clock and can read cron.
import { durationMs } from './duration.ts';
import type { Budget } from './node-pool.ts';

/** "As many as there are": what a pool without a budget in force allows. The largest number upstream's metric shows. */
export const unlimitedDisruptions: number = 2 ** 31 - 1;

/** The window of time a budget is for. */
export interface BudgetWindow {
  /** Five cron fields or a shorthand, in UTC. */
  readonly schedule: string;
  /** How long the budget holds after each hit. */
  readonly durationMs: number;
}

export interface BudgetQuestion {
  readonly nodeCount: number;
  /** One of the API's, or one that a cloud declares. */
  readonly reason: string;
  /** Whether the present lies in the window, its first and last instant included. Throws for a schedule it cannot read. */
  readonly isActive: (window: BudgetWindow) => boolean;
}

/**
 * How many nodes may be disrupted for a reason: the least that any budget for it allows. Without a list, with an empty
 * one or with no budget in force there is no bound. A budget that cannot be understood allows nothing for the reasons
 * it is about, and leaves the other reasons alone.
 */
export function allowedDisruptions(budgets: readonly Budget[] | undefined, question: BudgetQuestion): number {
  let allowed = unlimitedDisruptions;
  for (const budget of budgets ?? []) {
    if (budget.reasons?.length && !(budget.reasons as readonly string[]).includes(question.reason)) continue;
    allowed = Math.min(allowed, allowedBy(budget, question));
  }
  return allowed;
}

function allowedBy(budget: Budget, { nodeCount, isActive }: BudgetQuestion): number {
  try {
    if (!inForce(budget, isActive)) return unlimitedDisruptions;
  } catch {
    // Nobody can say when it holds: it holds always, and allows nothing.
    return 0;
  }
  return budgetNodes(budget.nodes, nodeCount) ?? 0;
}

function inForce(budget: Budget, isActive: BudgetQuestion['isActive']): boolean {
  if (budget.schedule === undefined && budget.duration === undefined) return true;
  return isActive({ schedule: budget.schedule ?? '', durationMs: durationMs(budget.duration) ?? 0 });
}

/** The number of nodes that `10%` or `5` means for a pool of `nodeCount`; shares are rounded up. Undefined for other texts. */
export function budgetNodes(text: string, nodeCount: number): number | undefined {
  const share = /^(100|[0-9]{1,2})%$/.exec(text);
  if (share) return Math.ceil((Number(share[1]) * nodeCount) / 100);
  return /^[0-9]+$/.test(text) ? Math.min(Number(text), unlimitedDisruptions) : undefined;
}
