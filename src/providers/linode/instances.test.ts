// SPDX-License-Identifier: Apache-2.0
// Instance mode against the emulated API.
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { LinodeNodeClassSpec } from '../../api/linode-node-class.ts';
import { isNodeClaimNotFound } from '../../cloud/errors.ts';
import { joinCluster } from '../../embedded/clouds/linode/join.ts';
import type { MachineHook } from '../../embedded/clouds/linode/machines.ts';
import { kinds } from '../../kube/kinds.ts';
import type { LinodeWorld, WorldOptions } from './testing/world.ts';
import { worldsPerTest } from './testing/worlds.ts';

const start = worldsPerTest({ mode: 'instance' });

/** A world whose machines join its cluster. */
async function joining(options: WorldOptions = {}): Promise<LinodeWorld> {
  const hooks: MachineHook[] = [];
  const machines: MachineHook = {
    booted: (machine) => hooks[0]?.booted(machine),
    gone: (machine) => hooks[0]?.gone(machine),
  };
  const world = await start({ ...options, api: { machines, ...options.api } });
  hooks.push(joinCluster({ workload: world.client, clock: world.clock, log: world.log }));
  return world;
}

const id = (providerID: string): number => Number(providerID.slice('linode://'.length));

describe('a Linode', () => {
  test('[GAP 1] joins the cluster with the name, labels and taints of its NodeClaim, by a token of its own', async () => {
    const world = await joining();
    const claim = world.claim('web-abcde', {
      metadata: { labels: { team: 'a', 'kubernetes.io/arch': 'amd64' } },
      spec: { taints: [{ key: 'dedicated', value: 'web', effect: 'NoSchedule' }] },
    });
    const { providerID } = await world.create(claim);
    await world.pass(180_000);
    const { items } = await world.client.resource(kinds.Node).list();
    expect(items).toMatchObject([{ spec: { providerID } }]);
    expect(items[0]?.metadata.name).toMatch(/^web-abcde-[0-9a-f]{12}$/);
    expect(items[0]?.metadata.labels).toMatchObject({ team: 'a' });
    expect(items[0]?.spec?.taints).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ key: 'dedicated', value: 'web', effect: 'NoSchedule' }),
        expect.objectContaining({ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }),
      ]),
    );
    const secrets = (await world.client.resource(kinds.Secret).list({ namespace: 'kube-system' })).items;
    expect(secrets.filter(({ type }) => type === 'bootstrap.kubernetes.io/token')).toHaveLength(1);
  });

  test('joins by k3s where the class says so', async () => {
    const world = await joining({ nodeClass: { bootstrap: { join: 'k3s' } } });
    const { providerID } = await world.create(world.claim('a'));
    await world.pass(180_000);
    expect((await world.client.resource(kinds.Node).list()).items).toMatchObject([{ spec: { providerID } }]);
  });

  test('is what the class says: image, firewall, placement group, encryption, backups, keys, tags', async () => {
    const world = await start({ region: 'us-iad' });
    const rules = { inbound: [], outbound: [], inbound_policy: 'DROP', outbound_policy: 'ACCEPT' };
    const firewall = await world.person<{ id: number }>('POST', '/networking/firewalls', { label: 'nodes', rules });
    const group = await world.person<{ id: number }>('POST', '/placement/groups', {
      label: 'apart',
      region: world.region,
      placement_group_type: 'anti_affinity:local',
      placement_group_policy: 'flexible',
    });
    const vpc = await world.person<{ id: number; subnets: { id: number }[] }>('POST', '/vpcs', {
      label: 'net',
      region: world.region,
      subnets: [{ label: 'nodes', ipv4: '10.0.0.0/24' }],
    });
    const spec: LinodeNodeClassSpec = {
      image: 'linode/debian12',
      firewallID: firewall.id,
      placementGroup: { id: group.id },
      diskEncryption: 'enabled',
      backupsEnabled: true,
      authorizedKeys: ['ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJustATest karpenter'],
      tags: ['team=a'],
      vpcID: vpc.id,
    };
    await world.nodeClass('full', spec);
    await world.pass();
    const nodeClassRef = { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'full' };
    const claim = world.claim('a', { spec: { nodeClassRef } });
    const { providerID, imageID } = await world.create(claim);
    expect(imageID).toBe('linode/debian12');
    const linode = await world.person<Record<string, unknown>>('GET', `/linode/instances/${id(providerID)}`);
    expect(linode).toMatchObject({
      image: 'linode/debian12',
      placement_group: { id: group.id },
      disk_encryption: 'enabled',
      backups: { enabled: true },
      has_user_data: true,
      tags: expect.arrayContaining(['team=a']),
    });
    const subnet = await world.person<{ linodes: { id: number }[] }>(
      'GET',
      `/vpcs/${vpc.id}/subnets/${vpc.subnets[0]!.id}`,
    );
    expect(subnet.linodes.map((one) => one.id)).toEqual([id(providerID)]);
    const launched = { ...claim, status: { providerID } };
    await world.pass(60_000);
    expect(await world.finish(world.provider.driftReason(launched, world.signal))).toBe('');
  });

  test('[GAP 3a] gets the disks that the class asks for, and boots', async () => {
    const world = await start({ nodeClass: { osDisk: { size: '20Gi' }, dataDisks: { sdc: { size: '10Gi' } } } });
    const { providerID } = await world.create(world.claim('a', { spec: { resources: { requests: { cpu: '2' } } } }));
    await world.pass(120_000);
    const path = `/linode/instances/${id(providerID)}`;
    const { data } = await world.person<{ data: { size: number; label: string }[] }>('GET', `${path}/disks`);
    expect(data.map(({ size }) => size)).toEqual(expect.arrayContaining([20 * 1024, 10 * 1024]));
    expect(await world.person('GET', path)).toMatchObject({ status: 'running' });
  });

  test('with data disks and no word about the first one: that one gets what is left', async () => {
    const world = await start({ nodeClass: { swapSize: 1024, dataDisks: { sdb: { size: '10Gi' } } } });
    const { providerID, capacity } = await world.create(world.claim('a'));
    await world.pass(120_000);
    const path = `/linode/instances/${id(providerID)}`;
    const { data } = await world.person<{ data: { size: number }[] }>('GET', `${path}/disks`);
    const { specs, status } = await world.person<{ specs: { disk: number }; status: string }>('GET', path);
    const rest = specs.disk - 1024 - 10 * 1024;
    expect(data.map(({ size }) => size).sort((a, b) => a - b)).toEqual([1024, 10 * 1024, rest]);
    expect([status, capacity['ephemeral-storage']]).toEqual(['running', `${rest}Mi`]);
  });

  test('is never of a plan that the disks do not fit on', async () => {
    const world = await start({ nodeClass: { osDisk: { size: '60Gi' }, dataDisks: { sdc: { size: '30Gi' } } } });
    const types = await world.finish(world.provider.instanceTypes(world.nodePool(), world.signal));
    expect(types.map(({ name }) => name)).not.toContain('g6-standard-2'); // 80 GB
    expect(new Set(types.map(({ capacity }) => capacity['ephemeral-storage']))).toEqual(new Set([`${60 * 1024}Mi`]));
    const { labels } = await world.create(world.claim('a'));
    expect(Number(labels['karpenter.k8s.linode/instance-disk'])).toBeGreaterThanOrEqual(90 * 1024 + 512);
    await world.pass(120_000);
    expect(await world.linodes()).toMatchObject([{ status: 'running' }]);
  });

  test('whose disks Linode refuses says so on its NodeClaim', async () => {
    const world = await start({ nodeClass: { dataDisks: { sdb: { size: '10Gi' } } } });
    const errors = [{ field: 'filesystem', reason: 'filesystem is not valid' }];
    world.fault = ({ method, path }) =>
      method === 'POST' && path.endsWith('/disks')
        ? { status: 400, headers: {}, body: JSON.stringify({ errors }) }
        : undefined;
    const failure = await world.failure(world.provider.create(world.claim('a'), world.signal));
    expect(failure).toMatchObject({ conditionReason: 'InstanceCreationFailed' });
    expect(String(failure)).toContain('filesystem is not valid');
  });
});

describe('only one', () => {
  test('when the answer is lost and the next list does not have it yet', async () => {
    const world = await start({ api: { consistency: { listLagMs: 30_000 } } });
    const claim = world.claim('a');
    world.fault = ({ method, path }) => (method === 'POST' && path.endsWith('/instances') ? 'answer lost' : undefined);
    await world.failure(world.provider.create(claim, world.signal));
    world.fault = () => undefined;
    // The label is taken and the list does not say by whom: it is tried again until it does.
    await world.failure(world.provider.create(claim, world.signal));
    await world.pass(40_000);
    await world.create(claim);
    expect(world.api.ledger.everCreated).toBe(1);
  });

  test('when somebody else has the label, nothing is taken from them', async () => {
    const world = await start();
    const claim = world.claim('a');
    const { providerID } = await world.create(claim);
    const { label } = await world.person<{ label: string }>('GET', `/linode/instances/${id(providerID)}`);
    await world.delete(claim, providerID);
    await world.pass(60_000);
    await world.person('POST', '/linode/instances', { label, region: world.region, type: 'g6-standard-1' });
    const failure = await world.failure(world.provider.create(claim, world.signal));
    expect(failure).toMatchObject({ conditionReason: 'LabelTaken' });
  });
});

// The existing provider lists every Karpenter machine of the account, and its garbage collector deletes the others'.
test('[BUG 8b] two clusters of the same name in one account never see each other', async () => {
  const one = await start({ clusterName: 'same' });
  const other = await start({ clusterName: 'same', sharing: one });
  const mine = await one.create(one.claim('a'));
  const theirs = await other.create(other.claim('a'));
  await one.pass(60_000);
  const listed = await one.finish(one.provider.list(one.signal));
  expect(listed.map(({ providerID }) => providerID)).toEqual([mine.providerID]);
  expect(isNodeClaimNotFound(await one.failure(one.provider.get(theirs.providerID, one.signal)))).toBe(true);
  expect(isNodeClaimNotFound(await one.failure(one.delete(one.claim('thief'), theirs.providerID)))).toBe(true);
  expect(await one.linodes()).toHaveLength(2);
});

test('a Linode that a person rebuilds from another image has drifted; one that is rebooted has not', async () => {
  const world = await start();
  const claim = world.claim('a');
  const { providerID } = await world.create(claim);
  await world.pass(120_000);
  const launched = { ...claim, status: { providerID } };
  await world.person('POST', `/linode/instances/${id(providerID)}/reboot`, {});
  await world.pass(60_000);
  expect(await world.finish(world.provider.driftReason(launched, world.signal))).toBe('');
  const rebuild = { image: 'linode/debian12', root_pass: 'aComplexP@ssword1' };
  await world.person('POST', `/linode/instances/${id(providerID)}/rebuild`, rebuild);
  await world.pass(60_000);
  expect(await world.finish(world.provider.driftReason(launched, world.signal))).toBe('ImageDrift');
});

test('a cluster that does not say where it is: the NodeClaim says what to set', async () => {
  const world = await start({ configuration: { clusterEndpoint: '' } });
  const failure = await world.failure(world.provider.create(world.claim('a'), world.signal));
  expect(failure).toMatchObject({ conditionReason: 'BootstrapFailed' });
  expect(String(failure)).toContain('CLUSTER_ENDPOINT');
  expect(world.api.ledger.everCreated).toBe(0);
});

test('user data of the user’s own has its blanks filled in', async () => {
  const seen: string[] = [];
  const machines: MachineHook = {
    booted: (machine) => void seen.push(machine.userData ?? ''),
    gone: () => undefined,
  };
  const userData = '#cloud-config\nhostname: ${NODE_NAME}\nruncmd:\n  - join ${API_SERVER} ${TOKEN} $${HOME}\n';
  const world = await start({ api: { machines }, nodeClass: { userData } });
  await world.create(world.claim('a'));
  await world.pass(180_000);
  const { runcmd } = parse(seen[0] ?? '') as { runcmd: string[] };
  expect(runcmd[0]).toMatch(/^join https:\/\/10\.0\.0\.1:6443 [a-z0-9]{6}\.[a-z0-9]{16} \$\{HOME\}$/);
});
