// SPDX-License-Identifier: Apache-2.0
// The autoscaler inside `karpenter up` and `karpenter demo`: the same program as on a real cluster, in this process, with
// a NodePool to begin with, and a Pod of its own so that `kubectl logs` finds it where it would be elsewhere.
import { nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import type { EmbeddedCluster } from '../embedded/cluster.ts';
import type { LogSource } from '../embedded/logs/log-buffer.ts';
import type { LogSources } from '../embedded/logs/pod-log.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { Cluster, Clusters } from '../runtime/clusters.ts';
import { Metrics } from '../runtime/metrics.ts';
import { createLogger, type LogOutput } from '../runtime/pino-logger.ts';
import { defaultSettings } from '../runtime/settings.ts';
import { slimTransforms } from '../state/slim.ts';
import { runAutoscaler } from './autoscaler.ts';
import { cloudsNamed, type EmbeddedCloud } from './embedded-clouds.ts';
import { programSettings } from './program-settings.ts';
import { loadProviders } from './providers.ts';
import { version } from './version.ts';

/** Kept of the controller's log: what `kubectl logs` shows. */
export const keptLogBytes = 1_000_000;
const podName = 'karpenter';
const container = 'controller';
const namespace = 'kube-system';

/** The log of the controller's Pod, for the cluster that it is in. */
export function controllerLogs(source: LogSource): LogSources {
  return ({ metadata }, name) =>
    metadata.name === podName && metadata.namespace === namespace && name === container ? source : undefined;
}

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
  /** Waits until everything has ended. */
  stop(): Promise<void>;
}

/** Starts it; resolves when the NodePools of its clouds exist. */
export async function startEmbeddedAutoscaler(options: EmbeddedAutoscalerOptions): Promise<EmbeddedAutoscaler> {
  const { cluster, workload = cluster, clouds = cloudsNamed('kwok'), clock, random, onFailure } = options;
  const bootTime = options.bootTime === undefined ? {} : { bootTime: options.bootTime };
  const players: { stop(): Promise<void> }[] = [];
  for (const cloud of clouds) {
    await cloud.furnish(cluster.client(), options.bootTime);
    const parts = { karpenter: cluster.client(), workload: workload.client(), clock, random, ...bootTime };
    const player = await cloud.run?.(parts);
    if (player) players.push(player);
  }
  await workload.client().resource(kinds.Pod).create(controllerPod(options.node));
  const metrics = new Metrics();
  const log = createLogger({ clock, outputs: [options.log], fields: { logger: 'controller' } });
  const settings = { ...defaultSettings(programSettings), providers: clouds.map(({ name }) => name) };
  const clusterOf = (name: string, of: EmbeddedCluster): Cluster =>
    new Cluster({ name, transport: of.transport(), clock, random, log, metrics, transforms: slimTransforms() });
  const one = clusterOf('karpenter', cluster);
  const clusters = new Clusters(one, workload === cluster ? one : clusterOf('workload', workload));
  // Loaded before anything runs: from here on nothing waits for a file, so that a run on virtual time repeats exactly.
  const providers = await loadProviders({ clusters, clock, log, metrics, settings });
  log.info('starting karpenter', { version, providers: settings.providers.join(', ') });
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
    stop: async () => {
      stop.abort(new Error('the cluster stops'));
      await running;
      for (const player of players) await player.stop();
    },
  };
}

const controllerPod = (nodeName: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: podName,
    namespace,
    labels: { 'app.kubernetes.io/name': 'karpenter' },
    // It belongs to its node as a static pod does: draining the node leaves it alone.
    annotations: { 'kubernetes.io/config.mirror': 'karpenter' },
  },
  spec: {
    priorityClassName: 'system-cluster-critical',
    containers: [{ name: container, image: 'karpenter' }],
    // On a node of the cluster's own, never on a machine that it may remove, and before anybody else takes the place.
    nodeName,
    tolerations: [{ operator: 'Exists' }],
  },
});
