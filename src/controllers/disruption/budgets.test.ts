// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import type { Budget } from '../../api/node-pool.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { contextOf, going, machine, openPool } from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `node-${i + 10}`);

/** Empty nodes of a pool with these budgets; gives how many of them go in the first command. */
async function goneOf(count: number, budgets: Budget[] | undefined, before: () => Promise<void> = async () => {}) {
  world = await testWorld();
  await openPool(world, { spec: { disruption: budgets === undefined ? {} : { budgets } } });
  for (const name of names(count)) await machine(world, name);
  await before();
  world.run(...disruptionControllers(contextOf(world), world));
  await world.advance(15_000);
  return (await going(world)).length;
}

function gauge(of: 'allowed_disruptions' | 'nodes_consuming_budgets', nodepool = 'default') {
  return world.metrics.value(`karpenter_nodepools_${of}`, { nodepool, reason: 'Empty' });
}

describe('the budgets of a pool', () => {
  test.each<[string, number, Budget[], number]>([
    ['no budget lets all go', 3, [], 3],
    ['a count', 5, [{ nodes: '2' }], 2],
    ['a share is rounded up', 3, [{ nodes: '10%' }], 1],
    ['a share of more', 11, [{ nodes: '10%' }], 2],
    ['the tightest counts', 4, [{ nodes: '3' }, { nodes: '50%' }], 2],
    ['one for another reason does not count', 2, [{ nodes: '0', reasons: ['Drifted'] }], 2],
    ['one for this reason does', 2, [{ nodes: '1', reasons: ['Empty', 'Drifted'] }], 1],
    // The world begins at midnight of a Thursday.
    ['one whose window is open', 2, [{ nodes: '1', schedule: '@daily', duration: '1h' }], 1],
    ['one whose window is closed', 2, [{ nodes: '0', schedule: '0 9 * * *', duration: '1h' }], 2],
    ['one that cannot be read allows nothing', 2, [{ nodes: '2', schedule: 'a b c d e', duration: '1h' }], 0],
  ])('%s', async (_, count, budgets, gone) => {
    expect(await goneOf(count, budgets)).toBe(gone);
  });

  test('that allow nothing are told, and shown', async () => {
    expect(await goneOf(2, [{ nodes: '0' }])).toBe(0);
    expect(await world.events('DisruptionBlocked')).toContain(
      'DisruptionBlocked NodePool/default: No allowed disruptions for disruption reason Empty due to blocking budget',
    );
    expect(await gauge('allowed_disruptions')).toBe(0);
  });

  test('that cannot be read are logged once', async () => {
    await goneOf(1, [{ nodes: '2', schedule: 'a b c d e', duration: '1h' }]);
    await world.advance(60_000);
    const lines = world.log.messages('error').filter((line) => line === 'detected disruption budget errors');
    expect(lines).toHaveLength(1);
  });

  test('are used up by nodes that go for other reasons and by those that are not ready', async () => {
    const gone = await goneOf(4, [{ nodes: '3' }], async () => {
      await machine(world, 'leaving');
      await world.delete((await world.claims()).find(({ metadata }) => metadata.name === 'leaving')!);
      await machine(world, 'sick', { ready: false, consolidatable: false });
    });
    expect(gone - 1).toBe(1);
    expect(await gauge('nodes_consuming_budgets')).toBe(2);
    expect(await gauge('allowed_disruptions')).toBe(3);
  });

  test('are shared by all commands: the next waits until the last is done', async () => {
    expect(await goneOf(3, [{ nodes: '1' }])).toBe(1);
    await world.advance(120_000);
    expect(await going(world)).toHaveLength(1);
  });

  test('are not counted on machines that are still coming up', async () => {
    const gone = await goneOf(2, [{ nodes: '50%' }], async () => {
      await machine(world, 'young', { consolidatable: false, initialized: false });
    });
    expect(gone).toBe(1);
  });

  test('are not counted on machines whose instance goes already', async () => {
    const gone = await goneOf(2, [{ nodes: '50%' }], async () => {
      await machine(world, 'leaving');
      const claim = (await world.claims()).find(({ metadata }) => metadata.name === 'leaving')!;
      const type = 'InstanceTerminating';
      const lastTransitionTime = '2026-01-01T00:00:00Z';
      const condition = { type, status: 'True', reason: type, message: '', lastTransitionTime } as const;
      const conditions = [...claim.status!.conditions!, condition];
      await world.apply({ ...claim, status: { ...claim.status, conditions } });
      await world.delete(claim);
    });
    expect(gone - 1).toBe(1);
    expect(await gauge('nodes_consuming_budgets')).toBe(0);
  });

  test('are spent where most is saved', async () => {
    await goneOf(1, [{ nodes: '1' }], async () => {
      await machine(world, 'zz-expensive', { type: 'c-32x' });
      await machine(world, 'cheap', { type: 'c-1x' });
    });
    expect(await going(world)).toEqual(['zz-expensive']);
  });

  test('are no longer shown when the pool is gone', async () => {
    await goneOf(1, [{ nodes: '0' }]);
    await world.delete({ apiVersion: 'karpenter.sh/v1', kind: 'NodePool', metadata: { name: 'default' } });
    await world.advance(10_000);
    expect(await gauge('allowed_disruptions')).toBeUndefined();
  });
});
