// SPDX-License-Identifier: Apache-2.0
// What is kept in memory of pods and nodes: everything scheduling, draining and disruption look at, and nothing else. Pods
// of one workload are alike, so their parts are kept once. Env values, commands and secrets' names never get further
// than this file.

import { deepFreeze } from '../base/freeze.ts';
import type { Container, ContainerStatus, Node, Pod, PodSpec, PodStatus, Volume } from '../kube/kinds.ts';
import { kinds } from '../kube/kinds.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '../kube/object.ts';

/** Annotations that mean something to us; others are not kept. */
export const keptAnnotations = /^([^/]+\.)?karpenter\.sh\/|^controller\.kubernetes\.io\/|^kubernetes\.io\/config\./;

/** Parts that are alike are the same object. Starts over when too many differ. */
class Interner {
  readonly #parts = new Map<string, unknown>();

  of<T extends object>(part: T): T {
    const text = JSON.stringify(part);
    const known = this.#parts.get(text);
    if (known !== undefined) return known as T;
    if (this.#parts.size >= maxParts) this.#parts.clear();
    this.#parts.set(text, deepFreeze(part));
    return part;
  }
}

const maxParts = 20_000;

/**
 * The transforms for the informers of a cluster. Each call gives its own table of shared parts. The objects are for
 * reading: writing one back whole would lose what was left out, so pods and nodes are only ever patched.
 */
export function slimTransforms(): <T extends KubeObject>(type: ResourceType<T>) => ((object: T) => T) | undefined {
  const interner = new Interner();
  const pods = (pod: Pod): Pod => slimPod(pod, (part) => interner.of(part));
  return <T extends KubeObject>(type: ResourceType<T>) => {
    const same = (other: ResourceType): boolean => other.group === type.group && other.kind === type.kind;
    if (same(kinds.Pod)) return pods as unknown as (object: T) => T;
    if (same(kinds.Node)) return slimNode as unknown as (object: T) => T;
    return undefined;
  };
}

type Share = <T extends object>(part: T) => T;

/** A pod without what nobody reads. */
export function slimPod(pod: Pod, share: Share = (part) => part): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: slimMetadata(pod.metadata, share),
    spec: slimSpec(pod.spec, share),
    ...(pod.status ? { status: slimStatus(pod.status, share) } : {}),
  };
}

/** A node without its list of images: often the larger half of it. */
export function slimNode(node: Node): Node {
  const { managedFields: _fields, ...metadata } = node.metadata;
  if (!node.status?.images) return { ...node, metadata };
  const { images: _images, ...status } = node.status;
  return { ...node, metadata, status };
}

function slimMetadata(metadata: ObjectMeta, share: Share): ObjectMeta {
  const { managedFields: _fields, labels, annotations, ownerReferences, ...rest } = metadata;
  const kept = annotations && Object.entries(annotations).filter(([key]) => keptAnnotations.test(key));
  return {
    ...rest,
    ...(labels ? { labels: share(labels) } : {}),
    ...(kept && kept.length > 0 ? { annotations: share(Object.fromEntries(kept)) } : {}),
    ...(ownerReferences ? { ownerReferences: share(ownerReferences) } : {}),
  };
}

const sharedParts = [
  'overhead',
  'resources',
  'nodeSelector',
  'affinity',
  'tolerations',
  'topologySpreadConstraints',
  'resourceClaims',
  'schedulingGates',
] as const satisfies readonly (keyof PodSpec)[];

const plainFields = [
  'nodeName',
  'priority',
  'priorityClassName',
  'terminationGracePeriodSeconds',
  'schedulerName',
  'restartPolicy',
] as const satisfies readonly (keyof PodSpec)[];

/** A pod's spec without what nobody reads: also that of a template. */
export function slimSpec(spec: PodSpec, share: Share = (part) => part): PodSpec {
  const kept: Partial<Record<keyof PodSpec, unknown>> = { containers: share(spec.containers.map(slimContainer)) };
  if (spec.initContainers) kept.initContainers = share(spec.initContainers.map(slimContainer));
  const volumes = spec.volumes?.filter(isClaimed).map(slimVolume);
  if (volumes && volumes.length > 0) kept.volumes = share(volumes);
  for (const field of sharedParts) if (spec[field] !== undefined) kept[field] = share(spec[field]);
  for (const field of plainFields) if (spec[field] !== undefined) kept[field] = spec[field];
  return kept as PodSpec;
}

function slimContainer({ name, resources, ports, restartPolicy }: Container): Container {
  const hostPorts = ports?.filter(({ hostPort }) => hostPort);
  return {
    name,
    ...(resources ? { resources } : {}),
    ...(hostPorts && hostPorts.length > 0 ? { ports: hostPorts } : {}),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}

function isClaimed({ persistentVolumeClaim, ephemeral }: Volume): boolean {
  return persistentVolumeClaim !== undefined || ephemeral !== undefined;
}

function slimVolume({ name, persistentVolumeClaim, ephemeral }: Volume): Volume {
  return { name, ...(persistentVolumeClaim ? { persistentVolumeClaim } : {}), ...(ephemeral ? { ephemeral } : {}) };
}

function slimStatus(status: PodStatus, share: Share): PodStatus {
  const { phase, conditions, nominatedNodeName, startTime, resourceClaimStatuses } = status;
  const containers = slimStatuses(status.containerStatuses);
  const initContainers = slimStatuses(status.initContainerStatuses);
  return {
    ...(phase === undefined ? {} : { phase }),
    ...(conditions ? { conditions: conditions.map(slimCondition) } : {}),
    ...(nominatedNodeName === undefined ? {} : { nominatedNodeName }),
    ...(startTime === undefined ? {} : { startTime }),
    ...(resourceClaimStatuses ? { resourceClaimStatuses } : {}),
    ...(containers ? { containerStatuses: share(containers) } : {}),
    ...(initContainers ? { initContainerStatuses: share(initContainers) } : {}),
  };
}

type PodCondition = NonNullable<PodStatus['conditions']>[number];

function slimCondition({ type, status, reason, lastTransitionTime }: PodCondition): PodCondition {
  return {
    type,
    status,
    ...(reason === undefined ? {} : { reason }),
    ...(lastTransitionTime === undefined ? {} : { lastTransitionTime }),
  };
}

/** Only what a resize in place has changed counts. */
function slimStatuses(statuses: readonly ContainerStatus[] | undefined): ContainerStatus[] | undefined {
  const sized = statuses?.filter(({ resources, allocatedResources }) => resources ?? allocatedResources);
  if (!sized || sized.length === 0) return undefined;
  return sized.map(
    ({ name, resources, allocatedResources }) =>
      ({
        name,
        ...(resources ? { resources } : {}),
        ...(allocatedResources ? { allocatedResources } : {}),
      }) as ContainerStatus,
  );
}
