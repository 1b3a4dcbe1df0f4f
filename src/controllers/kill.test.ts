// SPDX-License-Identifier: Apache-2.0
// The whole program dies at each of its writes in turn, to an API server or to the cloud: right before it, or when it was
// carried out and the answer never came. The next one must finish the job and leave nothing behind.
import { describe, expect, test } from 'vitest';
import { nodeClaimKind } from '../api/node-claim.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import { registerControllers } from './index.ts';
import { deployment } from './testing/deployment.ts';
import { dieAt, expectNoLeaks, type Moment } from './testing/dying.ts';
import { type TestWorld, testWorld } from './testing/world.ts';

/** What is wanted of the program, on a cluster that is ready for it, and how many pods run in the end. */
interface Story {
  /** Not part of what may be interrupted. */
  readonly prepare: (world: TestWorld) => Promise<void>;
  readonly want: (world: TestWorld) => Promise<void>;
  readonly pods: number;
  /** The most NodeClaims that an honest program makes; a double launch would make more. */
  readonly launches: number;
}

const minute = 60_000;

function running(world: TestWorld): Pod[] {
  return world.state.sources.pods.list().filter(({ metadata, status }) => {
    return metadata.deletionTimestamp === undefined && status?.phase === 'Running';
  });
}

/** Lets the world run until so many pods run and all others are gone. */
async function untilRunning(world: TestWorld, count: number): Promise<void> {
  const { pods } = world.state.sources;
  await world.until(() => pods.list().length === count && running(world).length === count, 30 * minute);
}

async function start(): Promise<TestWorld> {
  const world = await testWorld({ live: true });
  registerControllers(world.manager, world);
  await world.pool({ spec: { disruption: { consolidateAfter: '0s', consolidationPolicy: 'WhenEmpty' } } });
  return world;
}

const provisioning: Story = {
  prepare: () => Promise.resolve(),
  async want(world) {
    await world.apply(deployment('web', 2, '3'));
  },
  pods: 2,
  launches: 2,
};

const moving: Story = {
  async prepare(world) {
    await world.apply(deployment('web', 1, '3'));
    await untilRunning(world, 1);
  },
  async want(world) {
    const [claim] = await world.claims();
    await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
  },
  pods: 1,
  launches: 2,
};

const emptying: Story = {
  prepare: moving.prepare,
  async want(world) {
    await world.workload.resource(kinds.Deployment).updateScale('web', 0, { namespace: 'default' });
  },
  pods: 0,
  launches: 1,
};

/** Plays a story with a death in it. Gives false when it was over before. */
async function survives(story: Story, write: number, moment: Moment): Promise<boolean> {
  let world = await start();
  await story.prepare(world);
  const { died, isDead } = dieAt(write, moment, world);
  await story.want(world);
  const { pods } = world.state.sources;
  const quietFrom = world.clock.now() + 4 * minute;
  const done = (): boolean => pods.list().length === story.pods && running(world).length === story.pods;
  await world.until(() => isDead() || (done() && world.clock.now() > quietFrom), 30 * minute);
  const dead = isDead();
  if (dead) {
    await died;
    world.cloud.handleCalls((call) => call());
    world = await world.restart();
    registerControllers(world.manager, world);
    await untilRunning(world, story.pods);
    await world.advance(5 * minute);
  }
  await untilRunning(world, story.pods);
  await expectNoLeaks(world);
  expect((await world.claims()).length).toBeLessThanOrEqual(story.pods);
  const launched = new Set(world.cloud.launched);
  expect(launched.size, 'machines ever launched').toBeLessThanOrEqual(story.launches);
  await world.close();
  return dead;
}

describe.each<[string, Story, number]>([
  ['buys machines for pods', provisioning, 8],
  ['moves a pod off a machine that is deleted', moving, 15],
  ['gives back a machine that is empty', emptying, 5],
])('a program that %s', (_name, story, atLeast) => {
  test.each<Moment>(['before', 'after'])(
    'may die right %s any write',
    async (moment) => {
      let write = 1;
      while (await survives(story, write, moment)) write++;
      // It came to something, and to an end.
      expect(write).toBeGreaterThan(atLeast);
    },
    120_000,
  );
});
