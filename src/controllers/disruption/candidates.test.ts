// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations } from '../../api/labels.ts';
import { kinds } from '../../kube/kinds.ts';
import { PdbLimits } from '../../state/pdb-limits.ts';
import { readPoolCatalog } from '../../state/pool-catalog.ts';
import { boundPod, pendingPod } from '../../state/testing/objects.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { type CandidateOptions, findCandidates, isEmpty, savingsRatio } from './candidates.ts';
import { DisruptionMarks } from './marks.ts';
import { budget, claimOf, contextOf, machine, marksOf, openPool, runningPod } from './testing/machines.ts';

let world: TestWorld;
beforeEach(async () => {
  world = await testWorld();
  await openPool(world);
});
afterEach(() => world.close());

async function find(options: Partial<CandidateOptions> = {}) {
  const { state, registry, clock, signal } = world;
  return findCandidates({
    machines: state,
    catalog: await readPoolCatalog(registry, state.sources.nodePools.list(), signal),
    pdbs: new PdbLimits(state.sources.podDisruptionBudgets.list()),
    now: clock.now(),
    disruptionClass: 'graceful',
    isQueued: () => false,
    ...options,
  });
}

async function whyBlocked(options: Partial<CandidateOptions> = {}): Promise<string[]> {
  return (await find(options)).blocked.map(({ why }) => why);
}

describe('a machine is passed over in silence', () => {
  test('when a command is about it', async () => {
    await machine(world, 'a');
    expect(await find({ isQueued: (key) => key === 'fake://a' })).toEqual({ candidates: [], blocked: [] });
  });

  test('when it is not ours', async () => {
    await world.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'a' }, spec: { providerID: 'other://a' } });
    await world.settle();
    expect(await find()).toEqual({ candidates: [], blocked: [] });
  });
});

describe('a machine is blocked', () => {
  test('that has no node', async () => {
    await machine(world, 'a');
    await world.workload.resource(kinds.Node).patch('a', { metadata: { finalizers: null } });
    await world.workload.resource(kinds.Node).delete('a');
    await world.settle();
    expect(await whyBlocked()).toEqual(['Nodeclaim does not have an associated node']);
  });

  test('that is not initialised', async () => {
    await machine(world, 'a', { initialized: false });
    expect(await whyBlocked()).toEqual(["Node isn't initialized"]);
  });

  test('that a pod waits for which it was bought for, and not once that is on it', async () => {
    await machine(world, 'a');
    const [pod] = await world.apply(pendingPod('web'));
    await world.settle();
    world.state.trackCreated((await claimOf(world, 'a'))!, ['default/web']);
    expect(await whyBlocked()).toEqual(['Node is nominated for a pending pod']);
    await world.delete(pod);
    await world.apply(boundPod('web', 'a'));
    await world.settle();
    expect(await whyBlocked()).toEqual([]);
  });

  test('whose node or NodeClaim is being deleted', async () => {
    await machine(world, 'a');
    await machine(world, 'b');
    await world.workload.resource(kinds.Node).delete('a');
    await world.delete((await claimOf(world, 'b'))!);
    await world.settle();
    const why = 'Node is deleting or marked for deletion';
    expect(await whyBlocked()).toEqual([why, why]);
  });

  test('that has no pool: a person made it', async () => {
    await machine(world, 'a');
    const labels = { 'karpenter.sh/nodepool': null };
    await world.workload.resource(kinds.Node).patch('a', { metadata: { labels } });
    await world.settle();
    expect(await whyBlocked()).toEqual(["Node doesn't have required label (label=karpenter.sh/nodepool)"]);
  });
});

describe('pods that may not leave', () => {
  beforeEach(async () => {
    await machine(world, 'free');
    await machine(world, 'bounded', { spec: { terminationGracePeriod: '1h' } });
    for (const on of ['free', 'bounded']) {
      await runningPod(world, `precious-${on}`, on, { annotations: { [annotations.doNotDisrupt]: 'true' } });
      await runningPod(world, `guarded-${on}`, on, { labels: { app: 'web' } });
    }
    await budget(world, 'web', 0);
  });

  test('hold back graceful disruption of any node', async () => {
    expect((await find()).candidates).toEqual([]);
  });

  test('hold back eventual disruption only where no terminationGracePeriod ends the wait', async () => {
    const { candidates, blocked } = await find({ disruptionClass: 'eventual' });
    expect(candidates.map(({ machine: { name } }) => name)).toEqual(['bounded']);
    expect(blocked.map(({ machine: { name } }) => name)).toEqual(['free']);
  });

  test('do so too where both are asked one after the other, and what is alike is found once', async () => {
    const known: NonNullable<CandidateOptions['known']> = new Map();
    expect(await find({ known })).toEqual(await find());
    expect([...known.keys()].map(({ name }) => name)).toEqual(['free']);
    expect(await find({ disruptionClass: 'eventual', known })).toEqual(await find({ disruptionClass: 'eventual' }));
  });
});

describe('a candidate', () => {
  test('knows its price, also of what is not on sale any more', async () => {
    const type = instanceType(4);
    const offerings = type.offerings.map((offering) => ({ ...offering, available: false }));
    world.cloud.types = [{ ...type, offerings }];
    await machine(world, 'a');
    const { candidates } = await find();
    expect(candidates[0]).toMatchObject({ price: 0.4, rescheduleCost: 1, reschedulablePods: [] });
    expect(savingsRatio(candidates[0]!)).toBe(0.4);
  });

  test('has no price when its type is unknown', async () => {
    await machine(world, 'a', { type: 'forgotten' });
    const { candidates } = await find();
    expect(candidates[0]).toMatchObject({ price: 0, instanceType: undefined });
  });

  test('costs one, and one for each ordinary pod that must move', async () => {
    await machine(world, 'a');
    await runningPod(world, 'web', 'a');
    await runningPod(world, 'cheap', 'a', { annotations: { [annotations.podDeletionCost]: '-2147483647' } });
    await runningPod(world, 'daemon', 'a', { owner: 'DaemonSet' });
    const [candidate] = (await find()).candidates;
    expect(candidate!.rescheduleCost).toBe(2);
    expect(candidate!.reschedulablePods).toHaveLength(2);
    expect(isEmpty(candidate!)).toBe(false);
  });
});

test('the marks of a machine that is being deleted are not taken off', async () => {
  await machine(world, 'a');
  const marks = new DisruptionMarks(contextOf(world));
  const state = world.state.nodeByName('a')!;
  await marks.put(state, 'Empty', world.signal);
  await world.settle();
  await world.delete((await claimOf(world, 'a'))!);
  await world.settle();
  await marks.clear(state, world.signal);
  expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Empty' });
});
