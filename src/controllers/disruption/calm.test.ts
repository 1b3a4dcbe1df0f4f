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

describe('where more young nodes could go than the budget lets', () => {
  test('one with many pods stays until it is ten minutes old', async () => {
    await start('1', { pinned: 0, fixed: 0, many: 12, more: 12 });
    await pin('pinned', 'fixed');
    await world.advance(9 * minute);
    expect(await going(world)).toEqual([]);
    await world.advance(7 * minute);
    expect(await going(world)).toHaveLength(1);
  });

  test('one with few pods goes, and one with many stays for now', async () => {
    await start('1', { pinned: 0, few: 1, many: 18, more: 20 });
    await pin('pinned');
    await world.advance(minute);
    expect(await going(world)).toEqual(['few']);
    expect((await world.events('Unconsolidatable')).join()).toContain(
      'Node/many: It was bought less than ten minutes ago',
    );
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
