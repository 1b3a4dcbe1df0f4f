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
import { courses, LikelyPlacement } from '../../scheduling/removal/likely.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import { solve } from '../../scheduling/solve.ts';
import { type Proposal, savingsOf } from './method.ts';

/** After so many rehearsals those stay that are worth it together, or none. */
const mostRehearsals = 4;

export type Rehearsed = Pick<Proposal, 'candidates' | 'replacements'>;

/** Those that hold, and what they save by the hour, less what they cost beyond the plan. */
export interface Rehearsal<T> {
  readonly kept: readonly T[];
  readonly gain: number;
  /** What has to be bought besides for those that are kept. */
  readonly unplanned: number;
}

export interface RehearsalOptions {
  /** Each pod where kube-scheduler would put it, which takes longer the larger the cluster; otherwise as plans are made. */
  readonly closely: boolean;
  /** Nodes by name that take pods only where no other does. */
  readonly avoided?: ReadonlySet<string>;
}

/** Those that still save when pods go where the scheduler puts them. `problem`: the cluster they were planned in. */
export function* rehearse<T extends Rehearsed>(
  problem: Problem,
  proposals: readonly T[],
  options: RehearsalOptions,
): Steps<Rehearsal<T>> {
  let kept = proposals;
  for (let rehearsal = 0; kept.length > 0; rehearsal++) {
    yield;
    const charges = unplanned(problem, kept, options);
    const extra = kept.reduce((sum, proposal) => sum + (charges.get(proposal) ?? 0), 0);
    const gain = kept.reduce((sum, proposal) => sum + savingsOf(proposal), 0) - extra;
    const worth = kept.filter((proposal) => savingsOf(proposal) > (charges.get(proposal) ?? 0));
    if (worth.length === kept.length) return { kept, gain, unplanned: extra };
    if (rehearsal === mostRehearsals) return gain > 0 ? { kept, gain, unplanned: extra } : nothing;
    kept = worth;
  }
  return nothing;
}

const nothing = { kept: [], gain: 0, unplanned: 0 };

/** What would have to be bought besides, for the pods of each; shared by those who need it together. Where none is worth it, perhaps less. */
function unplanned<T extends Rehearsed>(
  problem: Problem,
  proposals: readonly T[],
  { closely, avoided }: RehearsalOptions,
): Map<T, number> {
  const ownerOf = new Map<string, T>();
  for (const proposal of proposals)
    for (const { reschedulablePods } of proposal.candidates)
      for (const pod of reschedulablePods) ownerOf.set(keyOf(pod), proposal);
  const after = afterwards(problem, proposals);
  const count = closely ? courses.length : 1;
  const charges = new Map<T, number>();
  const charge = (pods: readonly string[], price: number): void => {
    const owners = new Set<T>();
    for (const pod of pods) {
      const owner = ownerOf.get(pod);
      if (owner) owners.add(owner);
    }
    for (const owner of owners) charges.set(owner, (charges.get(owner) ?? 0) + price / owners.size / count);
  };
  for (const { newNodeClaims, failed } of closely ? likely(after, avoided) : [planned(after)]) {
    for (const { pods, price } of newNodeClaims) charge(pods, price);
    // Of pods that wait for whatever reason most are nobody's.
    for (const pod of failed) {
      const owner = ownerOf.get(pod);
      if (owner) charges.set(owner, Number.POSITIVE_INFINITY);
    }
    // Other courses can only add to it.
    if (proposals.every((proposal) => !(savingsOf(proposal) > (charges.get(proposal) ?? 0)))) break;
  }
  return charges;
}

interface Outcome {
  readonly newNodeClaims: readonly NewNodeClaim[];
  readonly failed: readonly string[];
}

function* likely(problem: Problem, avoided?: ReadonlySet<string>): Generator<Outcome> {
  const placement = new LikelyPlacement(problem, avoided);
  for (const course of courses) yield placement.outcome(course);
}

function planned(problem: Problem): Outcome {
  const { newNodeClaims, errors } = solve(problem);
  return { newNodeClaims, failed: errors.map(({ pod }) => pod) };
}

/** The cluster with the machines that are bought, when the others leave. */
export function afterwards(problem: Problem, proposals: readonly Rehearsed[]): Problem {
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

/** What a machine is called in rehearsal, by its place among all that are bought. */
export function rehearsalName(index: number): string {
  return `rehearsal/${index}`;
}

/** The machine that a cloud would launch: the cheapest of the plan. */
function nodeOf({ instanceTypes, nodePools }: Problem, claim: NewNodeClaim, index: number): Node[] {
  const type = instanceTypes[claim.nodePool]?.find(({ name }) => name === claim.instanceTypes[0]);
  const pool = nodePools.find(({ metadata }) => metadata.name === claim.nodePool);
  const offering = type && cheapest(type, claim.requirements);
  if (!type || !pool || !offering) return [];
  const name = rehearsalName(index);
  const own: Record<string, string> = { ...pool.spec.template.metadata?.labels };
  for (const requirements of [type.requirements, claim.requirements, offering.requirements])
    for (const { key, values } of requirements) if (values?.length === 1) own[key] = values[0]!;
  const { taints } = pool.spec.template.spec ?? {};
  const allocatable = allocatableOf(type);
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
      capacity: allocatable,
      allocatable,
      conditions: [{ type: 'Ready', status: 'True' }],
    },
  };
  return [node];
}

/** The offering of a type that would be launched. */
export function cheapest(
  { offerings }: InstanceTypeSpec,
  wanted: readonly RequirementSpec[],
): OfferingSpec | undefined {
  let best: OfferingSpec | undefined;
  const asked = requirementsOf(wanted);
  for (const offering of offerings) {
    if (offering.available === false || (best && offering.price >= best.price)) continue;
    if (conflict(requirementsOf(offering.requirements), asked) === undefined) best = offering;
  }
  return best;
}
