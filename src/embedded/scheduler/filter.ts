// SPDX-License-Identifier: Apache-2.0
// The shape of a filter: prepared once per pod, asked once per node.
import type { ClusterState } from './cluster-state.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';

export type FilterName =
  | 'NodeUnschedulable'
  | 'NodeName'
  | 'TaintToleration'
  | 'NodeAffinity'
  | 'NodePorts'
  | 'NodeResourcesFit'
  | 'VolumeRestrictions'
  | 'NodeVolumeLimits'
  | 'VolumeBinding'
  | 'PodTopologySpread'
  | 'InterPodAffinity';

/** Why a node will not do. */
export interface Rejection {
  readonly filter: FilterName;
  readonly reasons: readonly string[];
  /** Whether other pods leaving the node could change it. */
  readonly resolvable: boolean;
}

/** Says why a node will not do, or nothing. */
export type NodeCheck = (node: NodeInfo) => Rejection | undefined;

/** A verdict on the whole cluster: no node can do, whatever its state. */
export interface Refusal {
  readonly refused: Rejection;
}

/** Looks at the pod and the cluster once. Returns nothing when this filter has no say on this pod. */
export type Filter = (pod: PodInfo, state: ClusterState) => NodeCheck | Refusal | undefined;

export function rejection(filter: FilterName, resolvable: boolean, ...reasons: string[]): Rejection {
  return { filter, reasons, resolvable };
}
