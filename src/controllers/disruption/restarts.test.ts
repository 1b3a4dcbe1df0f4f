// SPDX-License-Identifier: Apache-2.0
// The whole way of a node out of the cluster, with every controller that has a part in it; and the same with a program
// that dies at any of its writes.
import { afterEach, describe, expect, test } from 'vitest';
import { kinds } from '../../kube/kinds.ts';
import { ClusterState } from '../../state/cluster-state.ts';
import { terminationControllers } from '../node/termination/index.ts';
import { ControllerContext, nodeClaimControllers } from '../nodeclaim/index.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { going, letPodsGo, machine, openPool, runningPod, runUntilKilled } from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

/** The program: everything that takes part when a node goes, with a memory of its own. */
function run(): () => void {
  const { clusters, registry, clock, log, metrics, settings } = world;
  const state = new ClusterState({ clusters, registry, clock, log });
  const context = new ControllerContext({ clusters, registry, clock, log, metrics, settings, state });
  return runUntilKilled(world, [
    ...nodeClaimControllers(context),
    ...terminationControllers(context),
    ...disruptionControllers(context, world),
  ]);
}

async function start(options: { readonly apart: boolean }): Promise<void> {
  world = await testWorld(options);
  await openPool(world, { spec: { disruption: { consolidationPolicy: 'WhenEmpty' } } });
  await machine(world, 'a');
  // A daemon leaves with its node, and does not make it less empty.
  await runningPod(world, 'daemon', 'a', { owner: 'DaemonSet' });
  await machine(world, 'busy');
  await runningPod(world, 'web', 'busy');
}

/** Lets time pass in which pods that are asked to leave do so. */
async function live(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5000) {
    await world.advance(5000);
    await letPodsGo(world);
  }
}

/** Everything of `a` is gone, and everything of `busy` is as it was. */
async function expectOnlyBusy(): Promise<void> {
  expect((await world.nodes()).map(({ metadata, spec }) => [metadata.name, spec?.taints ?? []])).toEqual([
    ['busy', []],
  ]);
  expect((await world.claims()).map(({ metadata }) => metadata.name)).toEqual(['busy']);
  expect([...world.cloud.instances.keys()]).toEqual(['fake://busy']);
  expect((await world.pods()).map(({ metadata }) => metadata.name)).toEqual(['web']);
  expect(await going(world)).toEqual([]);
}

/** Calls back before each write of the program, events left out. */
function beforeWrite(callback: () => void): void {
  for (const door of new Set(Object.values(world.doors))) {
    door.beforeWrite(({ path }) => {
      if (!path.endsWith('/events')) callback();
    });
  }
}

describe.each([
  ['in one cluster', false],
  ['with NodeClaims in one cluster and Nodes in another', true],
])('an empty node %s', (_, apart) => {
  test('goes with everything that belongs to it', async () => {
    await start({ apart });
    run();
    await live(60_000);
    await expectOnlyBusy();
    expect(world.log.messages()).toEqual(['disrupting node(s)', 'tainted node', 'deleted node', 'deleted nodeclaim']);
  });

  test('goes all the same when the program dies at any of its writes', async () => {
    await start({ apart });
    let writes = 0;
    beforeWrite(() => writes++);
    run();
    await live(60_000);
    await expectOnlyBusy();
    expect(writes).toBeGreaterThan(8);
    for (let last = 1; last <= writes; last++) {
      await world.close();
      await start({ apart });
      let left = last;
      let dead = false;
      let kill = (): void => undefined;
      beforeWrite(() => {
        if (--left === 0) {
          dead = true;
          kill();
        }
        if (dead) throw new Error('the program is dead');
      });
      kill = run();
      await live(60_000);
      dead = false;
      run();
      await live(120_000);
      await expectOnlyBusy();
    }
  });
});

test('a node whose pods may not leave stays in service for them, also over a restart', async () => {
  world = await testWorld();
  await openPool(world);
  await machine(world, 'a');
  await runningPod(world, 'precious', 'a', { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } });
  const kill = run();
  await world.workload.resource(kinds.Node).delete('a');
  await live(60_000);
  kill();
  await world.advance(20_000);
  run();
  await live(60_000);
  expect((await world.pods()).map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined]);
  expect(world.cloud.instances.size).toBe(1);
});
