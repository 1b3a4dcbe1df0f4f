// SPDX-License-Identifier: Apache-2.0
// The whole program in virtual time: what a cluster costs a minute after most of its pods have gone, and what moved for it.
import { expect, test } from 'vitest';
import { labels } from '../api/labels.ts';
import { nodePoolKind } from '../api/node-pool.ts';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { EmbeddedCluster, systemNode } from '../embedded/cluster.ts';
import { LogBuffer } from '../embedded/logs/log-buffer.ts';
import type { KubeClient } from '../kube/client.ts';
import { kinds, type Node } from '../kube/kinds.ts';
import { defaultInstanceTypes } from '../providers/kwok/instance-types.ts';
import { deployment } from './demo/objects.ts';
import { drive } from './demo/pace.ts';
import { startEmbeddedAutoscaler } from './embedded-autoscaler.ts';
import { cloudsNamed, type EmbeddedCloud } from './embedded-clouds.ts';

const shapes = { small: ['250m', '512Mi'], web: ['500m', '1Gi'], worker: ['1', '2Gi'], cache: ['1', '4Gi'] } as const;
/** What 25 pods of each shape request at the cheapest rate: 25 m$ for a CPU, 1 m$ for a GB. */
const bound = 25 * (2.75 * 0.025 + (7.5 * 0.001 * 2 ** 30) / 1e9);
const spread = (app: string) => ({
  maxSkew: 1,
  topologyKey: labels.zone,
  whenUnsatisfiable: 'DoNotSchedule' as const,
  labelSelector: { matchLabels: { app } },
});

/** KWOK with machines on demand that may all be disrupted at once. */
function freely(cloud: EmbeddedCloud): EmbeddedCloud {
  return {
    ...cloud,
    async furnish(client, bootTime) {
      await cloud.furnish(client, bootTime);
      const { items } = await client.resource(nodePoolKind).list();
      for (const { spec, ...pool } of items) {
        const { limits: _, ...rest } = spec;
        const requirements = [
          { key: labels.os, operator: 'In' as const, values: ['linux'] },
          { key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] },
        ];
        const template = { ...spec.template, spec: { ...spec.template.spec, requirements } };
        const disruption = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] };
        await client.resource(nodePoolKind).update({ ...pool, spec: { ...rest, template, disruption } });
      }
    },
  };
}

async function priceOf(client: KubeClient): Promise<number> {
  const prices = new Map(
    defaultInstanceTypes().map(({ name, offerings }) => [name, Math.max(...offerings.map(({ price }) => price))]),
  );
  const { items } = await client.resource(kinds.Node).list();
  const own = (node: Node): number => prices.get(node.metadata.labels?.[labels.instanceType] ?? '') ?? 0;
  return items.reduce((sum, node) => sum + own(node), 0);
}

test('a cluster comes near the bound within a minute of a scale-down, and its pods move about once', async () => {
  const [clock, random] = [new VirtualClock(), new SeededRandom(1)];
  const cluster = await EmbeddedCluster.start({
    clock,
    random,
    heartbeatMs: 0,
    baseNodes: [systemNode('system-1', 'test-zone-a')],
  });
  const log = new LogBuffer({ now: () => clock.now(), maxBytes: 1_000_000 });
  const failures: unknown[] = [];
  const autoscaler = await startEmbeddedAutoscaler({
    cluster,
    clock,
    random,
    log,
    clouds: cloudsNamed('kwok').map(freely),
    node: 'system-1',
    onFailure: (error) => failures.push(error),
  });
  const client = cluster.client();
  const pass = (seconds: number): Promise<void> => drive(clock, clock.sleep(seconds * 1000));
  const running = async (): Promise<Set<string>> => {
    const { items } = await client.resource(kinds.Pod).list({ namespace: 'default' });
    return new Set(items.flatMap(({ metadata, status }) => (status?.phase === 'Running' ? [metadata.uid ?? ''] : [])));
  };
  for (const [app, [cpu, memory]] of Object.entries(shapes))
    await client.resource(kinds.Deployment).create(
      deployment(app, {
        replicas: 75,
        requests: { cpu, memory },
        spec: { topologySpreadConstraints: [spread(app)] },
      }),
    );
  for (let second = 0; second < 60 && (await running()).size < 300; second++) await pass(1);
  expect((await running()).size).toBe(300);
  const before = await priceOf(client);
  for (const app of Object.keys(shapes))
    await client.resource(kinds.Deployment).updateScale(app, 25, { namespace: 'default' });
  const seen = new Set<string>();
  // While a command runs there is more than is needed: the least counts, with all pods in place.
  let least = Number.POSITIVE_INFINITY;
  for (let second = 1; second <= 60; second++) {
    await pass(1);
    const now = await running();
    if (second > 2) for (const uid of now) seen.add(uid);
    if (now.size === 100) least = Math.min(least, await priceOf(client));
  }
  expect(before).toBeGreaterThan(2.5 * bound);
  expect(least / bound).toBeLessThan(1.25);
  expect(seen.size).toBeLessThan(270);
  expect(failures).toEqual([]);
  await drive(clock, autoscaler.stop());
  await cluster.close();
}, 240_000);
