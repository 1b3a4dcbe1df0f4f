// SPDX-License-Identifier: Apache-2.0
// How many nodes of a pool may be disrupted at once: the arithmetic of its budgets. Whether a budget with a schedule
// holds right now is asked of the caller, who has a clock and can read cron.
import { messageOf } from '../base/errors.ts';
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
 * one or with no budget in force there is no bound. Where a budget cannot be understood nothing is allowed, for whatever
 * reason: what it was meant to hold back is not known.
 */
export function allowedDisruptions(budgets: readonly Budget[] | undefined, question: BudgetQuestion): number {
  if (budgetProblem(budgets, question.isActive) !== undefined) return 0;
  let allowed = unlimitedDisruptions;
  for (const budget of budgets ?? []) {
    if (budget.reasons?.length && !(budget.reasons as readonly string[]).includes(question.reason)) continue;
    allowed = Math.min(allowed, allowedBy(budget, question));
  }
  return allowed;
}

/** Why a budget cannot be understood, in one sentence; undefined when all can. */
export function budgetProblem(
  budgets: readonly Budget[] | undefined,
  isActive: BudgetQuestion['isActive'],
): string | undefined {
  for (const budget of budgets ?? []) {
    if (budgetNodes(budget.nodes, 0) === undefined) return `${JSON.stringify(budget.nodes)} is no number of nodes`;
    try {
      inForce(budget, isActive);
    } catch (error) {
      return messageOf(error);
    }
  }
  return undefined;
}

function allowedBy(budget: Budget, { nodeCount, isActive }: BudgetQuestion): number {
  return inForce(budget, isActive) ? (budgetNodes(budget.nodes, nodeCount) ?? 0) : unlimitedDisruptions;
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
