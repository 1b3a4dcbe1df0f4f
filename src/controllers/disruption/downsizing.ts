// SPDX-License-Identifier: Apache-2.0
// Machines that are bought with room to spare may have too much of it: each is tried one size smaller, as long as every pod
// still finds a place in rehearsal.
import type { Steps } from '../../base/steps.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { Pod, ResourceList } from '../../scheduling/objects.ts';
import { type Amounts, addTo, amountsOf, podRequests, subtractFrom } from '../../scheduling/pod-resources.ts';
import type { InstanceTypeSpec, NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { courses, LikelyPlacement } from '../../scheduling/removal/likely.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import { afterwards, cheapest, type Rehearsed, rehearsalName } from './rehearsal.ts';

/** Larger plans are left as they are. */
const mostClaims = 24;
/** How many smaller types are tried in the place of one. */
const mostTries = 8;
/** What costs less than this share of a machine is hardly large enough. */
const leastShare = 0.3;

interface Smaller {
  readonly type: InstanceTypeSpec;
  readonly price: number;
  readonly allocatable: ResourceList;
}

/** The machines of each proposal, in their order; smaller ones where these do as well. */
export function* downsized(problem: Problem, proposals: readonly Rehearsed[]): Steps<NewNodeClaim[][]> {
  const all = proposals.map(({ replacements }) => [...replacements]);
  const claims = all.flat();
  if (claims.length === 0 || claims.length > mostClaims) return all;
  yield;
  const placement = new LikelyPlacement(afterwards(problem, proposals));
  const instead = new Map<string, ResourceList>();
  const chosen = new Map<number, Smaller>();
  /** What is bought besides, in the worst of the orders that pods may come in. */
  const costOf = (other: ReadonlyMap<string, ResourceList>): number =>
    Math.max(
      ...courses.map((course) => {
        const { newNodeClaims, failed } = placement.outcome(course, other);
        return failed.length > 0 ? Number.POSITIVE_INFINITY : newNodeClaims.reduce((sum, { price }) => sum + price, 0);
      }),
    );
  const before = costOf(instead);
  // The smallest first: what they hold finds a place on the others sooner.
  const order = claims.map((_, index) => index).sort((a, b) => claims[a]!.price - claims[b]!.price);
  for (const index of order) {
    yield;
    const name = rehearsalName(index);
    for (const smaller of smallerThan(problem, claims[index]!)) {
      const other = new Map(instead).set(name, smaller.allocatable);
      if (costOf(other) > before + 1e-9) continue;
      instead.set(name, smaller.allocatable);
      chosen.set(index, smaller);
    }
  }
  if (chosen.size === 0) return all;
  const { placed } = placement.outcome(courses[0]!, instead);
  const podsByKey = new Map(
    problem.pods.map((pod) => [`${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`, pod]),
  );
  let index = 0;
  return all.map((own) =>
    own.map((claim) => {
      const smaller = chosen.get(index);
      const pods = placed.get(rehearsalName(index++)) ?? [];
      return smaller ? shrunk(claim, smaller, pods, podsByKey) : claim;
    }),
  );
}

/** Types that cost less than a machine, dearest first: of those, such that no cheaper one has as much of everything. */
function smallerThan({ instanceTypes }: Problem, claim: NewNodeClaim): Smaller[] {
  const { nodePool, requirements, price, reservations = [], minValuesRelaxed } = claim;
  // What was asked for as a choice, or is reserved, stays as it is.
  if (reservations.length > 0 || minValuesRelaxed || requirements.some(({ minValues }) => minValues !== undefined))
    return [];
  const asked = requirementsOf(requirements);
  const found: (Smaller & { amounts: Amounts })[] = [];
  for (const type of instanceTypes[nodePool] ?? []) {
    if (conflict(requirementsOf(type.requirements), asked) !== undefined) continue;
    const own = cheapest(type, requirements)?.price;
    if (own === undefined || own >= price * (1 - 1e-9) || own < leastShare * price) continue;
    const allocatable = allocatableOf(type);
    found.push({ type, price: own, allocatable, amounts: amountsOf(allocatable) });
  }
  found.sort((a, b) => a.price - b.price);
  const front: typeof found = [];
  for (const one of found)
    if (!front.some(({ amounts }) => [...one.amounts].every(([name, nano]) => (amounts.get(name) ?? 0n) >= nano)))
      front.push(one);
  return front.reverse().slice(0, mostTries);
}

function shrunk(
  claim: NewNodeClaim,
  { type, price }: Smaller,
  pods: readonly string[],
  podsByKey: ReadonlyMap<string, Pod>,
): NewNodeClaim {
  const requests = amountsOf(claim.requests);
  subtractFrom(requests, sumOf(claim.pods, podsByKey));
  addTo(requests, sumOf(pods, podsByKey));
  const texts = Object.entries(claim.requests).map(([name, text]) => {
    const { format } = Quantity.parse(text);
    return [name, Quantity.fromNano(requests.get(name) ?? 0n, format).toString()];
  });
  const instanceTypes = [type.name, ...claim.instanceTypes.filter((name) => name !== type.name)];
  return { ...claim, instanceTypes, price, pods, requests: Object.fromEntries(texts) as Record<string, string> };
}

function sumOf(pods: readonly string[], podsByKey: ReadonlyMap<string, Pod>): Amounts {
  const total: Amounts = new Map();
  for (const key of pods) {
    const pod = podsByKey.get(key);
    if (!pod) continue;
    addTo(total, podRequests(pod.spec, pod.status));
    addTo(total, new Map([['pods', 1_000_000_000n]]));
  }
  return total;
}
