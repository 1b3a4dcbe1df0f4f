// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from 'vitest';
import { labels } from '../../api/labels.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { Consolidation } from './consolidation.ts';
import { disruptionControllers } from './index.ts';
import type { MethodView, Proposal } from './method.ts';
import { Pass } from './plan.ts';
import { contextOf, machine, openPool, runningPod } from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

const cpu = (amount: string) => ({
  containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: amount } } }],
});

test('a search over the same cluster is made once, and again as soon as something changed', async () => {
  world = await testWorld();
  const requirements = [{ key: labels.capacityType, operator: 'In' as const, values: ['on-demand'] }];
  await openPool(world, { template: { requirements } });
  for (const [name, amount] of [
    ['a', '1100m'],
    ['b', '2100m'],
    ['full', '3900m'],
  ] as const) {
    await machine(world, name);
    await runningPod(world, `pod-of-${name}`, name, { spec: cpu(amount) });
  }
  const consolidation = new Consolidation();
  let view: MethodView | undefined;
  vi.spyOn(consolidation, 'proposeInSteps').mockImplementationOnce(function* (given) {
    view = given;
    yield;
    return [];
  });
  const { random, settings } = world;
  world.run(...disruptionControllers(contextOf(world), { random, settings, methods: [consolidation] }));
  await world.settle();
  vi.restoreAllMocks();
  const { snapshot } = view!;
  const look = (): { proposals: Proposal[]; hasSearched: boolean; rejected: string[] } => {
    // One problem to compare by, and others where there is a search.
    const problem = vi.fn(snapshot.problem);
    const { view: now, rejections } = new Pass({ ...snapshot, problem }).evaluate(consolidation);
    const proposals = consolidation.propose(now);
    const rejected = rejections.map(({ machine: of, kind, why }) => `${of.name} ${kind} ${why}`);
    return { proposals, hasSearched: problem.mock.calls.length > 1, rejected };
  };
  const first = look();
  expect(first.hasSearched).toBe(true);
  expect(first.proposals.map(({ candidates }) => candidates.map((one) => one.machine.name))).toEqual([['a']]);
  expect(look()).toEqual({ ...first, hasSearched: false });
  await runningPod(world, 'another-of-a', 'a', { spec: cpu('2700m') });
  await runningPod(world, 'another-of-b', 'b', { spec: cpu('1700m') });
  const third = look();
  expect(third.hasSearched).toBe(true);
  expect(third.proposals).toEqual([]);
  // Whoever stays is told so each time.
  expect(third.rejected).not.toEqual([]);
  expect(look()).toEqual({ ...third, hasSearched: false });
});
