// SPDX-License-Identifier: Apache-2.0
// From a NodeClaim to the machine it gets and the Node that machine shows up as. A function of the NodeClaim alone: a
// restarted controller comes to the same machine, under the same name.
import { type LabelSet, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import { planted } from '../../base/defects.ts';
import { compareStrings } from '../../base/order.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import { CreateError, InsufficientCapacityError } from '../../cloud/errors.ts';
import type { Instance, InstanceType } from '../../cloud/provider.ts';
import type { Node } from '../../kube/kinds.ts';
import { Quantity } from '../../kube/quantity.ts';
import { compatible, type Requirements, requirementsOf } from '../../scheduling/requirements.ts';
import { kwokLabels } from './labels.ts';

export const providerScheme = 'kwok://';
const fake = 'fake';

/** Annotations of a Node that say for which NodeClaim its machine was made. */
const claimName = 'karpenter.kwok.sh/nodeclaim';
const claimUid = 'karpenter.kwok.sh/nodeclaim-uid';

function madeFor({ metadata }: NodeClaim): Record<string, string> {
  return { [claimName]: metadata.name ?? '', [claimUid]: metadata.uid ?? '' };
}

type Resources = Record<string, string>;

/** The name of the machine and of its Node: the same for every launch of the same NodeClaim. */
export function machineName(claim: NodeClaim): string {
  const { uid: own = '', resourceVersion = '' } = claim.metadata;
  const uid = planted('kwok-launches-again') ? resourceVersion : own.replaceAll('-', '');
  return `kwok-${shortened(claim.metadata.name ?? '', longestName)}-${uid.slice(0, 10)}`;
}

/** What leaves room in the name of a Node for what we add to it. */
const longestName = 230;
const longestLabel = 63;

/** The beginning of a name, which ends as names may. */
function shortened(name: string, most: number): string {
  return name.length <= most ? name : name.slice(0, most).replace(/[^a-z0-9]+$/, '');
}

export function providerIDOf(claim: NodeClaim): string {
  return `${providerScheme}${machineName(claim)}`;
}

interface Choice {
  readonly type: InstanceType;
  readonly offering: InstanceType['offerings'][number];
}

/** The Node a NodeClaim gets. Throws CreateError when it lists no types, InsufficientCapacityError when none can be had. */
export function nodeFor(claim: NodeClaim, types: ReadonlyMap<string, InstanceType>, labelSet: LabelSet): Node {
  const { type, offering } = choose(claim, types, labelSet);
  const requests = claim.spec.resources?.requests ?? {};
  const wanted = Object.fromEntries(Object.entries(requests).map(([name, amount]) => [name, String(amount)]));
  const capacity = Object.fromEntries(Object.entries(type.capacity).map(([name, amount]) => [name, String(amount)]));
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: machineName(claim),
      labels: labelsOf(claim, type, offering),
      annotations: { ...claim.metadata.annotations, [kwokLabels.fakeNode]: fake, ...madeFor(claim) },
    },
    spec: { providerID: providerIDOf(claim), taints: [{ ...unregisteredTaint }] },
    status: {
      // Requests first: an extended resource that no type has is pretended too.
      capacity: { ...wanted, ...capacity },
      allocatable: { ...wanted, ...allocatableOf(type) },
      phase: 'Pending',
    },
  };
}

/** A machine as the cloud reports it, read back from its Node. */
export function instanceOf(node: Node): Instance {
  const { name = '', labels: nodeLabels = {}, creationTimestamp, deletionTimestamp } = node.metadata;
  const { [claimName]: claim = '', [claimUid]: uid, ...annotations } = node.metadata.annotations ?? {};
  return {
    providerID: node.spec?.providerID ?? `${providerScheme}${name}`,
    labels: nodeLabels,
    annotations,
    capacity: (node.status?.capacity ?? {}) as Resources,
    allocatable: (node.status?.allocatable ?? {}) as Resources,
    ...(uid ? { nodeClaim: { name: claim, uid } } : {}),
    ...(creationTimestamp ? { createdAt: creationTimestamp } : {}),
    ...(deletionTimestamp ? { deleting: true } : {}),
  };
}

/** The cheapest offering among the listed types, or all of them; among equals the UID decides, so that zones get their share. */
function choose(claim: NodeClaim, types: ReadonlyMap<string, InstanceType>, labelSet: LabelSet): Choice {
  const wanted = requirementsOf(claim.spec.requirements, labelSet);
  const names = namesFor(claim, types, wanted, labelSet);
  let cheapest: Choice[] = [];
  for (const name of names) {
    const type = types.get(name);
    for (const offering of type?.offerings ?? []) {
      if (offering.available === false) continue;
      const price = cheapest[0]?.offering.price ?? Number.POSITIVE_INFINITY;
      if (!type || offering.price > price) continue;
      // The NodeClaim asks for more than an offering can say (its pool, its class): only what the offering says counts.
      if (!compatible(wanted, requirementsOf(offering.requirements, labelSet), labelSet.wellKnown)) continue;
      if (offering.price < price) cheapest = [];
      // Among types of the same price the first listed wins; only its zones are drawn from.
      if (cheapest.length === 0 || cheapest[0]?.type === type) cheapest.push({ type, offering });
    }
  }
  const chosen = cheapest[drawByUid(claim.metadata.uid ?? '', cheapest.length)];
  if (!chosen)
    throw new InsufficientCapacityError(`no offering of ${names.length} instance types fits the requirements`);
  return chosen;
}

/** The types that a NodeClaim lists. One of a static pool lists none: whatever its requirements allow will do. */
function namesFor(
  claim: NodeClaim,
  types: ReadonlyMap<string, InstanceType>,
  wanted: Requirements,
  labelSet: LabelSet,
): readonly string[] {
  const listed = claim.spec.requirements.find((r) => r.key === labels.instanceType && r.operator === 'In');
  if (!listed)
    return [...types.values()].filter((type) => suits(claim, type, wanted, labelSet)).map(({ name }) => name);
  const { values = [] } = listed;
  if (values.length > 0) return values;
  throw new CreateError('the NodeClaim lists no instance types', {
    reason: 'InstanceTypeMissing',
    message: `requirements must list instance types (${labels.instanceType} In …), or none at all`,
  });
}

/** Whether a type that nobody chose is what the NodeClaim requires, and large enough. */
function suits(claim: NodeClaim, type: InstanceType, wanted: Requirements, labelSet: LabelSet): boolean {
  if (!compatible(wanted, requirementsOf(type.requirements, labelSet), labelSet.wellKnown)) return false;
  const room = allocatableOf(type);
  return Object.entries(claim.spec.resources?.requests ?? {}).every(([name, amount]) => {
    const there = room[name];
    // An extended resource that no type has is pretended too.
    return there === undefined || Quantity.parse(amount).nano <= Quantity.parse(there).nano;
  });
}

function drawByUid(uid: string, count: number): number {
  let sum = 0;
  for (const character of uid) sum = (Math.imul(sum, 31) + character.charCodeAt(0)) >>> 0;
  return count === 0 ? 0 : sum % count;
}

function labelsOf(claim: NodeClaim, type: InstanceType, offering: Choice['offering']): Record<string, string> {
  const single: Record<string, string> = {};
  for (const { key, operator, values } of [
    ...claim.spec.requirements,
    ...type.requirements,
    ...offering.requirements,
  ]) {
    if (operator === 'In' && values?.length === 1) single[key] = values[0]!;
  }
  const all: Record<string, string> = {
    ...claim.metadata.labels,
    ...single,
    [labels.instanceType]: type.name,
    [kwokLabels.price]: offering.price.toFixed(6),
    [kwokLabels.partition]: 'a',
    [labels.hostname]: shortened(claim.metadata.name ?? '', longestLabel),
    [kwokLabels.fakeNode]: fake,
  };
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => compareStrings(a, b)));
}
