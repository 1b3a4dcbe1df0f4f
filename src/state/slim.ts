// SPDX-License-Identifier: Apache-2.0
// What is kept in memory of pods and nodes: everything scheduling, draining and disruption look at, and nothing else. Pods
// of one workload are alike, so their parts are kept once. Env values, commands and secrets' names never get further
// than this file.

import { deepEqual, deepFreeze } from '../base/freeze.ts';
import type { Container, ContainerStatus, Node, Pod, PodSpec, PodStatus, Volume } from '../kube/kinds.ts';
import { kinds } from '../kube/kinds.ts';
import type { KubeObject, ObjectMeta, ResourceType } from '../kube/object.ts';

/** Annotations that mean something to us; others are not kept. */
export const keptAnnotations = /^([^/]+\.)?karpenter\.sh\/|^controller\.kubernetes\.io\/|^kubernetes\.io\/config\./;

/** Keeps parts and texts that are alike once. Starts over when too many differ. */
class Interner {
  readonly #parts = new Map<string, unknown>();
  readonly #texts = new Map<string, string>();

  /** The same part; `old` if that says the same. */
  part<T extends object>(part: T, old?: T): T {
    if (old !== undefined && deepEqual(part, old)) return old;
    const text = JSON.stringify(part);
    const known = this.#parts.get(text);
    if (known !== undefined) return known as T;
    if (this.#parts.size >= maxParts) this.#parts.clear();
    this.#parts.set(text, deepFreeze(part));
    return part;
  }

  /** The same text: every parsed object has its own copy of names and times. */
  text(text: string): string {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    if (this.#texts.size >= maxParts) this.#texts.clear();
    this.#texts.set(text, text);
    return text;
  }
}

const maxParts = 20_000;

/** For pods that nobody keeps many of. */
const nobody: Pick<Interner, 'part' | 'text'> = { part: (part) => part, text: (text) => text };
type Sharing = typeof nobody;

/**
 * The transforms for the informers of a cluster. Each call gives its own table of shared parts. The objects are for
 * reading: writing one back whole would lose what was left out, so pods and nodes are only ever patched.
 */
export function slimTransforms(): <T extends KubeObject>(
  type: ResourceType<T>,
) => ((object: T, old?: T) => T) | undefined {
  const interner = new Interner();
  /** Pods as they came last, by UID, and what was made of them. Only frozen ones: those that are parsed anew have no part in common. */
  const last = new Map<string, { readonly pod: Pod; readonly slim: Pod }>();
  const pods = (pod: Pod, old?: Pod): Pod => {
    const { uid } = pod.metadata;
    if (uid === undefined || !Object.isFrozen(pod)) return slimPod(pod, interner, old);
    const known = last.get(uid);
    // Not everything that is made is kept: a list that is cut short is made again, beside what was there before it.
    const slim = slimPod(pod, interner, old, known?.slim === old ? known?.pod : undefined);
    if (last.size >= maxParts) last.clear();
    last.set(uid, { pod, slim });
    return slim;
  };
  return <T extends KubeObject>(type: ResourceType<T>) => {
    const same = (other: ResourceType): boolean => other.group === type.group && other.kind === type.kind;
    if (same(kinds.Pod)) return pods as unknown as (object: T, old?: T) => T;
    if (same(kinds.Node)) return slimNode as unknown as (object: T) => T;
    return undefined;
  };
}

/**
 * A pod without what nobody reads. Parts that did not change are those of `old`, the same pod as it was. On a node it is `old`
 * itself, with the version it had, when nothing that is kept changed: of most of what a kubelet writes nobody has to hear. While
 * it waits, whatever is written says that a scheduler has looked at it again, and could not help it. `last` is what `old` was made
 * of: what a write did not touch is the very same in process.
 */
export function slimPod(pod: Pod, sharing: Sharing = nobody, old?: Pod, last?: Pod): Pod {
  const metadata = slimMetadata(pod.metadata, sharing, old?.metadata, last?.metadata);
  const spec = old && last?.spec === pod.spec ? old.spec : slimSpec(pod.spec, sharing, old?.spec);
  const status = pod.status && slimStatus(pod.status, sharing, old?.status);
  const isSaid = old !== undefined && spec === old.spec && status === old.status;
  if (isSaid && spec.nodeName && isSame(metadata, old.metadata, 'resourceVersion')) return old;
  const slim: Pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec };
  return status ? { ...slim, status } : slim;
}

/** A node without its list of images: often the larger half of it. */
export function slimNode(node: Node): Node {
  const { managedFields: _fields, ...metadata } = node.metadata;
  if (!node.status?.images) return { ...node, metadata };
  const { images: _images, ...status } = node.status;
  return { ...node, metadata, status };
}

function slimMetadata(metadata: ObjectMeta, sharing: Sharing, old?: ObjectMeta, last?: ObjectMeta): ObjectMeta {
  const { managedFields: _fields, generateName: _prefix, labels, annotations, ownerReferences, ...rest } = metadata;
  const kept: ObjectMeta = rest;
  if (rest.namespace !== undefined) kept.namespace = sharing.text(rest.namespace);
  if (rest.creationTimestamp) kept.creationTimestamp = sharing.text(rest.creationTimestamp);
  if (labels) kept.labels = last?.labels === labels ? old!.labels! : sharing.part(labels, old?.labels);
  const known = annotations && keptOf(annotations);
  if (known) kept.annotations = sharing.part(known, old?.annotations);
  if (ownerReferences)
    kept.ownerReferences =
      last?.ownerReferences === ownerReferences
        ? old!.ownerReferences!
        : sharing.part(ownerReferences, old?.ownerReferences);
  if (old?.finalizers && deepEqual(rest.finalizers, old.finalizers)) kept.finalizers = old.finalizers;
  return kept;
}

function keptOf(annotations: Readonly<Record<string, string>>): Record<string, string> | undefined {
  let kept: Record<string, string> | undefined;
  for (const key in annotations) if (keptAnnotations.test(key)) (kept ??= {})[key] = annotations[key]!;
  return kept;
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

/** A pod's spec without what nobody reads: also that of a template. `old` itself when it says the same. */
export function slimSpec(spec: PodSpec, sharing: Sharing = nobody, old?: PodSpec): PodSpec {
  const kept: Partial<Record<keyof PodSpec, unknown>> = {
    containers: sharing.part(spec.containers.map(slimContainer), old?.containers),
  };
  if (spec.initContainers)
    kept.initContainers = sharing.part(spec.initContainers.map(slimContainer), old?.initContainers);
  const volumes = spec.volumes?.filter(isClaimed).map(slimVolume);
  if (volumes && volumes.length > 0) kept.volumes = sharing.part(volumes, old?.volumes);
  for (const field of sharedParts)
    if (spec[field] !== undefined) kept[field] = sharing.part(spec[field], old?.[field] as (typeof spec)[typeof field]);
  for (const field of plainFields) {
    const value = spec[field];
    if (value !== undefined) kept[field] = typeof value === 'string' ? sharing.text(value) : value;
  }
  return old && isSame(kept, old) ? old : (kept as PodSpec);
}

/** Whether two objects hold the very same parts, but for one. */
function isSame(a: object, b: object, but?: string): boolean {
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in left) if (left[key] !== right[key] && key !== but) return false;
  for (const key in right) if (!(key in left)) return false;
  return true;
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

function slimStatus(status: PodStatus, sharing: Sharing, old?: PodStatus): PodStatus {
  const { phase, conditions, nominatedNodeName, startTime, resourceClaimStatuses } = status;
  const containers = slimStatuses(status.containerStatuses);
  const initContainers = slimStatuses(status.initContainerStatuses);
  const kept: PodStatus = {};
  if (phase !== undefined) kept.phase = phase;
  if (conditions) {
    const slim = slimConditions(conditions, sharing);
    kept.conditions = old?.conditions && deepEqual(slim, old.conditions) ? old.conditions : slim;
  }
  if (nominatedNodeName !== undefined) kept.nominatedNodeName = nominatedNodeName;
  if (startTime !== undefined) kept.startTime = sharing.text(startTime);
  if (resourceClaimStatuses) kept.resourceClaimStatuses = resourceClaimStatuses;
  if (containers) kept.containerStatuses = sharing.part(containers, old?.containerStatuses);
  if (initContainers) kept.initContainerStatuses = sharing.part(initContainers, old?.initContainerStatuses);
  return old && isSame(kept, old) ? old : kept;
}

type PodCondition = NonNullable<PodStatus['conditions']>[number];

/** Conditions that mean something to us; others are not kept. */
const keptConditions: ReadonlySet<string> = new Set(['PodScheduled', 'Ready']);

function slimConditions(conditions: readonly PodCondition[], sharing: Sharing): PodCondition[] {
  const slim: PodCondition[] = [];
  for (const { type, status, reason, lastTransitionTime } of conditions) {
    if (!keptConditions.has(type)) continue;
    const kept: PodCondition = { type: sharing.text(type), status };
    if (reason !== undefined) kept.reason = sharing.text(reason);
    if (lastTransitionTime !== undefined) kept.lastTransitionTime = sharing.text(lastTransitionTime);
    slim.push(kept);
  }
  return slim;
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
