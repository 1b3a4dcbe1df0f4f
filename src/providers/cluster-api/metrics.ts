// SPDX-License-Identifier: Apache-2.0
// What this cloud counts of itself: writes to members, Machines that were claimed, and whether the hub answers.
import { counter, exponentialBuckets, gauge, histogram } from '../../runtime/metrics.ts';

export const clusterApiMetrics = {
  scaleWrites: counter({
    name: 'karpenter_clusterapi_scale_writes_total',
    help: 'Writes to MachineDeployments and MachineSets, by outcome: written, conflict, failed.',
    labels: ['outcome'],
  }),
  batchSize: histogram({
    name: 'karpenter_clusterapi_batch_size',
    help: 'How many NodeClaims one write to a MachineDeployment or MachineSet was for.',
    labels: [],
    buckets: exponentialBuckets(1, 2, 11),
  }),
  claims: counter({
    name: 'karpenter_clusterapi_machine_claims_total',
    help: 'Tries to give a Machine to a NodeClaim, by outcome: claimed, taken (somebody else was first), failed.',
    labels: ['outcome'],
  }),
  hubReachable: gauge({
    name: 'karpenter_clusterapi_hub_reachable',
    help: '1 while the management cluster can be used, else 0.',
    labels: [],
  }),
} as const;
