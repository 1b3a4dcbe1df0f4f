// SPDX-License-Identifier: Apache-2.0
// Every label and annotation of this cloud: Cluster API's own, those of its autoscaler integration, and ours.
import { commonLabelSet, extendLabelSet, type LabelSet } from '../../api/labels.ts';

export const providerGroup = 'karpenter.cluster.x-k8s.io';

/** On MachineDeployments and MachineSets, by the user: Karpenter may scale this. On Machines, by us: it is taken. */
export const memberLabel = 'node.cluster.x-k8s.io/karpenter-member';

/** Labels and annotations that Cluster API reads or writes. */
export const capi = {
  clusterName: 'cluster.x-k8s.io/cluster-name',
  deploymentName: 'cluster.x-k8s.io/deployment-name',
  setName: 'cluster.x-k8s.io/set-name',
  /** On a Machine: the first to go when its owner shrinks. */
  deleteMachine: 'cluster.x-k8s.io/delete-machine',
  paused: 'cluster.x-k8s.io/paused',
  minSize: 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size',
  maxSize: 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size',
  /** On Machines and Nodes of spot capacity. */
  interruptible: 'cluster.x-k8s.io/interruptible',
  /** A taint that Cluster API takes off once it has put its labels on the Node. */
  uninitializedTaint: 'node.cluster.x-k8s.io/uninitialized',
  clonedFromName: 'cluster.x-k8s.io/cloned-from-name',
  clonedFromKind: 'cluster.x-k8s.io/cloned-from-groupkind',
  /** On NodeClaims, by the upstream provider: `namespace/name` of the Machine. */
  upstreamMachine: 'cluster.x-k8s.io/machine',
} as const;

/** Scale-from-zero annotations, the same as cluster-autoscaler's. */
const capacityPrefix = 'capacity.cluster-autoscaler.kubernetes.io/';
export const capacityAnnotations = {
  cpu: `${capacityPrefix}cpu`,
  memory: `${capacityPrefix}memory`,
  ephemeralDisk: `${capacityPrefix}ephemeral-disk`,
  maxPods: `${capacityPrefix}maxPods`,
  gpuCount: `${capacityPrefix}gpu-count`,
  gpuType: `${capacityPrefix}gpu-type`,
  draDriver: `${capacityPrefix}dra-driver`,
  labels: `${capacityPrefix}labels`,
  taints: `${capacityPrefix}taints`,
  price: `${capacityPrefix}price`,
} as const;

/** Annotations of our own. */
export const annotations = {
  /** On a member: what an hour of one machine costs. */
  price: `${providerGroup}/price`,
  /** On a member: `spot`, `on-demand` or `reserved`. */
  capacityType: `${providerGroup}/capacity-type`,
  /** On a member: what the system keeps for itself, as `cpu=100m,memory=500Mi`. */
  overhead: `${providerGroup}/overhead`,
  /** On an infrastructure template: where Machines without an owner get their user data from, their version and place. */
  bootstrapTemplate: `${providerGroup}/bootstrap`,
  version: `${providerGroup}/version`,
  failureDomain: `${providerGroup}/failure-domain`,
  /** On a Machine without an owner: the template it was made from, as a member key. */
  member: `${providerGroup}/member`,
  /** On a Machine: the NodeClaim it belongs to. Whoever writes it first owns the Machine. */
  claimUid: `${providerGroup}/nodeclaim-uid`,
  claimName: `${providerGroup}/nodeclaim`,
  /** On a Machine: which cluster's NodeClaim it is, for many may share a management cluster. */
  claimCluster: `${providerGroup}/nodeclaim-cluster`,
  /** On a Machine: what its templates looked like when it was claimed. */
  templateHash: `${providerGroup}/template-hash`,
  /** On a NodeClaim: `namespace/name` of its Machine. Not Cluster API's own key, whose value on Nodes is another. */
  machine: `${providerGroup}/machine`,
} as const;

/**
 * On a member: the NodeClaims of one cluster for which its replicas were raised. Changes in the same write as the
 * replicas. Each cluster keeps its own.
 */
export function ledgerAnnotation(identity: string): string {
  return `${providerGroup}/nodeclaims.${identity.slice(0, 8)}`;
}

/** Labels of our own that instance types carry. */
export const providerLabels = {
  instanceSize: `${providerGroup}/instance-size`,
  instanceFamily: `${providerGroup}/instance-family`,
  instanceCpu: `${providerGroup}/instance-cpu`,
  instanceMemory: `${providerGroup}/instance-memory`,
  capacityCpu: `capacity.${providerGroup}/cpu`,
  capacityMemory: `capacity.${providerGroup}/memory`,
  /** Where the price comes from: `annotation`, `table` or `estimate`. */
  priceSource: `${providerGroup}/price-source`,
} as const;

/** Kubernetes' labels and this cloud's own. */
export const clusterApiLabelSet: LabelSet = extendLabelSet(commonLabelSet, {
  wellKnown: Object.values(providerLabels),
  restrictedDomains: [providerGroup],
});
