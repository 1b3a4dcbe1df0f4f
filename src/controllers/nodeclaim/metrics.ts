// SPDX-License-Identifier: Apache-2.0
// Counts of NodeClaims that come and go, under upstream's names; several controllers add to them.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { counter, exponentialBuckets, histogram, type Labels } from '../../runtime/metrics.ts';

export const nodeClaimMetrics = {
  terminated: counter({
    name: 'karpenter_nodeclaims_terminated_total',
    help: 'NodeClaims that are gone, by NodePool, capacity type and zone.',
    labels: ['nodepool', 'capacity_type', 'zone'],
  }),
  disrupted: counter({
    name: 'karpenter_nodeclaims_disrupted_total',
    help: 'NodeClaims that were given up or deleted on purpose, by reason and NodePool.',
    labels: ['reason', 'nodepool', 'capacity_type', 'consolidation_policy', 'termination_mode'],
  }),
  unhealthyDisrupted: counter({
    name: 'karpenter_nodeclaims_unhealthy_disrupted_total',
    help: 'NodeClaims that were deleted because their node was broken, by the condition that said so.',
    labels: ['condition', 'nodepool', 'capacity_type', 'image_id'],
  }),
  instanceTerminationDuration: histogram({
    name: 'karpenter_nodeclaims_instance_termination_duration_seconds',
    help: 'How long machines took to go, from the first request to their cloud.',
    labels: ['nodepool'],
    buckets: exponentialBuckets(1, 2, 11),
    stability: 'beta',
  }),
  terminationDuration: histogram({
    name: 'karpenter_nodeclaims_termination_duration_seconds',
    help: 'How long NodeClaims took to go, from their deletion.',
    labels: ['nodepool'],
    buckets: exponentialBuckets(1, 2, 12),
    stability: 'beta',
  }),
  nodesCreated: counter({
    name: 'karpenter_nodes_created_total',
    help: 'Nodes that registered, by NodePool and zone.',
    labels: ['nodepool', 'zone'],
  }),
} as const;

/** Why a NodeClaim was disrupted, as the metric says it. */
export type DisruptedReason =
  | 'insufficient_capacity'
  | 'nodeclass_not_ready'
  | 'launch_timeout'
  | 'registration_timeout'
  | 'garbage_collected'
  | 'expired'
  | 'unhealthy'
  | 'empty'
  | 'drifted'
  | 'underutilized';

type DisruptedLabel = (typeof nodeClaimMetrics.disrupted.labels)[number];

/** The labels of a disruption. `pool` is the NodeClaim's, where there is one. */
export function disruptedLabels(
  reason: DisruptedReason | (string & {}),
  claim: NodeClaim,
  pool: NodePool | undefined,
): Labels<DisruptedLabel> {
  return {
    reason,
    nodepool: poolLabel(claim),
    capacity_type: claim.metadata.labels?.[labels.capacityType] ?? '',
    consolidation_policy: pool?.spec.disruption?.consolidationPolicy ?? '',
    termination_mode: terminationMode(claim),
  };
}

/** The NodePool of a NodeClaim as a label; '' for those that a person wrote. */
export function poolLabel(claim: NodeClaim): string {
  return claim.metadata.labels?.[labels.nodePool] ?? '';
}

/** `graceful` drains for as long as it takes, `eventual` up to a time, `forceful` not at all. */
function terminationMode(claim: NodeClaim): string {
  const { terminationGracePeriod } = claim.spec;
  if (terminationGracePeriod === undefined) return 'graceful';
  return /[1-9]/.test(terminationGracePeriod) ? 'eventual' : 'forceful';
}
