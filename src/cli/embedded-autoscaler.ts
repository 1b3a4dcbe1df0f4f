// SPDX-License-Identifier: Apache-2.0
// The autoscaler inside `karpenter up` and `karpenter demo`: the same program as on a real cluster, in this process, with
// a NodePool to begin with, and a Pod that stands for it.
import { nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import type { EmbeddedCluster } from '../embedded/cluster.ts';
import { Cluster, Clusters } from '../runtime/clusters.ts';
import { Metrics } from '../runtime/metrics.ts';
import { createLogger, type LogOutput } from '../runtime/pino-logger.ts';
import { defaultSettings } from '../runtime/settings.ts';
import { slimTransforms } from '../state/slim.ts';
import { runAutoscaler } from './autoscaler.ts';
import { keepControllerPod } from './controller-pod.ts';
import { cloudsNamed, type EmbeddedCloud, type RunningCloud } from './embedded-clouds.ts';
import { knownProviders } from './known-providers.ts';
import { type ProgramSettings, programSettings } from './program-settings.ts';
import { loadProviders } from './providers.ts';
import { commit } from './version.ts';

/** Kept of the controller's log: what `kubectl logs` shows. */
export const keptLogBytes = 1_000_000;

export interface EmbeddedAutoscalerOptions {
  /** The cluster with NodePools and NodeClaims. */
  readonly cluster: EmbeddedCluster;
  /** The cluster with Nodes and Pods, when it is another one. */
  readonly workload?: EmbeddedCluster;
  readonly clock: Clock;
  readonly random: Random;
  /** Where the controller's log goes. */
  readonly log: LogOutput;
  /** KWOK, unless told. */
  readonly clouds?: readonly EmbeddedCloud[];
  /** How long machines take to join: `3s`; no time at all unless told. */
  readonly bootTime?: string;
  /** The node that the controller's Pod is on. */
  readonly node: string;
  /** Told when the controllers end before they were asked to. */
  readonly onFailure: (error: unknown) => void;
}

export interface EmbeddedAutoscaler {
  readonly registry: CloudRegistry;
  /** What other programs need in their environment to find the clouds. */
  readonly environment: Readonly<Record<string, string>>;
  /** Waits until everything has ended. */
  stop(): Promise<void>;
}

/** Starts it; resolves when the NodePools of its clouds exist. */
export async function startEmbeddedAutoscaler(options: EmbeddedAutoscalerOptions): Promise<EmbeddedAutoscaler> {
  const { cluster, workload = cluster, clouds = cloudsNamed('kwok'), clock, random, onFailure } = options;
  const bootTime = options.bootTime === undefined ? {} : { bootTime: options.bootTime };
  const kubeconfig = workload.url === undefined ? {} : { kubeconfig: workload.kubeconfig() };
  const players = new Map<string, RunningCloud>();
  for (const cloud of clouds) {
    await cloud.furnish(cluster.client(), options.bootTime);
    const parts = {
      karpenter: cluster.client(),
      workload: workload.client(),
      clock,
      random,
      ...bootTime,
      ...kubeconfig,
    };
    const player = await cloud.run?.(parts);
    if (player) players.set(cloud.name, player);
  }
  const told = [...players.values()].map((player) => player.settings ?? {});
  const metrics = new Metrics();
  const log = createLogger({ clock, outputs: [options.log], fields: { logger: 'controller', commit } });
  const letGoOfPod = await keepControllerPod({ client: workload.client(), clock, log, node: options.node });
  const providerNames = clouds.map(({ name }) => name);
  const settings = Object.assign(
    { ...defaultSettings(programSettings), providers: providerNames },
    ...told,
  ) as ProgramSettings;
  const clusterOf = (name: string, of: EmbeddedCluster): Cluster =>
    new Cluster({ name, transport: of.transport(), clock, random, log, metrics, transforms: slimTransforms() });
  const one = clusterOf('karpenter', cluster);
  const clusters = new Clusters(one, workload === cluster ? one : clusterOf('workload', workload));
  // Loaded before anything runs: from here on nothing waits for a file, so that a run on virtual time repeats exactly.
  const known = knownProviders.map((provider) => {
    const load = players.get(provider.name)?.load;
    return load ? { ...provider, load } : provider;
  });
  const providers = await loadProviders({ clusters, clock, log, metrics, settings }, known);
  const stop = new AbortController();
  const running = runAutoscaler(
    {
      clusters,
      settings,
      clock,
      random,
      log,
      metrics,
      required: [nodePoolKind],
      withoutServers: true,
      loaded: providers,
    },
    stop.signal,
  ).catch((error: unknown) => {
    if (!stop.signal.aborted) onFailure(error);
  });
  return {
    registry: providers.registry,
    environment: Object.assign({}, ...[...players.values()].map(({ environment }) => environment)) as Record<
      string,
      string
    >,
    stop: async () => {
      stop.abort(new Error('the cluster stops'));
      await running;
      await letGoOfPod();
      for (const player of players.values()) await player.stop();
    },
  };
}
