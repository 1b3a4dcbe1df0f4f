// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { contextOf, going, machine, marksOf, openPool, runningPod } from './testing/machines.ts';

const minute = 60_000;
let world: TestWorld;
afterEach(() => world.close());

const template = { requirements: [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }] };
const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu: '100m' } } }];

async function start(nodes: string, pods: Readonly<Record<string, number>>): Promise<void> {
  world = await testWorld();
  await openPool(world, { template, spec: { disruption: { budgets: [{ nodes }] } } });
  for (const [name, count] of Object.entries(pods)) {
    await machine(world, name);
    for (let i = 0; i < count; i++) await runningPod(world, `${name}-${i}`, name, { spec: { containers } });
  }
  world.run(...disruptionControllers(contextOf(world), world));
}

/** Gives each of these nodes a pod that must not be disrupted. */
async function pin(...nodes: string[]): Promise<void> {
  for (const name of nodes)
    await runningPod(world, `pin-of-${name}`, name, { annotations: { [annotations.doNotDisrupt]: 'true' } });
}

/** Gives a node a pod for which there is no room elsewhere, nor on less. */
async function fill(name: string): Promise<void> {
  const large = [{ name: 'main', image: 'app', resources: { requests: { cpu: '3800m' } } }];
  await runningPod(world, `large-on-${name}`, name, { spec: { containers: large } });
}

describe('where more young nodes could go than the budget lets', () => {
  test('one with many pods stays until it is ten minutes old', async () => {
    await start('1', { pinned: 0, many: 12, full: 1 });
    await pin('pinned');
    await fill('full');
    await world.advance(9 * minute);
    expect(await going(world)).toEqual([]);
    await world.advance(7 * minute);
    expect(await going(world)).toEqual(['many']);
  });

  test('one with few pods goes, and one with many stays for now', async () => {
    await start('1', { pinned: 0, few: 1, some: 3, many: 30 });
    await pin('pinned');
    await world.advance(minute);
    expect(await going(world)).toEqual(['few']);
    expect((await world.events('Unconsolidatable')).join()).toContain(
      'Node/many: It was bought less than ten minutes ago',
    );
  });

  test('what a protected pod costs keeps no node whose pods have room beside it', async () => {
    await start('1', { a: 1, b: 1 });
    await machine(world, 'large', { type: 'c-16x' });
    await pin('large');
    await world.advance(minute);
    expect(await going(world)).toHaveLength(1);
  });

  test('nor does a pool of which only empty nodes go', async () => {
    await start('1', { a: 3, b: 3 });
    const disruption = { consolidationPolicy: 'WhenEmpty' as const, budgets: [{ nodes: '1' }] };
    await openPool(world, { name: 'other', template, spec: { disruption } });
    await machine(world, 'large', { type: 'c-16x', pool: 'other' });
    await runningPod(world, 'alone', 'large', { spec: { containers } });
    await world.advance(minute);
    expect(await going(world)).toHaveLength(1);
  });

  test('nodes that are alike do not keep each other', async () => {
    await start('1', { a: 3, b: 3, c: 3 });
    await world.advance(minute);
    const marks = await Promise.all(['a', 'b', 'c'].map((name) => marksOf(world, name)));
    expect(marks.filter(({ tainted }) => tainted)).toHaveLength(1);
  });
});

test('where the budget lets all go, many pods keep no node', async () => {
  await start('100%', { few: 1, many: 12, more: 14 });
  await world.advance(minute);
  for (const name of ['few', 'many']) expect((await marksOf(world, name)).tainted).toBe(true);
});
