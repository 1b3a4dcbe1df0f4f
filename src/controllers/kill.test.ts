// SPDX-License-Identifier: Apache-2.0
// The whole program dies at each of its writes in turn, to an API server or to the cloud: right before it, or when it was
// carried out and the answer never came. The next one must finish the job and leave nothing behind.
import { describe, expect, test } from 'vitest';
import { nodeClaimKind } from '../api/node-claim.ts';
import { Informer } from '../kube/informer.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import type { KubeObject } from '../kube/object.ts';
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
  /** How many of them run at any time; none unless told. */
  readonly always?: number;
  /** For how long all of them run on; not at all unless told. */
  readonly untouchedMs?: number;
  /** The most NodeClaims that an honest program makes; a double launch would make more. */
  readonly launches: number;
}

const minute = 60_000;

function isRunning({ metadata, status }: Pod): boolean {
  return metadata.deletionTimestamp === undefined && status?.phase === 'Running';
}

function running(world: TestWorld): Pod[] {
  return world.state.sources.pods.list().filter(isRunning);
}

/** Lets the world run until so many pods run and all others are gone. */
async function untilRunning(world: TestWorld, count: number): Promise<void> {
  const { pods } = world.state.sources;
  await world.until(() => pods.list().length === count && running(world).length === count, 30 * minute);
}

const poolParts = { spec: { disruption: { consolidateAfter: '0s', consolidationPolicy: 'WhenEmpty' } } } as const;

async function start(): Promise<TestWorld> {
  const world = await testWorld({ live: true });
  registerControllers(world.manager, world);
  await world.pool(poolParts);
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

function budget(spec: object): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  } as KubeObject;
}

/** Two pods on one machine, of which one must run: they move one after the other. */
const guarded: Story = {
  async prepare(world) {
    await world.apply(budget({ minAvailable: 1 }), deployment('web', 2, '500m'));
    await untilRunning(world, 2);
    expect(await world.claims()).toHaveLength(1);
  },
  want: moving.want,
  pods: 2,
  always: 1,
  launches: 3,
};

/** A pod that nothing may evict, on a machine that waits forty seconds for it and no longer. */
const hasty: Story = {
  async prepare(world) {
    await world.pool({ ...poolParts, template: { terminationGracePeriod: '40s' } });
    await world.apply(budget({ maxUnavailable: 0 }), deployment('web', 1, '3'));
    await untilRunning(world, 1);
  },
  want: moving.want,
  pods: 1,
  // Its own half a minute is part of them; they count from the whole second in which the deletion began.
  untouchedMs: 9000,
  launches: 2,
};

/** Sees what becomes of the pods, whoever lives, and notes what a story forbids. */
async function witnessOf(world: TestWorld, story: Story): Promise<{ broken: string[]; stop(): void }> {
  const { workload: client, clock } = world;
  const stop = new AbortController();
  const pods = new Informer({ client, type: kinds.Pod, clock });
  pods.start(stop.signal);
  await world.until(() => pods.hasSynced, minute);
  const { always = 0, untouchedMs = 0 } = story;
  const since = clock.now();
  const broken: string[] = [];
  const look = (): void => {
    const count = pods.list().filter(isRunning).length;
    if (count < always) broken.push(`${count} pods run`);
    const afterMs = clock.now() - since;
    if (count < story.pods && afterMs < untouchedMs) broken.push(`${count} pods run after ${afterMs / 1000} s`);
  };
  if (pods.size > 0) pods.addHandler({ updated: look, deleted: look });
  return { broken, stop: () => stop.abort() };
}

/** Plays a story with a death in it. Gives false when it was over before. */
async function survives(story: Story, write: number, moment: Moment): Promise<boolean> {
  let world = await start();
  await story.prepare(world);
  const { died, isDead } = dieAt(write, moment, world);
  await story.want(world);
  const witness = await witnessOf(world, story);
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
  expect(witness.broken, 'what was promised to pods').toEqual([]);
  witness.stop();
  await world.close();
  return dead;
}

describe.each<[string, Story, number]>([
  ['buys machines for pods', provisioning, 8],
  ['moves a pod off a machine that is deleted', moving, 15],
  ['gives back a machine that is empty', emptying, 5],
  ['moves pods within their disruption budget', guarded, 15],
  ['waits for a pod as long as it may and no longer', hasty, 15],
])('a program that %s', (_name, story, atLeast) => {
  test.each<Moment>(['before', 'after'])(
    'may die right %s any write',
    async (moment) => {
      let write = 1;
      while (await survives(story, write, moment)) write++;
      // It came to something, and to an end.
      expect(write).toBeGreaterThan(atLeast);
    },
    300_000,
  );
});
