// SPDX-License-Identifier: Apache-2.0
// What is counted about pods that are asked to leave.
import { counter } from '../../../runtime/metrics.ts';

export const evictionMetrics = {
  requests: counter({
    name: 'karpenter_pods_eviction_requests_total',
    help: 'Evictions that were asked for, by the code of the answer; 200 for every one that was granted.',
    labels: ['code'],
  }),
  drained: counter({
    name: 'karpenter_pods_drained_total',
    help: 'Pods that were evicted from nodes that go away, by the reason of the disruption.',
    labels: ['reason'],
  }),
} as const;
