// SPDX-License-Identifier: Apache-2.0
// The autoscaler as a whole, given its clusters: providers, controllers and a manager that runs them. The same for a
// real cluster and for the embedded one.
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import { UnconfiguredProvider } from '../cloud/unconfigured-provider.ts';
import { registerControllers } from '../controllers/index.ts';
import type { ResourceType } from '../kube/object.ts';
import type { Clusters } from '../runtime/clusters.ts';
import { InlineExecutor } from '../runtime/executor.ts';
import type { Logger } from '../runtime/logging.ts';
import { cachesSynced, kindsServed, Manager, type ManagerOptions } from '../runtime/manager.ts';
import type { Metrics } from '../runtime/metrics.ts';
import { profilingRoute } from '../runtime/profiling.ts';
import type { ProgramSettings } from './program-settings.ts';
import { type LoadedProviders, loadProviders } from './providers.ts';
import { version } from './version.ts';

/** A pass holds the process while it lasts: short enough for probes and for the lease, whose renewal may take 10 s. */
const passTimeoutMs = 5000;

export interface AutoscalerOptions {
  readonly clusters: Clusters;
  readonly settings: ProgramSettings;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly election?: ManagerOptions['election'] | undefined;
  /** Kinds without which it is not ready. */
  readonly required: readonly ResourceType[];
  readonly onLost?: () => void;
  /** No probes and metrics servers: the program around it has its own. */
  readonly withoutServers?: boolean;
  /** The clouds, when they are loaded already. */
  readonly loaded?: LoadedProviders;
}

/** Runs until the signal aborts and everything has stopped. Rejects as `Manager.run` does. */
export async function runAutoscaler(options: AutoscalerOptions, signal: AbortSignal): Promise<void> {
  const { clusters, settings, clock, random, log, metrics, election, onLost } = options;
  const { registry, runnables } = options.loaded ?? (await loadProviders({ clusters, clock, log, metrics, settings }));
  const usable = registry.providers.filter((provider) => !(provider instanceof UnconfiguredProvider));
  log.info('starting karpenter', { version, providers: usable.map(({ name }) => name).join(', ') });
  const manager = new Manager({
    clock,
    log,
    metrics,
    clusters,
    warmup: !settings.disableControllerWarmup,
    ...(election ? { election } : {}),
    ...(onLost ? { onLost } : {}),
    ...(options.withoutServers
      ? {}
      : {
          metricsPort: settings.metricsPort,
          healthPort: settings.healthProbePort,
          routes: settings.enableProfiling ? [profilingRoute(clock)] : [],
        }),
  });
  // In this thread: at 5,000 nodes, sending the problem to another one costs more than solving it (docs/performance.md).
  const executor = new InlineExecutor();
  registerControllers(manager, { clusters, registry, clock, random, log, metrics, settings, executor, passTimeoutMs });
  for (const runnable of runnables) manager.add(runnable);
  manager.readiness.add('crds', kindsServed(clusters.karpenter, options.required));
  for (const cluster of clusters.all) manager.readiness.add(`caches-${cluster.name}`, cachesSynced(cluster));
  await manager.run(signal);
}
