// SPDX-License-Identifier: Apache-2.0
// Commands in rehearsal: in a plan every pod has its place, but whoever schedules pods knows nothing of the plan. Where many
// nodes go at once, pods take the places of others, and machines have to be bought that nobody planned for: a command has to
// be worth these, too.
import { labels } from '../../api/labels.ts';
import type { Steps } from '../../base/steps.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import { keyOf } from '../../kube/object.ts';
import type { Node, RequirementSpec } from '../../scheduling/objects.ts';
import type { InstanceTypeSpec, NewNodeClaim, OfferingSpec, Problem } from '../../scheduling/problem.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import { solve } from '../../scheduling/solve.ts';
import { type Proposal, savingsOf } from './method.ts';

/** After so many rehearsals those stay that are worth it together, or none. */
const mostRehearsals = 4;

/** Those that still save when pods go where the scheduler puts them. `problem`: the cluster they were planned in. */
export function* rehearse(problem: Problem, proposals: readonly Proposal[]): Steps<readonly Proposal[]> {
  let kept = proposals;
  for (let rehearsal = 0; kept.length > 0; rehearsal++) {
    yield;
    const charges = unplanned(problem, kept);
    if (rehearsal === mostRehearsals) {
      const gain = kept.reduce((sum, proposal) => sum + savingsOf(proposal) - (charges.get(proposal) ?? 0), 0);
      return gain > 0 ? kept : [];
    }
    const worth = kept.filter((proposal) => savingsOf(proposal) > (charges.get(proposal) ?? 0));
    if (worth.length === kept.length) return kept;
    kept = worth;
  }
  return kept;
}

/** What would have to be bought besides, for the pods of each; shared by those who need it together. */
function unplanned(problem: Problem, proposals: readonly Proposal[]): Map<Proposal, number> {
  const ownerOf = new Map<string, Proposal>();
  for (const proposal of proposals)
    for (const { reschedulablePods } of proposal.candidates)
      for (const pod of reschedulablePods) ownerOf.set(keyOf(pod), proposal);
  const { newNodeClaims, errors } = solve(afterwards(problem, proposals));
  const charges = new Map<Proposal, number>();
  const charge = (pods: readonly string[], price: number): void => {
    const owners = new Set(pods.flatMap((pod) => ownerOf.get(pod) ?? []));
    for (const owner of owners) charges.set(owner, (charges.get(owner) ?? 0) + price / owners.size);
  };
  for (const { pods, price } of newNodeClaims) charge(pods, price);
  for (const { pod } of errors) charge([pod], Number.POSITIVE_INFINITY);
  return charges;
}

/** The cluster with the machines that are bought, when the others leave. */
function afterwards(problem: Problem, proposals: readonly Proposal[]): Problem {
  const going = proposals.flatMap(({ candidates }) =>
    candidates.map(({ machine }) => machine.nodeName ?? machine.name),
  );
  const bought = proposals.flatMap(({ replacements }) => replacements).flatMap((claim, i) => nodeOf(problem, claim, i));
  return {
    ...problem,
    nodes: [...(problem.nodes ?? []), ...bought],
    state: { ...problem.state, candidates: going },
  };
}

/** The machine that a cloud would launch: the cheapest of the plan. */
function nodeOf({ instanceTypes, nodePools }: Problem, claim: NewNodeClaim, index: number): Node[] {
  const type = instanceTypes[claim.nodePool]?.find(({ name }) => name === claim.instanceTypes[0]);
  const pool = nodePools.find(({ metadata }) => metadata.name === claim.nodePool);
  const offering = type && cheapest(type, claim.requirements);
  if (!type || !pool || !offering) return [];
  const name = `rehearsal/${index}`;
  const own: Record<string, string> = { ...pool.spec.template.metadata?.labels };
  for (const requirements of [type.requirements, claim.requirements, offering.requirements])
    for (const { key, values } of requirements) if (values?.length === 1) own[key] = values[0]!;
  const { taints } = pool.spec.template.spec ?? {};
  const node: Node = {
    metadata: {
      name,
      labels: {
        ...own,
        [labels.nodePool]: claim.nodePool,
        [labels.instanceType]: type.name,
        [labels.registered]: 'true',
        [labels.initialized]: 'true',
        [labels.hostname]: name,
      },
    },
    spec: { providerID: name, ...(taints ? { taints } : {}) },
    status: {
      capacity: type.capacity,
      allocatable: allocatableOf(type),
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
  return [node];
}

function cheapest({ offerings }: InstanceTypeSpec, wanted: readonly RequirementSpec[]): OfferingSpec | undefined {
  let best: OfferingSpec | undefined;
  const asked = requirementsOf(wanted);
  for (const offering of offerings) {
    if (offering.available === false || (best && offering.price >= best.price)) continue;
    if (conflict(requirementsOf(offering.requirements), asked) === undefined) best = offering;
  }
  return best;
}
