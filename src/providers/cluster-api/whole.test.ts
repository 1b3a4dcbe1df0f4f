// SPDX-License-Identifier: Apache-2.0
// The whole autoscaler with Cluster API: pods become Machines and Nodes, and go again, on one cluster and on two.
import { afterEach, describe, expect, test } from 'vitest';
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
  ['in the same cluster', false],
  ['in another cluster', true],
])('with the management cluster %s', (_, apart) => {
  test('pods get Machines and Nodes, and what is empty goes again', async () => {
    whole = await Whole.start({ apart });
    await whole.member('md');
    await whole.deploy(5);
    await whole.world.pass(90_000);
    expect(await whole.replicas('md')).toBe(5);
    expect(await whole.machines()).toBe(5);
    expect(await whole.world.readyPods('app=web')).toHaveLength(5);
    const claims = await whole.claims();
    const ready = claims.map(({ status }) => status?.conditions?.find(({ type }) => type === 'Ready')?.status);
    expect(ready).toEqual(['True', 'True', 'True', 'True', 'True']);
    await whole.world.client.resource(kinds.Deployment).updateScale('web', 0, { namespace });
    await whole.world.pass(180_000);
    expect(await whole.claims()).toEqual([]);
    expect([await whole.machines(), await whole.replicas('md'), await whole.nodes()]).toEqual([0, 0, 0]);
  });
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
