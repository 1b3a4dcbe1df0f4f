// SPDX-License-Identifier: Apache-2.0
/** The collections of the store that the world looks into. */
export const collections = {
  pods: 'pods',
  nodes: 'nodes',
  claims: 'nodeclaims.karpenter.sh',
  pools: 'nodepools.karpenter.sh',
  budgets: 'poddisruptionbudgets.policy',
  deployments: 'deployments.apps',
  statefulSets: 'statefulsets.apps',
  daemonSets: 'daemonsets.apps',
  jobs: 'jobs.batch',
  events: 'events',
  leases: 'leases.coordination.k8s.io',
} as const;
