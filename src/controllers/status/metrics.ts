// SPDX-License-Identifier: Apache-2.0
// What is measured about the conditions and the end of objects, under the names of upstream's operator library.
import { labels } from '../../api/labels.ts';
import { counter, exponentialBuckets, gauge, histogram, type MetricDeclaration } from '../../runtime/metrics.ts';

/** The metrics of one kind, or those of all kinds together. */
export interface StatusMetrics {
  readonly count: MetricDeclaration<'gauge'>;
  readonly currentStatus: MetricDeclaration<'gauge'>;
  readonly transitions: MetricDeclaration<'counter'>;
  readonly transitionTime: MetricDeclaration<'histogram'>;
  readonly terminationTime: MetricDeclaration<'gauge'>;
  readonly terminationDuration: MetricDeclaration<'histogram'>;
}

/** 0.5 s to 8192 s. */
const kindBuckets = exponentialBuckets(0.5, 2, 15);
/** What Prometheus' libraries use unless told. */
const defaultBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];

const object = ['namespace', 'name'] as const;
const condition = ['type', 'status', 'reason'] as const;

/** The label of a metric that shows a label of an object. */
export function metricLabel(key: string): string {
  return key.replace(/[^a-zA-Z0-9_]/g, '_');
}

/** The metrics of a kind; series also have the given labels of the object. NodeClaims and Nodes also show their NodeClass. */
export function statusMetricsOf(kind: string, objectLabels: readonly string[] = []): StatusMetrics {
  const prefix = `operator_${kind.toLowerCase()}`;
  const more = objectLabels.map(metricLabel);
  return {
    count: gauge({
      name: `${prefix}_status_condition_count`,
      help: `Always 1, for each condition that a ${kind} has.`,
      labels: [...object, ...condition, ...more],
      stability: 'beta',
    }),
    currentStatus: gauge({
      name: `${prefix}_status_condition_current_status_seconds`,
      help: `For how long a condition of a ${kind} has had its status.`,
      labels: [...object, ...condition, ...more],
      stability: 'beta',
    }),
    transitions: counter({
      name: `${prefix}_status_condition_transitions_total`,
      help: `How often conditions of ${kind}s took on a status.`,
      labels: [...condition, ...more],
      stability: 'beta',
    }),
    transitionTime: histogram({
      name: `${prefix}_status_condition_transition_seconds`,
      help: `How long a condition of a ${kind} had a status before it changed.`,
      labels: ['type', 'status', ...more],
      buckets: kindBuckets,
      stability: 'beta',
    }),
    terminationTime: gauge({
      name: `${prefix}_termination_current_time_seconds`,
      help: `For how long a ${kind} has been going away.`,
      labels: [...object, ...more],
      stability: 'beta',
    }),
    terminationDuration: histogram({
      name: `${prefix}_termination_duration_seconds`,
      help: `How long a ${kind} took to go away.`,
      labels: more,
      buckets: kindBuckets,
      stability: 'beta',
    }),
  };
}

export const nodeClaimStatusMetrics = statusMetricsOf('NodeClaim', [labels.nodePool]);
export const nodePoolStatusMetrics = statusMetricsOf('NodePool');
export const nodeStatusMetrics = statusMetricsOf('Node', [labels.nodePool, labels.initialized]);
export const capacityBufferStatusMetrics = statusMetricsOf('CapacityBuffer');

/** The same metrics with more labels of the object: those of NodeClasses are known once the clouds are. */
export function withObjectLabels(metrics: StatusMetrics, objectLabels: readonly string[]): StatusMetrics {
  const more = objectLabels.map(metricLabel);
  const extended = <M extends MetricDeclaration>(metric: M): M => ({ ...metric, labels: [...metric.labels, ...more] });
  return {
    count: extended(metrics.count),
    currentStatus: extended(metrics.currentStatus),
    transitions: extended(metrics.transitions),
    transitionTime: extended(metrics.transitionTime),
    terminationTime: extended(metrics.terminationTime),
    terminationDuration: extended(metrics.terminationDuration),
  };
}

const ofKind = ['group', 'kind'] as const;

/** Those of all our kinds together. */
export const deprecatedStatusMetrics = {
  count: gauge({
    name: 'operator_status_condition_count',
    help: 'As the metrics by kind.',
    labels: [...object, ...condition, ...ofKind],
    stability: 'deprecated',
  }),
  currentStatus: gauge({
    name: 'operator_status_condition_current_status_seconds',
    help: 'As the metrics by kind.',
    labels: [...object, ...condition, ...ofKind],
    stability: 'deprecated',
  }),
  transitions: counter({
    name: 'operator_status_condition_transitions_total',
    help: 'As the metrics by kind.',
    labels: [...condition, ...ofKind],
    stability: 'deprecated',
  }),
  transitionTime: histogram({
    name: 'operator_status_condition_transition_seconds',
    help: 'As the metrics by kind.',
    labels: ['type', 'status', ...ofKind],
    buckets: defaultBuckets,
    stability: 'deprecated',
  }),
  terminationTime: gauge({
    name: 'operator_termination_current_time_seconds',
    help: 'As the metrics by kind.',
    labels: [...object, ...ofKind],
    stability: 'deprecated',
  }),
  terminationDuration: histogram({
    name: 'operator_termination_duration_seconds',
    help: 'As the metrics by kind.',
    labels: ofKind,
    buckets: defaultBuckets,
    stability: 'deprecated',
  }),
} as const;
