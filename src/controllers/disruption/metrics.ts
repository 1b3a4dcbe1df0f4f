// SPDX-License-Identifier: Apache-2.0
// What is counted about nodes that are disrupted on purpose.
import { counter, gauge, histogram, type Metrics } from '../../runtime/metrics.ts';

export const disruptionMetrics = {
  evaluationDuration: histogram({
    name: 'karpenter_voluntary_disruption_decision_evaluation_duration_seconds',
    help: 'How long a method took to look for nodes to disrupt.',
    labels: ['reason', 'consolidation_type'],
  }),
  decisions: counter({
    name: 'karpenter_voluntary_disruption_decisions_total',
    help: 'Disruptions that were begun.',
    labels: ['decision', 'reason', 'consolidation_type'],
  }),
  decisionsByPool: counter({
    name: 'karpenter_voluntary_disruption_decisions_by_nodepool_total',
    help: 'Disruptions that were begun, once for each NodePool they touch.',
    labels: ['nodepool', 'decision', 'reason', 'consolidation_type'],
  }),
  eligibleNodes: gauge({
    name: 'karpenter_voluntary_disruption_eligible_nodes',
    help: 'Nodes that could be disrupted for a reason if budgets allow.',
    labels: ['reason'],
  }),
  failedValidations: counter({
    name: 'karpenter_voluntary_disruption_failed_validations_total',
    help: 'Nodes that were chosen, and spared because something changed before they were disrupted.',
    labels: ['consolidation_type'],
  }),
  consolidationTimeouts: counter({
    name: 'karpenter_voluntary_disruption_consolidation_timeouts_total',
    help: 'Searches for consolidations that ended with what they had because they took too long.',
    labels: ['consolidation_type'],
  }),
  consolidationScore: histogram({
    name: 'karpenter_consolidation_score',
    help: 'What consolidations of pools with the policy Balanced save for what they move; 1 is as much as the pool pays for.',
    labels: ['decision', 'nodepool', 'policy'],
    buckets: [0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10],
  }),
  consolidationMoves: counter({
    name: 'karpenter_consolidation_moves_total',
    help: 'Consolidations of pools with the policy Balanced that were carried out or turned down.',
    labels: ['decision', 'nodepool', 'policy'],
  }),
  queueFailures: counter({
    name: 'karpenter_voluntary_disruption_queue_failures_total',
    help: 'Replacements that did not come up, so that the disruption was given up.',
    labels: ['decision', 'reason', 'consolidation_type'],
  }),
  allowedDisruptions: gauge({
    name: 'karpenter_nodepools_allowed_disruptions',
    help: 'How many nodes of a NodePool its budgets allow to be disrupted at the same time.',
    labels: ['nodepool', 'reason'],
  }),
  nodesConsumingBudgets: gauge({
    name: 'karpenter_nodepools_nodes_consuming_budgets',
    help: 'How many nodes of a NodePool count against its budgets: those that go, and those that are not ready.',
    labels: ['nodepool', 'reason'],
  }),
  podsDisrupted: counter({
    name: 'karpenter_pods_disruption_initiated_total',
    help: 'Pods that must move because their node is disrupted.',
    labels: ['reason', 'nodepool', 'capacity_type', 'consolidation_policy', 'termination_mode'],
  }),
} as const;

/** Counts what the policy Balanced decided about a consolidation. */
export function countScore(
  metrics: Metrics,
  decision: 'approved' | 'rejected',
  { pool, score }: { readonly pool: string; readonly score: number },
): void {
  const counted = { decision, nodepool: pool, policy: 'Balanced' };
  metrics.histogram(disruptionMetrics.consolidationScore).observe(counted, score);
  metrics.counter(disruptionMetrics.consolidationMoves).inc(counted);
}
