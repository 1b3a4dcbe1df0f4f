// SPDX-License-Identifier: Apache-2.0
// Where scenarios are played: an embedded cluster (or two), the autoscaler in it, and someone who watches.

import { nodePoolKind } from '../../api/node-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { EmbeddedCluster, systemNode } from '../../embedded/cluster.ts';
import { LogBuffer } from '../../embedded/logs/log-buffer.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds } from '../../kube/kinds.ts';
import { readPoolCatalog } from '../../state/pool-catalog.ts';
import { controllerLogs } from '../controller-pod.ts';
import { keptLogBytes, startEmbeddedAutoscaler } from '../embedded-autoscaler.ts';
import type { EmbeddedCloud } from '../embedded-clouds.ts';
import type { DemoEvent } from './events.ts';
import { PriceList } from './price-list.ts';
import type { Hands } from './scenario.ts';
import { Watcher } from './world.ts';

export interface StageOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly clouds: readonly EmbeddedCloud[];
  /** NodePools and NodeClaims in one cluster, Nodes and Pods in another. */
  readonly twoClusters?: boolean;
  /** How often nodes renew their leases; 0 for never, where time is virtual and nobody could fall silent. */
  readonly heartbeatMs?: number;
  readonly emit: (event: DemoEvent) => void;
}

export interface Stage {
  readonly hands: Hands;
  readonly watcher: Watcher;
  /** What went wrong in the autoscaler, newest first: for the one who asks why a play failed. */
  complaints(): string[];
  close(): Promise<void>;
}

/** Builds it; resolves when the autoscaler runs and its NodePools exist. */
export async function openStage(options: StageOptions): Promise<Stage> {
  const { clock, random, clouds, heartbeatMs, emit } = options;
  const log = new LogBuffer({ now: () => clock.now(), maxBytes: keptLogBytes });
  const common = { clock, random, ...(heartbeatMs === undefined ? {} : { heartbeatMs }) };
  // Nodes for the system only, as on a cluster in production: what users run needs machines of its own.
  const baseNodes = [systemNode('system-1', 'test-zone-a'), systemNode('system-2', 'test-zone-b')];
  const crds = options.twoClusters ? { crds: [] } : {};
  const workload = await EmbeddedCluster.start({ ...common, ...crds, baseNodes, logs: controllerLogs(log) });
  const cluster = options.twoClusters ? await EmbeddedCluster.start({ ...common, baseNodes: [] }) : workload;
  const failures: string[] = [];
  const autoscaler = await startEmbeddedAutoscaler({
    cluster,
    workload,
    clock,
    random,
    log,
    clouds,
    // Real ones take longer; without any time there would be nothing to see.
    bootTime: '3s',
    node: 'system-1',
    onFailure: (error) => failures.push(`the autoscaler ended: ${messageOf(error)}`),
  });
  const stop = new AbortController();
  const [ofPools, ofPods] = [cluster.client(), workload.client()];
  const { items: pools } = await ofPools.resource(nodePoolKind).list();
  const catalog = await readPoolCatalog(autoscaler.registry, pools, stop.signal);
  const prices = new PriceList(catalog.instanceTypes);
  const watcher = new Watcher({ karpenter: ofPools, workload: ofPods, clock, random, prices, emit });
  await watcher.start(stop.signal);
  return {
    hands: handsOf(ofPools, ofPods, watcher),
    watcher,
    complaints: () => [...failures, ...errorsIn(log)],
    close: async () => {
      stop.abort(new Error('the play is over'));
      await autoscaler.stop();
      for (const one of new Set([cluster, workload])) await one.close();
    },
  };
}

function handsOf(karpenter: KubeClient, workload: KubeClient, watcher: Watcher): Hands {
  const deployments = workload.resource(kinds.Deployment);
  const namespace = 'default';
  return {
    async create(deployment) {
      await deployments.create(deployment);
    },
    async scale(name, replicas) {
      await deployments.updateScale(name, replicas, { namespace });
    },
    async remove(name) {
      await deployments.delete(name, { namespace });
    },
    async delete(type, name) {
      const isOurs = type.group.startsWith('karpenter.');
      await (isOurs ? karpenter : workload).resource(type).delete(name, type.namespaced ? { namespace } : {});
    },
    get world() {
      return watcher.world;
    },
  };
}

function errorsIn(log: LogBuffer): string[] {
  const errors: string[] = [];
  for (let number = log.next - 1; number >= log.first; number--) {
    const line = JSON.parse(log.line(number).text) as { level?: string; message?: string; error?: string };
    if (line.level !== 'ERROR') continue;
    const text = `${line.message}: ${line.error ?? ''}`;
    if (!errors.includes(text)) errors.push(text);
  }
  return errors;
}
