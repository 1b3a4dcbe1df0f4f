// SPDX-License-Identifier: Apache-2.0
// Which differences between two versions of an object can change a plan. Kubelets, controllers and we ourselves write into
// statuses all day long; a plan looks at little of that.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { annotations } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { deepEqual } from '../../base/freeze.ts';
import type { DaemonSet, Node, Pod, PodDisruptionBudget } from '../../kube/kinds.ts';
import type { ObjectMeta } from '../../kube/object.ts';
import { isTerminal, isUnready } from '../../state/pod-predicates.ts';
import { isSameBesideStatus } from '../same-pod.ts';

/** Whether a plan sees no difference between two versions of a pod. */
export function isSameToPlanPod(a: Pod, b: Pod): boolean {
  return (
    isSameBesideStatus(a, b) &&
    isTerminal(a) === isTerminal(b) &&
    (b.spec.nodeName ? isSameOnNode(a, b) : isSameInQueue(a, b))
  );
}

/** What a kubelet reports matters where a resize is under way, and where a pod protects itself from its start on. */
function isSameOnNode(a: Pod, b: Pod): boolean {
  const [was, is] = [a.status ?? {}, b.status ?? {}];
  const isProtected = b.metadata.annotations?.[annotations.doNotDisrupt] !== undefined;
  return (
    (!isProtected || was.startTime === is.startTime) &&
    // Some budgets let go of pods that are not ready.
    isUnready(a) === isUnready(b) &&
    sameResources(was.containerStatuses, is.containerStatuses) &&
    sameResources(was.initContainerStatuses, is.initContainerStatuses)
  );
}

function isSameInQueue(a: Pod, b: Pod): boolean {
  return a.status?.nominatedNodeName === b.status?.nominatedNodeName && scheduledReason(a) === scheduledReason(b);
}

function scheduledReason({ status }: Pod): string | undefined {
  return status?.conditions?.find(({ type }) => type === 'PodScheduled')?.reason;
}

type ContainerStatuses = NonNullable<Pod['status']>['containerStatuses'];

function sameResources(a: ContainerStatuses, b: ContainerStatuses): boolean {
  return a === b || deepEqual(resourcesOf(a), resourcesOf(b));
}

function resourcesOf(statuses: ContainerStatuses): unknown[] {
  return (statuses ?? [])
    .filter(({ resources, allocatedResources }) => resources !== undefined || allocatedResources !== undefined)
    .map(({ name, resources, allocatedResources }) => ({ name, resources, allocatedResources }));
}

export function isSameToPlanNode(a: Node, b: Node): boolean {
  return (
    isSameMetadata(a.metadata, b.metadata) &&
    deepEqual(a.spec, b.spec) &&
    deepEqual(a.status?.allocatable, b.status?.allocatable) &&
    deepEqual(a.status?.capacity, b.status?.capacity)
  );
}

export function isSameToPlanClaim(a: NodeClaim, b: NodeClaim): boolean {
  const [was, is] = [a.status ?? {}, b.status ?? {}];
  return (
    isSameMetadata(a.metadata, b.metadata) &&
    deepEqual(a.spec, b.spec) &&
    was.nodeName === is.nodeName &&
    was.providerID === is.providerID &&
    deepEqual(was.allocatable, is.allocatable) &&
    deepEqual(was.capacity, is.capacity) &&
    isTerminating(a) === isTerminating(b)
  );
}

function isTerminating(claim: NodeClaim): boolean {
  return hasTrueConditions(claim, nodeClaimConditions.instanceTerminating);
}

/** Of pools, DaemonSets and budgets a plan reads what users wrote, never what was found. */
export function isSameToPlanSpec<T extends NodePool | DaemonSet | PodDisruptionBudget>(a: T, b: T): boolean {
  return isSameMetadata(a.metadata, b.metadata) && deepEqual(a.spec, b.spec);
}

function isSameMetadata(a: ObjectMeta, b: ObjectMeta): boolean {
  return a.uid === b.uid && a.deletionTimestamp === b.deletionTimestamp && deepEqual(a.labels, b.labels);
}
