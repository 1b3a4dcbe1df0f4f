// SPDX-License-Identifier: Apache-2.0
/** The collections of the store that the world looks into. */
export const collections = {
  pods: 'pods',
  nodes: 'nodes',
  claims: 'nodeclaims.karpenter.sh',
  pools: 'nodepools.karpenter.sh',
  overlays: 'nodeoverlays.karpenter.sh',
  buffers: 'capacitybuffers.autoscaling.x-k8s.io',
  budgets: 'poddisruptionbudgets.policy',
  deployments: 'deployments.apps',
  statefulSets: 'statefulsets.apps',
  daemonSets: 'daemonsets.apps',
  jobs: 'jobs.batch',
  events: 'events',
  volumeClaims: 'persistentvolumeclaims',
  volumes: 'persistentvolumes',
  leases: 'leases.coordination.k8s.io',
} as const;
