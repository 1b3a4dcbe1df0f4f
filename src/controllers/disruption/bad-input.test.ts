// SPDX-License-Identifier: Apache-2.0
// What disruption does with what it cannot use: stated in docs/disruption.md, one test each.
import { afterEach, expect, test, vi } from 'vitest';
import { getCondition } from '../../api/conditions.ts';
import { annotations, labels } from '../../api/labels.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { budget, contextOf, going, machine, marksOf, openPool, runningPod, unmarked } from './testing/machines.ts';

const minute = 60_000;
let world: TestWorld;
afterEach(() => world.close());

function run(): void {
  world.run(...disruptionControllers(contextOf(world), world));
}

const onDemand = { requirements: [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }] };
const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu: '1500m' } } }];

test.each([
  ['every reason', {}],
  ['another reason', { reasons: ['Drifted' as const] }],
])('a budget for %s whose cron cannot be read stops its own pool, says so, and no other', async (_, about) => {
  world = await testWorld();
  const budgets = [{ nodes: '100%', schedule: 'a b c d e', duration: '1h', ...about }];
  await openPool(world, { name: 'broken', spec: { disruption: { budgets } } });
  await openPool(world, { name: 'sound' });
  await machine(world, 'a', { pool: 'broken' });
  await machine(world, 'b', { pool: 'sound' });
  run();
  await world.advance(minute);
  expect(await going(world)).toEqual(['b']);
  expect(world.log.messages('error')).toContain('detected disruption budget errors');
  const told = (await world.events('DisruptionBlocked')).join();
  expect(told).toContain('NodePool/broken: No allowed disruptions');
  expect(told).toContain('schedule "a b c d e" cannot be read');
  const shown = { nodepool: 'broken', reason: 'Empty' };
  expect(await world.metrics.value('karpenter_nodepools_allowed_disruptions', shown)).toBe(0);
});

test('two budgets on one pod keep its node, whatever they allow', async () => {
  world = await testWorld();
  await openPool(world, { template: onDemand });
  await machine(world, 'a', { type: 'c-8x' });
  await runningPod(world, 'p', 'a', { labels: { app: 'web' }, spec: { containers } });
  await budget(world, 'web', 5, 'one');
  await budget(world, 'web', 5, 'two');
  run();
  await world.advance(minute);
  expect(await marksOf(world, 'a')).toEqual(unmarked);
  expect((await world.events('DisruptionBlocked')).join()).toContain('multiple PDBs');
});

test('a do-not-disrupt that cannot be read protects nothing, and the pod is told', async () => {
  world = await testWorld();
  await openPool(world, { template: onDemand });
  await machine(world, 'a', { type: 'c-8x' });
  await runningPod(world, 'p', 'a', { annotations: { [annotations.doNotDisrupt]: 'soon' }, spec: { containers } });
  run();
  await world.advance(minute);
  expect((await marksOf(world, 'a')).reason).toBe('Underutilized');
  expect((await world.events('InvalidDoNotDisruptAnnotation')).join()).toContain('Pod/p');
});

test.each([24 * 60 * minute, -24 * 60 * minute])(
  'a clock that jumps by %s ms neither shortens nor lengthens the wait',
  async (by) => {
    world = await testWorld();
    await openPool(world);
    await machine(world, 'a');
    run();
    await world.advance(5000);
    const now = world.clock.now.bind(world.clock);
    vi.spyOn(world.clock, 'now').mockImplementation(() => now() + by);
    await world.advance(9999);
    expect(await going(world)).toEqual([]);
    await world.advance(1);
    expect(await going(world)).toEqual(['a']);
  },
);

test.each([24 * 60 * minute, -24 * 60 * minute])(
  'a clock that jumps by %s ms neither ends a promise to pods nor makes it last',
  async (by) => {
    world = await testWorld();
    await openPool(world);
    await machine(world, 'a');
    world.state.nominate('fake://a');
    run();
    await world.advance(5000);
    const now = world.clock.now.bind(world.clock);
    vi.spyOn(world.clock, 'now').mockImplementation(() => now() + by);
    // Promised for 20 s, and 15 s to stand the test of time.
    await world.advance(29_000);
    expect(await going(world)).toEqual([]);
    await world.advance(2000);
    expect(await going(world)).toEqual(['a']);
  },
);

test('a replacement that never initialises ends its command after ten minutes, and the node stays', async () => {
  world = await testWorld();
  await openPool(world, { template: onDemand });
  await machine(world, 'a', { type: 'c-8x' });
  await runningPod(world, 'p', 'a', { spec: { containers } });
  run();
  await world.advance(15_000);
  await world.launch();
  await world.advance(9 * minute);
  expect((await marksOf(world, 'a')).tainted).toBe(true);
  // Nobody has to wait for the next command to see that the first was given up.
  world.cloud.types = [];
  await world.advance(2 * minute);
  expect(await marksOf(world, 'a')).toEqual(unmarked);
  expect(await going(world)).toEqual([]);
});

test('when prices vanish nothing is replaced; what is empty still goes', async () => {
  world = await testWorld();
  await openPool(world, { template: onDemand });
  await machine(world, 'a', { type: 'c-8x' });
  await runningPod(world, 'p', 'a', { spec: { containers } });
  await machine(world, 'empty', { type: 'c-1x' });
  world.cloud.types = world.cloud.types.map((type) => ({
    ...type,
    offerings: type.offerings.map((offering) => ({ ...offering, price: Number.NaN })),
  }));
  run();
  await world.advance(minute);
  expect(await going(world)).toEqual(['empty']);
  const bought = (await world.claims()).filter((claim) => getCondition(claim, 'Initialized')?.status !== 'True');
  expect(bought).toEqual([]);
});
