// SPDX-License-Identifier: Apache-2.0
// Of a plan that is carried out piece by piece, which of its machines a piece needs. Pods that are alike change places, so that it is
// of no use to ask where each was meant to go: what they would not go to now is bought by the piece whose pods do.
import type { Steps } from '../../base/steps.ts';
import type { ResourceList } from '../../scheduling/objects.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { courses, LikelyPlacement } from '../../scheduling/removal/likely.ts';
import type { Candidate } from './candidates.ts';
import { afterwards, rehearsalName } from './rehearsal.ts';

/**
 * Those of the machines that pods of some candidates go to; undefined where they cost as much as the candidates. `avoided`: nodes by
 * name that pods should not go to. What is left out changes nothing for the worse.
 */
export function* neededClaims(
  problem: Problem,
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  avoided: ReadonlySet<string>,
): Steps<readonly NewNodeClaim[] | undefined> {
  const placement = new LikelyPlacement(afterwards(problem, [{ candidates, replacements: claims }]), avoided);
  const without = new Map<string, ResourceList>();
  let before = burden(placement, avoided, without);
  const idle = new Set<NewNodeClaim>();
  // The dearest first: what goes to them may do with the others.
  const order = claims.map((_, index) => index).sort((a, b) => claims[b]!.price - claims[a]!.price || a - b);
  const paid = candidates.reduce((sum, { price }) => sum + price, 0) * (1 + 1e-9);
  let spent = 0;
  for (const index of order) {
    yield;
    const name = rehearsalName(index);
    without.set(name, {});
    const now = burden(placement, avoided, without);
    if (now.unplanned > before.unplanned + 1e-9 || now.strayed > before.strayed) {
      without.delete(name);
      spent += claims[index]!.price;
      if (spent > paid) return undefined;
    } else {
      before = now;
      idle.add(claims[index]!);
    }
  }
  return claims.filter((claim) => !idle.has(claim));
}

/** What has to be bought besides, and how many pods go where they should not, in all courses together. */
function burden(
  placement: LikelyPlacement,
  avoided: ReadonlySet<string>,
  without: ReadonlyMap<string, ResourceList>,
): { unplanned: number; strayed: number } {
  let [unplanned, strayed] = [0, 0];
  for (const course of courses) {
    const { newNodeClaims, failed, placed } = placement.outcome(course, without);
    unplanned += failed.length > 0 ? Number.POSITIVE_INFINITY : 0;
    for (const { price } of newNodeClaims) unplanned += price;
    for (const [name, pods] of placed) if (avoided.has(name)) strayed += pods.length;
  }
  return { unplanned, strayed };
}
