// SPDX-License-Identifier: Apache-2.0
// Clouds and API servers that fall silent, to the whole program on a living cluster: each kind of call in turn, and all at
// once. It costs time, and nothing is lost or bought twice.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { nodeClaimKind } from '../api/node-claim.ts';
import { nodeClaim } from '../api/testing/objects.ts';
import type { Fault } from '../kube/testing/faulty-transport.ts';
import { registerControllers } from './index.ts';
import { deployment } from './testing/deployment.ts';
import { expectNoLeaks } from './testing/dying.ts';
import { type TestWorld, testWorld } from './testing/world.ts';

const minute = 60_000;
let world: TestWorld;

beforeEach(async () => {
  world = await testWorld({ live: true });
  registerControllers(world.manager, world);
  await world.pool({ spec: { disruption: { consolidateAfter: 'Never' } } });
});
afterEach(() => world.close());

function running(): number {
  const { pods } = world.state.sources;
  return pods.list().filter(({ metadata, status }) => !metadata.deletionTimestamp && status?.phase === 'Running')
    .length;
}

/** The first calls of a method are never answered; what they ask for is done. */
function silence(method: 'delete' | 'list' | 'get' | 'instanceTypes' | 'driftReason', times: number): void {
  const { cloud } = world;
  const answer = cloud[method].bind(cloud) as (...given: unknown[]) => Promise<unknown>;
  let left = times;
  (cloud as unknown as Record<string, unknown>)[method] = async (...given: unknown[]) => {
    const result = await answer(...given);
    return left-- > 0 ? new Promise(() => undefined) : result;
  };
}

describe('a cloud that never answers', () => {
  test('when it is asked what it sells is asked again', async () => {
    silence('instanceTypes', 3);
    await world.apply(deployment('web', 2, '3'));
    await world.until(() => running() === 2, 20 * minute);
    await expectNoLeaks(world);
  });

  test('when a machine is to go is asked until it is gone', async () => {
    await world.apply(deployment('web', 1, '3'));
    await world.until(() => running() === 1, 20 * minute);
    silence('delete', 2);
    const [claim] = await world.claims();
    await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
    await world.until(() => world.state.nodeByClaim(claim!.metadata.name!) === undefined, 20 * minute);
    await world.until(() => running() === 1, 20 * minute);
    await expectNoLeaks(world);
    expect(world.cloud.launched).toHaveLength(2);
  });

  test('when its machines are listed or looked up keeps an orphan for a while only', async () => {
    silence('list', 3);
    silence('get', 3);
    silence('driftReason', 3);
    await world.apply(deployment('web', 1, '3'));
    world.cloud.nodesAppear = true;
    await world.until(() => running() === 1, 20 * minute);
    world.cloud.nodesAppear = false;
    const nobody = nodeClaim({ name: 'nobody' });
    nobody.metadata.uid = 'gone';
    await world.cloud.create(nobody, world.signal);
    expect(world.cloud.instances.size).toBe(2);
    await world.until(() => world.cloud.instances.size === 1, 30 * minute);
    await expectNoLeaks(world);
    expect(running()).toBe(1);
  });
});

test('a machine that a partial list hid while its NodeClaim went is found and given back', async () => {
  world.cloud.nodesAppear = false;
  // It is made, and nobody hears of it.
  world.cloud.handleCalls(async (call) => {
    await call();
    return new Promise(() => undefined);
  });
  await world.apply(deployment('web', 1, '3'));
  await world.until(() => world.cloud.instances.size === 1, minute);
  const list = world.cloud.list.bind(world.cloud);
  world.cloud.list = () => Promise.resolve([]);
  const [claim] = await world.claims();
  await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
  const hidden = world.cloud.launched[0]!;
  world.cloud.nodesAppear = true;
  world.cloud.handleCalls((call) => call());
  await world.until(() => running() === 1, 20 * minute);
  expect(world.cloud.instances.has(hidden)).toBe(true);
  world.cloud.list = list;
  await world.until(() => !world.cloud.instances.has(hidden), 10 * minute);
  await expectNoLeaks(world);
  expect(running()).toBe(1);
});

describe('an API server that is away for ten minutes', () => {
  test.each<[string, Fault]>([
    ['cannot be reached', 'unreachable'],
    ['answers 429 to everything', { status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '1' } }],
    ['answers 500 to everything', { status: 500, reason: 'InternalError' }],
  ])('and %s is caught up with, without a restart', async (_name, fault) => {
    await world.apply(deployment('early', 1, '3'));
    await world.until(() => running() === 1, 20 * minute);
    const [claim] = await world.claims();
    world.doors.karpenter.failAll(fault);
    world.doors.karpenter.breakWatches();
    // What happens meanwhile is not lost: more pods, and a node that is to go.
    await world.apply(deployment('late', 2, '3'));
    await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
    await world.advance(10 * minute);
    expect(world.cloud.launched).toHaveLength(1);
    world.doors.karpenter.failAll(undefined);
    await world.until(() => world.state.nodeByClaim(claim!.metadata.name!) === undefined, 5 * minute);
    await world.until(() => running() === 3, 5 * minute);
    await world.advance(minute);
    await expectNoLeaks(world);
  });
});
