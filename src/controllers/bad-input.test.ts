// SPDX-License-Identifier: Apache-2.0
// What users, API servers and clouds do wrong, to the whole program on a living cluster: the right condition and event, a
// pause that grows, and a recovery without a restart. Nothing is lost, and nothing is bought twice.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type KwokNodeClass, kwokNodeClassKind } from '../api/kwok-node-class.ts';
import { labels } from '../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import { nodePool } from '../api/testing/objects.ts';
import { CreateError } from '../cloud/errors.ts';
import { kinds } from '../kube/kinds.ts';
import type { ResourceType } from '../kube/object.ts';
import type { Fault } from '../kube/testing/faulty-transport.ts';
import { registerControllers } from './index.ts';
import { deployment } from './testing/deployment.ts';
import { instanceType } from './testing/fake-cloud.ts';
import { type TestWorld, testWorld } from './testing/world.ts';

const minute = 60_000;
const poolType = nodePoolKind as ResourceType<NodePool>;
let world: TestWorld;

beforeEach(async () => {
  world = await testWorld({ live: true });
  registerControllers(world.manager, world);
});
afterEach(() => world.close());

function running(): number {
  return world.state.sources.pods.list().filter(({ status }) => status?.phase === 'Running').length;
}

async function untilRunning(count: number, limitMs = 20 * minute): Promise<void> {
  await world.until(() => running() === count, limitMs);
}

/** Every machine has its NodeClaim and its Node, and was launched once. */
async function expectNoLeaks(): Promise<void> {
  const claims = (await world.claims()).map(({ status }) => status?.providerID ?? '').sort();
  expect((await world.nodes()).map(({ spec }) => spec?.providerID ?? '').sort()).toEqual(claims);
  expect([...world.cloud.instances.keys()].sort()).toEqual(claims);
  expect(new Set(world.cloud.launched).size).toBe(world.cloud.launched.length);
}

async function conditionOf(pool: string, type: string): Promise<string> {
  const found = (await world.find(poolType, pool))?.status?.conditions?.find((condition) => condition.type === type);
  return found ? `${found.status} ${found.reason}` : '';
}

/** What users were told about a condition of the NodePool `web`. */
async function told(condition: string): Promise<string[]> {
  return (await world.events(condition)).filter((line) => line.includes('NodePool/web'));
}

const nodeClass = (name: string): KwokNodeClass => ({
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name },
});
const ref = (name: string) => ({ group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name });

describe('a NodePool', () => {
  test('with requirements that cannot be is not ready, says why, buys nothing, and works once it is mended', async () => {
    const bad = nodePool({
      name: 'web',
      template: { requirements: [{ key: labels.hostname, operator: 'In', values: ['mine'] }] },
    });
    await world.apply(bad).catch(() => undefined);
    if (!(await world.find(poolType, 'web'))) {
      // The API server refused it already; what it lets through is judged by us.
      const requirements = [{ key: 'example.com/team', operator: 'In', values: ['a/b'] }];
      await world.apply(nodePool({ name: 'web', template: { requirements } as never }));
    }
    await world.apply(deployment('web', 1));
    await world.advance(minute);
    expect(await conditionOf('web', 'ValidationSucceeded')).toBe('False NodePoolValidationFailed');
    expect(await conditionOf('web', 'Ready')).toMatch(/^False/);
    expect(await told('ValidationSucceeded')).toEqual([expect.stringMatching(/False.*NodePoolValidationFailed/)]);
    expect(await world.claims()).toEqual([]);
    await world.apply(nodePool({ name: 'web' }));
    await untilRunning(1);
    expect(await conditionOf('web', 'Ready')).toBe('True Ready');
    await expectNoLeaks();
  });

  test('whose NodeClass does not exist is not ready, and works once it does', async () => {
    await world.apply(nodePool({ name: 'web', template: { nodeClassRef: ref('late') } }), deployment('web', 1));
    await world.advance(minute);
    expect(await conditionOf('web', 'NodeClassReady')).toBe('False NodeClassNotFound');
    expect(await told('NodeClassReady')).toEqual([expect.stringMatching(/False.*NodeClassNotFound/)]);
    expect(await world.claims()).toEqual([]);
    await world.apply(nodeClass('late'));
    await untilRunning(1);
    await expectNoLeaks();
  });

  test('whose NodeClass is not ready tells its reason, and works once it is', async () => {
    await world.apply(nodeClass('slow'));
    const say = async (status: 'True' | 'False'): Promise<void> => {
      const condition = { type: 'Ready', status, reason: 'NoImages', message: 'no image was found' };
      const conditions = [{ ...condition, lastTransitionTime: '2026-01-01T00:00:00Z' }];
      await world.karpenter.resource(kwokNodeClassKind).patchStatus('slow', { status: { conditions } });
    };
    await say('False');
    await world.apply(nodePool({ name: 'web', template: { nodeClassRef: ref('slow') } }), deployment('web', 1));
    await world.advance(minute);
    expect(await conditionOf('web', 'NodeClassReady')).toBe('False NoImages');
    expect(await told('NodeClassReady')).toEqual([expect.stringMatching(/False.*NoImages/)]);
    expect(await world.claims()).toEqual([]);
    await say('True');
    await untilRunning(1);
    await expectNoLeaks();
  });

  test('of a NodeClass that nobody serves is left alone, with a word in the log', async () => {
    const nodeClassRef = { group: 'elsewhere.example.com', kind: 'ElsewhereNodeClass', name: 'default' };
    await world.apply(nodePool({ name: 'theirs', template: { nodeClassRef } }));
    await world.advance(minute);
    const ignored = world.log.lines.filter(({ message }) => message.startsWith('ignoring nodepool, no provider'));
    expect(ignored).toHaveLength(1);
    expect(ignored[0]?.fields).toMatchObject({
      NodePool: { name: 'theirs' },
      error: expect.stringContaining('KWOKNodeClass'),
    });
  });
});

describe('a NodeClaim that a person wrote', () => {
  const claim = (requirements: NodeClaim['spec']['requirements']): NodeClaim => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'by-hand' },
    spec: { nodeClassRef: ref('default'), requirements },
  });

  test('becomes a node that pods use, and goes with its machine when it is deleted', async () => {
    await world.apply(claim([{ key: labels.instanceType, operator: 'In', values: ['c-4x'] }]));
    await world.until(() => world.state.nodeByClaim('by-hand')?.initialized === true);
    await expectNoLeaks();
    await world.apply(deployment('web', 2));
    await untilRunning(2);
    expect(await world.claims()).toHaveLength(1);
    await world.delete(deployment('web', 0));
    await world.karpenter.resource(nodeClaimKind).delete('by-hand');
    await world.until(() => world.state.nodeCount === 0, 20 * minute);
    expect([await world.claims(), await world.nodes(), world.cloud.instances.size]).toEqual([[], [], 0]);
  });

  test('and whose label names a NodePool that is not there is a node like others', async () => {
    const written = claim([{ key: labels.instanceType, operator: 'In', values: ['c-4x'] }]);
    written.metadata.labels = { [labels.nodePool]: 'nowhere' };
    await world.apply(written, deployment('web', 1));
    await untilRunning(1);
    await world.advance(10 * minute);
    expect(running()).toBe(1);
    expect((await world.claims()).map(({ metadata }) => metadata.name)).toEqual(['by-hand']);
    await expectNoLeaks();
    expect(world.log.messages('error')).toEqual([]);
  });

  test('of a cloud that is down is tried less and less often, and given up in time', async () => {
    world.cloud.fail('create', new Error('internal error'), 1000);
    await world.apply(claim([{ key: labels.instanceType, operator: 'In', values: ['c-4x'] }]));
    await world.advance(4 * minute);
    const calls = world.cloud.calls.filter(({ method }) => method === 'create').length;
    expect(calls).toBeGreaterThan(5);
    expect(calls).toBeLessThan(12);
    await world.advance(2 * minute);
    expect(await world.claims()).toEqual([]);
  });

  test('that no machine can meet is given up, with an event', async () => {
    await world.apply(claim([{ key: labels.instanceType, operator: 'In', values: ['no-such-type'] }]));
    await world.advance(minute);
    expect(await world.claims()).toEqual([]);
    expect(await world.events('InsufficientCapacityError')).toHaveLength(1);
  });
});

test('a pod that nobody can host is told once in five minutes, holds up no other, and runs when it can', async () => {
  await world.pool();
  await world.apply(deployment('giant', 1, '500'), deployment('web', 1));
  await untilRunning(1);
  const said = await world.events('FailedScheduling');
  expect(said.filter((line) => line.includes('Pod/giant') && line.includes('Failed to schedule pod'))).toHaveLength(1);
  await world.advance(4 * minute);
  expect((await world.events('FailedScheduling')).length).toBe(said.length);
  world.cloud.types = [...world.cloud.types, instanceType(512)];
  await untilRunning(2);
  await expectNoLeaks();
});

describe('an API server', () => {
  const conflict: Fault = { status: 409, reason: 'Conflict' };
  const busy: Fault = { status: 429, reason: 'TooManyRequests', headers: { 'retry-after': '2' } };
  const broken: Fault = { status: 500, reason: 'InternalError' };
  const writes = ['POST /nodeclaims', 'PATCH /nodeclaims', 'PATCH /nodes', 'PATCH /nodepools'];

  test.each<[string, Fault]>([
    ['answers 409', conflict],
    ['answers 429', busy],
    ['answers 500', broken],
    ['does what it is asked and loses the answer', 'answer lost'],
    ['cannot be reached', 'unreachable'],
  ])('that %s to every kind of write for a while costs time only', async (_name, fault) => {
    await world.pool();
    for (const write of writes) world.doors.karpenter.fail(write, fault, 4);
    await world.apply(deployment('web', 3, '3'));
    await untilRunning(3);
    await world.advance(5 * minute);
    await expectNoLeaks();
  });

  test('that answers 500 to evictions and deletions for a while drains in the end', async () => {
    await world.pool();
    await world.apply(deployment('web', 1));
    await untilRunning(1);
    const [claim] = await world.claims();
    for (const write of ['POST /eviction', 'DELETE /nodes', 'DELETE /nodeclaims'])
      world.doors.karpenter.fail(write, broken, 4);
    await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
    await world.until(() => world.state.nodeByClaim(claim!.metadata.name!) === undefined, 20 * minute);
    await untilRunning(1);
    await expectNoLeaks();
  });

  test.each(['reset', 'expired'] as const)('whose watches are %s again and again loses no event', async (how) => {
    await world.pool();
    for (let i = 1; i <= 4; i++) {
      world.doors.karpenter.breakWatches(how);
      await world.apply(deployment(`web-${i}`, 1, '3'));
      world.doors.karpenter.breakWatches(how);
      await world.advance(1000);
      world.doors.karpenter.breakWatches(how);
      await untilRunning(i);
    }
    await expectNoLeaks();
  });

  test('that refuses lists and watches for a while is followed again', async () => {
    await world.pool();
    for (const what of ['WATCH /pods', 'WATCH /nodeclaims', 'GET /pods', 'GET /nodes'])
      world.doors.karpenter.fail(what, what.startsWith('WATCH') ? { status: 410, reason: 'Expired' } : busy, 3);
    world.doors.karpenter.breakWatches();
    await world.apply(deployment('web', 1));
    await untilRunning(1);
    await expectNoLeaks();
  });
});

describe('a cloud', () => {
  async function launchedReasons(): Promise<(string | undefined)[]> {
    return (await world.claims()).map(
      ({ status }) => status?.conditions?.find(({ type }) => type === 'Launched')?.reason,
    );
  }

  test('that throttles is asked less and less often, shows in the condition, and launches in the end', async () => {
    await world.pool();
    world.cloud.fail('create', new Error('Throttling: Rate exceeded'), 5);
    await world.apply(deployment('web', 1));
    await world.advance(2500);
    expect(await launchedReasons()).toEqual(['LaunchFailed']);
    const calls = (): number => world.cloud.calls.filter(({ method }) => method === 'create').length;
    await world.advance(10_000);
    // After 1, 2, 4 and 8 seconds, not ten times.
    expect(calls()).toBeLessThanOrEqual(5);
    await untilRunning(1);
    await expectNoLeaks();
  });

  test('that refuses with a reason of its own shows it in the condition', async () => {
    await world.pool();
    const refusal = new CreateError('no', { reason: 'QuotaExceeded', message: 'the account is full' });
    world.cloud.fail('create', refusal, 2);
    await world.apply(deployment('web', 1));
    await world.advance(1500);
    expect(await launchedReasons()).toEqual(['QuotaExceeded']);
    await untilRunning(1);
    await expectNoLeaks();
  });

  test('that never answers a launch is asked again, and launches once', async () => {
    await world.pool();
    let silent = 1;
    world.cloud.handleCalls(async (call, method) => {
      const answer = await call();
      return method === 'create' && silent-- > 0 ? new Promise(() => undefined) : answer;
    });
    await world.apply(deployment('web', 1));
    await untilRunning(1);
    await expectNoLeaks();
  });

  test('that does not launch within five minutes has its NodeClaim replaced', async () => {
    await world.pool();
    world.cloud.fail('create', new Error('internal error'), 12);
    await world.apply(deployment('web', 1));
    await world.advance(2000);
    const [first] = await world.claims();
    await untilRunning(1, 30 * minute);
    expect((await world.claims()).map(({ metadata }) => metadata.name)).not.toContain(first?.metadata.name);
    await expectNoLeaks();
  });

  test('that cannot say what it sells holds up its own pools only, and is asked again', async () => {
    await world.pool();
    world.cloud.fail('instanceTypes', new Error('service unavailable'), 3);
    await world.apply(deployment('web', 1));
    await untilRunning(1);
    expect(world.log.messages('error')).toContain('skipping, unable to resolve instance types');
    await expectNoLeaks();
  });

  test.each<[string, (ids: readonly string[]) => readonly string[]]>([
    ['lists nothing', () => []],
    ['lists some of its machines', (ids) => ids.slice(1)],
    ['lists its machines twice', (ids) => [...ids, ...ids]],
  ])('that %s loses no node that works', async (_name, change) => {
    await world.pool({ spec: { disruption: { consolidateAfter: 'Never' } } });
    await world.apply(deployment('web', 3, '30'));
    await untilRunning(3);
    const before = (await world.claims()).map(({ metadata }) => metadata.uid ?? '').sort();
    expect(before).toHaveLength(3);
    const list = world.cloud.list.bind(world.cloud);
    world.cloud.list = async (signal) => {
      const all = await list(signal);
      return change(all.map(({ providerID }) => providerID)).map((id) => world.cloud.instances.get(id)!);
    };
    await world.advance(10 * minute);
    expect((await world.claims()).map(({ metadata }) => metadata.uid ?? '').sort()).toEqual(before);
    expect(running()).toBe(3);
    await expectNoLeaks();
  });

  test('that fails deletions goes on billing for nobody: it is asked until the machine is gone', async () => {
    await world.pool();
    await world.apply(deployment('web', 1));
    await untilRunning(1);
    world.cloud.fail('delete', new Error('service unavailable'), 6);
    await world.workload.resource(kinds.Deployment).delete('web', { namespace: 'default' });
    const [claim] = await world.claims();
    await world.karpenter.resource(nodeClaimKind).delete(claim!.metadata.name!);
    await world.until(() => world.state.nodeCount === 0 && world.cloud.instances.size === 0, 20 * minute);
    await world.advance(minute);
    expect([await world.claims(), await world.nodes()]).toEqual([[], []]);
  });
});
