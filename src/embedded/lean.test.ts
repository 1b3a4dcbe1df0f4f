// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { KubeClient } from '../kube/client.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { EmbeddedCluster } from './cluster.ts';

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default' },
  spec: { containers: [{ name: 'main', image: 'app' }] },
};

/** What a running pod leaves behind: who owns its fields, and what was told of it. */
async function traces(lean: boolean): Promise<{ readonly owners: number; readonly events: number }> {
  const clock = new VirtualClock();
  const cluster = await EmbeddedCluster.start({ clock, random: new SeededRandom(1), heartbeatMs: 0, lean });
  const client = new KubeClient({ transport: cluster.transport(), clock, fieldManager: 'test' });
  await client.resource(kinds.Pod).create(pod);
  await clock.step(60_000);
  const { status, metadata } = await client.resource(kinds.Pod).get('web', { namespace: 'default' });
  const { items } = await client.resource(kinds.Event).list();
  await cluster.close();
  expect(status?.phase).toBe('Running');
  return { owners: metadata.managedFields?.length ?? 0, events: items.length };
}

test('a lean cluster runs pods without a record of owners and without events', async () => {
  expect(await traces(true)).toEqual({ owners: 0, events: 0 });
  const usual = await traces(false);
  expect(usual.owners).toBeGreaterThan(0);
  expect(usual.events).toBeGreaterThan(0);
});

/** How often each kind was written until a Deployment of six pods stood, and how it stood then. */
async function rollOut(lean: boolean): Promise<{ writes: Map<string, number>; ready: number | undefined }> {
  const clock = new VirtualClock();
  const cluster = await EmbeddedCluster.start({ clock, random: new SeededRandom(1), heartbeatMs: 0, lean });
  const client = new KubeClient({ transport: cluster.transport(), clock, fieldManager: 'test' });
  const writes = new Map<string, number>();
  cluster.server.store.listen(({ name }) => writes.set(name, (writes.get(name) ?? 0) + 1));
  const labels = { app: 'web' };
  await client.resource(kinds.Deployment).create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: 'default' },
    spec: { replicas: 6, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: pod.spec } },
  });
  // What only people read is a minute late.
  await clock.step(90_000);
  const { status } = await client.resource(kinds.Deployment).get('web', { namespace: 'default' });
  await cluster.close();
  return { writes, ready: status?.readyReplicas };
}

test('a lean cluster comes to the same with fewer writes', async () => {
  const [usual, lean] = [await rollOut(false), await rollOut(true)];
  expect(lean.ready).toBe(6);
  expect(usual.ready).toBe(6);
  for (const name of ['pods', 'replicasets.apps', 'deployments.apps'])
    expect([name, lean.writes.get(name)! < usual.writes.get(name)!]).toEqual([name, true]);
});
