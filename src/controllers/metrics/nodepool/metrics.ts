// SPDX-License-Identifier: Apache-2.0
// What is measured about NodePools, under upstream's names.
import { counter, gauge } from '../../../runtime/metrics.ts';

export const nodePoolMetrics = {
  limit: gauge({
    name: 'karpenter_nodepools_limit',
    help: 'How much of a resource the nodes of a NodePool may have in sum.',
    labels: ['resource_type', 'nodepool'],
    stability: 'alpha',
  }),
  usage: gauge({
    name: 'karpenter_nodepools_usage',
    help: 'How much of a resource the nodes of a NodePool have in sum.',
    labels: ['resource_type', 'nodepool'],
    stability: 'alpha',
  }),
  cost: gauge({
    name: 'karpenter_nodepools_cost_total',
    help: 'What the machines of a NodePool cost by the hour, by the prices the cloud tells. Not a bill.',
    labels: ['nodepool'],
    stability: 'alpha',
  }),
  costTrackerErrors: counter({
    name: 'karpenter_nodepools_cost_tracker_errors_total',
    help: 'Failures to learn the prices of a NodePool.',
    labels: ['nodepool'],
    stability: 'alpha',
  }),
} as const;
