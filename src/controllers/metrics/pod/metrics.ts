// SPDX-License-Identifier: Apache-2.0
// What is measured about pods, under upstream's names.
import { gauge, histogram, summary } from '../../../runtime/metrics.ts';

const byPod = ['name', 'namespace'] as const;

export const podMetrics = {
  state: gauge({
    name: 'karpenter_pods_state',
    help: 'Always 1; the labels say where a pod is and how it does.',
    labels: [
      'name',
      'namespace',
      'owner',
      'node',
      'scheduled',
      'nodepool',
      'zone',
      'arch',
      'capacity_type',
      'instance_type',
      'phase',
      'ready',
      'managed',
    ],
    stability: 'beta',
  }),
  startupDuration: summary({
    name: 'karpenter_pods_startup_duration_seconds',
    help: 'From the creation of a pod until it was ready.',
  }),
  boundDuration: histogram({
    name: 'karpenter_pods_bound_duration_seconds',
    help: 'From the creation of a pod until it was bound to a node.',
    stability: 'alpha',
  }),
  provisioningStartupDuration: histogram({
    name: 'karpenter_pods_provisioning_startup_duration_seconds',
    help: 'From the first pass that found a place for a pod until it was ready.',
    stability: 'alpha',
  }),
  provisioningBoundDuration: histogram({
    name: 'karpenter_pods_provisioning_bound_duration_seconds',
    help: 'From the first pass that found a place for a pod until it was bound to a node.',
    stability: 'alpha',
  }),
} as const;

/** About pods that wait for something, for as long as they do. */
export const waitingPodMetrics = {
  unstarted: gauge({
    name: 'karpenter_pods_unstarted_time_seconds',
    help: 'How long ago a pod that is not ready yet was created.',
    labels: byPod,
    stability: 'alpha',
  }),
  unbound: gauge({
    name: 'karpenter_pods_unbound_time_seconds',
    help: 'How long ago a pod that is not bound to a node yet was created.',
    labels: byPod,
    stability: 'alpha',
  }),
  provisioningUnstarted: gauge({
    name: 'karpenter_pods_provisioning_unstarted_time_seconds',
    help: 'How long ago a pass first found a place for a pod that is not ready yet.',
    labels: byPod,
    stability: 'alpha',
  }),
  provisioningUnbound: gauge({
    name: 'karpenter_pods_provisioning_unbound_time_seconds',
    help: 'How long ago a pass first found a place for a pod that is not bound to a node yet.',
    labels: byPod,
    stability: 'alpha',
  }),
  undecided: gauge({
    name: 'karpenter_pods_provisioning_scheduling_undecided_time_seconds',
    help: 'How long ago a pod was noticed that no pass has decided about yet.',
    labels: byPod,
    stability: 'alpha',
  }),
} as const;
