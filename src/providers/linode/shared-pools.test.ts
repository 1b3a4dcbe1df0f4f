// SPDX-License-Identifier: Apache-2.0
// NodeClaims that share node pools: whatever fails on the way, a pool has as many nodes as NodeClaims are recorded on it, and
// each has its own.
import { describe, expect, test } from 'vitest';
import type { NodeClaim } from '../../api/node-claim.ts';
import { isInsufficientCapacity, isNodeClaimNotFound } from '../../cloud/errors.ts';
import type { LkePool } from './api-types.ts';
import { membersOf, sharedBy } from './shared-pool.ts';
import type { LinodeWorld } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest({ configuration: { sharePools: true }, api: { limits: 'none' } });

const shared = async (world: LinodeWorld): Promise<LkePool[]> =>
  (await world.pools()).filter((pool) => sharedBy(pool) !== undefined);
const only = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values });
const small = { spec: { requirements: [only('node.kubernetes.io/instance-type', 'g6-standard-2')] } };
const named = (claim: NodeClaim, providerID: string): NodeClaim => ({ ...claim, status: { providerID } });

async function launch(world: LinodeWorld, count: number): Promise<{ claim: NodeClaim; providerID: string }[]> {
  const claims = Array.from({ length: count }, (_, i) => world.claim(`c${i}`, small));
  const made = await world.finish(Promise.all(claims.map((claim) => world.provider.create(claim, world.signal))));
  return claims.map((claim, i) => ({ claim, providerID: made[i]!.providerID }));
}

/** As the lifecycle controller does it: until there is nothing left. */
async function remove(world: LinodeWorld, claim: NodeClaim): Promise<void> {
  for (let i = 0; i < 40; i++) {
    const outcome = await world.finish(world.provider.delete(claim, world.signal)).catch((error: unknown) => error);
    if (isNodeClaimNotFound(outcome)) return;
    await world.pass(5000);
  }
  throw new Error(`${claim.metadata.name} does not go`);
}

async function expectExact(world: LinodeWorld, claims: number): Promise<void> {
  const pools = await shared(world);
  const members = pools.flatMap(membersOf);
  expect(members).toHaveLength(claims);
  expect(members.filter(({ leaving }) => leaving)).toEqual([]);
  expect(pools.reduce((sum, { count }) => sum + count, 0)).toBe(claims);
  expect((await world.machines()).filter(({ status }) => status !== 'deleting')).toHaveLength(claims);
}

describe('NodeClaims that need the same', () => {
  test('share a pool that has a node for each, and no two have the same', async () => {
    const world = await start();
    const made = await launch(world, 5);
    expect(new Set(made.map(({ providerID }) => providerID)).size).toBe(5);
    expect(await shared(world)).toHaveLength(1);
    await expectExact(world, 5);
    const listed = await world.finish(world.provider.list(world.signal));
    expect(listed.map(({ providerID, nodeClaim }) => `${providerID} ${nodeClaim?.uid}`).sort()).toEqual(
      made.map(({ claim, providerID }) => `${providerID} ${claim.metadata.uid}`).sort(),
    );
  });

  test('are recorded together: five at once cost one pool and no write for each', async () => {
    const world = await start();
    const writes: string[] = [];
    world.fault = ({ method, path }) => {
      if (method !== 'GET') writes.push(`${method} ${path}`);
      return undefined;
    };
    await launch(world, 5);
    expect(writes.length).toBeLessThanOrEqual(4);
  });

  test('do not share with those of other labels, taints or plans', async () => {
    const world = await start();
    const taints = [{ key: 'dedicated', value: 'web', effect: 'NoSchedule' as const }];
    await world.create(world.claim('a', small));
    await world.create(world.claim('b', { spec: { ...small.spec, taints } }));
    await world.create(world.claim('c', { ...small, metadata: { labels: { color: 'blue' } } }));
    const pools = await shared(world);
    expect(pools).toHaveLength(3);
    expect(pools.map(({ taints: of }) => of?.length)).toEqual([0, 1, 0]);
  });

  test('fill another pool when one has what LKE allows', async () => {
    const world = await start();
    await launch(world, 103);
    expect((await shared(world)).map(({ count }) => count)).toEqual([100, 3]);
    await expectExact(world, 103);
  }, 120_000);

  test.each([16, 20])('fill another pool when one may have no more tags than %i, and each is seated', async (most) => {
    const world = await start();
    const handle = world.api.handle.bind(world.api);
    let refused = 0;
    world.api.handle = async (request, signal) => {
      const { tags = [] } = JSON.parse(request.body ?? '{}') as { tags?: string[] };
      if (!request.path.includes('/pools') || tags.length <= most) return handle(request, signal);
      refused++;
      const errors = [{ field: 'tags', reason: 'Maximum number of tags exceeded' }];
      return { status: 400, headers: {}, body: JSON.stringify({ errors }) };
    };
    await launch(world, 15);
    await expectExact(world, 15);
    const pools = await shared(world);
    expect(pools.flatMap(membersOf).filter(({ linode }) => linode === undefined)).toEqual([]);
    expect(pools.length).toBeLessThanOrEqual(Math.ceil(15 / Math.floor((most - 7) / 2)) + 1);
    expect(refused).toBeLessThan(10);
    // What was learned counts: the next is not refused.
    const before = refused;
    await world.create(world.claim('more', small));
    expect(refused).toBe(before);
    await expectExact(world, 16);
  });

  test('say so when a pool may have fewer tags than one of them needs', async () => {
    const world = await start();
    const errors = [{ field: 'tags', reason: 'Maximum number of tags exceeded' }];
    world.fault = ({ method }) =>
      method === 'POST' ? { status: 400, headers: {}, body: JSON.stringify({ errors }) } : undefined;
    const failure = await world.failure(world.provider.create(world.claim('a', small), world.signal));
    expect(failure).toMatchObject({ conditionReason: 'NodePoolCreationFailed' });
    world.fault = () => undefined;
    await launch(world, 3);
    await expectExact(world, 3);
  });

  // The existing provider never marks a plan whose pool could not grow.
  test('[BUG 7.1c] take another plan when the pool cannot grow, and the plan counts as sold out', async () => {
    const world = await start();
    await launch(world, 2);
    world.api.capacity.set('g6-standard-2', world.region, 0);
    const failure = await world.failure(world.provider.create(world.claim('more', small), world.signal));
    expect(isInsufficientCapacity(failure)).toBe(true);
    const other = world.claim('other', {
      spec: { requirements: [only('node.kubernetes.io/instance-type', 'g6-standard-2', 'g6-standard-4')] },
    });
    const { labels } = await world.create(other);
    expect(labels['node.kubernetes.io/instance-type']).toBe('g6-standard-4');
    await expectExact(world, 3);
  });
});

describe('the record of a shared pool', () => {
  test('counts nobody twice, whichever answers are lost and however often a launch is tried', async () => {
    const world = await start();
    await launch(world, 2);
    const claim = world.claim('more', small);
    for (const lost of ['PUT', 'GET', 'PUT', 'PUT']) {
      let isDue = true;
      world.fault = ({ method, path }) => {
        if (method !== lost || !path.includes('/pools') || !isDue) return undefined;
        isDue = false;
        return 'answer lost';
      };
      await world.finish(world.provider.create(claim, world.signal)).catch(() => undefined);
    }
    world.fault = () => undefined;
    await world.create(claim);
    await world.pass(60_000);
    await expectExact(world, 3);
  });

  test('outlives the process at every step of a launch and of a removal', async () => {
    for (let dies = 1; dies <= 7; dies++) {
      const world = await start();
      const [kept, going] = await launch(world, 2);
      const more = world.claim('more', small);
      let calls = 0;
      const crashAt = (wanted: number): void => {
        calls = 0;
        world.fault = () => {
          if (++calls === wanted) world.restart();
          return undefined;
        };
      };
      const tries = [
        () => world.provider.create(more, world.signal),
        () => world.provider.delete(named(going!.claim, going!.providerID), world.signal),
      ];
      for (const attempt of tries) {
        crashAt(dies);
        await world.finish(Promise.race([attempt().catch(() => undefined), world.clock.sleep(30_000)]));
      }
      world.fault = () => undefined;
      await world.create(more);
      await remove(world, named(going!.claim, going!.providerID));
      await world.pass(60_000);
      await expectExact(world, 2);
      const left = (await world.finish(world.provider.list(world.signal))).map(({ nodeClaim }) => nodeClaim?.uid ?? '');
      const wanted = [kept!.claim, more].map(({ metadata }) => metadata.uid ?? '');
      expect(left.sort(), `after ${dies} calls`).toEqual(wanted.sort());
    }
  });

  test('is right again after a Linode died and LKE put another one in its place', async () => {
    const world = await start();
    const [, dead] = await launch(world, 3);
    await world.person('DELETE', `/linode/instances/${dead!.providerID.slice('linode://'.length)}`);
    await world.pass(300_000);
    expect(await world.machines()).toHaveLength(3);
    const gone = await world.failure(world.provider.get(dead!.providerID, world.signal));
    expect(isNodeClaimNotFound(gone)).toBe(true);
    await remove(world, named(dead!.claim, dead!.providerID));
    await world.pass(60_000);
    await expectExact(world, 2);
  });

  test('gives a replacement that LKE made to whoever comes next', async () => {
    const world = await start();
    const [, dead] = await launch(world, 2);
    await world.person('DELETE', `/linode/instances/${dead!.providerID.slice('linode://'.length)}`);
    await world.pass(300_000);
    await world.create(world.claim('next', small));
    expect((await shared(world))[0]!.count).toBe(2);
    await remove(world, named(dead!.claim, dead!.providerID));
    await world.pass(60_000);
    await expectExact(world, 2);
  });

  test('keeps the tags of the NodeClass, which change in place', async () => {
    const world = await start();
    const [one] = await launch(world, 2);
    const claim = named(one!.claim, one!.providerID);
    const { machines } = world.parts;
    await world.finish(machines.tag(claim, { add: ['Name=node-1', 'team=a'], remove: [] }, world.signal));
    const [pool] = await shared(world);
    expect(pool!.tags).toContain('team=a');
    expect(pool!.tags).not.toContain('Name=node-1');
    await expectExact(world, 2);
    const linode = (await world.machines()).find(({ id }) => one!.providerID === `linode://${id}`);
    expect(linode!.tags).toEqual(expect.arrayContaining(['Name=node-1', 'team=a', 'karpenter.sh/nodeclaim=c0']));
    expect(linode!.tags.filter((tag) => tag.startsWith('karpenter.sh/uid='))).toHaveLength(1);
  });
});

describe('removal from a shared pool', () => {
  test('takes the node of that NodeClaim and no other, and the pool with the last', async () => {
    const world = await start();
    const made = await launch(world, 3);
    for (const [i, { claim, providerID }] of made.entries()) {
      await remove(world, named(claim, providerID));
      const left = (await world.machines()).map(({ id }) => `linode://${id}`);
      expect(left.sort()).toEqual(
        made
          .slice(i + 1)
          .map((one) => one.providerID)
          .sort(),
      );
    }
    expect(await shared(world)).toEqual([]);
  });

  test('of one that never got a Linode takes one that is nobody’s', async () => {
    const world = await start({ api: { limits: 'none', delays: { assignMs: 600_000 } } });
    const claims = [world.claim('a', small), world.claim('b', small)];
    for (const claim of claims) await world.failure(world.provider.create(claim, world.signal));
    expect((await shared(world))[0]).toMatchObject({ count: 2 });
    await remove(world, claims[0]!);
    expect((await shared(world))[0]).toMatchObject({ count: 1 });
    expect(membersOf((await shared(world))[0]!).map(({ uid }) => uid)).toEqual([claims[1]!.metadata.uid]);
  });

  test('of one that is known by its place in the queue ends, though the pool stays for others', async () => {
    const world = await start({ api: { limits: 'none', delays: { assignMs: 600_000 } } });
    const claims = [world.claim('a', small), world.claim('b', small)];
    for (const claim of claims) await world.failure(world.provider.create(claim, world.signal));
    const listed = await world.finish(world.provider.list(world.signal));
    const [going, staying] = claims.map(
      ({ metadata }) => listed.find(({ nodeClaim }) => nodeClaim?.uid === metadata.uid)!,
    );
    expect(going!.providerID).toMatch(/^linode:\/\/pool\/\d+\/[0-9a-f]{12}$/);
    await remove(world, named(claims[0]!, going!.providerID));
    const gone = await world.failure(world.provider.get(going!.providerID, world.signal));
    expect(isNodeClaimNotFound(gone)).toBe(true);
    const kept = await world.finish(world.provider.get(staying!.providerID, world.signal));
    expect(kept.nodeClaim?.uid).toBe(claims[1]!.metadata.uid);
    expect((await shared(world))[0]).toMatchObject({ count: 1 });
  });
});

test('pools of one NodeClaim are known and removed as before when sharing is turned on, and the other way round', async () => {
  const alone = await start({ configuration: { sharePools: false } });
  const { claim, providerID } = (await launch(alone, 1))[0]!;
  const sharing = await start({ sharing: alone, clusterName: alone.clusterName, withoutCluster: true });
  sharing.clusterId = alone.clusterId;
  expect((await sharing.create(claim)).providerID).toBe(providerID);
  const [other] = await launch(sharing, 1);
  await remove(sharing, named(claim, providerID));
  await remove(alone, named(other!.claim, other!.providerID));
  expect((await alone.pools()).map(({ id }) => id)).toEqual([alone.basePool]);
});
