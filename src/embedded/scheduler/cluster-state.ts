// SPDX-License-Identifier: Apache-2.0
// The scheduler's picture of the cluster, changed in place as events arrive and as pods are assumed onto nodes.
import type {
  CSINode,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
} from '../../kube/kinds.ts';
import { nothing, type Selector } from '../../kube/labels.ts';
import { NodeInfo } from './node-info.ts';
import { PodIndex } from './pod-index.ts';
import { type AffinityTerm, type PodInfo, podInfo } from './pod-info.ts';

/** What the scheduler reads besides nodes and placed pods; all of it lookups by name. */
export interface Lookups {
  claim(key: string): PersistentVolumeClaim | undefined;
  volume(name: string): PersistentVolume | undefined;
  volumes(): readonly PersistentVolume[];
  storageClass(name: string): StorageClass | undefined;
  csiNode(name: string): CSINode | undefined;
  namespaces(): readonly Namespace[];
  /** The selector of the ReplicaSet or StatefulSet that owns the pod, for spreading by default. */
  ownerSelector(pod: Pod): Selector | undefined;
}

export const noLookups: Lookups = {
  claim: () => undefined,
  volume: () => undefined,
  volumes: () => [],
  storageClass: () => undefined,
  csiNode: () => undefined,
  namespaces: () => [],
  ownerSelector: () => undefined,
};

/** Nodes and the pods on them. Placed and assumed pods count alike; a pod that has ended takes nothing. */
export class ClusterState {
  readonly lookups: Lookups;
  readonly index = new PodIndex();
  readonly #nodes = new Map<string, NodeInfo>();
  /** Nodes that exist, in a stable order; rebuilt when one comes or goes. */
  #list: NodeInfo[] | undefined;
  readonly #placed = new Map<string, { pod: PodInfo; node: NodeInfo }>();
  readonly #claimUsers = new Map<string, number>();

  constructor(lookups: Lookups = noLookups) {
    this.lookups = lookups;
  }

  nodes(): readonly NodeInfo[] {
    this.#list ??= [...this.#nodes.values()].filter((info) => info.node !== undefined);
    return this.#list;
  }

  node(name: string): NodeInfo | undefined {
    const info = this.#nodes.get(name);
    return info?.node === undefined ? undefined : info;
  }

  setNode(node: Node): NodeInfo {
    const info = this.#infoFor(node.metadata.name!);
    if (info.node === undefined) this.#list = undefined;
    info.setNode(node);
    return info;
  }

  removeNode(name: string): void {
    const info = this.#nodes.get(name);
    if (!info) return;
    info.setNode(undefined);
    this.#list = undefined;
    this.#dropIfEmpty(info);
  }

  /** Counts a pod on a node; replaces what was known of it. */
  place(pod: PodInfo, nodeName: string): void {
    this.displace(pod.uid);
    const node = this.#infoFor(nodeName);
    node.add(pod);
    this.index.add(pod, node);
    this.#placed.set(pod.uid, { pod, node });
    for (const claim of pod.claims) this.#claimUsers.set(claim, (this.#claimUsers.get(claim) ?? 0) + 1);
  }

  /** Takes a pod off its node; returns it when it was on one. */
  displace(uid: string): { pod: PodInfo; node: NodeInfo } | undefined {
    const placement = this.#placed.get(uid);
    if (!placement) return undefined;
    this.#placed.delete(uid);
    placement.node.remove(placement.pod);
    this.index.remove(placement.pod, placement.node);
    for (const claim of placement.pod.claims) {
      const users = this.#claimUsers.get(claim)! - 1;
      if (users === 0) this.#claimUsers.delete(claim);
      else this.#claimUsers.set(claim, users);
    }
    this.#dropIfEmpty(placement.node);
    return placement;
  }

  placement(uid: string): { pod: PodInfo; node: NodeInfo } | undefined {
    return this.#placed.get(uid);
  }

  /** Whether a placed pod uses the claim (`namespace/name`). */
  claimInUse(claim: string): boolean {
    return this.#claimUsers.has(claim);
  }

  /** The namespaces a term speaks of, by name, in order. */
  namespacesOf(term: AffinityTerm): readonly string[] {
    if (term.namespaceSelector === nothing) return term.namespaces;
    const names = new Set(term.namespaces);
    for (const namespace of this.lookups.namespaces()) {
      if (term.namespaceSelector.matches(namespace.metadata.labels)) names.add(namespace.metadata.name!);
    }
    return [...names].sort();
  }

  #infoFor(name: string): NodeInfo {
    let info = this.#nodes.get(name);
    if (!info) {
      info = new NodeInfo(name);
      this.#nodes.set(name, info);
    }
    return info;
  }

  #dropIfEmpty(info: NodeInfo): void {
    if (info.node === undefined && info.pods.size === 0) this.#nodes.delete(info.name);
  }
}

/** Whether a pod still takes resources: one that has ended does not. */
export function isActive(pod: Pod): boolean {
  return pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed';
}

/** A state built from plain lists: for tests and benchmarks. */
export function clusterState(nodes: readonly Node[], pods: readonly Pod[], lookups: Lookups = noLookups): ClusterState {
  const state = new ClusterState(lookups);
  for (const node of nodes) state.setNode(node);
  for (const pod of pods) if (pod.spec?.nodeName && isActive(pod)) state.place(podInfo(pod), pod.spec.nodeName);
  return state;
}
