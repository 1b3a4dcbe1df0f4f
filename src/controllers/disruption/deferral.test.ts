// SPDX-License-Identifier: Apache-2.0
// Machines that a budget keeps waiting: pods are asked to go elsewhere, and they go as soon as there is room for it.
import { afterEach, expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import { nodeClaimKind } from '../../api/node-claim.ts';
import { leavingTaint } from '../../api/taints.ts';
import { kinds } from '../../kube/kinds.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { contextOf, going, machine, openPool, runningPod, runUntilKilled } from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

const template = { requirements: [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }] };

async function start(nodes = '1'): Promise<void> {
  world = await testWorld();
  await openPool(world, { template, spec: { disruption: { budgets: [{ nodes }] } } });
}

function run(): () => void {
  return runUntilKilled(world, disruptionControllers(contextOf(world), world));
}

async function busy(name: string, cpu: string, pods = 1): Promise<void> {
  await machine(world, name);
  const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu } } }];
  for (let i = 0; i < pods; i++) await runningPod(world, `${name}-pod-${i}`, name, { spec: { containers } });
}

/** Names of the nodes that pods are asked not to go to. */
async function leaving(): Promise<string[]> {
  const nodes = await world.nodes();
  return nodes
    .filter(({ spec }) => spec?.taints?.some(({ key }) => key === leavingTaint.key))
    .map(({ metadata }) => metadata.name!);
}

/** Plays the termination: the machine is gone, and its pods are on another node. */
async function end(name: string, to?: string): Promise<void> {
  const removed = { metadata: { finalizers: null } };
  for (const { metadata, spec } of await world.pods()) {
    if (spec.nodeName !== name) continue;
    await world.workload.resource(kinds.Pod).delete(metadata.name!, { namespace: 'default', gracePeriodSeconds: 0 });
    if (to) await runningPod(world, `${metadata.name}-again`, to, { spec: { containers: spec.containers } });
  }
  await world.karpenter.resource(nodeClaimKind as never).patch(name, removed);
  await world.workload.resource(kinds.Node).patch(name, removed);
  await world.workload.resource(kinds.Node).delete(name);
  await world.settle();
}

test('empty nodes beyond the budget shun pods, and go when there is room, without another fifteen seconds', async () => {
  await start();
  for (const name of ['a', 'b', 'c']) await machine(world, name);
  run();
  await world.advance(15_000);
  expect(await going(world)).toEqual(['a']);
  expect(await leaving()).toEqual(['b', 'c']);
  await world.advance(60_000);
  expect(await going(world)).toEqual(['a']);
  await end('a');
  await world.advance(5000);
  expect(await going(world)).toEqual(['b']);
  await end('b');
  await world.advance(5000);
  expect(await going(world)).toEqual(['c']);
});

test('nodes whose pods fit elsewhere go one after the other, and what stays is not shunned', async () => {
  await start();
  await busy('a', '500m');
  await busy('b', '600m');
  await busy('c', '250m', 10);
  run();
  await world.advance(15_000);
  expect(await going(world)).toEqual(['a']);
  expect(await leaving()).toEqual(['b']);
  await end('a', 'c');
  await world.advance(5000);
  expect(await going(world)).toEqual(['b']);
  await end('b', 'c');
  await world.advance(60_000);
  expect(await going(world)).toEqual([]);
  expect(await leaving()).toEqual([]);
});

test('a node that got a pod while it waited stands its trial anew', async () => {
  await start();
  await busy('a', '500m');
  await busy('b', '600m');
  await busy('c', '100m', 20);
  run();
  await world.advance(15_000);
  expect(await leaving()).toEqual(['b']);
  await runningPod(world, 'late', 'b', { spec: { containers: [{ name: 'main', image: 'app' }] } });
  await end('a', 'c');
  await world.advance(10_000);
  expect(await going(world)).toEqual([]);
  await world.advance(20_000);
  expect(await going(world)).toEqual(['b']);
});

test('what was to go and then may not is shunned for a minute at most', async () => {
  await start();
  await busy('a', '200m');
  await busy('b', '300m');
  await busy('c', '250m', 10);
  run();
  await world.advance(15_000);
  expect(await leaving()).toEqual(['b']);
  const protection = { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } };
  await world.workload.resource(kinds.Pod).patch('b-pod-0', protection, { namespace: 'default' });
  await end('a', 'c');
  await world.advance(75_000);
  expect(await going(world)).toEqual([]);
  expect(await leaving()).toEqual([]);
});

test('the taint is taken off when the plan changed, and by the next program', async () => {
  await start();
  for (const name of ['a', 'b']) await machine(world, name);
  const kill = run();
  await world.advance(15_000);
  expect(await leaving()).toEqual(['b']);
  kill();
  const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu: '3500m' } } }];
  await runningPod(world, 'p', 'b', { spec: { containers } });
  await world.settle();
  run();
  await world.advance(20_000);
  expect(await leaving()).toEqual([]);
});

test('nothing is shunned where a budget lets nothing go at all', async () => {
  await start('0');
  for (const name of ['a', 'b']) await machine(world, name);
  run();
  await world.advance(60_000);
  expect(await going(world)).toEqual([]);
  expect(await leaving()).toEqual([]);
});

test('while a budget is used up nobody looks again and again, though nodes of another pool could go if they saved anything', async () => {
  await start();
  await openPool(world, { name: 'other', template, spec: { disruption: { budgets: [{ nodes: '100%' }] } } });
  await busy('a', '500m');
  await busy('b', '600m');
  await busy('c', '100m', 25);
  await machine(world, 'd', { pool: 'other' });
  const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu: '3900m' } } }];
  await runningPod(world, 'large', 'd', { spec: { containers } });
  run();
  await world.advance(15_000);
  expect(await going(world)).toEqual(['a']);
  const before = await looks();
  await world.advance(120_000);
  expect((await looks()) - before).toBeLessThan(40);
  expect(await leaving()).toEqual(['b']);
});

test('nor when a node that saved nothing may not go any more', async () => {
  await start('100%');
  await busy('a', '3900m');
  run();
  await world.advance(20_000);
  await runningPod(world, 'protected', 'a', { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } });
  const before = await looks();
  await world.advance(600_000);
  expect((await looks()) - before).toBeLessThan(100);
});

async function looks(): Promise<number> {
  let sum = 0;
  for (const result of ['success', 'requeue_after', 'error'])
    sum += (await world.metrics.value('controller_runtime_reconcile_total', { controller: 'disruption', result })) ?? 0;
  return sum;
}
