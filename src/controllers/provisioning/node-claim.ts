// SPDX-License-Identifier: Apache-2.0
// From a decision of the scheduler to the NodeClaim that is written.
import { nodePoolHash, nodePoolHashVersion } from '../../api/hash.ts';
import {
  annotations,
  type LabelSet,
  labels,
  nodeClassLabel,
  restrictedLabelProblem,
  terminationFinalizer,
} from '../../api/labels.ts';
import type { NodeClaim, NodeClaimSpec } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { compareStrings } from '../../base/order.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { OwnerReference } from '../../kube/object.ts';
import type { RequirementSpec } from '../../scheduling/objects.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { conflict, type Requirement, type Requirements, requirementsOf } from '../../scheduling/requirements.ts';

export interface NodeClaimParts {
  readonly pool: NodePool;
  readonly plan: NewNodeClaim;
  /** What the pool's cloud sells. */
  readonly instanceTypes: readonly InstanceType[];
  /** What the pool's cloud knows about labels. */
  readonly labelSet: LabelSet;
  readonly owner: OwnerReference;
}

/** The NodeClaim for a plan. Throws DurationError when the pool's durations cannot be read. */
export function nodeClaimFor({ pool, plan, instanceTypes, labelSet, owner }: NodeClaimParts): NodeClaim {
  const name = pool.metadata.name ?? '';
  const { metadata, spec } = pool.spec.template;
  const requirements = requirementsOf(plan.requirements);
  const { taints, startupTaints, expireAfter, terminationGracePeriod, nodeClassRef } = spec;
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      generateName: `${name}-`,
      labels: {
        ...customLabels(requirements, labelSet),
        ...metadata?.labels,
        [labels.nodePool]: name,
        [nodeClassLabel(nodeClassRef)]: nodeClassRef.name,
      },
      annotations: {
        ...metadata?.annotations,
        [annotations.nodePoolHash]: nodePoolHash(pool),
        [annotations.nodePoolHashVersion]: nodePoolHashVersion,
        [annotations.minValuesRelaxed]: String(plan.minValuesRelaxed ?? false),
      },
      ownerReferences: [owner],
      // From the start: nothing is launched for one that could vanish unnoticed, and it need not be written again.
      finalizers: [terminationFinalizer],
    },
    spec: {
      nodeClassRef: { ...nodeClassRef },
      requirements: requirementSpecs(plan, requirements, instanceTypes),
      resources: { requests: { ...plan.requests } },
      ...(taints ? { taints: [...taints] } : {}),
      ...(startupTaints ? { startupTaints: [...startupTaints] } : {}),
      ...(expireAfter === undefined ? {} : { expireAfter }),
      ...(terminationGracePeriod === undefined ? {} : { terminationGracePeriod }),
    },
  };
}

/** The plan's requirements with the instance types, cheapest first, and the capacity types that can be had, sorted by key. */
function requirementSpecs(
  plan: NewNodeClaim,
  requirements: Requirements,
  instanceTypes: readonly InstanceType[],
): NodeClaimSpec['requirements'] {
  const given = new Map<string, RequirementSpec[]>();
  for (const spec of plan.requirements) given.set(spec.key, [...(given.get(spec.key) ?? []), spec]);
  const narrow = (key: string, values: readonly string[]): void => {
    const minValues = requirements.get(key)?.minValues;
    given.set(key, [{ key, operator: 'In', values, ...(minValues === undefined ? {} : { minValues }) }]);
  };
  // A machine of a static pool lists none: its cloud chooses.
  if (plan.instanceTypes.length > 0) narrow(labels.instanceType, plan.instanceTypes);
  const capacityTypes = availableCapacityTypes(plan, requirements, instanceTypes);
  if (capacityTypes.length > 0) narrow(labels.capacityType, capacityTypes);
  return [...given.keys()]
    .sort(compareStrings)
    .flatMap((key) => given.get(key)!)
    .map((spec) => ({
      ...spec,
      ...(spec.values ? { values: [...spec.values] } : {}),
    })) as NodeClaimSpec['requirements'];
}

/** How the machines of the plan can be paid for, by what is on sale now. */
function availableCapacityTypes(
  plan: NewNodeClaim,
  requirements: Requirements,
  instanceTypes: readonly InstanceType[],
): string[] {
  const wanted = new Set(plan.instanceTypes);
  const found = new Set<string>();
  for (const type of instanceTypes) {
    if (!wanted.has(type.name)) continue;
    for (const offering of type.offerings) {
      if (offering.available === false) continue;
      const own = offeringRequirements(offering);
      const paid = own.get(labels.capacityType);
      if (!paid || conflict(requirements, own) !== undefined) continue;
      for (const value of paid.values) found.add(value);
    }
  }
  return [...found].sort(compareStrings);
}

const offerings = new WeakMap<InstanceType['offerings'][number], Requirements>();

function offeringRequirements(offering: InstanceType['offerings'][number]): Requirements {
  let known = offerings.get(offering);
  if (!known) {
    known = requirementsOf(offering.requirements);
    offerings.set(offering, known);
  }
  return known;
}

/** A value for each label of the user's own that the node must have: nobody else would set it. */
function customLabels(requirements: Requirements, labelSet: LabelSet): Record<string, string> {
  const chosen: Record<string, string> = {};
  for (const [key, requirement] of requirements) {
    if (labelSet.wellKnown.has(key) || restrictedLabelProblem(labelSet, key) !== undefined) continue;
    const value = requirement.mustExist ? anyValue(requirement) : undefined;
    if (value !== undefined) chosen[key] = value;
  }
  return chosen;
}

/** A value that satisfies the requirement, always the same one. */
function anyValue(requirement: Requirement): string | undefined {
  const { complement, values, gte, lte } = requirement;
  if (!complement) return [...values].sort(compareStrings)[0];
  const first = Math.max(0, gte ?? (lte === undefined ? 1 : 0));
  // One more than are excluded: one of them is free, unless the bounds are too narrow.
  for (let i = 0; i <= values.size; i++) if (requirement.has(String(first + i))) return String(first + i);
  return undefined;
}
