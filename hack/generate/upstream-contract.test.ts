// SPDX-License-Identifier: Apache-2.0
// What dashboards and alerts made for upstream rely on, written down once more: names, types and labels of metrics,
// buckets, reasons of events and how often they repeat. A change here breaks somebody's alert.
import { expect, test } from 'vitest';
import { eventKinds } from '../../src/controllers/events.ts';
import { declaredMetrics } from './runtime-reference.ts';

const disrupted = 'reason nodepool capacity_type consolidation_policy termination_mode';
const onNode = 'arch capacity_type instance_type nodepool os region windows_build zone node_name phase managed';
const podName = 'name namespace';

/** Type and labels by name; those of all nodes may have further labels of a cloud. */
const metrics: Readonly<Record<string, readonly [type: string, labels: string]>> = {
  karpenter_build_info: ['gauge', 'version goversion goarch commit'],
  karpenter_nodeclaims_created_total: ['counter', 'reason nodepool min_values_relaxed'],
  karpenter_nodeclaims_terminated_total: ['counter', 'nodepool capacity_type zone'],
  karpenter_nodeclaims_disrupted_total: ['counter', disrupted],
  karpenter_nodeclaims_unhealthy_disrupted_total: ['counter', 'condition nodepool capacity_type image_id'],
  karpenter_nodeclaims_instance_termination_duration_seconds: ['histogram', 'nodepool'],
  karpenter_nodeclaims_termination_duration_seconds: ['histogram', 'nodepool'],
  karpenter_nodes_created_total: ['counter', 'nodepool zone'],
  karpenter_nodes_terminated_total: ['counter', 'nodepool zone'],
  karpenter_nodes_drained_total: ['counter', 'nodepool'],
  karpenter_nodes_termination_duration_seconds: ['summary', 'nodepool'],
  karpenter_nodes_lifetime_duration_seconds: ['histogram', 'nodepool'],
  karpenter_nodes_allocatable: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_total_pod_requests: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_total_pod_limits: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_total_daemon_requests: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_total_daemon_limits: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_system_overhead: ['gauge', `${onNode} resource_type`],
  karpenter_nodes_current_lifetime_seconds: ['gauge', onNode],
  karpenter_cluster_utilization_percent: ['gauge', 'resource_type'],
  karpenter_nodepools_limit: ['gauge', 'resource_type nodepool'],
  karpenter_nodepools_usage: ['gauge', 'resource_type nodepool'],
  karpenter_nodepools_cost_total: ['gauge', 'nodepool'],
  karpenter_nodepools_cost_tracker_errors_total: ['counter', 'nodepool'],
  karpenter_nodepools_allowed_disruptions: ['gauge', 'nodepool reason'],
  karpenter_nodepools_nodes_consuming_budgets: ['gauge', 'nodepool reason'],
  karpenter_pods_state: [
    'gauge',
    'name namespace owner node scheduled nodepool zone arch capacity_type instance_type phase ready managed',
  ],
  karpenter_pods_startup_duration_seconds: ['summary', ''],
  karpenter_pods_bound_duration_seconds: ['histogram', ''],
  karpenter_pods_provisioning_bound_duration_seconds: ['histogram', ''],
  karpenter_pods_provisioning_startup_duration_seconds: ['histogram', ''],
  karpenter_pods_scheduling_decision_duration_seconds: ['histogram', ''],
  karpenter_pods_unstarted_time_seconds: ['gauge', podName],
  karpenter_pods_unbound_time_seconds: ['gauge', podName],
  karpenter_pods_provisioning_unbound_time_seconds: ['gauge', podName],
  karpenter_pods_provisioning_unstarted_time_seconds: ['gauge', podName],
  karpenter_pods_provisioning_scheduling_undecided_time_seconds: ['gauge', podName],
  karpenter_pods_disruption_initiated_total: ['counter', disrupted],
  karpenter_pods_eviction_requests_total: ['counter', 'code'],
  karpenter_pods_drained_total: ['counter', 'reason'],
  karpenter_scheduler_scheduling_duration_seconds: ['histogram', 'controller'],
  karpenter_scheduler_queue_depth: ['gauge', 'controller scheduling_id'],
  karpenter_scheduler_unfinished_work_seconds: ['gauge', 'controller scheduling_id'],
  karpenter_scheduler_ignored_pods_count: ['gauge', ''],
  karpenter_scheduler_unschedulable_pods_count: ['gauge', 'controller'],
  karpenter_scheduler_pending_pods_by_effective_zone_count: ['gauge', 'controller zone'],
  karpenter_cluster_state_node_count: ['gauge', ''],
  karpenter_cluster_state_synced: ['gauge', ''],
  karpenter_cluster_state_unsynced_time_seconds: ['gauge', ''],
  karpenter_cloudprovider_duration_seconds: ['histogram', 'controller method provider'],
  karpenter_cloudprovider_errors_total: ['counter', 'controller method provider error'],
  karpenter_voluntary_disruption_decision_evaluation_duration_seconds: ['histogram', 'reason consolidation_type'],
  karpenter_voluntary_disruption_decisions_total: ['counter', 'decision reason consolidation_type'],
  karpenter_voluntary_disruption_decisions_by_nodepool_total: [
    'counter',
    'nodepool decision reason consolidation_type',
  ],
  karpenter_voluntary_disruption_eligible_nodes: ['gauge', 'reason'],
  karpenter_voluntary_disruption_consolidation_timeouts_total: ['counter', 'consolidation_type'],
  karpenter_voluntary_disruption_failed_validations_total: ['counter', 'consolidation_type'],
  karpenter_voluntary_disruption_queue_failures_total: ['counter', 'decision reason consolidation_type'],
  karpenter_consolidation_score: ['histogram', 'decision nodepool policy'],
  karpenter_consolidation_moves_total: ['counter', 'decision nodepool policy'],
  client_go_request_duration_seconds: ['histogram', 'verb group version kind subresource'],
  client_go_request_total: ['counter', 'code method'],
  controller_runtime_reconcile_total: ['counter', 'controller result'],
  controller_runtime_reconcile_errors_total: ['counter', 'controller'],
  controller_runtime_terminal_reconcile_errors_total: ['counter', 'controller'],
  controller_runtime_reconcile_panics_total: ['counter', 'controller'],
  controller_runtime_reconcile_time_seconds: ['histogram', 'controller'],
  controller_runtime_max_concurrent_reconciles: ['gauge', 'controller'],
  controller_runtime_active_workers: ['gauge', 'controller'],
  workqueue_depth: ['gauge', 'name controller priority'],
  workqueue_adds_total: ['counter', 'name controller'],
  workqueue_queue_duration_seconds: ['histogram', 'name controller'],
  workqueue_work_duration_seconds: ['histogram', 'name controller'],
  workqueue_unfinished_work_seconds: ['gauge', 'name controller'],
  workqueue_longest_running_processor_seconds: ['gauge', 'name controller'],
  workqueue_retries_total: ['counter', 'name controller'],
  leader_election_master_status: ['gauge', 'name'],
  ...statusMetrics('nodeclaim', 'karpenter_sh_nodepool'),
  ...statusMetrics('nodepool'),
  ...statusMetrics('node', 'karpenter_sh_nodepool karpenter_sh_initialized'),
  ...statusMetrics('capacitybuffer'),
  ...statusMetrics('', 'group kind'),
};

/** Of one kind; '' for the old ones that are for all. */
function statusMetrics(kind: string, more = ''): typeof metrics {
  const prefix = kind === '' ? 'operator' : `operator_${kind}`;
  const row = (type: string, labels: string): readonly [string, string] => [type, `${labels} ${more}`.trim()];
  return {
    [`${prefix}_status_condition_count`]: row('gauge', 'namespace name type status reason'),
    [`${prefix}_status_condition_current_status_seconds`]: row('gauge', 'namespace name type status reason'),
    [`${prefix}_status_condition_transitions_total`]: row('counter', 'type status reason'),
    [`${prefix}_status_condition_transition_seconds`]: row('histogram', 'type status'),
    [`${prefix}_termination_current_time_seconds`]: row('gauge', 'namespace name'),
    [`${prefix}_termination_duration_seconds`]: row('histogram', ''),
  };
}

const doubled = (from: number, to: number): number[] => {
  const buckets: number[] = [];
  for (let at = from; at <= to; at *= 2) buckets.push(at);
  return buckets;
};
const hour = 3600;

/** The first and last bucket where only they are agreed, or all of them. */
const buckets: Readonly<Record<string, readonly number[]>> = {
  karpenter_nodeclaims_instance_termination_duration_seconds: doubled(1, 1024),
  karpenter_nodeclaims_termination_duration_seconds: doubled(1, 2048),
  karpenter_consolidation_score: [0.1, 0.25, 0.33, 0.5, 1, 2, 5, 10],
  karpenter_cloudprovider_duration_seconds: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  operator_nodeclaim_status_condition_transition_seconds: doubled(0.5, 8192),
};
const ends: Readonly<Record<string, readonly [number, number]>> = {
  karpenter_nodes_lifetime_duration_seconds: [hour / 4, 30 * 24 * hour],
  karpenter_scheduler_scheduling_duration_seconds: [0.005, 600],
  karpenter_pods_bound_duration_seconds: [0.005, 600],
  karpenter_voluntary_disruption_decision_evaluation_duration_seconds: [0.005, 600],
};

test('metrics have the names, types and labels of upstream', async () => {
  const declared = new Map((await declaredMetrics()).map((metric) => [metric.name, metric]));
  const found = Object.keys(metrics).map((name) => {
    const metric = declared.get(name);
    return [name, metric?.type, metric?.labels.toSorted().join(' ')];
  });
  expect(found).toEqual(
    Object.entries(metrics).map(([name, [type, labels]]) => [
      name,
      type,
      labels.split(' ').filter(Boolean).toSorted().join(' '),
    ]),
  );
});

test('what is no metric of upstream is of one cloud', async () => {
  const own = (await declaredMetrics()).map(({ name }) => name).filter((name) => !(name in metrics));
  expect(own.filter((name) => !/^karpenter_(cloudprovider_instance_type|linode|clusterapi|aws)_/.test(name))).toEqual(
    [],
  );
});

test('histograms have the buckets of upstream', async () => {
  const declared = new Map((await declaredMetrics()).map((metric) => [metric.name, metric]));
  const of = (name: string): readonly number[] | undefined =>
    (declared.get(name) as { buckets?: readonly number[] } | undefined)?.buckets;
  for (const [name, wanted] of Object.entries(buckets)) expect([name, of(name)]).toEqual([name, wanted]);
  for (const [name, [first, last]] of Object.entries(ends))
    expect([name, of(name)?.[0], of(name)?.at(-1)]).toEqual([name, first, last]);
});

test('events have the reasons, types and windows of upstream', () => {
  const minutes = Object.values(eventKinds).map(
    ({ reason, type, dedupeMs }) => `${reason} ${type} ${dedupeMs / 60_000}`,
  );
  expect(minutes.toSorted()).toEqual(
    [
      'Nominated Normal 2',
      'FailedScheduling Warning 5',
      'NoCompatibleInstanceTypes Warning 1',
      'DisruptionBlocked Normal 2',
      'DisruptionBlocked Normal 1',
      'DisruptionLaunching Normal 2',
      'DisruptionWaitingReadiness Normal 2',
      'DisruptionTerminating Normal 2',
      'Unconsolidatable Normal 15',
      'ConsolidationCandidate Normal 2',
      'ConsolidationRejected Normal 2',
      'ConsolidationApproved Normal 2',
      'NodeRepairBlocked Warning 15',
      'Evicted Normal 2',
      'Disrupted Normal 2',
      'FailedDraining Warning 2',
      'AwaitingVolumeDetachment Normal 2',
      'TerminationGracePeriodExpiring Warning 2',
      'FailedConsistencyCheck Warning 2',
      'InsufficientCapacityError Warning 2',
      'NodeClassNotReady Warning 2',
      'UnregisteredTaintMissing Warning 2',
      'InvalidDoNotDisruptAnnotation Warning 2',
      'DoNotDisruptUntil Normal 2',
      'DoNotDisruptGracePeriodElapsed Normal 2',
      'Finalized Normal 0',
    ].toSorted(),
  );
});
