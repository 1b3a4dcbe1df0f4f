// SPDX-License-Identifier: Apache-2.0
// The collections the state is made from, each from the cluster where it lives.
import { type NodeClaim, nodeClaimKind } from '../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { Informer } from '../kube/informer.ts';
import {
  type CSINode,
  type DaemonSet,
  kinds,
  type Namespace,
  type Node,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
  type StorageClass,
} from '../kube/kinds.ts';
import type { Clusters } from '../runtime/clusters.ts';

/** The informers of the state: NodePools and NodeClaims of the cluster `karpenter`, the rest of `workload`. */
export interface StateSources {
  readonly nodePools: Informer<NodePool>;
  readonly nodeClaims: Informer<NodeClaim>;
  readonly nodes: Informer<Node>;
  readonly pods: Informer<Pod>;
  readonly daemonSets: Informer<DaemonSet>;
  readonly namespaces: Informer<Namespace>;
  readonly podDisruptionBudgets: Informer<PodDisruptionBudget>;
  readonly persistentVolumeClaims: Informer<PersistentVolumeClaim>;
  readonly persistentVolumes: Informer<PersistentVolume>;
  readonly storageClasses: Informer<StorageClass>;
  readonly csiNodes: Informer<CSINode>;
}

/** The shared informers; those that nobody asked for before start with the clusters. */
export function stateSources({ karpenter, workload }: Clusters): StateSources {
  return {
    nodePools: karpenter.informers.get(nodePoolKind),
    nodeClaims: karpenter.informers.get(nodeClaimKind),
    nodes: workload.informers.get(kinds.Node),
    pods: workload.informers.get(kinds.Pod),
    daemonSets: workload.informers.get(kinds.DaemonSet),
    namespaces: workload.informers.get(kinds.Namespace),
    podDisruptionBudgets: workload.informers.get(kinds.PodDisruptionBudget),
    persistentVolumeClaims: workload.informers.get(kinds.PersistentVolumeClaim),
    persistentVolumes: workload.informers.get(kinds.PersistentVolume),
    storageClasses: workload.informers.get(kinds.StorageClass),
    csiNodes: workload.informers.get(kinds.CSINode),
  };
}
