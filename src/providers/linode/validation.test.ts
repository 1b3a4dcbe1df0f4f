// SPDX-License-Identifier: Apache-2.0
// What a LinodeNodeClass names is in the account, and of no use all the same: it says which and why, before anything is bought.
import { describe, expect, test } from 'vitest';
import { type LinodeNodeClassSpec, linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { LinodeWorld } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest({ withControllers: true, mode: 'instance', region: 'us-iad' });

async function verdict(world: LinodeWorld, spec: LinodeNodeClassSpec): Promise<string> {
  await world.nodeClass('checked', spec);
  await world.pass(5000);
  const { status } = await world.client.resource(linodeNodeClassKind).get('checked');
  const found = status?.conditions?.find(({ type }) => type === 'ValidationSucceeded');
  return `${found?.status} ${found?.reason}: ${found?.message}`;
}

const vpcIn = (world: LinodeWorld, region: string, ...subnets: string[]) =>
  world.person<{ id: number; subnets: { id: number }[] }>('POST', '/vpcs', {
    label: `net-${region}`,
    region,
    subnets: subnets.map((label, i) => ({ label, ipv4: `10.0.${i}.0/24` })),
  });

describe('a VPC', () => {
  test('of another region', async () => {
    const world = await start();
    const { id } = await vpcIn(world, 'us-ord', 'one');
    expect(await verdict(world, { vpcID: id })).toMatch(/^False VPCInOtherRegion: .*us-ord.*us-iad/);
  });

  test('with two subnets, of which none is named, and with one that it does not have', async () => {
    const world = await start();
    const { id, subnets } = await vpcIn(world, 'us-iad', 'one', 'two');
    expect(await verdict(world, { vpcID: id })).toMatch(/^False SubnetAmbiguous: .*2 subnets/);
    const classes = world.client.resource(linodeNodeClassKind);
    await classes.patch('checked', { spec: { subnetID: 4711 } });
    await world.pass(5000);
    const reason = async (): Promise<string | undefined> =>
      (await classes.get('checked')).status?.conditions?.find(({ type }) => type === 'ValidationSucceeded')?.reason;
    expect(await reason()).toBe('SubnetNotFound');
    await classes.patch('checked', { spec: { subnetID: subnets[1]!.id } });
    await world.pass(5000);
    expect(await reason()).toBe('ValidationSucceeded');
  });

  test('in a region that has none', async () => {
    const world = await start({ region: 'us-east' });
    expect(await verdict(world, { vpcID: 4711 })).toMatch(/^False RegionUnsupported: region us-east has no VPCs/);
  });
});

test('a placement group of another region', async () => {
  const world = await start();
  const { id } = await world.person<{ id: number }>('POST', '/placement/groups', {
    label: 'apart',
    region: 'us-ord',
    placement_group_type: 'anti_affinity:local',
    placement_group_policy: 'strict',
  });
  expect(await verdict(world, { placementGroup: { id } })).toMatch(/^False PlacementGroupInOtherRegion: .*us-ord/);
});

test('an image that cannot join, because it runs no cloud-init', async () => {
  expect(await verdict(await start(), { image: 'linode/slackware15.0' })).toMatch(/^False ImageWithoutCloudInit/);
});

test('a class that goes waits for its last NodeClaim', async () => {
  const world = await start();
  const claims = world.client.resource(nodeClaimKind);
  const { apiVersion, kind, metadata, spec } = world.claim('last');
  const { name, labels } = metadata;
  await claims.create({ apiVersion, kind, metadata: { name, labels }, spec } as NodeClaim);
  const classes = world.client.resource(linodeNodeClassKind);
  await classes.delete('default');
  await world.pass(20_000);
  expect((await classes.get('default')).metadata.deletionTimestamp).toBeDefined();
  await claims.delete('last');
  await world.pass(20_000);
  await expect(classes.get('default')).rejects.toThrow(/not found/);
});

test('a Linode that a person resizes has drifted', async () => {
  const world = await start();
  const claim = world.claim('a');
  const { providerID, labels } = await world.create(claim);
  await world.pass(120_000);
  const launched = { ...claim, metadata: { ...claim.metadata, labels }, status: { providerID } };
  const drift = () => world.finish(world.provider.driftReason(launched, world.signal));
  expect(await drift()).toBe('');
  const path = `/linode/instances/${providerID.slice('linode://'.length)}/resize`;
  await world.person('POST', path, { type: 'g6-standard-8' });
  await world.pass(120_000);
  expect(await drift()).toBe('InstanceTypeDrift');
});
