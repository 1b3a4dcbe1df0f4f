// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { settle, VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import { silentLogger } from '../../../runtime/logging.ts';
import { ApiServer } from '../../api-server.ts';
import { byDeletePriority } from './delete-priority.ts';
import { type ClusterApiModel, installClusterApi, startClusterApi } from './model.ts';
import { type Behavior, type Machine, type MachineDeployment, names, typesOf } from './objects.ts';

const types = typesOf('v1beta1');
const namespace = 'default';
let clock: VirtualClock;
let client: KubeClient;
let model: ClusterApiModel;
let behaviors: Map<string, Behavior>;

beforeEach(async () => {
  clock = new VirtualClock();
  const random = new SeededRandom(1);
  client = new KubeClient({ transport: new ApiServer({ clock, random }).transport(), clock, fieldManager: 'test' });
  await installClusterApi(client);
  behaviors = new Map();
  const behavior = ({ metadata }: Machine): Behavior => behaviors.get(metadata.labels![names.deploymentName]!) ?? {};
  model = await startClusterApi({ hub: client, clock, random, log: silentLogger, behavior });
});

afterEach(async () => {
  const stopping = model.stop();
  await clock.step(20_000);
  await stopping;
});

async function deploy(name: string, replicas: number, spec: Partial<NonNullable<MachineDeployment['spec']>> = {}) {
  await client.resource(types.machineDeployment).create({
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'MachineDeployment',
    metadata: { name, namespace },
    spec: {
      clusterName: 'workload',
      replicas,
      template: {
        metadata: { labels: { 'node.cluster.x-k8s.io/team': 'red' } },
        spec: { infrastructureRef: { kind: 'SomeTemplate', name: 'one' }, bootstrap: { dataSecretName: 'data' } },
      },
      ...spec,
    },
  });
  await clock.step(1000);
}

const change = (name: string, spec: object): Promise<unknown> =>
  client.resource(types.machineDeployment).patch(name, { spec }, { namespace });

async function machines(): Promise<Machine[]> {
  await settle();
  return (await client.resource(types.machine).list()).items;
}

const running = (all: readonly Machine[]): number => all.filter(({ status }) => status?.nodeRef !== undefined).length;

describe('the model of Cluster API', () => {
  test('makes as many Machines as asked for, each with a provider id first and a Node later', async () => {
    await deploy('md', 3);
    expect(await machines()).toHaveLength(3);
    await clock.step(5000);
    const provisioned = await machines();
    expect(provisioned.every(({ spec }) => spec?.providerID?.startsWith('embedded://default/md-'))).toBe(true);
    expect(running(provisioned)).toBe(0);
    await clock.step(12_000);
    expect(running(await machines())).toBe(3);
    const { items: nodes } = await client.resource(kinds.Node).list();
    expect(nodes).toHaveLength(3);
    expect(nodes[0]?.metadata.labels).toMatchObject({ 'node.cluster.x-k8s.io/team': 'red' });
    expect(nodes[0]?.metadata.annotations).toMatchObject({ 'cluster.x-k8s.io/machine': nodes[0]?.metadata.name });
    expect(nodes[0]?.spec?.taints?.map(({ key }) => key) ?? []).not.toContain(names.uninitialized);
    const { status } = await client.resource(types.machineDeployment).get('md', { namespace });
    expect(status).toMatchObject({ replicas: 3, readyReplicas: 3, updatedReplicas: 3, phase: 'Running' });
  });

  test('removes the marked Machine first, its Node with it', async () => {
    await deploy('md', 3);
    await clock.step(20_000);
    const [, chosen] = await machines();
    const { name = '' } = chosen!.metadata;
    await client
      .resource(types.machine)
      .patch(name, { metadata: { annotations: { [names.deleteMachine]: 'x' } } }, { namespace });
    await change('md', { replicas: 2 });
    await clock.step(10_000);
    expect((await machines()).map(({ metadata }) => metadata.name)).not.toContain(name);
    expect(await machines()).toHaveLength(2);
    expect((await client.resource(kinds.Node).list()).items).toHaveLength(2);
  });

  test('replaces a Machine that somebody deleted, once it is gone', async () => {
    behaviors.set('md', { deleteMs: 30_000 });
    await deploy('md', 2);
    await clock.step(20_000);
    const [first] = await machines();
    await client.resource(types.machine).delete(first!.metadata.name!, { namespace });
    await clock.step(20_000);
    expect(await machines()).toHaveLength(2);
    await clock.step(60_000);
    const now = await machines();
    expect(now).toHaveLength(2);
    expect(now.map(({ metadata }) => metadata.uid)).not.toContain(first!.metadata.uid);
  });

  test('rolls over to a new template one by one, never below the wanted number', async () => {
    await deploy('md', 3);
    await clock.step(20_000);
    await change('md', { template: { spec: { infrastructureRef: { name: 'two' } } } });
    let [most, fewest] = [0, 3];
    for (let i = 0; i < 120; i++) {
      await clock.step(1000);
      const all = await machines();
      most = Math.max(most, all.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length);
      fewest = Math.min(fewest, running(all.filter(({ metadata }) => metadata.deletionTimestamp === undefined)));
    }
    expect([most, fewest]).toEqual([4, 3]);
    const done = await machines();
    expect(done).toHaveLength(3);
    expect(done.every(({ spec }) => spec?.infrastructureRef?.name === 'two')).toBe(true);
  });

  test('leaves old Machines alone with strategy OnDelete, and replaces those that somebody deletes', async () => {
    await deploy('md', 2, { strategy: { type: 'OnDelete' } });
    await clock.step(20_000);
    await change('md', { template: { spec: { infrastructureRef: { name: 'two' } } } });
    await clock.step(60_000);
    const old = await machines();
    expect(old.map(({ spec }) => spec?.infrastructureRef?.name)).toEqual(['one', 'one']);
    await client.resource(types.machine).delete(old[0]!.metadata.name!, { namespace });
    await clock.step(60_000);
    expect(new Set((await machines()).map(({ spec }) => spec?.infrastructureRef?.name))).toEqual(
      new Set(['one', 'two']),
    );
    expect(await machines()).toHaveLength(2);
    await change('md', { replicas: 1 });
    await clock.step(60_000);
    expect((await machines()).map(({ spec }) => spec?.infrastructureRef?.name)).toEqual(['two']);
  });

  test('has machines that fail, never get an id or never join', async () => {
    behaviors.set('failing', { fails: 'NoHosts' });
    behaviors.set('stuck', { neverProvisions: true });
    behaviors.set('lonely', { neverJoins: true });
    for (const name of ['failing', 'stuck', 'lonely']) await deploy(name, 1);
    await clock.step(3_600_000);
    const by = new Map((await machines()).map((one) => [one.metadata.labels![names.deploymentName], one]));
    expect(by.get('failing')?.status).toMatchObject({ phase: 'Failed', failureReason: 'NoHosts' });
    expect(by.get('stuck')?.spec?.providerID).toBeUndefined();
    expect(by.get('lonely')?.spec?.providerID).toBeDefined();
    expect(by.get('lonely')?.status?.nodeRef).toBeUndefined();
  });

  test('does nothing about what is paused', async () => {
    await deploy('md', 1);
    await change('md', { paused: true, replicas: 5 });
    await clock.step(10_000);
    expect(await machines()).toHaveLength(1);
  });

  test('serves the scale subresource', async () => {
    await deploy('md', 1);
    await client.resource(types.machineDeployment).updateScale('md', 4, { namespace });
    await clock.step(5000);
    expect(await machines()).toHaveLength(4);
    const { status } = await client.resource(types.machineDeployment).getScale('md', { namespace });
    expect(status).toMatchObject({ replicas: 4, selector: 'cluster.x-k8s.io/deployment-name=md' });
  });
});

test('Machines go by priority: going, marked, unhealthy, policy, name', () => {
  const machine = (name: string, more: Partial<Machine['metadata']> = {}, node = true): Machine => ({
    metadata: { name, creationTimestamp: '2026-01-01T00:00:00Z', ...more },
    ...(node ? { status: { nodeRef: { name } } } : {}),
  });
  const all = [
    machine('b'),
    machine('old', { creationTimestamp: '2025-01-01T00:00:00Z' }),
    machine('unhealthy', {}, false),
    machine('marked', { annotations: { [names.deleteMachine]: '' } }),
    machine('going', { deletionTimestamp: '2026-01-01T00:00:00Z' }),
    machine('a'),
  ];
  const now = Date.UTC(2026, 0, 2);
  const order = (policy?: string) => byDeletePriority(all, policy, now).map(({ metadata }) => metadata.name);
  expect(order()).toEqual(['going', 'marked', 'unhealthy', 'a', 'b', 'old']);
  expect(order('Oldest').slice(3)).toEqual(['old', 'a', 'b']);
  expect(order('Newest').slice(3)).toEqual(['a', 'b', 'old']);
});
