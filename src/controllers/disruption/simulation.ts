// SPDX-License-Identifier: Apache-2.0
// What would happen if machines went away: where their pods find a place, and what has to be bought for them.
import { keyOf } from '../../kube/object.ts';
import type { NewNodeClaim, Problem, SolveResult } from '../../scheduling/problem.ts';
import { solve } from '../../scheduling/solve.ts';
import type { Candidate } from './candidates.ts';
import type { DisruptionSnapshot } from './snapshot.ts';
import { unfinishedMachines } from './snapshot.ts';

/** The outcome of a what-if. */
export interface WhatIf {
  /** Machines to buy for the pods. */
  readonly replacements: readonly NewNodeClaim[];
  /** Machines by key that take some of the pods. */
  readonly destinations: readonly string[];
  /** Why some pod has no place, in one sentence; undefined when all have one. */
  readonly problem: string | undefined;
  /** What would be bought in all, by the hour: also for pods of machines that are leaving, and for those that waited before. */
  readonly spent: number;
}

/** Asks what happens if all of these go. Pods that waited before may go on waiting. */
export function simulate(
  snapshot: DisruptionSnapshot,
  candidates: readonly Candidate[],
  closedToMoves: Iterable<string> = unfinishedMachines(snapshot),
): WhatIf {
  const problem = snapshot.problem({
    candidates: candidates.map(({ machine }) => machine.key),
    closedToMoves,
    reservedOfferingMode: 'Fallback',
  });
  return read(snapshot, problem, solve(problem));
}

/**
 * Whether less would have to be bought for all pods together if machines that are not in service yet took those of the candidate.
 * Then one of them is there for nobody, a replacement say whose command was given up: nothing is bought beside it, or there would
 * be one more each time that a replacement does not get into service.
 */
export function isSparedByUnfinished(snapshot: DisruptionSnapshot, candidate: Candidate, { spent }: WhatIf): boolean {
  // Where all are in service it would be the same question again.
  if (unfinishedMachines(snapshot).length === 0) return false;
  return simulate(snapshot, [candidate], []).spent < spent * (1 - 1e-9);
}

function read(snapshot: DisruptionSnapshot, problem: Problem, result: SolveResult): WhatIf {
  const waiting = new Set(problem.pods.filter(({ spec }) => !spec?.nodeName).map((pod) => keyOf(pod)));
  const failed = result.errors.find(({ pod }) => !waiting.has(pod));
  const keys = new Map(
    [...snapshot.machines.nodes()].map((machine) => [machine.nodeName ?? machine.name, machine.key]),
  );
  return {
    replacements: result.newNodeClaims.filter(({ pods }) => pods.some((pod) => !waiting.has(pod))),
    destinations: result.existingNodes
      .filter(({ pods }) => pods.some((pod) => !waiting.has(pod)))
      .flatMap(({ name }) => keys.get(name) ?? []),
    problem: failed && `Pod ${failed.pod} would not schedule: ${failed.reason}`,
    spent: result.newNodeClaims.reduce((sum, { price }) => sum + price, 0),
  };
}
