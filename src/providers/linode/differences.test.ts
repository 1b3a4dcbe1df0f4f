// SPDX-License-Identifier: Apache-2.0
// What the existing provider does wrong or not at all, where no other test is about it. docs/reference/linode-differences.md
// lists all of them; hack/linode-differences.test.ts sees to it that each has a test with its mark in the title.
import { describe, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import { linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { parseSettings } from '../../runtime/settings.ts';
import type { LkePool } from './api-types.ts';
import { linodeAnnotations } from './names.ts';
import { nodeClassHash } from './node-class.ts';
import { linodeConfiguration, linodeSettings } from './settings.ts';
import type { LinodeWorld, WorldOptions } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest();

const ownPools = async (world: LinodeWorld): Promise<LkePool[]> =>
  (await world.pools()).filter(({ id }) => id !== world.basePool);
const typesOf = (world: LinodeWorld) => world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));

/** What a launch asks Linode for. */
async function requestOf(world: LinodeWorld): Promise<Record<string, never>> {
  let body = '';
  world.fault = (request) => {
    if (request.method === 'POST' && request.path.endsWith('/linode/instances')) body = String(request.body);
    return undefined;
  };
  await world.create(world.claim('a'));
  return JSON.parse(body) as Record<string, never>;
}

describe('fields of the class that did nothing', () => {
  test('[GAP 3b] the kernel is the one of the class', async () => {
    const world = await start({ mode: 'instance', nodeClass: { configuration: { kernel: 'linode/grub2' } } });
    const { providerID } = await world.create(world.claim('a'));
    const path = `/linode/instances/${providerID.slice('linode://'.length)}/configs`;
    const { data } = await world.person<{ data: { kernel: string }[] }>('GET', path);
    expect(data.map(({ kernel }) => kernel)).toEqual(['linode/grub2']);
  });

  async function inVpc(more: object): Promise<{ world: LinodeWorld; subnet: number }> {
    const world = await start({ mode: 'instance', region: 'us-iad' });
    const vpc = await world.person<{ id: number; subnets: { id: number }[] }>('POST', '/vpcs', {
      label: 'net',
      region: world.region,
      subnets: [{ label: 'nodes', ipv4: '10.0.0.0/24' }],
    });
    await world.client.resource(linodeNodeClassKind).delete('default');
    await world.nodeClass('default', { vpcID: vpc.id, ...more });
    await world.pass();
    return { world, subnet: vpc.subnets[0]!.id };
  }

  test('[GAP 3c] a machine is in the VPC of the class, and reached from outside only where that is asked for', async () => {
    const { world, subnet } = await inVpc({});
    expect(await requestOf(world)).toMatchObject({
      interface_generation: 'linode',
      interfaces: [{ vpc: { subnet_id: subnet, ipv4: { addresses: [{ address: 'auto', nat_1_1_address: 'auto' }] } } }],
    });
    const open = await inVpc({ publicNetworking: true });
    const { interfaces } = await requestOf(open.world);
    expect(interfaces).toMatchObject([{ public: {} }, { vpc: { subnet_id: open.subnet } }]);
  });

  test('[GAP 3d] a machine has the IPv6 addresses of the class', async () => {
    const { world } = await inVpc({ ipv6Options: { enableSLAAC: true, enableRanges: true, isPublicIPv6: true } });
    expect(await requestOf(world)).toMatchObject({
      interfaces: [{ vpc: { ipv6: { slaac: [{ range: 'auto' }], ranges: [{ range: 'auto' }], is_public: true } } }],
    });
  });
});

describe('what is sold', () => {
  test('[BUG 5c] a setting of the kubelet counts at once', async () => {
    const world = await start();
    const pods = async (): Promise<unknown> =>
      (await typesOf(world)).find(({ name }) => name === 'g6-standard-2')?.capacity['pods'];
    expect(await pods()).toBe('110');
    await world.client.resource(linodeNodeClassKind).patch('default', { spec: { kubelet: { maxPods: 20 } } });
    await world.pass(1000);
    expect(await pods()).toBe('20');
  });

  test('[BUG 5f] every offering is on demand, and hours of asking make no new series of metrics', async () => {
    const world = await start();
    const series = async (): Promise<string[]> =>
      (await world.metrics.render()).split('\n').filter((line) => line.includes('_offering_available{'));
    for (const { offerings, requirements } of await typesOf(world)) {
      const of = (key: string) => requirements.find((each) => each.key === key)?.values;
      expect(offerings).toHaveLength(1);
      expect([of(labels.capacityType), of(labels.zone)]).toEqual([['on-demand'], [world.region]]);
    }
    const before = await series();
    for (let hour = 0; hour < 3; hour++) {
      await world.pass(3_600_000);
      await typesOf(world);
    }
    expect(await series()).toEqual(before);
    expect(before.every((line) => line.includes('capacity_type="on-demand"'))).toBe(true);
  });
});

describe('[GAP 6] a pool that is no longer what the class asks for has drifted', () => {
  const change = async (world: LinodeWorld, body: object): Promise<string> => {
    const claim = world.claim('a', { spec: { taints: [{ key: 'mine', effect: 'NoSchedule' }] } });
    const { providerID, labels: found } = await world.create(claim);
    await world.pass(120_000);
    const launched = { ...claim, metadata: { ...claim.metadata, labels: found }, status: { providerID } };
    expect(await world.finish(world.provider.driftReason(launched, world.signal))).toBe('');
    const [pool] = await ownPools(world);
    await world.person('PUT', `/lke/clusters/${world.clusterId}/pools/${pool!.id}`, body);
    await world.pass(60_000);
    return world.finish(world.provider.driftReason(launched, world.signal));
  };

  test('[GAP 6] by its firewall', async () => {
    const world = await start({ tier: 'enterprise' });
    const rules = { inbound: [], outbound: [], inbound_policy: 'DROP', outbound_policy: 'ACCEPT' };
    const [one, other] = await Promise.all(
      ['one', 'other'].map((label) => world.person<{ id: number }>('POST', '/networking/firewalls', { label, rules })),
    );
    await world.client.resource(linodeNodeClassKind).delete('default');
    await world.nodeClass('default', { firewallID: one!.id });
    await world.pass();
    expect(await change(world, { firewall_id: other!.id })).toBe('FirewallDrift');
  });

  test('[GAP 6] by the firewall of its Linode, on the standard tier, where pools have none', async () => {
    const world = await start();
    const rules = { inbound: [], outbound: [], inbound_policy: 'DROP', outbound_policy: 'ACCEPT' };
    const firewall = await world.person<{ id: number }>('POST', '/networking/firewalls', { label: 'nodes', rules });
    await world.client.resource(linodeNodeClassKind).delete('default');
    await world.nodeClass('default', { firewallID: firewall.id });
    await world.pass();
    const claim = world.claim('a');
    const { providerID, labels: found } = await world.create(claim);
    await world.pass(120_000);
    const launched = { ...claim, metadata: { ...claim.metadata, labels: found }, status: { providerID } };
    const drift = () => world.finish(world.provider.driftReason(launched, world.signal));
    expect(await drift()).toBe('');
    const devices = `/networking/firewalls/${firewall.id}/devices`;
    const { data } = await world.person<{ data: { id: number }[] }>('GET', devices);
    await world.person('DELETE', `${devices}/${data[0]!.id}`);
    await world.pass(11 * 60_000);
    expect(await drift()).toBe('FirewallDrift');
  });

  test('[GAP 6] by its count', async () => {
    expect(await change(await start(), { count: 2 })).toBe('NodePoolDrift');
  });

  test('[GAP 6] by its taints', async () => {
    expect(await change(await start(), { taints: [] })).toBe('NodePoolDrift');
  });
});

test('[GAP 7.3] a pool that nobody knows of is listed with the NodeClaim it was made for, even before it has a Linode', async () => {
  const world = await start({ api: { delays: { assignMs: 60_000 } } });
  const claim = world.claim('lost');
  world.fault = ({ method }) => (method === 'POST' ? 'answer lost' : undefined);
  await world.failure(world.provider.create(claim, world.signal));
  world.fault = () => undefined;
  world.restart();
  await world.pass(1000);
  const nodeClaim = { name: 'lost', uid: claim.metadata.uid };
  const listed = () => world.finish(world.provider.list(world.signal));
  const [held] = await listed();
  expect(held).toMatchObject({ nodeClaim });
  await world.pass(120_000);
  expect(await listed()).toMatchObject([
    { nodeClaim, providerID: expect.stringMatching(/^linode:\/\/\d+$/) as string },
  ]);
  // Whoever collects garbage knows no more than this.
  await world.delete(claim, held!.providerID);
  await world.pass(60_000);
  expect(await ownPools(world)).toEqual([]);
  expect(await world.machines()).toEqual([]);
});

test('[TRAP 8a] a launch writes nothing into the class that everybody shares', async () => {
  const world = await start({ mode: 'instance', nodeClass: { tags: ['team=a'] } });
  const before = await world.client.resource(linodeNodeClassKind).get('default');
  // Twice: the second launch would see what the first wrote.
  const instances = [await world.create(world.claim('a')), await world.create(world.claim('b'))];
  const hash = nodeClassHash(before);
  expect(instances.map(({ annotations }) => annotations?.[linodeAnnotations.hash])).toEqual([hash, hash]);
  const tagged = (await world.linodes()).map(({ tags }) => tags.filter((tag) => /nodeclaim=|team/.test(tag)));
  expect(tagged).toEqual([
    ['karpenter.sh/nodeclaim=a', 'team=a'],
    ['karpenter.sh/nodeclaim=b', 'team=a'],
  ]);
  expect(await world.client.resource(linodeNodeClassKind).get('default')).toEqual(before);
});

test.each(['lke', 'instance'] as const)(
  '[TRAP 9.3] in mode %s a machine carries the UID of its NodeClaim from its birth, so it is no orphan before its status is written',
  async (mode) => {
    const world = await start({ mode });
    const claim = world.claim('new');
    const launching = world.provider.create(claim, world.signal);
    let seen = 0;
    // At every moment of the launch, whoever looks sees whose machine it is.
    for (let i = 0; i < 60; i++) {
      await world.pass(500);
      for (const { nodeClaim } of await world.finish(world.provider.list(world.signal))) {
        expect(nodeClaim?.uid).toBe(claim.metadata.uid);
        seen++;
      }
    }
    await world.finish(launching);
    expect(seen).toBeGreaterThan(20);
  },
);

test('[GAP 10] calls to the API and waits for its limits are counted, by route and without names', async () => {
  const world = await start();
  await world.create(world.claim('a'));
  const text = await world.metrics.render();
  expect(text).toMatch(/karpenter_linode_api_requests_total\{[^}]*route="lke\/clusters\/\{id\}\/pools"[^}]*\} [1-9]/);
  expect(text).toContain('karpenter_linode_api_request_duration_seconds_count');
  expect(text).toMatch(/karpenter_linode_api_rate_limiter_wait_seconds_count\{[^}]*limit="list"[^}]*\} [1-9]/);
  expect(text).not.toContain(String(world.clusterId));
});

test('[TRAP 11] LINODE_REGION and CLUSTER_REGION are one setting, and must not contradict each other', () => {
  const given = (env: Record<string, string>) => {
    const { settings } = parseSettings(linodeSettings, [], { LINODE_TOKEN: 'x', ...env });
    return linodeConfiguration({ ...settings!, clusterName: 'c', clusterEndpoint: '' });
  };
  expect(given({ LINODE_REGION: 'us-ord' }).region).toBe('us-ord');
  expect(given({ CLUSTER_REGION: 'us-ord' }).region).toBe('us-ord');
  expect(given({}).region).toBe('');
  expect(() => given({ LINODE_REGION: 'us-ord', CLUSTER_REGION: 'us-east' })).toThrow(/must be the same/);
});

test.each(['standard', 'enterprise', 'instance'] as const)(
  '[GAP 13] 300 NodeClaims at once (%s): within the limits of the API, and never a Linode too many',
  async (kind) => {
    const options: WorldOptions = kind === 'instance' ? { mode: 'instance' } : { tier: kind };
    const world = await start({ ...options, api: { maxPoolsPerCluster: 1000, delays: { assignMs: 4000 } } });
    const before = world.api.ledger.everCreated;
    let most = 0;
    world.api.ledger.subscribe(() => {
      most = Math.max(most, world.api.ledger.everCreated - before);
    });
    const requirements = [{ key: labels.instanceType, operator: 'In' as const, values: ['g6-standard-2'] }];
    const claims = Array.from({ length: 300 }, (_, i) => world.claim(`many-${i}`, { spec: { requirements } }));
    const launch = async (claim: (typeof claims)[number]): Promise<string> => {
      for (;;) {
        try {
          return (await world.provider.create(claim, world.signal)).providerID;
        } catch {
          // As the lifecycle controller: again a little later.
          await world.clock.sleep(1000);
        }
      }
    };
    const started = world.clock.now();
    const all = await world.finish(Promise.all(claims.map(launch)), 900_000);
    // A NodeClaim that is not launched within five minutes is given up.
    expect(world.clock.now() - started).toBeLessThan(300_000);
    expect(new Set(all).size).toBe(300);
    await world.pass(120_000);
    expect(await world.machines()).toHaveLength(300);
    expect(most).toBe(300);
    expect(world.api.ledger.calls.filter(({ status }) => status === 429)).toEqual([]);
    // And back: all of them at once.
    await world.finish(
      Promise.all(
        claims.map((claim, i) => world.provider.delete({ ...claim, status: { providerID: all[i]! } }, world.signal)),
      ),
      900_000,
    );
    await world.pass(120_000);
    expect(await world.machines()).toEqual([]);
    expect(world.api.ledger.calls.filter(({ status }) => status === 429)).toEqual([]);
  },
  60_000,
);
