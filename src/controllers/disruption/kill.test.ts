// SPDX-License-Identifier: Apache-2.0
// A node is replaced by a smaller one, by the whole program, which dies at each of its writes in turn: taint, condition,
// replacement, launch, deletion, eviction. The next one must finish or take back what was begun.
import { expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import { kinds } from '../../kube/kinds.ts';
import { registerControllers } from '../index.ts';
import { deployment } from '../testing/deployment.ts';
import { dieAt, expectNoLeaks, type Moment } from '../testing/dying.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { DisruptionMarks } from './marks.ts';

const minute = 60_000;

/** Where running pods are, by the type of their node. */
function placesOf({ state }: TestWorld): string[] {
  const types = new Map([...state.nodes()].map((machine) => [machine.node?.metadata.name, machine.labels]));
  return state.sources.pods
    .list()
    .filter(({ metadata, status }) => metadata.deletionTimestamp === undefined && status?.phase === 'Running')
    .map(({ spec }) => types.get(spec?.nodeName)?.[labels.instanceType] ?? '');
}

/** One pod is left of those that a large node was bought for. */
async function oversized(): Promise<TestWorld> {
  const world = await testWorld({ live: true });
  registerControllers(world.manager, world);
  await world.pool({ spec: { disruption: { consolidateAfter: '0s' } } });
  await world.apply(deployment('web', 4, '3'));
  await world.until(() => placesOf(world).length === 4, 30 * minute);
  expect(new Set(placesOf(world))).toEqual(new Set(['c-16x']));
  return world;
}

const isReplaced = (world: TestWorld): boolean =>
  placesOf(world).join() === 'c-4x' && world.state.sources.pods.list().length === 1;

/** Gives false when everything was over before that write. */
async function survives(write: number, moment: Moment): Promise<boolean> {
  let world = await oversized();
  const { died, isDead } = dieAt(write, moment, world);
  await world.workload.resource(kinds.Deployment).updateScale('web', 1, { namespace: 'default' });
  const quietFrom = world.clock.now() + 4 * minute;
  await world.until(() => isDead() || (isReplaced(world) && world.clock.now() > quietFrom), 30 * minute);
  if (isDead()) {
    await died;
    world.cloud.handleCalls((call) => call());
    world = await world.restart();
    registerControllers(world.manager, world);
    await world.until(() => isReplaced(world), 30 * minute);
    await world.advance(5 * minute);
  }
  expect(placesOf(world)).toEqual(['c-4x']);
  await expectNoLeaks(world);
  expect((await world.claims()).length).toBe(1);
  expect([...world.state.nodes()].filter((machine) => DisruptionMarks.on(machine))).toEqual([]);
  // The large one, the small one, and one more small one where nobody knew that the first was asked for.
  expect(new Set(world.cloud.launched).size).toBeLessThanOrEqual(3);
  await world.close();
  return isDead();
}

test.each<Moment>(['before', 'after'])(
  'a program that replaces a node may die right %s any write: nothing is leaked, and no pod is lost',
  async (moment) => {
    let write = 1;
    while (await survives(write, moment)) write++;
    expect(write).toBeGreaterThan(15);
  },
  300_000,
);
