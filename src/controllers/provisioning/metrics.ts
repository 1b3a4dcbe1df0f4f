// SPDX-License-Identifier: Apache-2.0
// What is measured about scheduling and provisioning, under upstream's names.
import { counter, gauge, histogram } from '../../runtime/metrics.ts';

export const provisioningMetrics = {
  nodeClaimsCreated: counter({
    name: 'karpenter_nodeclaims_created_total',
    help: 'NodeClaims created, by why they were and by NodePool.',
    labels: ['reason', 'nodepool', 'min_values_relaxed'],
  }),
  schedulingDuration: histogram({
    name: 'karpenter_scheduler_scheduling_duration_seconds',
    help: 'How long scheduling passes took, the questions to the clouds included.',
    labels: ['controller'],
  }),
  queueDepth: gauge({
    name: 'karpenter_scheduler_queue_depth',
    help: 'Pods that the running scheduling pass has to place.',
    labels: ['controller', 'scheduling_id'],
    stability: 'beta',
  }),
  unfinishedWork: gauge({
    name: 'karpenter_scheduler_unfinished_work_seconds',
    help: 'How long the running scheduling pass has been at work.',
    labels: ['controller', 'scheduling_id'],
    stability: 'alpha',
  }),
  ignoredPods: gauge({
    name: 'karpenter_scheduler_ignored_pods_count',
    help: 'Pods that wait for a node and were left out of the last pass because they cannot be read or wait for something else.',
    stability: 'alpha',
  }),
  unschedulablePods: gauge({
    name: 'karpenter_scheduler_unschedulable_pods_count',
    help: 'Pods that the last pass found no place for.',
    labels: ['controller'],
    stability: 'alpha',
  }),
  pendingByZone: gauge({
    name: 'karpenter_scheduler_pending_pods_by_effective_zone_count',
    help: 'Pods of the last pass by the zone they can go to: its name, "flexible" for several, "none" for no zone at all.',
    labels: ['controller', 'zone'],
    stability: 'alpha',
  }),
  decisionDuration: histogram({
    name: 'karpenter_pods_scheduling_decision_duration_seconds',
    help: 'From a pod being noticed to the first decision about it.',
    stability: 'alpha',
  }),
} as const;
