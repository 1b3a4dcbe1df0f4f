// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { kinds } from '../../kube/kinds.ts';
import { capacityAnnotations, capi, memberLabel } from './names.ts';
import { CapiWorld, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options: WorldOptions = {}): Promise<CapiWorld> {
  w = await CapiWorld.start({ withoutManagers: true, ...options });
  return w;
}

async function types(nodeClass?: string, taints?: Parameters<CapiWorld['pool']>[1]) {
  await w.pass(100);
  return w.finish(w.provider.instanceTypes(w.pool(nodeClass, taints), w.signal));
}

const names = async (nodeClass?: string): Promise<string[]> => (await types(nodeClass)).map(({ name }) => name);
const available = async (...of: Parameters<typeof types>) =>
  (await types(...of)).flatMap(({ offerings }) => offerings.map((offering) => offering.available));
const type = (name: string) => ({ nodeLabels: { 'node.kubernetes.io/instance-type': name } });

describe('which resources are members', () => {
  test('§4 TRAP: the member label with any value, and the selector on top of it', async () => {
    await world({ nodeClass: { scalableResourceSelector: { matchLabels: { team: 'red' } } } });
    await w.nodeClass('all');
    await w.nodeClass('everything', { scalableResourceSelector: {} });
    await w.member('empty', { labels: { [memberLabel]: '' } });
    await w.member('true', { labels: { [memberLabel]: 'true', team: 'red' } });
    const { metadata } = await w.member('stranger', { labels: { team: 'red' } });
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch(metadata.name!, { metadata: { labels: { [memberLabel]: null } } }, { namespace: 'default' });
    expect(await names()).toEqual(['true']);
    expect(await names('all')).toEqual(['empty', 'true']);
    expect(await names('everything')).toEqual(['empty', 'true']);
  });

  test('§1.1 GAP: a NodeClass keeps to a namespace and to a Cluster', async () => {
    await world({ nodeClass: { namespace: 'one' } });
    await w.nodeClass('by-cluster', { clusterName: 'blue' });
    for (const name of ['one', 'two']) {
      await w.hub.resource(kinds.Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    }
    await w.member('same', { namespace: 'one' });
    await w.member('same', { namespace: 'two', spec: { clusterName: 'blue' } });
    expect(await names()).toEqual(['same']);
    expect(await names('by-cluster')).toEqual(['same']);
    const [first] = (await w.finish(w.provider.members.read(w.provider.members.nodeClasses.get('default')!, w.signal)))
      .valid;
    expect(first?.key).toBe('MachineDeployment/one/same');
  });

  test('§4 GAP: a paused one is known and not for sale, one that goes away is not there', async () => {
    await world();
    await w.member('paused', { spec: { paused: true } });
    await w.member('also', { annotations: { [capi.paused]: '' } });
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('also', { metadata: { finalizers: ['example.com/hold'] } }, { namespace: 'default' });
    expect(await available()).toEqual([false, false]);
    await w.hub.resource(w.kinds.machineDeployment).delete('also', { namespace: 'default' });
    expect(await names()).toEqual(['paused']);
  });

  test('§2 BUG: one that cannot be read costs only itself', async () => {
    await world();
    await w.member('broken', { annotations: { [capacityAnnotations.memory]: '500mb' } });
    await w.member('sound');
    expect(await names()).toEqual(['sound']);
  });

  test('one whose infrastructure template may not be read costs only itself', async () => {
    const refusal = { status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'no templates' } };
    const asked: string[] = [];
    await world({
      door: (transport) => ({
        async request(request) {
          if (!request.path.includes('/embeddedmachinetemplates/')) return transport.request(request);
          asked.push(request.path);
          return refusal;
        },
        watch: (request) => transport.watch(request),
        close: () => transport.close(),
      }),
    });
    await w.member('unknown');
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch(
        'unknown',
        { metadata: { annotations: { [capacityAnnotations.memory]: null } } },
        { namespace: 'default' },
      );
    await w.member('sound');
    expect(await names()).toEqual(['sound']);
    expect(asked).not.toEqual([]);
  });
});

describe('instance types', () => {
  test('§5 BUG: have names of their own', async () => {
    await world();
    await w.member('no-label');
    await w.member('first', type('m5.large'));
    await w.pass(2000);
    await w.member('other-machine', { ...type('m5.large'), annotations: { [capacityAnnotations.cpu]: '8' } });
    expect(await names()).toEqual(['m5.large', 'm5.large.other-machine', 'no-label']);
  });

  test('of equal machines are one, with an offering for each place', async () => {
    await world();
    for (const zone of ['a', 'b']) {
      const nodeLabels = { ...type('m5.large').nodeLabels, 'topology.kubernetes.io/zone': zone };
      await w.member(`in-${zone}`, { nodeLabels });
      await w.member(`spot-${zone}`, { nodeLabels: { ...nodeLabels, 'karpenter.sh/capacity-type': 'spot' } });
    }
    await w.member('twin', type('m5.large'));
    const [only, ...others] = await types();
    expect(others).toEqual([]);
    const places = only?.offerings.map(({ requirements }) => requirements.map(({ values }) => values?.[0]).join(' '));
    expect(new Set(places)).toEqual(new Set(['a on-demand', 'a spot', 'b on-demand', 'b spot', 'zone-a on-demand']));
  });

  test('of two members in one place cost what the next free one costs', async () => {
    await world();
    const priced = (price: string, max = '5') => ({ 'karpenter.cluster.x-k8s.io/price': price, [capi.maxSize]: max });
    await w.member('cheap', { ...type('m5.large'), annotations: priced('1', '1'), replicas: 0 });
    await w.member('dear', { ...type('m5.large'), annotations: priced('2') });
    expect((await types())[0]?.offerings).toMatchObject([{ price: 1, available: true }]);
    await w.scale('cheap', 1);
    expect((await types())[0]?.offerings).toMatchObject([{ price: 2, available: true }]);
  });

  test('§5 GAP: keep something for the system, by default, by NodeClass or by member', async () => {
    await world();
    await w.nodeClass('kept', { overhead: { cpu: '500m', memory: '1Gi' } });
    await w.member('md');
    expect((await types())[0]?.overhead).toEqual({ kubeReserved: { memory: '100Mi' } });
    expect((await types('kept'))[0]?.overhead).toEqual({ kubeReserved: { cpu: '500m', memory: '1Gi' } });
    const metadata = { annotations: { 'karpenter.cluster.x-k8s.io/overhead': 'cpu=1' } };
    await w.hub.resource(w.kinds.machineDeployment).patch('md', { metadata }, { namespace: 'default' });
    expect((await types('kept'))[0]?.overhead).toEqual({ kubeReserved: { cpu: '1' } });
  });

  test('§5 GAP: come from the status of the infrastructure template', async () => {
    await world();
    await w.member('md', { annotations: { [capacityAnnotations.cpu]: '2' } });
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { metadata: { annotations: { [capacityAnnotations.memory]: null } } }, { namespace: 'default' });
    const template = {
      group: 'infrastructure.cluster.x-k8s.io',
      version: 'v1beta1',
      kind: 'EmbeddedMachineTemplate',
      plural: 'embeddedmachinetemplates',
      namespaced: true,
    };
    await w.hub.resource(template).create({
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1',
      kind: 'EmbeddedMachineTemplate',
      metadata: { name: 'md-template', namespace: 'default' },
    });
    await w.hub
      .resource(template)
      .patchStatus('md-template', { status: { capacity: { cpu: '16', memory: '64Gi' } } }, { namespace: 'default' });
    expect((await types())[0]?.capacity).toMatchObject({ cpu: '2', memory: '64Gi' });
  });

  test('§5 GAP: have the labels that Cluster API was told to copy to Nodes', async () => {
    await world({ isSynced: (key) => key.startsWith('example.com/') });
    await w.member('md', { templateLabels: { 'example.com/team': 'red', 'example.org/team': 'blue' } });
    const [only] = await types();
    expect(only!.requirements).toContainEqual({ key: 'example.com/team', operator: 'In', values: ['red'] });
    expect(only!.requirements.map(({ key }) => key)).not.toContain('example.org/team');
  });

  test('with taints are for sale only where the pool knows them', async () => {
    await world();
    await w.member('md', { annotations: { [capacityAnnotations.taints]: 'gpu=yes:NoSchedule' } });
    expect(await available()).toEqual([false]);
    expect(await available('default', [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }])).toEqual([true]);
    expect(await available('default', [{ key: 'gpu', value: 'no', effect: 'NoSchedule' }])).toEqual([false]);
  });

  test.each([
    [undefined, 3, true],
    ['4', 3, true],
    ['3', 3, false],
    ['2', 3, false],
    ['0', 0, false],
    ['many', 3, true],
  ])('with a maximum of %s and %i replicas: for sale is %s', async (max, replicas, expected) => {
    await world();
    await w.member('md', { replicas, annotations: max === undefined ? {} : { [capi.maxSize]: max } });
    expect(await available()).toEqual([expected]);
  });

  test('§14 GAP: have their price from the table of the NodeClass', async () => {
    await world({ nodeClass: { priceTable: { namespace: 'default', name: 'prices' } } });
    await w.karpenter.resource(kinds.ConfigMap).create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'prices', namespace: 'default' },
      data: { 'm5.large': '0.096' },
    });
    await w.member('md', type('m5.large'));
    await w.member('unlisted', type('x'));
    const found = await types();
    expect(found.map(({ offerings }) => offerings[0]?.price)).toEqual([0.096, expect.closeTo(0.152, 5)]);
    const sources = found.map(
      ({ requirements }) => requirements.find(({ key }) => key.endsWith('price-source'))?.values,
    );
    expect(sources).toEqual([['table'], ['estimate']]);
    expect(found.map(({ offerings }) => offerings[0]?.estimated)).toEqual([undefined, true]);
  });
});
