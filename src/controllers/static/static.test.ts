// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import type { ResourceType } from '../../kube/object.ts';
import { contextOf, going, machine, openPool, runningPod } from '../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { StaticNodes, staticControllers } from './index.ts';

const minute = 60_000;
let world: TestWorld;
afterEach(() => world.close());

async function start(spec: NonNullable<Parameters<TestWorld['pool']>[0]>['spec']): Promise<StaticNodes> {
  world = await testWorld();
  await openPool(world, { spec: { ...spec, disruption: { budgets: [{ nodes: '0' }] } } });
  const context = contextOf(world);
  return new StaticNodes(context);
}

function run(nodes: StaticNodes): void {
  world.run(...staticControllers(contextOf(world), nodes));
}

async function scale(replicas: number): Promise<void> {
  await world.karpenter.resource(nodePoolKind as ResourceType<NodePool>).patch('default', { spec: { replicas } });
  await world.settle();
}

test('a pool with a fixed number of nodes gets them, and more when it asks for more', async () => {
  const nodes = await start({ replicas: 3 });
  run(nodes);
  await world.settle();
  const claims = await world.claims();
  expect(claims).toHaveLength(3);
  for (const { spec, metadata } of claims) {
    expect(metadata.labels?.[labels.nodePool]).toBe('default');
    expect(spec.requirements.map(({ key }) => key)).not.toContain(labels.instanceType);
  }
  await world.launch();
  await world.advance(5 * minute);
  expect(await world.claims()).toHaveLength(3);
  await scale(5);
  expect(await world.claims()).toHaveLength(5);
});

test('a node that goes is made up for', async () => {
  const nodes = await start({ replicas: 2 });
  await machine(world, 'a');
  await machine(world, 'b');
  run(nodes);
  await world.settle();
  expect(await world.claims()).toHaveLength(2);
  await world.delete((await world.claims())[0]!);
  await world.settle();
  expect(await world.claims()).toHaveLength(3);
  await world.advance(5 * minute);
  expect(await world.claims()).toHaveLength(3);
});

test('the limit of nodes counts those that are on their way out', async () => {
  const nodes = await start({ replicas: 5, limits: { nodes: '2' } });
  run(nodes);
  await world.settle();
  expect(await world.claims()).toHaveLength(2);
  await world.launch();
  await world.advance(2 * minute);
  expect(await world.claims()).toHaveLength(2);
});

test('a pool that is not ready gets nothing', async () => {
  const nodes = await start({ replicas: 2 });
  const type = nodePoolKind as ResourceType<NodePool>;
  await world.karpenter.resource(type).patchStatus('default', { status: { conditions: [] } });
  run(nodes);
  await world.advance(minute);
  expect(await world.claims()).toEqual([]);
});

test('too many: empty nodes go first, then those with few pods, protected ones last, budgets are not asked', async () => {
  const nodes = await start({ replicas: 4 });
  for (const name of ['a', 'b', 'c', 'd']) await machine(world, name);
  await runningPod(world, 'held', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
  await runningPod(world, 'one', 'b');
  await runningPod(world, 'two', 'b');
  await runningPod(world, 'three', 'c');
  await runningPod(world, 'daemon', 'd', { owner: 'DaemonSet' });
  run(nodes);
  await world.settle();
  expect(await going(world)).toEqual([]);
  await scale(3);
  expect(await going(world)).toEqual(['d']);
  await scale(2);
  expect(await going(world)).toEqual(['c', 'd']);
  await scale(1);
  expect(await going(world)).toEqual(['b', 'c', 'd']);
  await scale(0);
  expect(await going(world)).toEqual(['a', 'b', 'c', 'd']);
  await world.advance(10 * minute);
  expect(await world.claims()).toHaveLength(4);
});

test('a claim that cannot be written is tried again, and none is made twice', async () => {
  const nodes = await start({ replicas: 2 });
  world.doors.karpenter.fail('POST /nodeclaims', { status: 500, reason: 'InternalError' });
  run(nodes);
  await world.advance(minute);
  expect(await world.claims()).toHaveLength(2);
});

test('what was written counts before the watch tells of it', async () => {
  const nodes = await start({ replicas: 0 });
  run(nodes);
  await world.settle();
  const { karpenter: door } = world.doors;
  for (const read of ['WATCH /nodeclaims', 'GET /nodeclaims']) door.fail(read, { status: 503, reason: 'Busy' }, 1000);
  door.breakWatches();
  await world.advance(minute);
  await scale(2);
  expect(await world.claims()).toHaveLength(2);
  await scale(3);
  expect(await world.claims()).toHaveLength(3);
});

test('a claim whose answer was lost is not written again while the watch is late', async () => {
  const nodes = await start({ replicas: 0 });
  run(nodes);
  await world.settle();
  const { karpenter: door } = world.doors;
  door.fail('WATCH /nodeclaims', { status: 503, reason: 'Busy' }, 1000);
  door.breakWatches();
  await world.advance(minute);
  door.fail('POST /nodeclaims', 'answer lost', 2);
  await scale(2);
  await world.advance(10_000);
  expect(await world.claims()).toHaveLength(2);
});
