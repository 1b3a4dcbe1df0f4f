// SPDX-License-Identifier: Apache-2.0
// The autoscaler inside `karpenter up`: the same program as on a real cluster, in this process, with the KWOK cloud, a
// NodePool to begin with, and a Pod of its own so that `kubectl logs` finds it where it would be elsewhere.
import { kwokNodeClassKind } from '../api/kwok-node-class.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import type { Random } from '../base/random.ts';
import type { EmbeddedCluster } from '../embedded/cluster.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { apiVersionOf } from '../kube/object.ts';
import { Cluster, Clusters } from '../runtime/clusters.ts';
import type { Logger } from '../runtime/logging.ts';
import { Metrics } from '../runtime/metrics.ts';
import { createLogger } from '../runtime/pino-logger.ts';
import { defaultSettings } from '../runtime/settings.ts';
import { runAutoscaler } from './autoscaler.ts';
import { programSettings } from './program-settings.ts';

/** Kept of the controller's log: what `kubectl logs` shows. */
const keptLogBytes = 1_000_000;
const podName = 'karpenter';
const container = 'controller';
const namespace = 'kube-system';

/** The controller's own log, as long as it is worth keeping. */
export class ControllerLog {
  #lines: string[] = [];
  #bytes = 0;

  write(line: string): void {
    this.#lines.push(line);
    this.#bytes += line.length;
    while (this.#bytes > keptLogBytes) this.#bytes -= this.#lines.shift()!.length;
  }

  /** What the container of the controller's Pod has logged; undefined for every other Pod. */
  of(pod: Pod, name: string): string | undefined {
    const isOurs = pod.metadata.name === podName && pod.metadata.namespace === namespace && name === container;
    return isOurs ? this.#lines.join('') : undefined;
  }
}

export interface EmbeddedAutoscalerOptions {
  readonly cluster: EmbeddedCluster;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: ControllerLog;
  /** Told when the controllers end before they were asked to. */
  readonly onFailure: (error: unknown) => void;
}

/** Starts it; resolves when its NodePool exists. `stop` waits until everything has ended. */
export async function startEmbeddedAutoscaler(options: EmbeddedAutoscalerOptions): Promise<{ stop(): Promise<void> }> {
  const { cluster, clock, random, onFailure } = options;
  await furnish(cluster);
  const metrics = new Metrics();
  const log: Logger = createLogger({ clock, outputs: [options.log], fields: { logger: 'controller' } });
  const transport = cluster.transport();
  const one = new Cluster({ name: 'karpenter', transport, clock, random, log, metrics });
  const stop = new AbortController();
  const running = runAutoscaler(
    {
      clusters: new Clusters(one, one),
      settings: defaultSettings(programSettings),
      clock,
      random,
      log,
      metrics,
      required: [nodePoolKind],
      withoutServers: true,
    },
    stop.signal,
  ).catch((error: unknown) => {
    if (!stop.signal.aborted) onFailure(error);
  });
  return {
    stop: async () => {
      stop.abort(new Error('the cluster stops'));
      await running;
    },
  };
}

async function furnish(cluster: EmbeddedCluster): Promise<void> {
  const client = cluster.client();
  await client.resource(kwokNodeClassKind).create({
    apiVersion: apiVersionOf(kwokNodeClassKind),
    kind: kwokNodeClassKind.kind,
    metadata: { name: 'default' },
  });
  await client.resource(nodePoolKind).create(firstPool);
  await client.resource(kinds.Pod).create(controllerPod);
}

/** Not `default`: that name belongs to the pools in other people's guides. */
const firstPool: NodePool = {
  apiVersion: apiVersionOf(nodePoolKind),
  kind: nodePoolKind.kind,
  metadata: { name: 'kwok' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: kwokNodeClassKind.group, kind: kwokNodeClassKind.kind, name: 'default' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] },
        ],
      },
    },
    limits: { cpu: '1000' },
  },
};

const controllerPod: Pod = {
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
    nodeName: 'base-1',
    tolerations: [{ operator: 'Exists' }],
  },
};
