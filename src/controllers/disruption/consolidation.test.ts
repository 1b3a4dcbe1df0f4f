// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test, vi } from 'vitest';
import { getCondition } from '../../api/conditions.ts';
import { annotations, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import {
  budget,
  contextOf,
  going,
  initialize,
  type MachineParts,
  machine,
  marksOf,
  openPool,
  runningPod,
  unmarked,
} from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

type PoolOptions = NonNullable<Parameters<TestWorld['pool']>[0]>;
const onDemand: NonNullable<PoolOptions['template']> = {
  requirements: [{ key: labels.capacityType, operator: 'In', values: ['on-demand'] }],
};
const anyWay: PoolOptions = { template: {} };

async function start(pool: PoolOptions = {}, settings: Partial<TestWorld['settings']> = {}): Promise<void> {
  world = await testWorld({ settings });
  await openPool(world, { template: onDemand, ...pool });
}

/** A machine with a pod for each amount of CPU, named after the machine. */
async function busy(name: string, cpus: readonly string[], parts: MachineParts = {}): Promise<void> {
  await machine(world, name, parts);
  for (const [i, cpu] of cpus.entries()) {
    const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu } } }];
    await runningPod(world, `${name}-${i}`, name, { labels: { app: name }, spec: { containers } });
  }
}

function run(): void {
  world.run(...disruptionControllers(contextOf(world), world));
}

/** Runs the loop for as long as a proposal takes to become a command. */
async function disrupt(): Promise<void> {
  run();
  await world.advance(15_000);
}

/** The machines that were bought and are not in service. */
async function replacements(): Promise<NodeClaim[]> {
  return (await world.claims()).filter((claim) => getCondition(claim, 'Initialized')?.status !== 'True');
}

function typesOf({ spec }: NodeClaim): readonly string[] {
  return spec.requirements.find(({ key }) => key === labels.instanceType)?.values ?? [];
}

async function tainted(): Promise<string[]> {
  const names: string[] = [];
  for (const { metadata } of await world.nodes())
    if ((await marksOf(world, metadata.name!)).tainted) names.push(metadata.name!);
  return names;
}

describe('nodes whose pods fit on others', () => {
  test('go, after they could go for another fifteen seconds', async () => {
    await start();
    await busy('a', ['1100m']);
    await busy('b', ['2100m']);
    run();
    await world.advance(14_999);
    expect(await going(world)).toEqual([]);
    await world.advance(1);
    expect(await going(world)).toEqual(['a']);
    expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Underutilized' });
    expect(world.state.isNominated('fake://b')).toBe(true);
    const counted = { decision: 'delete', reason: 'underutilized', consolidation_type: 'single' };
    expect(await world.metrics.value('karpenter_voluntary_disruption_decisions_total', counted)).toBe(1);
  });

  test('wait for an empty node that is about to go: their pods might go there', async () => {
    await start();
    await busy('a', ['1100m']);
    await busy('b', ['2100m']);
    run();
    await world.advance(8000);
    await machine(world, 'empty');
    await world.advance(7000);
    expect(await going(world)).toEqual([]);
    await world.advance(10_001);
    expect(await going(world)).toEqual(['a', 'empty']);
    expect(world.state.isNominated('fake://b')).toBe(true);
  });

  test('go all at once, within the budget', async () => {
    await start({ spec: { disruption: { budgets: [{ nodes: '2' }] } } });
    for (const name of ['a', 'b', 'c', 'd']) await busy(name, ['900m']);
    await busy('full', Array<string>(30).fill('100m'));
    await disrupt();
    expect(await tainted()).toHaveLength(2);
  });

  test('stay when the pods were given to them while the proposal waited', async () => {
    await start();
    await busy('a', ['1100m']);
    await busy('b', ['2100m']);
    run();
    await world.advance(5000);
    await runningPod(world, 'late', 'b', {
      spec: { containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: '1500m' } } }] },
    });
    await runningPod(world, 'late-2', 'a', {
      spec: { containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: '2500m' } } }] },
    });
    await world.advance(20_000);
    expect(await going(world)).toEqual([]);
    expect((await world.events('ConsolidationRejected')).join()).toContain('(scheduling)');
    const failed = 'karpenter_voluntary_disruption_failed_validations_total';
    expect(await world.metrics.series(failed)).toEqual([{ labels: { consolidation_type: 'single' }, value: 1 }]);
  });

  test('are told when a pod came to stay, or the budget went to others, while the proposal waited', async () => {
    await start();
    await busy('a', ['1']);
    await busy('b', ['2']);
    run();
    await world.advance(5000);
    await runningPod(world, 'p', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    await runningPod(world, 'q', 'b', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    await world.advance(20_000);
    expect(await going(world)).toEqual([]);
    expect((await world.events('ConsolidationRejected')).join()).toContain(
      'Node/a: Consolidation was given up while it waited (churn)',
    );
    await world.close();
    await start();
    await busy('a', ['1']);
    await busy('b', ['2']);
    run();
    await world.advance(5000);
    await openPool(world, { template: onDemand, spec: { disruption: { budgets: [{ nodes: '0' }] } } });
    await world.advance(20_000);
    expect(await going(world)).toEqual([]);
    expect((await world.events('ConsolidationRejected')).join()).toContain('(budget)');
  });

  test.each([
    [
      'a pod that asks to stay',
      (w: TestWorld) => runningPod(w, 'p', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } }),
    ],
    ['a pod whose budget is spent', (w: TestWorld) => budget(w, 'a', 0)],
  ])('stay because of %s', async (_, protect) => {
    await start();
    await busy('a', ['1']);
    await busy('b', ['3500m'], { consolidatable: false });
    await protect(world);
    await disrupt();
    expect(await marksOf(world, 'a')).toEqual(unmarked);
  });

  test('do not go to nodes that want to be left alone for now', async () => {
    await start({ spec: { disruption: { consolidateAfter: '1h' } } });
    await busy('a', ['1']);
    await busy('b', ['2'], { consolidatable: false });
    world.cloud.types = world.cloud.types.filter(({ name }) => name === 'c-4x');
    await disrupt();
    expect(await going(world)).toEqual([]);
  });

  test.each(['WhenEmpty', 'WhenEmptyOrUnderutilized', 'Balanced'] as const)('under %s', async (policy) => {
    await start({ spec: { disruption: { consolidationPolicy: policy } } });
    await busy('a', ['1100m']);
    await busy('b', ['2100m']);
    await disrupt();
    expect(await going(world)).toEqual(policy === 'WhenEmpty' ? [] : ['a']);
    if (policy === 'WhenEmpty')
      expect(await world.events('Unconsolidatable')).toContain(
        'Unconsolidatable Node/a: NodePool "default" has non-empty consolidation disabled',
      );
    const score = await world.metrics.value('karpenter_consolidation_score', {
      decision: 'approved',
      nodepool: 'default',
      policy: 'Balanced',
    });
    expect(score).toBe(policy === 'Balanced' ? 1 : undefined);
  });

  test('stay under Balanced where they cost nothing: there is nothing to save', async () => {
    await start({ spec: { disruption: { consolidationPolicy: 'Balanced' } } });
    const { offerings, ...type } = instanceType(4);
    world.cloud.types = [{ ...type, offerings: offerings.map((offering) => ({ ...offering, price: 0 })) }];
    await busy('a', ['1100m']);
    await busy('b', ['2100m']);
    await disrupt();
    expect(await going(world)).toEqual([]);
    expect((await world.events('Unconsolidatable')).join()).toContain('Balanced');
  });
});

test('a search that takes too long is counted', async () => {
  await start();
  for (const name of ['a', 'b', 'c']) await busy(name, ['1100m']);
  const monotonic = world.clock.monotonic.bind(world.clock);
  let calls = 0;
  vi.spyOn(world.clock, 'monotonic').mockImplementation(() => monotonic() + calls++ * 1000);
  await disrupt();
  const timeouts = 'karpenter_voluntary_disruption_consolidation_timeouts_total';
  expect(await world.metrics.value(timeouts, { consolidation_type: 'multi' })).toBeGreaterThan(0);
});

describe('a node that is too large', () => {
  test('is replaced by a cheaper one, and stays until that is in service', async () => {
    await start();
    await busy('a', ['1500m'], { type: 'c-8x' });
    await disrupt();
    expect(await going(world)).toEqual([]);
    const [replacement, another] = await replacements();
    expect(another).toBeUndefined();
    expect(typesOf(replacement!)).toEqual(['c-2x', 'c-4x']);
    await world.launch();
    await initialize(world, replacement!.metadata.name!);
    await world.advance(2000);
    expect(await going(world)).toEqual(['a']);
  });

  test('stays when nothing cheaper will do, and says so', async () => {
    await start();
    await busy('a', ['3500m']);
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
    expect(await world.events('Unconsolidatable')).toContain(
      "Unconsolidatable Node/a: Can't replace with a cheaper node",
    );
  });

  test('stays when a pod of it would have no place, and says which', async () => {
    await start();
    await machine(world, 'a', { type: 'c-16x' });
    const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu: '1' } } }];
    await runningPod(world, 'odd', 'a', { spec: { containers, nodeSelector: { disk: 'fast' } } });
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
    expect((await world.events('Unconsolidatable')).join()).toContain(
      'Node/a: Not all pods would schedule: default/odd',
    );
  });

  test('moves to spot where the pool allows it, and to nothing else', async () => {
    await start(anyWay);
    await busy('a', ['3500m']);
    await disrupt();
    const [replacement] = await replacements();
    expect(replacement?.spec.requirements.find(({ key }) => key === labels.capacityType)?.values).toEqual(['spot']);
  });

  test('together with others makes one of the right size, in one command', async () => {
    await start();
    world.cloud.types = [...world.cloud.types, instanceType(6)];
    for (const name of ['a', 'b', 'c']) await busy(name, ['1800m'], { type: 'c-16x' });
    await disrupt();
    expect(await tainted()).toEqual(['a', 'b', 'c']);
    const bought = await replacements();
    expect(bought.map((claim) => typesOf(claim)[0])).toEqual(['c-6x']);
  });

  test('is replaced by several where one would cost more', async () => {
    await start();
    world.cloud.types = [instanceType(2), instanceType(16, { name: 'c-16x' })];
    await busy('a', ['1500m', '1500m'], { type: 'c-16x' });
    await disrupt();
    expect((await replacements()).map((claim) => typesOf(claim))).toEqual([['c-2x'], ['c-2x']]);
  });

  test('is not replaced to save a little while it is young: what was just bought is not bought again in another size', async () => {
    await start();
    world.cloud.types = [instanceType(7), instanceType(8)];
    await busy('a', ['6500m'], { type: 'c-8x' });
    await disrupt();
    await world.advance(9 * 60_000);
    expect(await world.claims()).toHaveLength(1);
    await world.advance(7 * 60_000);
    expect((await replacements()).map((claim) => typesOf(claim))).toEqual([['c-7x']]);
  });

  test.each([
    { price: 1.56, bought: new Set<string>() },
    { price: 1.5, bought: new Set(['compute', 'memory']) },
  ])('is not replaced with another by two to save less than a twentieth ($price instead of 1.6)', async (offer) => {
    await start();
    const sold = (name: string, price: number, capacity: object) => {
      const type = instanceType(8, { name });
      const offerings = type.offerings.map((offering) => ({ ...offering, price }));
      return { ...type, offerings, capacity: { ...type.capacity, ...capacity } };
    };
    world.cloud.types = [
      instanceType(8),
      sold('compute', 0.9, { cpu: '10', memory: '3Gi' }),
      sold('memory', offer.price - 0.9, { cpu: '4', memory: '15Gi' }),
    ];
    for (const name of ['a', 'b']) {
      await machine(world, name, { type: 'c-8x' });
      for (const [i, requests] of [
        { cpu: '5', memory: '1Gi' },
        { cpu: '2', memory: '7Gi' },
      ].entries()) {
        const containers = [{ name: 'main', image: 'app', resources: { requests } }];
        await runningPod(world, `${name}-${i}`, name, { labels: { app: name }, spec: { containers } });
      }
    }
    run();
    await world.advance(59 * 60_000);
    expect(await replacements()).toEqual([]);
    await world.advance(7 * 60_000);
    expect(new Set((await replacements()).map((claim) => typesOf(claim)[0]))).toEqual(offer.bought);
  });

  test('stays when the saving is below the threshold, or below the price of the moves', async () => {
    await start({}, { consolidationSavingsThreshold: 60 });
    await busy('a', ['3500m'], { type: 'c-8x' });
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
    await world.close();
    await start({}, { podMovePrice: 0.5 });
    await busy('a', ['3500m'], { type: 'c-8x' });
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
  });

  test.each([
    ['1', []],
    ['2', ['a', 'b']],
  ])('goes with another where only both together are worth their moves, with a budget of %s', async (nodes, goes) => {
    const disruption = { consolidationPolicy: 'WhenEmptyOrUnderutilized' as const, budgets: [{ nodes }] };
    await start({ spec: { disruption } }, { podMovePrice: 0.2 });
    const { offerings } = instanceType(3);
    world.cloud.types = [instanceType(4), instanceType(8, { name: 'bargain', offerings })];
    for (const name of ['a', 'b']) await busy(name, ['3']);
    await world.advance(11 * 60_000);
    await disrupt();
    await world.advance(60_000);
    expect(await tainted()).toEqual(goes);
  });

  test('stays under Balanced when half of it would not be saved', async () => {
    await start({ spec: { disruption: { consolidationPolicy: 'Balanced' } } });
    world.cloud.types = [instanceType(8), instanceType(5)];
    await busy('a', ['4500m'], { type: 'c-8x' });
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
    world.cloud.types = [instanceType(8), instanceType(5), instanceType(4)];
    await runningPod(world, 'x', 'a');
    expect((await world.events('Unconsolidatable')).join()).toContain('Balanced');
    const turnedDown = { decision: 'rejected', nodepool: 'default', policy: 'Balanced' };
    expect(await world.metrics.value('karpenter_consolidation_moves_total', turnedDown)).toBeGreaterThan(0);
  });
});

describe('a spot node', () => {
  const spot = { capacityType: 'spot', type: 'c-32x' };
  const gates = (on: boolean) => ({ featureGates: { ...defaultGates, SpotToSpotConsolidation: on } }) as never;
  const defaultGates = {
    NodeRepair: false,
    ReservedCapacity: true,
    SpotToSpotConsolidation: false,
    NodeOverlay: false,
    StaticCapacity: false,
    CapacityBuffer: false,
  };

  test('is not replaced by spot unless the gate is open', async () => {
    await start(anyWay, gates(false));
    await busy('a', ['1500m'], spot);
    await disrupt();
    expect(await world.claims()).toHaveLength(1);
    expect((await world.events('Unconsolidatable')).join()).toContain('SpotToSpotConsolidation is disabled');
  });

  test('needs fifteen cheaper types to choose from, and takes the cheapest fifteen', async () => {
    await start(anyWay, gates(true));
    await busy('a', ['1500m'], spot);
    run();
    await world.advance(15_000);
    expect(await world.claims()).toHaveLength(1);
    expect((await world.events('Unconsolidatable')).join()).toContain('requires 15 cheaper instance type options');
    world.cloud.types = [
      ...world.cloud.types,
      ...Array.from({ length: 20 }, (_, i) => instanceType(3 + i, { name: `d-${i}` })),
    ];
    await world.advance(320_000);
    const [replacement] = await replacements();
    expect(typesOf(replacement!)).toHaveLength(15);
  });
});

describe('quiet', () => {
  test('what was decided is not undone, and nothing goes on when nothing changes', async () => {
    await start();
    await busy('a', ['1500m'], { type: 'c-8x' });
    await busy('b', ['3500m']);
    await disrupt();
    const [replacement] = await replacements();
    await world.launch();
    await initialize(world, replacement!.metadata.name!);
    await world.advance(2000);
    const before = (await world.claims()).map(({ metadata }) => metadata.name);
    await world.advance(15 * 60_000);
    expect((await world.claims()).map(({ metadata }) => metadata.name)).toEqual(before);
  });
});
