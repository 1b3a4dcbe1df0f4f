// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import { kinds } from '../../kube/kinds.ts';
import { capacityAnnotations } from './names.ts';
import { Door } from './testing/door.ts';
import { CapiWorld, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options: WorldOptions = {}): Promise<void> {
  w = await CapiWorld.start({ withoutManagers: true, withNodeClassController: true, ...options });
}

async function status(name = 'default') {
  await w.pass(5000);
  const { status: found } = await w.karpenter.resource(clusterApiNodeClassKind).get(name);
  const conditions = (found?.conditions ?? []).map(({ type, status: is, reason }) => `${type}=${is} ${reason}`);
  return {
    members: found?.members,
    conditions: new Set(conditions),
    messages: found?.conditions?.map((c) => c.message),
  };
}

const warnings = async (): Promise<(string | undefined)[]> =>
  (await w.karpenter.resource(kinds.Event).list()).items.map(({ reason }) => reason);

describe('§8: a ClusterAPINodeClass', () => {
  test('is ready when the management cluster answers and something can be used', async () => {
    await world();
    await w.member('md');
    const { members, conditions } = await status();
    expect(members).toBe(1);
    expect(conditions).toEqual(
      new Set([
        'HubReachable=True HubReachable',
        'MembersFound=True MembersFound',
        'MembersValid=True MembersValid',
        'Ready=True Ready',
      ]),
    );
    await w.member('another');
    expect((await status()).members).toBe(2);
  });

  test('says that its selector matches nothing, and is ready once it does', async () => {
    await world({ nodeClass: { scalableResourceSelector: { matchLabels: { team: 'red' } } } });
    expect((await status()).conditions).toContain('MembersFound=False NoMembers');
    expect((await status()).conditions).toContain('Ready=False UnhealthyDependents');
    await w.pass(30 * 60_000);
    expect(await warnings()).toEqual(['NoMembers']);
    await w.member('md', { labels: { team: 'red' } });
    expect((await status()).conditions).toContain('Ready=True Ready');
    expect(await warnings()).toEqual(['NoMembers']);
  });

  test('names the member that cannot be used and why; the others go on', async () => {
    await world();
    await w.member('sound');
    await w.member('broken', { annotations: { [capacityAnnotations.memory]: '500mb' } });
    const { members, conditions, messages } = await status();
    expect(members).toBe(1);
    expect(conditions).toContain('MembersValid=False InvalidMembers');
    expect(conditions).toContain('Ready=True Ready');
    expect(messages?.join()).toContain('MachineDeployment/default/broken');
    expect(messages?.join()).toContain('"500mb" is not an amount');
    expect(await warnings()).toContain('InvalidMember');
  });

  test('says that its price table is not there; its machines are for sale at an estimate', async () => {
    await world({ nodeClass: { priceTable: { namespace: 'default', name: 'prices' } } });
    await w.member('md');
    const { conditions, messages } = await status();
    expect(conditions).toContain('MembersValid=False NoPriceTable');
    expect(await warnings()).toContain('NoPriceTable');
    expect(messages?.join()).toContain('there is no ConfigMap default/prices');
    expect(conditions).toContain('Ready=True Ready');
    const metadata = { name: 'prices', namespace: 'default' };
    await w.karpenter
      .resource(kinds.ConfigMap)
      .create({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { md: '0.5' } });
    await w.pass(600_000);
    expect((await status()).conditions).toContain('MembersValid=True MembersValid');
  });

  test('says that the selector is none', async () => {
    await world({ nodeClass: { scalableResourceSelector: { matchExpressions: [{ key: 'a', operator: 'Near' }] } } });
    expect((await status()).conditions).toContain('MembersFound=False SelectorInvalid');
    expect(await warnings()).toEqual(['SelectorInvalid']);
  });

  test('says that the kinds of Cluster API are missing, and goes on when they are there', async () => {
    await world({ withoutKinds: true });
    const { conditions, messages } = await status();
    expect(conditions).toContain('HubReachable=False HubUnavailable');
    expect(messages?.join()).toContain('it serves no version of cluster.x-k8s.io');
    expect(await warnings()).toEqual(['HubUnavailable']);
    await w.installKinds();
    await w.member('md');
    await w.pass(10_000);
    expect((await status()).conditions).toContain('Ready=True Ready');
  });

  test('is not written again and again by a server that drops what it does not know', async () => {
    await world();
    await w.member('md');
    await status();
    const { metadata } = await w.karpenter.resource(clusterApiNodeClassKind).get('default');
    // As an older CRD would have stored it.
    await w.karpenter.resource(clusterApiNodeClassKind).patchStatus('default', { status: { members: null } });
    await w.pass(600_000);
    const after = await w.karpenter.resource(clusterApiNodeClassKind).get('default');
    expect(after.status?.members).toBeUndefined();
    expect(Number(after.metadata.resourceVersion) - Number(metadata.resourceVersion)).toBeLessThan(10);
  });

  test('says that the credentials have expired, loses nothing, and goes on with new ones', async () => {
    let expired = false;
    const unauthorized = { status: 401, body: { kind: 'Status', reason: 'Unauthorized', message: 'Unauthorized' } };
    await world({
      withoutManagers: false,
      door: (transport) => ({
        request: async (request) => (expired ? unauthorized : transport.request(request)),
        watch: async (request) => (expired ? unauthorized : transport.watch(request)),
        close: () => transport.close(),
      }),
    });
    await w.member('md');
    await w.pass(5000);
    const claim = await w.launch(await w.claim('a'));
    expired = true;
    await w.pass(120_000);
    const { conditions, messages } = await status();
    expect(conditions).toContain('HubReachable=False HubUnavailable');
    expect(messages?.join()).toContain('Unauthorized');
    expect(await warnings()).toContain('HubUnavailable');
    // It is neither collected nor forgotten.
    expect(await w.provider.list(w.signal)).toHaveLength(1);
    expect((await w.provider.get(claim.status!.providerID!, w.signal)).providerID).toBe(claim.status!.providerID);
    expired = false;
    await w.pass(60_000);
    expect((await status()).conditions).toContain('Ready=True Ready');
    await w.remove(claim);
    expect(await w.replicas('md')).toBe(0);
  });

  test('says that the management cluster cannot be reached at a start, and goes on when it can', async () => {
    const doors: Door[] = [];
    await world({
      door: (transport) => {
        const door = new Door(transport);
        door.shut();
        doors.push(door);
        return door;
      },
    });
    await w.member('md');
    const { conditions, messages } = await status();
    expect(conditions).toContain('HubReachable=False HubUnavailable');
    expect(conditions).toContain('MembersFound=Unknown HubUnavailable');
    expect(messages?.join()).toContain('ECONNREFUSED');
    expect(await warnings()).toEqual(['HubUnavailable']);
    for (const door of doors) door.open();
    await w.pass(20_000);
    expect((await status()).conditions).toContain('Ready=True Ready');
  });
});
