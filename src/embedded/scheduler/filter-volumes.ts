// SPDX-License-Identifier: Apache-2.0
// Volumes: claims must exist, bound ones tie a pod to where the volume is, unbound ones to where one can be made, and a
// driver attaches only so many to a node.
import type {
  Node,
  NodeSelectorTerm,
  PersistentVolume,
  PersistentVolumeClaim,
  StorageClass,
} from '../../kube/kinds.ts';
import type { ClusterState } from './cluster-state.ts';
import { type NodeCheck, type Refusal, rejection } from './filter.ts';
import { matchesAnyTerm } from './node-selector.ts';
import type { PodInfo } from './pod-info.ts';
import { amount } from './resources.ts';

const usedElsewhere = rejection(
  'VolumeRestrictions',
  true,
  'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
);

/** A claim for one pod only is not given to a second. */
export function volumeRestrictions(pod: PodInfo, state: ClusterState): NodeCheck | undefined {
  const taken = pod.claims.some(
    (key) =>
      state.lookups.claim(key)?.spec?.accessModes?.includes('ReadWriteOncePod') === true && state.claimInUse(key),
  );
  return taken ? () => usedElsewhere : undefined;
}

const elsewhere = rejection('VolumeBinding', false, "node(s) didn't match PersistentVolume's node affinity");
const unbindable = rejection('VolumeBinding', false, "node(s) didn't find available persistent volumes to bind");
const volumeGone = rejection(
  'VolumeBinding',
  false,
  'node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)',
);

export function volumeBinding(pod: PodInfo, state: ClusterState): NodeCheck | Refusal | undefined {
  if (pod.claims.length === 0) return undefined;
  const bound: (PersistentVolume | undefined)[] = [];
  const open: PersistentVolumeClaim[] = [];
  for (const key of pod.claims) {
    const claim = state.lookups.claim(key);
    if (!claim) return refuse(`persistentvolumeclaim "${key.slice(key.indexOf('/') + 1)}" not found`);
    if (claim.metadata.deletionTimestamp) {
      return refuse(`persistentvolumeclaim "${claim.metadata.name}" is being deleted`);
    }
    if (isBound(claim)) bound.push(state.lookups.volume(claim.spec!.volumeName!));
    else if (waitsForConsumer(claim, state)) open.push(claim);
    else return refuse('pod has unbound immediate PersistentVolumeClaims');
  }
  return (node) => {
    for (const volume of bound) {
      if (!volume) return volumeGone;
      if (!reaches(volume, node.node!)) return elsewhere;
    }
    return open.every((claim) => canBind(claim, node.node!, state)) ? undefined : unbindable;
  };
}

function refuse(reason: string): Refusal {
  return { refused: rejection('VolumeBinding', false, reason) };
}

/** A claim is bound when the volume controller has said so, not when a volume is merely named. */
export function isBound(claim: PersistentVolumeClaim): boolean {
  return (
    Boolean(claim.spec?.volumeName) && claim.metadata.annotations?.['pv.kubernetes.io/bind-completed'] !== undefined
  );
}

export function waitsForConsumer(claim: PersistentVolumeClaim, state: ClusterState): boolean {
  return !claim.spec?.volumeName && storageClassOf(claim, state)?.volumeBindingMode === 'WaitForFirstConsumer';
}

function storageClassOf(claim: PersistentVolumeClaim, state: ClusterState): StorageClass | undefined {
  return claim.spec?.storageClassName ? state.lookups.storageClass(claim.spec.storageClassName) : undefined;
}

/** Whether pods on a node can use a volume. */
export function reaches(volume: PersistentVolume, node: Node): boolean {
  const required = volume.spec?.nodeAffinity?.required;
  return required === undefined || matchesAnyTerm(required.nodeSelectorTerms, node);
}

/** Whether a volume that exists fits the claim on this node, or the class can make one there. */
function canBind(claim: PersistentVolumeClaim, node: Node, state: ClusterState): boolean {
  if (state.lookups.volumes().some((volume) => isMatch(volume, claim) && reaches(volume, node))) return true;
  const storageClass = storageClassOf(claim, state);
  if (!storageClass || storageClass.provisioner === 'kubernetes.io/no-provisioner') return false;
  const topologies = storageClass.allowedTopologies ?? [];
  if (topologies.length === 0) return true;
  const terms: NodeSelectorTerm[] = topologies.map((topology) => ({
    matchExpressions: (topology.matchLabelExpressions ?? []).map((e) => ({ ...e, operator: 'In' })),
  }));
  return terms.some((term) => term.matchExpressions!.length === 0) || matchesAnyTerm(terms, node);
}

/** Whether a free volume serves a claim: class, size and access modes. */
export function isMatch(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const wanted = claim.spec?.resources?.requests?.['storage'] ?? '0';
  const offered = volume.spec?.capacity?.['storage'] ?? '0';
  return (
    volume.status?.phase === 'Available' &&
    volume.spec?.claimRef === undefined &&
    (volume.spec?.storageClassName ?? '') === (claim.spec?.storageClassName ?? '') &&
    amount('storage', offered) >= amount('storage', wanted) &&
    (claim.spec?.accessModes ?? []).every((mode) => volume.spec?.accessModes?.includes(mode))
  );
}

const tooMany = rejection('NodeVolumeLimits', true, 'node(s) exceed max volume count');

/** What a CSI driver says a node can attach. */
export function nodeVolumeLimits(pod: PodInfo, state: ClusterState): NodeCheck | undefined {
  const wanted = attachments(pod, state);
  if (wanted.size === 0) return undefined;
  return (node) => {
    const limits = new Map<string, number>();
    for (const driver of state.lookups.csiNode(node.name)?.spec?.drivers ?? []) {
      if (driver.allocatable?.count !== undefined) limits.set(driver.name, driver.allocatable.count);
    }
    if (limits.size === 0) return undefined;
    const attached = new Map<string, string>();
    for (const other of node.pods.values()) {
      for (const [volume, driver] of attachments(other, state)) attached.set(volume, driver);
    }
    const before = attached.size;
    for (const [volume, driver] of wanted) attached.set(volume, driver);
    if (attached.size === before) return undefined;
    for (const driver of new Set(wanted.values())) {
      const count = [...attached.values()].filter((name) => name === driver).length;
      if (count > (limits.get(driver) ?? Infinity)) return tooMany;
    }
    return undefined;
  };
}

/** The volumes a pod attaches through CSI drivers: volume → driver. An unbound claim counts for the volume it will get. */
function attachments(pod: PodInfo, state: ClusterState): Map<string, string> {
  const found = new Map<string, string>();
  for (const key of pod.claims) {
    const claim = state.lookups.claim(key);
    if (!claim) continue;
    const csi = claim.spec?.volumeName ? state.lookups.volume(claim.spec.volumeName)?.spec?.csi : undefined;
    const driver = csi?.driver ?? (claim.spec?.volumeName ? undefined : storageClassOf(claim, state)?.provisioner);
    if (driver) found.set(csi ? `${driver}/${csi.volumeHandle}` : `${driver}/${key}`, driver);
  }
  return found;
}
