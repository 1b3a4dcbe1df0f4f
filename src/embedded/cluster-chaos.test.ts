// SPDX-License-Identifier: Apache-2.0
// A cluster that is pushed around at random comes to rest where it should, and breaks no promise on the way.
import { afterEach, describe, expect, test } from 'vitest';
import { VirtualClock } from '../base/clock.ts';
import { SeededRandom } from '../base/random.ts';
import { isConflict, isNotFound, isTooManyRequests } from '../kube/api-error.ts';
import { KubeClient } from '../kube/client.ts';
import { type Deployment, kinds, type Pod } from '../kube/kinds.ts';
import { RecordingLogger } from '../runtime/logging.ts';
import { ApiServer } from './api-server.ts';
import { aNode } from './testing/objects.ts';
import { template, World } from './testing/world.ts';
import { isPodActive, isPodReady } from './workloads/pods.ts';
import { runControlPlane } from './workloads/run-control-plane.ts';

const namespace = 'default';
let world: World | undefined;
afterEach(async () => {
  await world?.stop();
  world = undefined;
});

/** Does something a user or a cloud might do; what is gone or refused meanwhile is part of life. */
async function push(w: World, random: SeededRandom, step: number): Promise<void> {
  const deployments = w.client.resource(kinds.Deployment);
  const app = `app-${random.int(3)}`;
  const pods = await w.pods();
  const pod = pods[random.int(Math.max(1, pods.length))]?.metadata.name;
  const actions: (() => Promise<unknown>)[] = [
    () => deployments.patch(app, { spec: { replicas: random.int(12) } }, { namespace }),
    () => deployments.patch(app, { spec: { template: template(app, `app:${step}`) } }, { namespace }),
    async () => pod && (await w.client.resource(kinds.Pod).evict(pod, { namespace })),
    async () => pod && (await w.client.resource(kinds.Pod).delete(pod, { namespace, gracePeriodSeconds: 0 })),
    () => w.addNode(`late-${step}`),
    () => w.client.resource(kinds.Node).delete(`late-${random.int(step + 1)}`),
    () => w.client.resource(kinds.Node).patch('stable', { spec: { unschedulable: random.next() < 0.5 } }),
    () => deployments.patch(app, { spec: { paused: random.next() < 0.3 } }, { namespace }),
  ];
  try {
    await actions[random.int(actions.length)]!();
  } catch (error) {
    if (!isNotFound(error) && !isConflict(error) && !isTooManyRequests(error)) throw error;
  }
}

/** No promise of the cluster is broken right now. */
async function expectPromises(w: World): Promise<void> {
  const nodes = new Set((await w.client.resource(kinds.Node).list()).items.map((node) => node.metadata.name));
  const used = new Map<string, number>();
  for (const pod of await w.pods()) {
    if (!pod.spec.nodeName || !nodes.has(pod.spec.nodeName) || !isPodActive(pod)) continue;
    used.set(pod.spec.nodeName, (used.get(pod.spec.nodeName) ?? 0) + 1);
  }
  // 4 CPUs, 100m each.
  for (const [name, count] of used) expect(count, `pods on ${name}`).toBeLessThanOrEqual(40);
  const addresses = (await w.pods()).map((pod) => pod.status?.podIP).filter((ip) => ip !== undefined);
  expect(new Set(addresses).size).toBe(addresses.length);
}

function expectSettled(deployment: Deployment, pods: readonly Pod[]): void {
  const wanted = deployment.spec.replicas!;
  const image = deployment.spec.template.spec.containers[0]!.image;
  const own = pods.filter((pod) => pod.metadata.labels!['app'] === deployment.metadata.name);
  expect(own.filter((pod) => isPodActive(pod) && isPodReady(pod))).toHaveLength(wanted);
  expect(own).toHaveLength(wanted);
  expect(new Set(own.map((pod) => pod.spec.containers[0]!.image))).toEqual(new Set(wanted === 0 ? [] : [image]));
  expect(deployment.status).toMatchObject({ observedGeneration: deployment.metadata.generation });
  expect(deployment.status?.availableReplicas ?? 0).toBe(wanted);
  expect(deployment.status?.replicas ?? 0).toBe(wanted);
}

describe('a cluster that is pushed around', () => {
  test.each([1, 2, 3, 4, 5, 6])('comes to rest where it should (seed %i)', async (seed) => {
    const random = new SeededRandom(seed);
    world = await World.start({ seed });
    await world.addNode('stable');
    for (let i = 0; i < 3; i++) await world.deploy(`app-${i}`, 3);
    await world.client.resource(kinds.PodDisruptionBudget).create({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'app-0', namespace },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'app-0' } } },
    });
    for (let step = 0; step < 40; step++) {
      await push(world, random, step);
      await world.pass(random.int(3000));
      await expectPromises(world);
    }
    await world.client.resource(kinds.Node).patch('stable', { spec: { unschedulable: null } });
    for (let i = 0; i < 3; i++) {
      const spec = { paused: false };
      await world.client.resource(kinds.Deployment).patch(`app-${i}`, { spec }, { namespace });
    }
    await world.pass(300_000);
    const pods = await world.pods();
    for (let i = 0; i < 3; i++) expectSettled(await world.deployment(`app-${i}`), pods);
    expect(world.cluster.pendingPods).toBe(0);
    expect(world.log.lines.filter((line) => line.level === 'error')).toEqual([]);
    // At rest means at rest: nothing is written any more.
    const before = world.cluster.server.store.revision;
    await world.pass(30_000);
    expect(world.cluster.server.store.revision).toBe(before);
  });

  test('goes on where it was when its controllers are stopped and started again in the middle of things', async () => {
    const clock = new VirtualClock();
    const random = new SeededRandom(3);
    const log = new RecordingLogger();
    const server = new ApiServer({ clock, random });
    const client = new KubeClient({ transport: server.transport(), clock });
    const options = { client, clock, random, log, certificateAuthority: '', heartbeatMs: 0, podStartMs: 100 };
    for (const name of ['a', 'b']) {
      const node = aNode(name);
      node.metadata.annotations = { 'kwok.x-k8s.io/node': 'fake' };
      delete node.status!.conditions;
      await client.resource(kinds.Node).create(node);
    }
    const deployments = client.resource(kinds.Deployment);
    await deployments.create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace },
      spec: { replicas: 8, selector: { matchLabels: { app: 'web' } }, template: template('web') },
    });
    for (let life = 0; life < 12; life++) {
      const plane = await runControlPlane(options);
      // Cut off after a different stretch each time, often with writes on their way.
      await clock.step(life * 17);
      const stopping = plane.stop();
      await clock.step(20_000);
      await stopping;
      if (life === 5) await deployments.patch('web', { spec: { template: template('web', 'app:2') } }, { namespace });
    }
    const plane = await runControlPlane(options);
    await clock.step(60_000);
    const { items: pods } = await client.resource(kinds.Pod).list({ namespace });
    expectSettled(await deployments.get('web', { namespace }), pods);
    const stopping = plane.stop();
    await clock.step(20_000);
    await stopping;
    await server.close();
    expect(log.lines.filter((line) => line.level === 'error')).toEqual([]);
    expect(clock.pendingTimers).toBe(0);
  });
});
