// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import { KubeClient } from '../../kube/client.ts';
import { kinds } from '../../kube/kinds.ts';
import { EmbeddedCluster } from '../cluster.ts';

const labels = { app: 'web' };
const where = { namespace: 'default' };

/** A Deployment of four pods that run, and a budget that wants three of them. */
async function guarded(lean: boolean) {
  const clock = new VirtualClock();
  const cluster = await EmbeddedCluster.start({
    clock,
    random: new SeededRandom(1),
    heartbeatMs: 0,
    podStartMs: 2000,
    lean,
  });
  const client = new KubeClient({ transport: cluster.transport(), clock, fieldManager: 'test' });
  const budgets = client.resource(kinds.PodDisruptionBudget);
  await client.resource(kinds.Deployment).create({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', ...where },
    spec: {
      replicas: 4,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app' }] } },
    },
  });
  await budgets.create({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', ...where },
    spec: { maxUnavailable: 1, selector: { matchLabels: labels } },
  });
  await clock.step(20_000);
  const told: (number | undefined)[] = [];
  cluster.server.store.listen(({ name }, { object }) => {
    if (name !== 'poddisruptionbudgets.policy') return;
    told.push((object as { status?: { disruptionsAllowed?: number } }).status?.disruptionsAllowed);
  });
  const allowed = async (): Promise<number | undefined> => (await budgets.get('web', where)).status?.disruptionsAllowed;
  return { clock, cluster, client, told, allowed };
}

test.each([false, true])('what a budget allows is lowered at once (lean: %s)', async (lean) => {
  const { clock, cluster, client, allowed } = await guarded(lean);
  expect(await allowed()).toBe(1);
  const [pod] = (await client.resource(kinds.Pod).list(where)).items;
  await client.resource(kinds.Pod).delete(pod!.metadata.name!, where);
  await clock.step(1);
  expect(await allowed()).toBe(0);
  await clock.step(10_000);
  expect(await allowed()).toBe(1);
  await client.resource(kinds.Deployment).patch('web', { spec: { replicas: 6 } }, where);
  await clock.step(1);
  expect(await allowed()).toBe(0);
  await cluster.close();
});

test('a lean control plane writes a budget for what goes and once for what came instead', async () => {
  const { clock, cluster, client, told } = await guarded(true);
  const [pod] = (await client.resource(kinds.Pod).list(where)).items;
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod!.metadata.name!, ...where } };
  await cluster.transport().request({
    method: 'POST',
    path: `/api/v1/namespaces/default/pods/${pod!.metadata.name}/eviction`,
    body: eviction,
  });
  await clock.step(10_000);
  // The API server grants it, the controller sees it go, and sees the other run.
  expect(told).toEqual([0, 0, 1]);
  await cluster.close();
});
