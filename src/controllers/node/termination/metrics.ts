// SPDX-License-Identifier: Apache-2.0
// What is counted about nodes that go away.
import { counter, histogram, summary } from '../../../runtime/metrics.ts';

const minute = 60;
const hour = 60 * minute;
const day = 24 * hour;

export const terminationMetrics = {
  terminated: counter({
    name: 'karpenter_nodes_terminated_total',
    help: 'Nodes that were taken away.',
    labels: ['nodepool', 'zone'],
  }),
  drained: counter({
    name: 'karpenter_nodes_drained_total',
    help: 'Nodes that were drained.',
    labels: ['nodepool'],
  }),
  duration: summary({
    name: 'karpenter_nodes_termination_duration_seconds',
    help: 'How long it took from the deletion of a Node until it was let go.',
    labels: ['nodepool'],
  }),
  lifetime: histogram({
    name: 'karpenter_nodes_lifetime_duration_seconds',
    help: 'How old nodes were when they went.',
    labels: ['nodepool'],
    buckets: [
      ...[15, 30, 45].map((n) => n * minute),
      ...[1, 2, 4, 6, 8, 10, 12, 16, 20].map((n) => n * hour),
      ...[1, 2, 3, 5, 10, 15, 20, 25, 30].map((n) => n * day),
    ],
  }),
} as const;
