// SPDX-License-Identifier: Apache-2.0
// The whole autoscaler with Cluster API: pods become Machines and Nodes, and go again, on one cluster and on two.
import { afterEach, describe, expect, test } from 'vitest';
import { allCrds, type CustomResourceDefinition } from '../../api/crd.ts';
import { nodeOverlayKind } from '../../api/node-overlay.ts';
import { nodePoolKind } from '../../api/node-pool.ts';
import { compareStrings } from '../../base/order.ts';
import type { Behavior, Machine as ModelMachine } from '../../embedded/clouds/cluster-api/objects.ts';
import { kinds } from '../../kube/kinds.ts';
import { capiKinds } from './kinds.ts';
import { memberLabel } from './names.ts';
import { Whole } from './testing/whole.ts';

const types = capiKinds('v1beta1');
const namespace = 'default';

let whole: Whole;
afterEach(() => whole.stop());

describe.each([
  ['everything in one cluster', 'joined'],
  ['the management cluster elsewhere', 'hub-apart'],
  ['NodePools and Machines in one cluster, Nodes and Pods in another', 'pools-with-machines'],
] as const)('%s', (_, topology) => {
  test('pods get Machines and Nodes, and what is empty goes again', async () => {
    whole = await Whole.start({ topology });
    await whole.member('md');
    await whole.deploy(5);
    await whole.world.pass(90_000);
    expect(await whole.replicas('md')).toBe(5);
    expect(await whole.machines()).toBe(5);
    expect(await whole.world.readyPods('app=web')).toHaveLength(5);
    const claims = await whole.claims();
    const ready = claims.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.status);
    expect(ready).toEqual(['True', 'True', 'True', 'True', 'True']);
    // §2 TRAP: Cluster API and we do not write to the same annotation of a Node.
    const { items } = await whole.world.client.resource(kinds.Node).list();
    for (const { metadata } of items) {
      expect(metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/machine': metadata.name });
    }
    await whole.world.client.resource(kinds.Deployment).updateScale('web', 0, { namespace });
    await whole.world.pass(180_000);
    expect(await whole.claims()).toEqual([]);
    expect([await whole.machines(), await whole.replicas('md'), await whole.nodes()]).toEqual([0, 0, 0]);
  });
});

/** The definitions that the guide's links install: of an older core, and of a provider with fewer fields. */
function guidesCrds(): CustomResourceDefinition[] {
  const dropped: Readonly<Record<string, { spec: string[]; status: string[] }>> = {
    NodePool: { spec: ['replicas'], status: ['nodes'] },
    NodeClaim: { spec: [], status: [] },
    ClusterAPINodeClass: {
      spec: ['namespace', 'clusterName', 'priceTable', 'overhead', 'machineAdoption', 'orphanMachines', 'drift'],
      status: ['members'],
    },
  };
  // Neither NodeOverlays nor CapacityBuffers are among them.
  const crds = allCrds().filter(({ spec }) => spec.names.kind in dropped);
  for (const { spec } of crds) {
    for (const { schema } of spec.versions) {
      for (const part of ['spec', 'status'] as const) {
        const of = schema.openAPIV3Schema.properties![part]!;
        for (const field of dropped[spec.names.kind]![part]) {
          expect(of.properties).toHaveProperty(field);
          delete (of.properties as Record<string, unknown>)[field];
          const rules = of['x-kubernetes-validations']?.filter(({ rule }) => !rule.includes(`.${field}`));
          if (rules) of['x-kubernetes-validations'] = rules;
        }
      }
    }
  }
  return crds;
}

test('on the older definitions that the guide installs everything works, and nothing is written again and again', async () => {
  whole = await Whole.start({ crds: guidesCrds() });
  await whole.member('md');
  await whole.deploy(3);
  await whole.world.pass(90_000);
  expect(await whole.world.readyPods('app=web')).toHaveLength(3);
  expect([await whole.machines(), await whole.replicas('md')]).toEqual([3, 3]);
  await whole.world.pass(60_000);
  whole.writes.length = 0;
  await whole.world.pass(600_000);
  expect(whole.writes.filter((write) => !write.includes('/leases/'))).toEqual([]);
  await whole.world.client.resource(kinds.Deployment).updateScale('web', 0, { namespace });
  await whole.world.pass(180_000);
  expect([await whole.machines(), await whole.replicas('md'), await whole.nodes()]).toEqual([0, 0, 0]);
});

test('two NodePools on one MachineDeployment share it, and each counts its own', async () => {
  whole = await Whole.start();
  await whole.member('md');
  const pools = whole.karpenter.client().resource(nodePoolKind);
  const { spec } = await pools.get('default');
  await pools.create({ apiVersion: 'karpenter.sh/v1', kind: 'NodePool', metadata: { name: 'second' }, spec });
  await whole.world.pass(5000);
  for (const pool of ['default', 'second']) {
    await whole.world.deploy(pool, 2, {
      template: {
        metadata: { labels: { app: pool } },
        spec: {
          nodeSelector: { 'karpenter.sh/nodepool': pool },
          containers: [{ name: 'c', image: 'i', resources: { requests: { cpu: '1200m' } } }],
        },
      },
    });
  }
  await whole.world.pass(90_000);
  const poolsOfNodes = async (): Promise<string[]> => {
    const { items } = await whole.world.client.resource(kinds.Node).list();
    return items.map(({ metadata }) => metadata.labels?.['karpenter.sh/nodepool'] ?? '').sort(compareStrings);
  };
  expect(await poolsOfNodes()).toEqual(['default', 'default', 'second', 'second']);
  expect([await whole.machines(), await whole.replicas('md')]).toEqual([4, 4]);
  await pools.delete('second');
  await whole.world.pass(180_000);
  expect(await poolsOfNodes()).toEqual(['default', 'default']);
  expect([await whole.machines(), await whole.replicas('md')]).toEqual([2, 2]);
  expect(await whole.world.readyPods('app=default')).toHaveLength(2);
});

test('§14 GAP: a NodeOverlay says what machines cost, and so which MachineDeployment is scaled and which is left', async () => {
  whole = await Whole.start({ featureGates: { NodeOverlay: true } });
  const price = { 'karpenter.cluster.x-k8s.io/price': '1' };
  await whole.member('one', price);
  await whole.member('two', { ...price, 'karpenter.cluster.x-k8s.io/price': '2' });
  const overlays = whole.karpenter.client().resource(nodeOverlayKind);
  const overlay = (name: string, type: string, spec: object) =>
    overlays.create({
      apiVersion: 'karpenter.sh/v1alpha1',
      kind: 'NodeOverlay',
      metadata: { name },
      spec: {
        requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: [type] }],
        ...spec,
      },
    } as never);
  await overlay('reduced', 'two', { priceAdjustment: '-75%' });
  await whole.world.pass(5000);
  await whole.deploy(2);
  await whole.world.pass(90_000);
  expect([await whole.replicas('one'), await whole.replicas('two')]).toEqual([0, 2]);
  // Machines move to what has become cheaper.
  await overlay('given-away', 'one', { price: '0.01' });
  await whole.world.pass(5000);
  await whole.world.client.resource(kinds.Deployment).updateScale('web', 3, { namespace });
  await whole.world.pass(300_000);
  expect([await whole.replicas('one'), await whole.replicas('two')]).toEqual([3, 0]);
  expect(await whole.world.readyPods('app=web')).toHaveLength(3);
});

test('a management cluster that is away stops nothing that needs only the workload cluster', async () => {
  whole = await Whole.start({ topology: 'hub-apart' });
  await whole.member('md');
  await whole.deploy(2);
  await whole.world.pass(90_000);
  whole.door.shut();
  // The pods of a Node that is deleted are drained and placed anew where there is room, by who knows only this cluster.
  const [node] = (await whole.world.client.resource(kinds.Node).list()).items;
  await whole.world.client.resource(kinds.Node).delete(node!.metadata.name!);
  await whole.world.addNode('spare', { allocatable: { cpu: '1500m' } });
  await whole.world.pass(60_000);
  expect(await whole.world.readyPods('app=web')).toHaveLength(2);
  expect(await whole.machines()).toBe(2);
  // What needs it has waited, and is made up for.
  whole.door.open();
  await whole.world.pass(180_000);
  expect([await whole.machines(), await whole.replicas('md')]).toEqual([1, 1]);
  expect(await whole.claims()).toHaveLength(1);
});

test('a Node that somebody deletes takes its Machine with it, and its pod gets another', async () => {
  whole = await Whole.start();
  await whole.member('md');
  await whole.deploy(2);
  await whole.world.pass(90_000);
  const { items } = await whole.world.client.resource(kinds.Node).list();
  await whole.world.client.resource(kinds.Node).delete(items[0]!.metadata.name!);
  await whole.world.pass(180_000);
  expect(await whole.world.readyPods('app=web')).toHaveLength(2);
  expect([await whole.machines(), await whole.replicas('md'), await whole.nodes()]).toEqual([2, 2, 2]);
});

test('machines that never get a provider id are given back, and another member serves the pods', async () => {
  const behavior = ({ metadata }: ModelMachine): Behavior =>
    metadata.name?.startsWith('stuck') ? { neverProvisions: true } : {};
  whole = await Whole.start({ behavior });
  await whole.member('stuck', { 'karpenter.cluster.x-k8s.io/price': '0.01' });
  await whole.deploy(1);
  await whole.world.pass(30_000);
  expect(await whole.replicas('stuck')).toBe(1);
  await whole.member('sound', { 'karpenter.cluster.x-k8s.io/price': '1' });
  await whole.hub
    .client()
    .resource(types.machineDeployment)
    .patch('stuck', { metadata: { labels: { [memberLabel]: null } } }, { namespace });
  await whole.world.pass(600_000);
  expect(await whole.world.readyPods('app=web')).toHaveLength(1);
  expect([await whole.replicas('stuck'), await whole.replicas('sound'), await whole.machines()]).toEqual([0, 1, 1]);
});
