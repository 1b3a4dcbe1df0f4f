// SPDX-License-Identifier: Apache-2.0
// What the Linode provider counts: calls to the API and waits for its limits, and upstream's gauges of what is sold.
import { counter, gauge, histogram } from '../../runtime/metrics.ts';

export const linodeMetrics = {
  requests: counter({
    name: 'karpenter_linode_api_requests_total',
    help: 'Calls to the Linode API by route and status; code 0 where no answer came.',
    labels: ['method', 'route', 'code'],
    stability: 'alpha',
  }),
  duration: histogram({
    name: 'karpenter_linode_api_request_duration_seconds',
    help: 'How long calls to the Linode API took, without the wait for our own limits.',
    labels: ['method', 'route'],
    stability: 'alpha',
    buckets: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  limited: histogram({
    name: 'karpenter_linode_api_rate_limiter_wait_seconds',
    help: 'How long calls waited on our side to stay within the rate limits of the Linode API.',
    labels: ['limit'],
    stability: 'alpha',
    buckets: [0.001, 0.1, 1, 5, 15, 30, 60, 120],
  }),
  cpuCores: gauge({
    name: 'karpenter_cloudprovider_instance_type_cpu_cores',
    help: 'CPUs of an instance type.',
    labels: ['instance_type'],
    stability: 'beta',
  }),
  memoryBytes: gauge({
    name: 'karpenter_cloudprovider_instance_type_memory_bytes',
    help: 'Memory of an instance type.',
    labels: ['instance_type'],
    stability: 'beta',
  }),
  available: gauge({
    name: 'karpenter_cloudprovider_instance_type_offering_available',
    help: 'Whether an instance type can be had now (1) or not (0).',
    labels: ['instance_type', 'capacity_type', 'region', 'zone'],
    stability: 'beta',
  }),
  price: gauge({
    name: 'karpenter_cloudprovider_instance_type_offering_price_estimate',
    help: 'Price per hour of an instance type, in US dollars.',
    labels: ['instance_type', 'capacity_type', 'region', 'zone'],
    stability: 'beta',
  }),
} as const;
