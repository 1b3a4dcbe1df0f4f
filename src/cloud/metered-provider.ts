// SPDX-License-Identifier: Apache-2.0
// Counts and times every call to a cloud, under upstream's metric names, and lets none of them last for ever.
import type { Clock } from '../base/clock.ts';
import { counter, histogram, type Metrics } from '../runtime/metrics.ts';
import { withDeadline } from './deadline.ts';
import { errorLabel } from './errors.ts';
import { forwarding } from './forwarding.ts';
import type { CloudProvider } from './provider.ts';

export const cloudMetrics = {
  duration: histogram({
    name: 'karpenter_cloudprovider_duration_seconds',
    help: 'How long calls to a cloud took.',
    labels: ['controller', 'method', 'provider'],
    stability: 'stable',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  }),
  errors: counter({
    name: 'karpenter_cloudprovider_errors_total',
    help: 'Calls to a cloud that failed, by kind of error.',
    labels: ['controller', 'method', 'provider', 'error'],
    stability: 'stable',
  }),
} as const;

/** Upstream's names of the methods, so that its dashboards fit. */
const metricNames = {
  create: 'Create',
  delete: 'Delete',
  get: 'Get',
  list: 'List',
  instanceTypes: 'GetInstanceTypes',
  driftReason: 'IsDrifted',
} as const;

const second = 1000;
/** How long a call may take. A launch that takes longer is found again by its NodeClaim. */
const limitsMs: Readonly<Record<keyof typeof metricNames, number>> = {
  create: 180 * second,
  delete: 60 * second,
  get: 30 * second,
  list: 60 * second,
  instanceTypes: 30 * second,
  driftReason: 30 * second,
};

/** The same provider, with its calls counted for `controller` and ended with CloudTimeoutError when they take too long. */
export function metered(
  provider: CloudProvider,
  options: { metrics: Metrics; clock: Clock; controller: string },
): CloudProvider {
  const { metrics, clock, controller } = options;
  const durations = metrics.histogram(cloudMetrics.duration);
  const errors = metrics.counter(cloudMetrics.errors);
  type Labels = Readonly<Record<(typeof cloudMetrics.duration.labels)[number], string>>;
  const labelsOf = new Map<string, Labels>(
    Object.values(metricNames).map((method) => [
      method,
      Object.freeze({ controller, method, provider: provider.name }),
    ]),
  );
  async function measured<R>(
    method: keyof typeof metricNames,
    signal: AbortSignal,
    call: (signal: AbortSignal) => Promise<R>,
  ): Promise<R> {
    const what = `${metricNames[method]} of ${provider.name}`;
    const labels = labelsOf.get(metricNames[method])!;
    const started = clock.monotonic();
    try {
      return await withDeadline({ clock, ms: limitsMs[method], what, signal }, call);
    } catch (error) {
      errors.inc({ ...labels, error: errorLabel(error) });
      throw error;
    } finally {
      durations.observe(labels, (clock.monotonic() - started) / 1000);
    }
  }
  return forwarding(provider, {
    create: (claim, signal) => measured('create', signal, (inner) => provider.create(claim, inner)),
    delete: (claim, signal) => measured('delete', signal, (inner) => provider.delete(claim, inner)),
    get: (id, signal) => measured('get', signal, (inner) => provider.get(id, inner)),
    list: (signal) => measured('list', signal, (inner) => provider.list(inner)),
    instanceTypes: (pool, signal) => measured('instanceTypes', signal, (inner) => provider.instanceTypes(pool, inner)),
    driftReason: (claim, signal) => measured('driftReason', signal, (inner) => provider.driftReason(claim, inner)),
  });
}
