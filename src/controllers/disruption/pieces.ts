// SPDX-License-Identifier: Apache-2.0
// A plan for a cluster whose budgets let only a part of it happen now: which nodes go first. What is bought for them is what the
// plan would have bought, for those too that go later, so that in the end the cluster is what was planned and pods move once.

import type { Steps } from '../../base/steps.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { Candidate } from './candidates.ts';
import { bySavings, type Proposal, savingsOf } from './method.ts';

export interface Pieces {
  /** What to do now. */
  readonly proposals: readonly Proposal[];
  /** Keys of the machines that go later. */
  readonly deferred: ReadonlySet<string>;
}

/** What pieces are made with. */
export interface PieceOptions {
  /** How many machines its pool may lose. */
  readonly left: (candidate: Candidate) => number;
  /** Whether some may go for others: gives these, perhaps with fewer types, or why not. */
  readonly approve: (
    candidates: readonly Candidate[],
    claims: readonly NewNodeClaim[],
  ) => readonly NewNodeClaim[] | string;
  /** Lets a piece happen; false where it would exceed what its pools may have. */
  readonly take: (piece: Proposal) => boolean;
  /**
   * Those of the machines that pods of some candidates would go to, when the others of the plan still stand and shun pods; undefined where
   * nothing could be saved by that.
   */
  readonly needed: (
    candidates: readonly Candidate[],
    claims: readonly NewNodeClaim[],
    others: readonly Candidate[],
  ) => Steps<readonly NewNodeClaim[] | undefined>;
}

/** So many nodes of a command are tried by themselves. */
const mostAlone = 6;

/** What of a plan can be done now. */
export function* piecesOf(plan: readonly Proposal[], options: PieceOptions): Steps<Pieces> {
  const all = plan.flatMap(({ candidates }) => candidates);
  if (affordable(all, new Map(), options.left).length === all.length) return { proposals: plan, deferred: new Set() };
  const spent = new Map<string, number>();
  const proposals: Proposal[] = [];
  const deferred = new Set<string>();
  const ordered = plan.toSorted((a, b) => worth(b.candidates, savingsOf(b)) - worth(a.candidates, savingsOf(a)));
  for (const proposal of ordered) {
    yield;
    const may = affordable(proposal.candidates, spent, options.left);
    const piece = yield* pieceOf(proposal, may, all, options);
    // What could go, and is not worth it by itself, waits for nothing.
    if (!piece && may.length > 0) continue;
    const going = new Set(piece?.candidates);
    for (const { nodePool } of going) spend(spent, nodePool.metadata.name ?? '');
    for (const candidate of proposal.candidates) if (!going.has(candidate)) deferred.add(candidate.machine.key);
    if (piece) proposals.push(piece);
  }
  return { proposals, deferred };
}

/** As many as their budgets allow, those first that cost most for what they move. */
function affordable(
  candidates: readonly Candidate[],
  spent: ReadonlyMap<string, number>,
  left: (candidate: Candidate) => number,
): Candidate[] {
  const used = new Map(spent);
  return candidates.toSorted(bySavings).filter((candidate) => {
    const pool = candidate.nodePool.metadata.name ?? '';
    if (left(candidate) - (used.get(pool) ?? 0) < 1) return false;
    spend(used, pool);
    return true;
  });
}

function spend(spent: Map<string, number>, pool: string): void {
  spent.set(pool, (spent.get(pool) ?? 0) + 1);
}

/** As much of a command as is worth it by itself. */
function* pieceOf(
  proposal: Proposal,
  may: readonly Candidate[],
  all: readonly Candidate[],
  { approve, needed, take }: PieceOptions,
): Steps<Proposal | undefined> {
  const { candidates, replacements } = proposal;
  if (may.length === 0) return undefined;
  if (may.length === candidates.length && take(proposal)) return proposal;
  for (const going of parts(may)) {
    yield;
    const others = all.filter((candidate) => !going.includes(candidate));
    const claims = replacements.length === 0 ? [] : yield* needed(going, replacements, others);
    const approved = claims && approve(going, claims);
    if (!approved || typeof approved === 'string') continue;
    const consolidationType = going.length > 1 ? 'multi' : 'single';
    const piece = { ...proposal, candidates: going, replacements: approved, consolidationType };
    if (take(piece)) return piece;
  }
  return undefined;
}

/** All of them, the first half, …, then one by one. */
function* parts(candidates: readonly Candidate[]): Generator<readonly Candidate[]> {
  for (let count = candidates.length; count > 1; count = Math.floor(count / 2)) yield candidates.slice(0, count);
  for (const candidate of candidates.slice(0, mostAlone)) yield [candidate];
}

/** What is saved for each unit of disturbance. */
function worth(candidates: readonly Candidate[], savings: number): number {
  return savings / candidates.reduce((sum, { rescheduleCost }) => sum + rescheduleCost, 0);
}
