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
