// SPDX-License-Identifier: Apache-2.0
// What people and the API do wrong: clear words, and nothing is lost. Machines that were made stay known, whatever is said
// while the API cannot be asked; launches and removals go on where they stopped.
import { describe, expect, test } from 'vitest';
import { linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { isInsufficientCapacity, isNodeClaimNotFound } from '../../cloud/errors.ts';
import type { LinodeRequest, LinodeResponse } from './door.ts';
import { missingLinodeSetting } from './settings.ts';
import { type LinodeWorld, token } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest();

const modes = ['lke', 'instance'] as const;
const only = (...types: string[]) => ({
  spec: { requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In' as const, values: types }] },
});
const idsOf = async (world: LinodeWorld): Promise<string[]> =>
  (await world.finish(world.provider.list(world.signal))).map(({ providerID }) => providerID);
const typesOf = (world: LinodeWorld) => world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));

/** Everything that the provider is asked for: none of it may be answered with "gone", with nothing, or with a second machine. */
async function refusals(
  world: LinodeWorld,
  claim: ReturnType<LinodeWorld['claim']>,
  providerID: string,
): Promise<unknown[]> {
  const launched = { ...claim, status: { providerID } };
  const { provider, signal } = world;
  const failures = [
    await world.failure(provider.create(world.claim('new'), signal)),
    await world.failure(provider.get(providerID, signal)),
    await world.failure(provider.list(signal)),
    await world.failure(provider.delete(launched, signal)),
  ];
  expect(failures.map(isNodeClaimNotFound)).toEqual([false, false, false, false]);
  expect(failures.map(isInsufficientCapacity)).toEqual([false, false, false, false]);
  expect(failures.map(String).join('\n')).not.toContain(token);
  return failures;
}

describe('settings', () => {
  const given = {
    linodeToken: 't',
    linodeMode: 'lke',
    linodeRegion: '',
    clusterRegion: '',
    clusterName: 'mine',
    clusterEndpoint: '',
  } as Parameters<typeof missingLinodeSetting>[0];

  test.each([
    ['a missing token', { linodeToken: ' ' }, /LINODE_TOKEN is not set/],
    ['a missing cluster name', { clusterName: '' }, /CLUSTER_NAME is not set: in LKE mode it is the label/],
    ['a missing region in Instance mode', { linodeMode: 'instance' }, /LINODE_REGION is not set/],
  ] as const)('%s is named', (_, change, words) => {
    expect(missingLinodeSetting(given)).toBeUndefined();
    expect(missingLinodeSetting({ ...given, ...change })).toMatch(words);
  });
});

describe.each(modes)('in mode %s', (mode) => {
  test('a token that is revoked loses no machine, and launches go on with the next one', async () => {
    const world = await start({ mode });
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    world.api.revoke(token);
    await world.pass(10_000);
    const failures = await refusals(world, claim, providerID);
    expect(failures.map(String).join('\n')).toMatch(/401|token/i);
    world.api.issue(token);
    await world.pass(60_000);
    expect(await idsOf(world)).toEqual([providerID]);
    await world.create(world.claim('b'));
    expect(await world.machines()).toHaveLength(2);
  });

  test('maintenance is called by its name, loses nothing, and ends by itself', async () => {
    const world = await start({ mode });
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    world.api.maintenance = true;
    await world.pass(10_000);
    const failures = await refusals(world, claim, providerID);
    expect(failures.map(String).every((text) => text.includes('maintenance'))).toBe(true);
    // What is sold is remembered meanwhile.
    await world.pass(30 * 60_000);
    expect((await typesOf(world)).length).toBeGreaterThan(10);
    world.api.maintenance = false;
    await world.pass(60_000);
    expect(await idsOf(world)).toEqual([providerID]);
    expect(await world.machines()).toHaveLength(1);
  });

  const spoilt: readonly (readonly [string, (answer: LinodeResponse) => string])[] = [
    ['truncated', ({ body }) => body.slice(0, Math.floor(body.length / 2))],
    ['malformed', () => '<html>Bad gateway</html>'],
    ['empty', () => ''],
    ['of another shape', () => '{"data": {"id": "x"}, "pages": "many"}'],
  ];
  test.each(spoilt)('answers that are %s are no answers: nothing is lost, nothing is made twice', async (_, spoil) => {
    const world = await start({ mode });
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    await world.pass(10_000);
    const handle = world.api.handle.bind(world.api);
    let broken = true;
    world.api.handle = async (request, signal) => {
      const answer = await handle(request, signal);
      return broken && answer.status < 300 ? { ...answer, body: spoil(answer) } : answer;
    };
    const other = world.claim('b');
    await world.failure(world.provider.create(other, world.signal));
    const launched = { ...claim, status: { providerID } };
    const looked = [
      await world.failure(world.provider.get(providerID, world.signal)),
      await world.failure(world.provider.list(world.signal)),
    ];
    expect(looked.map(isNodeClaimNotFound)).toEqual([false, false]);
    broken = false;
    await world.pass(60_000);
    expect(await idsOf(world)).toContain(providerID);
    await world.create(other);
    await world.pass(60_000);
    expect(await world.machines()).toHaveLength(2);
    await world.finish(world.provider.delete(launched, world.signal));
    await world.pass(120_000);
    expect(await world.machines()).toHaveLength(1);
  });

  test('a region without capacity: the claim is told, nothing is left behind, and later it works', async () => {
    const world = await start({ mode });
    for (const type of ['g6-standard-1', 'g6-standard-2', 'g6-standard-4']) {
      world.api.capacity.set(type, world.region, 0);
      world.api.capacity.hide(type, world.region);
    }
    const claim = world.claim('a', only('g6-standard-1', 'g6-standard-2', 'g6-standard-4'));
    const failure = await world.failure(world.provider.create(claim, world.signal));
    expect(isInsufficientCapacity(failure)).toBe(true);
    expect(String(failure)).toMatch(/sold out/);
    expect(await world.machines()).toEqual([]);
    expect(await idsOf(world)).toEqual([]);
    for (const type of ['g6-standard-1', 'g6-standard-2', 'g6-standard-4'])
      world.api.capacity.clear(type, world.region);
    await world.pass(4 * 60_000);
    await world.create(claim);
    expect(await world.machines()).toHaveLength(1);
  });

  test('a plan that disappears is sold no more; its machines stay what they are', async () => {
    const world = await start({ mode });
    const claim = world.claim('a', only('g6-standard-2'));
    const { providerID } = await world.create(claim);
    const price = () =>
      world.metrics.value('karpenter_cloudprovider_instance_type_offering_price_estimate', {
        instance_type: 'g6-standard-2',
      });
    await typesOf(world);
    expect(await price()).toBeGreaterThan(0);
    const handle = world.api.handle.bind(world.api);
    world.api.handle = async (request: LinodeRequest, signal) => {
      const answer = await handle(request, signal);
      if (!request.path.includes('/linode/types')) return answer;
      const page = JSON.parse(answer.body) as { data: { id: string }[] };
      return {
        ...answer,
        body: JSON.stringify({ ...page, data: page.data.filter(({ id }) => id !== 'g6-standard-2') }),
      };
    };
    await world.pass(11 * 60_000);
    expect((await typesOf(world)).map(({ name }) => name)).not.toContain('g6-standard-2');
    expect(await price()).toBeUndefined();
    const failure = await world.failure(world.provider.create(world.claim('b', only('g6-standard-2')), world.signal));
    expect(isInsufficientCapacity(failure)).toBe(true);
    const instance = await world.finish(world.provider.get(providerID, world.signal));
    expect(instance.labels['node.kubernetes.io/instance-type']).toBe('g6-standard-2');
    const launched = { ...claim, metadata: { ...claim.metadata, labels: instance.labels }, status: { providerID } };
    expect(await world.finish(world.provider.driftReason(launched, world.signal))).toBe('');
    await world.finish(world.provider.delete(launched, world.signal));
    await world.pass(120_000);
    expect(await world.machines()).toEqual([]);
  });

  test('a Linode that a person reboots, and one that is rebuilt, keep their NodeClaim', async () => {
    const world = await start({ mode });
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    await world.pass(120_000);
    const path = `/linode/instances/${providerID.slice('linode://'.length)}`;
    await world.person('POST', `${path}/reboot`, {});
    await world.pass(5000);
    expect(await idsOf(world)).toEqual([providerID]);
    await world.pass(120_000);
    const rebuild = { image: 'linode/ubuntu22.04', root_pass: 'aComplexP@ssword1' };
    await world.person('POST', `${path}/rebuild`, rebuild);
    for (let i = 0; i < 30; i++) {
      await world.pass(5000);
      const listed = await world.finish(world.provider.list(world.signal));
      expect(listed).toMatchObject([{ providerID, nodeClaim: { uid: claim.metadata.uid } }]);
      expect((await world.create(claim)).providerID).toBe(providerID);
    }
    expect(await world.machines()).toHaveLength(1);
  });
});

test.each(['x'.repeat(51), 'no'])(
  'a tag that Linode would not take (%s) is refused before it is stored',
  async (tag) => {
    const world = await start();
    const change = world.client.resource(linodeNodeClassKind).patch('default', { spec: { tags: [tag] } });
    await expect(change).rejects.toThrow(/spec\.tags\[0\].*(?:50|3)/s);
  },
);

test('an LKE that takes orders and never delivers: the plan is not tried again for a while', async () => {
  const world = await start();
  world.api.capacity.stall('g6-standard-1', world.region);
  const creationTimestamp = new Date(world.clock.now()).toISOString();
  const wanted = only('g6-standard-1', 'g6-standard-2');
  const claim = world.claim('a', { ...wanted, metadata: { creationTimestamp } });
  for (let i = 0; i < 20; i++) {
    const failure = await world.failure(world.provider.create(claim, world.signal));
    expect(failure).toMatchObject({ conditionReason: 'NodePoolProvisioning' });
    await world.pass(5000);
  }
  // The NodeClaim is given up; its pool goes with it.
  await world.delete(claim);
  await world.pass(60_000);
  expect((await world.pools()).map(({ id }) => id)).toEqual([world.basePool]);
  const { labels } = await world.create(world.claim('b', wanted));
  expect(labels['node.kubernetes.io/instance-type']).toBe('g6-standard-2');
});

test('a plan that came is not held to be sold out when its machine goes, however old that is', async () => {
  const world = await start();
  const creationTimestamp = new Date(world.clock.now()).toISOString();
  const wanted = only('g6-standard-1', 'g6-standard-2');
  const claim = world.claim('a', { ...wanted, metadata: { creationTimestamp } });
  await world.create(claim);
  await world.pass(60 * 60_000);
  await world.delete(claim);
  const { labels } = await world.create(world.claim('b', wanted));
  expect(labels['node.kubernetes.io/instance-type']).toBe('g6-standard-1');
});

test('with LINODE_DEBUG every call is in the log, and the token is not', async () => {
  const world = await start({ mode: 'instance', configuration: { debug: true } });
  await world.create(world.claim('a'));
  const calls = world.log.lines.filter(({ message }) => message === 'called the Linode API');
  expect(calls.map(({ fields }) => fields)).toContainEqual(
    expect.objectContaining({ method: 'POST', path: 'linode/instances', code: '200' }),
  );
  expect(JSON.stringify(world.log.lines)).not.toContain(token);
});
