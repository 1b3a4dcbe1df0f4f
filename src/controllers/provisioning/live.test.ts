// SPDX-License-Identifier: Apache-2.0
// The whole way from a Deployment to running pods, on a cluster with scheduler, kubelets and workload controllers.
import { describe, expect, test } from 'vitest';
import { kinds } from '../../kube/kinds.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import { registerControllers } from '../index.ts';
import { deployment } from '../testing/deployment.ts';
import { type TestWorld, type TestWorldOptions, testWorld } from '../testing/world.ts';

async function begin(options: TestWorldOptions = {}): Promise<TestWorld> {
  const world = await testWorld({ live: true, ...options });
  registerControllers(world.manager, world);
  await world.pool();
  return world;
}

/** Lets the world run until every replica is ready, or for ten minutes. */
async function untilReady(world: TestWorld, replicas: number): Promise<void> {
  const { pods } = world.state.sources;
  const ready = (): number => pods.list().filter(({ status }) => status?.phase === 'Running').length;
  await world.until(() => pods.list().length === replicas && ready() === replicas, 600_000);
}

/** Every machine has its NodeClaim and its Node, and nothing is left over. */
async function expectNoLeaks(world: TestWorld): Promise<void> {
  const claims = new Set((await world.claims()).map(({ status }) => status?.providerID));
  expect(new Set((await world.nodes()).map(({ spec }) => spec?.providerID))).toEqual(claims);
  expect(new Set(world.cloud.instances.keys())).toEqual(claims);
}

describe('a deployment', () => {
  test.each([[false], [true]])('gets the nodes it needs (clusters apart: %s)', async (apart) => {
    const world = await begin({ apart });
    await world.apply(deployment('inflate', 5, '3'));
    await untilReady(world, 5);
    await expectNoLeaks(world);
    const nodes = await world.nodes();
    expect(nodes.every(({ metadata }) => metadata.labels?.['karpenter.sh/initialized'] === 'true')).toBe(true);
    expect(world.log.messages('error')).toEqual([]);
    await world.close();
  });

  test('that grows gets more, and what is there is used first', async () => {
    const world = await begin();
    await world.apply(deployment('inflate', 2, '3'));
    await untilReady(world, 2);
    const before = (await world.claims()).length;
    await world.workload.resource(kinds.Deployment).updateScale('inflate', 8, { namespace: 'default' });
    await untilReady(world, 8);
    expect((await world.claims()).length).toBeGreaterThan(before);
    await expectNoLeaks(world);
    await world.close();
  });
});

test('kinds that an older cluster lacks block nothing', async () => {
  const { featureGates } = defaultSettings(coreSettings);
  const world = await testWorld({
    live: true,
    settings: { ignoreDraRequests: false, featureGates: { ...featureGates, CapacityBuffer: true } },
  });
  const absent = { status: 404, reason: 'NotFound' };
  const groups = ['/apis/resource.k8s.io/', '/apis/autoscaling.x-k8s.io/', '/nodeoverlays'];
  for (const group of groups) world.doors.workload.fail(`GET ${group}`, absent, Number.POSITIVE_INFINITY);
  registerControllers(world.manager, world);
  await world.pool();
  await world.apply(deployment('inflate', 1, '3'));
  await untilReady(world, 1);
  await expectNoLeaks(world);
  await world.close();
});
