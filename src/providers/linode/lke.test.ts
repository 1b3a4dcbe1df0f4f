// SPDX-License-Identifier: Apache-2.0
// LKE mode against the emulated API: what the existing provider does wrong, each as a test of its own.
import { describe, expect, test } from 'vitest';
import { isInsufficientCapacity, isNodeClaimNotFound } from '../../cloud/errors.ts';
import type { LkePool } from './api-types.ts';
import { fullUid, tagValue } from './names.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest();

const own = (pools: readonly LkePool[]): LkePool[] => pools.filter(({ tags }) => tagValue(tags, 'karpenter.sh/uid'));
const only = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values });
const exactly = (type: string) => ({ spec: { requirements: [only('node.kubernetes.io/instance-type', type)] } });
const soldOut = {
  status: 400,
  headers: {},
  body: JSON.stringify({ errors: [{ reason: 'No capacity', field: 'type' }] }),
};

describe('one node pool for each NodeClaim', () => {
  test('[GAP 7.1e] with its labels, taints, the unregistered taint, firewall and tags', async () => {
    const world = await start({ tier: 'enterprise' });
    const firewall = await world.person<{ id: number }>('POST', '/networking/firewalls', {
      label: 'nodes',
      rules: { inbound: [], outbound: [], inbound_policy: 'DROP', outbound_policy: 'ACCEPT' },
    });
    await world.nodeClass('guarded', { firewallID: firewall.id, tags: ['team=a'] });
    await world.pass();
    const claim = world.claim('web-abcde', {
      metadata: { labels: { team: 'a', 'kubernetes.io/arch': 'amd64', 'karpenter.sh/nodepool': 'web' } },
      spec: {
        nodeClassRef: { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'guarded' },
        taints: [{ key: 'dedicated', value: 'web', effect: 'NoSchedule' }],
        startupTaints: [{ key: 'cilium', effect: 'NoExecute' }],
      },
    });
    await world.create(claim);
    const [pool] = own(await world.pools());
    expect(pool).toMatchObject({ count: 1, firewall_id: firewall.id });
    expect(pool?.labels).toEqual({ team: 'a', 'karpenter.sh/nodepool': 'web' });
    expect(pool?.taints).toEqual([
      { key: 'dedicated', value: 'web', effect: 'NoSchedule' },
      { key: 'cilium', effect: 'NoExecute' },
      { key: 'karpenter.sh/unregistered', effect: 'NoExecute' },
    ]);
    expect(fullUid(tagValue(pool!.tags, 'karpenter.sh/uid'))).toBe(claim.metadata.uid);
    expect(pool?.tags).toEqual(
      expect.arrayContaining([
        'team=a',
        'karpenter.sh/nodeclaim=web-abcde',
        'karpenter.sh/nodepool=web',
        'karpenter.k8s.linode/lke-managed=true',
        'lke-cluster-name=test-cluster',
        'kubernetes.io/cluster/test-cluster=owned',
      ]),
    );
  });

  test('and on the standard tier the firewall is put on the Linode', async () => {
    const world = await start();
    const rules = { inbound: [], outbound: [], inbound_policy: 'DROP', outbound_policy: 'ACCEPT' };
    const firewall = await world.person<{ id: number }>('POST', '/networking/firewalls', { label: 'nodes', rules });
    await world.nodeClass('guarded', { firewallID: firewall.id });
    await world.pass();
    const nodeClassRef = { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'guarded' };
    const claim = world.claim('a', { spec: { nodeClassRef } });
    const { providerID } = await world.create(claim);
    await world.create(claim);
    const path = `/linode/instances/${providerID.slice('linode://'.length)}/firewalls`;
    expect((await world.person<{ data: { id: number }[] }>('GET', path)).data.map(({ id }) => id)).toEqual([
      firewall.id,
    ]);
  });

  // The existing provider puts machines of one NodePool and type into the pool that the first of them made.
  test('[BUG 7.1d] so a NodeClaim never gets the labels and taints of an earlier one', async () => {
    const world = await start();
    await world.create(world.claim('old', { metadata: { labels: { color: 'blue' } } }));
    await world.create(world.claim('new', { metadata: { labels: { color: 'green' } } }));
    expect(own(await world.pools()).map(({ labels }) => labels)).toEqual([{ color: 'blue' }, { color: 'green' }]);
  });

  test('[GAP 2b] no tag is longer than Linode allows, whatever the names are', async () => {
    const world = await start({ clusterName: 'a-cluster-with-a-name-of-32-chars' });
    const name = `${'n'.repeat(60)}`;
    await world.create(world.claim(name, { metadata: { labels: { 'karpenter.sh/nodepool': 'p'.repeat(63) } } }));
    const [pool] = own(await world.pools());
    expect(Math.max(...pool!.tags.map((tag) => tag.length))).toBeLessThanOrEqual(50);
    expect(tagValue(pool!.tags, 'karpenter.sh/nodeclaim')).toMatch(/^n{18}-[0-9a-f]{8}$/);
  });
});

// The existing provider raises the count of the pool with every retry, every two seconds.
test('[BUG 7.1a] while LKE takes minutes to name the Linode, every retry finds the same pool and none makes it larger', async () => {
  const world = await start({ api: { delays: { assignMs: 150_000 } } });
  const claim = world.claim('slow');
  for (let i = 0; i < 8; i++) {
    const failure = await world.failure(world.provider.create(claim, world.signal));
    expect(failure).toMatchObject({ conditionReason: 'NodePoolProvisioning' });
  }
  expect(own(await world.pools())).toMatchObject([{ count: 1 }]);
  await world.pass(120_000);
  await world.create(claim);
  await world.pass(60_000);
  expect(own(await world.pools())).toHaveLength(1);
  expect(await world.machines()).toHaveLength(1);
});

test('lists that lag behind by half a minute let no second pool be made', async () => {
  const world = await start({ api: { consistency: { listLagMs: 30_000 } } });
  const claim = world.claim('a');
  const first = await world.create(claim);
  expect((await world.create(claim)).providerID).toBe(first.providerID);
  expect((await world.finish(world.provider.list(world.signal))).map(({ providerID }) => providerID)).toEqual([
    first.providerID,
  ]);
  await world.pass(60_000);
  expect(own(await world.pools())).toHaveLength(1);
});

test('a request that was never answered is not repeated before its pool can no longer turn up', async () => {
  const world = await start();
  const claim = world.claim('a');
  let posts = 0;
  world.fault = ({ method }) => {
    if (method !== 'POST') return undefined;
    posts++;
    return posts === 1 ? 'unreachable' : undefined;
  };
  await world.failure(world.provider.create(claim, world.signal));
  const started = world.clock.now();
  await world.create(claim);
  expect(posts).toBe(2);
  expect(world.clock.now() - started).toBeGreaterThanOrEqual(20_000);
  expect(own(await world.pools())).toHaveLength(1);
});

test('[TRAP 7.1f] two pools of one NodeClaim, made by processes that knew nothing of each other, become one', async () => {
  const world = await start();
  const claim = world.claim('a');
  await world.create(claim);
  const [first] = own(await world.pools());
  await world.person('POST', `/lke/clusters/${world.clusterId}/pools`, {
    type: 'g6-standard-2',
    count: 1,
    tags: first!.tags,
  });
  await world.pass(30_000);
  const errors = [{ reason: 'Forbidden' }];
  world.fault = ({ method, path }) =>
    method === 'DELETE' && path.includes('/pools/')
      ? { status: 403, headers: {}, body: JSON.stringify({ errors }) }
      : undefined;
  // As long as there are two, nothing is said to be well.
  expect(String(await world.failure(world.provider.create(claim, world.signal)))).toContain('Forbidden');
  world.fault = () => undefined;
  await world.create(claim);
  await world.pass(60_000);
  expect(own(await world.pools()).map(({ id }) => id)).toEqual([first!.id]);
});

describe('sold out', () => {
  test('[BUG 7.1c] the next cheapest plan is taken, and the one that is sold out is not offered for a while', async () => {
    const world = await start();
    const types = await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));
    expect(types.find(({ name }) => name === 'g6-standard-2')?.offerings[0]?.available).toBe(true);
    world.api.capacity.set('g6-standard-1', world.region, 0);
    world.api.capacity.hide('g6-standard-1', world.region);
    const instance = await world.create(
      world.claim('a', {
        spec: { requirements: [only('node.kubernetes.io/instance-type', 'g6-standard-1', 'g6-standard-4')] },
      }),
    );
    expect(instance.labels['node.kubernetes.io/instance-type']).toBe('g6-standard-4');
    const available = async (): Promise<boolean | undefined> =>
      (await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal))).find(
        ({ name }) => name === 'g6-standard-1',
      )?.offerings[0]?.available;
    expect(await available()).toBe(false);
    await world.pass(200_000);
    expect(await available()).toBe(true);
  });

  // The existing provider reads availability and does not use it: the launch fails instead.
  test('[BUG 5d] [GAP 9.6] a plan that the region says it lacks is known within a minute, before a launch fails', async () => {
    const world = await start();
    world.api.capacity.set('g6-standard-2', world.region, 0);
    await world.pass(61_000);
    const types = await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));
    expect(types.find(({ name }) => name === 'g6-standard-2')?.offerings[0]?.available).toBe(false);
    const before = world.api.ledger.calls.filter(({ method }) => method === 'POST').length;
    const failure = await world.failure(
      world.provider.create(world.claim('a', exactly('g6-standard-2')), world.signal),
    );
    expect(isInsufficientCapacity(failure)).toBe(true);
    expect(world.api.ledger.calls.filter(({ method }) => method === 'POST')).toHaveLength(before);
  });

  // The existing provider takes every 400 for a lack of capacity.
  test('[TRAP 5g] a request that is wrong is not taken for a plan that is sold out', async () => {
    const world = await start();
    await world.nodeClass('wrong', { firewallID: 999_999 });
    await world.pass();
    const nodeClassRef = { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'wrong' };
    const claim = world.claim('a', { spec: { nodeClassRef } });
    const failure = await world.failure(world.provider.create(claim, world.signal));
    expect(failure).toMatchObject({ conditionReason: 'NodePoolCreationFailed' });
    expect(isInsufficientCapacity(failure)).toBe(false);
    const types = await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));
    expect(types.find(({ name }) => name === 'g6-standard-1')?.offerings[0]?.available).toBe(true);
  });

  test('a limit of the cluster is said, and nothing is offered for a while', async () => {
    const world = await start({ api: { maxPoolsPerCluster: 2 } });
    await world.create(world.claim('a'));
    const failure = await world.failure(world.provider.create(world.claim('b'), world.signal));
    expect(isInsufficientCapacity(failure)).toBe(true);
    expect(String(failure)).toMatch(/no more/);
    const types = await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));
    expect(types.some(({ offerings }) => offerings[0]?.available)).toBe(false);
  });

  test('words of the API that mean no capacity', async () => {
    const world = await start();
    world.fault = ({ method }) => (method === 'POST' ? soldOut : undefined);
    const failure = await world.failure(world.provider.create(world.claim('a'), world.signal));
    expect(isInsufficientCapacity(failure)).toBe(true);
  });
});

describe('deleting', () => {
  // The existing provider takes any failure to look for a machine that is gone.
  test.each(['unreachable', 'failing', 'malformed'])(
    '[BUG 7.4] a cloud that is %s does not make the machine count as gone',
    async (how) => {
      const world = await start();
      const claim = world.claim('a');
      const { providerID } = await world.create(claim);
      const answers = {
        unreachable: 'unreachable' as const,
        failing: { status: 500, headers: {}, body: '{"errors":[{"reason":"oops"}]}' },
        malformed: { status: 200, headers: {}, body: '{"data": [' },
      };
      world.fault = () => answers[how as keyof typeof answers];
      const failure = await world.failure(world.provider.delete({ ...claim, status: { providerID } }, world.signal));
      expect(isNodeClaimNotFound(failure)).toBe(false);
      world.fault = () => undefined;
      expect(await world.machines()).toHaveLength(1);
    },
  );

  test('a pool that somebody deleted by hand is gone, and so is its machine', async () => {
    const world = await start();
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    const [pool] = own(await world.pools());
    await world.person('DELETE', `/lke/clusters/${world.clusterId}/pools/${pool!.id}`);
    await world.pass(120_000);
    expect(isNodeClaimNotFound(await world.failure(world.provider.get(providerID, world.signal)))).toBe(true);
    expect(isNodeClaimNotFound(await world.failure(world.delete(claim, providerID)))).toBe(true);
  });

  test('a Linode that somebody deleted is replaced by LKE, and the replacement goes with the NodeClaim', async () => {
    const world = await start();
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    await world.pass(120_000);
    await world.person('DELETE', `/linode/instances/${providerID.slice('linode://'.length)}`);
    await world.pass(300_000);
    expect(isNodeClaimNotFound(await world.failure(world.provider.get(providerID, world.signal)))).toBe(true);
    await world.delete(claim, providerID);
    await world.pass(120_000);
    expect(await world.machines()).toEqual([]);
    expect(own(await world.pools())).toEqual([]);
  });

  test('a pool of the upstream provider loses one node, and goes with its last', async () => {
    const world = await start();
    const pool = await world.person<LkePool>('POST', `/lke/clusters/${world.clusterId}/pools`, {
      type: 'g6-standard-2',
      count: 2,
      tags: ['karpenter.k8s.linode/lke-managed=true', 'karpenter.sh/nodepool=default'],
    });
    await world.pass(60_000);
    const [a, b] = (await world.pools()).find(({ id }) => id === pool.id)!.nodes.map((node) => node.instance_id!);
    expect((await world.finish(world.provider.get(`linode://${a}`, world.signal))).providerID).toBe(`linode://${a}`);
    await world.delete(world.claim('a'), `linode://${a}`);
    await world.pass(60_000);
    expect((await world.machines()).map(({ id }) => id)).toEqual([b]);
    await world.delete(world.claim('b'), `linode://${b}`);
    await world.pass(60_000);
    expect((await world.pools()).map(({ id }) => id)).toEqual([world.basePool]);
  });

  test('a Linode that is none of ours is never touched', async () => {
    const world = await start();
    const base = (await world.pools())[0]!.nodes[0]!.instance_id!;
    const looked = await world.failure(world.provider.get(`linode://${base}`, world.signal));
    const deleted = await world.failure(world.delete(world.claim('a'), `linode://${base}`));
    expect([looked, deleted].map(isNodeClaimNotFound)).toEqual([true, true]);
    await world.pass(60_000);
    expect((await world.linodes()).map(({ id }) => id)).toContain(base);
  });
});

// The existing provider looks for machines to claim in the whole account.
test.each(['standard', 'enterprise'] as const)(
  '[BUG 7.1b] two %s clusters in one account never see each other',
  async (tier) => {
    const one = await start({ tier, clusterName: 'one' });
    const other = await start({ tier, clusterName: 'other', sharing: one });
    const claims = [one.claim('a'), other.claim('a')];
    const [mine, theirs] = [await one.create(claims[0]!), await other.create(claims[1]!)];
    await one.pass(60_000);
    for (const [world, instance, foreign] of [
      [one, mine, theirs],
      [other, theirs, mine],
    ] as const) {
      const listed = await world.finish(world.provider.list(world.signal));
      expect(listed.map(({ providerID }) => providerID)).toEqual([instance.providerID]);
      expect(isNodeClaimNotFound(await world.failure(world.provider.get(foreign.providerID, world.signal)))).toBe(true);
      const stolen = world.delete(world.claim('thief'), foreign.providerID);
      expect(isNodeClaimNotFound(await world.failure(stolen))).toBe(true);
    }
    await one.pass(60_000);
    expect(await one.machines()).toHaveLength(1);
    expect(await other.machines()).toHaveLength(1);
  },
);
