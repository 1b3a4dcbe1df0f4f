// SPDX-License-Identifier: Apache-2.0
// Machines straight from templates, without a MachineDeployment or MachineSet above.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NodeClaim } from '../../api/node-claim.ts';
import { isNodeClaimNotFound } from '../../cloud/errors.ts';
import { annotations, capacityAnnotations, memberLabel } from './names.ts';
import { CapiWorld, failure } from './testing/world.ts';

const group = 'infrastructure.cluster.x-k8s.io';
const namespace = 'default';
const kind = (name: string, plural: string) => ({ group, version: 'v1beta1', kind: name, plural, namespaced: true });
const templates = kind('EmbeddedMachineTemplate', 'embeddedmachinetemplates');
const infrastructure = kind('EmbeddedMachine', 'embeddedmachines');

let w: CapiWorld;
beforeEach(async () => {
  w = await CapiWorld.start({ nodeClass: { orphanMachines: 'Enabled' } });
});
afterEach(() => w.stop());

async function template(name: string, told: Record<string, string> = {}): Promise<void> {
  await w.hub.resource(templates).create({
    apiVersion: `${group}/v1beta1`,
    kind: 'EmbeddedMachineTemplate',
    metadata: {
      name,
      namespace,
      labels: { [memberLabel]: '', 'cluster.x-k8s.io/cluster-name': 'workload' },
      annotations: {
        [capacityAnnotations.cpu]: '4',
        [capacityAnnotations.memory]: '8Gi',
        [annotations.bootstrapTemplate]: 'Secret/user-data',
        ...told,
      },
    },
    spec: { template: { spec: { disk: '20Gi' } } },
  } as never);
  await w.pass();
}

const infrastructures = async (): Promise<(string | undefined)[]> =>
  (await w.hub.resource(infrastructure).list()).items.map(({ metadata }) => metadata.name);

async function launched(name: string): Promise<NodeClaim> {
  return w.launch(await w.claim(name));
}

describe('§1 GAP: orphan Machines', () => {
  test('come with what they refer to, become Nodes, and go alone', async () => {
    await template('small');
    const [a, b] = [await launched('a'), await launched('b')];
    const machines = await w.machines();
    expect(machines).toHaveLength(2);
    expect(machines.map(({ metadata }) => metadata.ownerReferences)).toEqual([undefined, undefined]);
    expect(new Set(await infrastructures())).toEqual(new Set(machines.map(({ metadata }) => metadata.name)));
    await w.pass(30_000);
    await w.remove(a);
    const left = await w.machines();
    expect(left.map(({ spec }) => spec?.providerID)).toEqual([b.status?.providerID]);
    expect((await w.finish(w.provider.list(w.signal))).map(({ providerID }) => providerID)).toEqual([
      b.status?.providerID,
    ]);
  });

  test('are one for each NodeClaim, whatever crashes and fails', async () => {
    await template('small');
    let turn = 0;
    w.fault = () => (turn++ % 2 === 0 ? (turn % 3 === 0 ? 'lost' : { status: 500, body: 'no' }) : undefined);
    const claim = await w.claim('a');
    for (let i = 0; i < 6; i++) {
      await failure(w.finish(w.provider.create(claim, w.signal)));
      await w.restart();
    }
    w.fault = () => undefined;
    await w.launch(claim);
    expect(await w.machines()).toHaveLength(1);
    expect(await infrastructures()).toHaveLength(1);
  });

  test('drift with their template', async () => {
    await template('small');
    const claim = await launched('a');
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
    await w.hub.resource(templates).patch('small', { spec: { template: { spec: { disk: '40Gi' } } } }, { namespace });
    await w.pass(61_000);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('TemplateContentDrifted');
  });

  test('that are not ours are never touched', async () => {
    await template('small');
    await w.hub.resource(w.kinds.machine).create({
      apiVersion: 'cluster.x-k8s.io/v1beta1',
      kind: 'Machine',
      metadata: { name: 'by-hand', namespace },
      spec: {
        clusterName: 'workload',
        bootstrap: { dataSecretName: 'x' },
        infrastructureRef: { kind: 'X', name: 'x' },
      },
    });
    await w.pass(30_000);
    const [machine] = await w.machines();
    expect(machine?.spec?.providerID).toBeDefined();
    expect(await w.finish(w.provider.list(w.signal))).toEqual([]);
    const claim = { ...(await w.claim('a')), status: { providerID: machine!.spec!.providerID! } };
    expect(isNodeClaimNotFound(await failure(w.finish(w.provider.delete(claim, w.signal))))).toBe(true);
    expect(w.writes).toEqual([]);
  });

  test('need a Cluster and user data: a template without them is named and left out', async () => {
    await template('without', { [annotations.bootstrapTemplate]: 'nonsense' });
    await template('sound');
    const nodeClass = w.provider.members.nodeClasses.get('default')!;
    const { valid, invalid } = await w.finish(w.provider.members.read(nodeClass, w.signal));
    expect(valid.map(({ key }) => key)).toEqual(['Template:EmbeddedMachineTemplate/default/sound']);
    expect(invalid[0]?.problem).toContain('must name user data');
  });

  test('are not made unless the NodeClass says so', async () => {
    await w.nodeClass('plain');
    await template('small');
    expect(await w.finish(w.provider.instanceTypes(w.pool('plain'), w.signal))).toEqual([]);
    expect(await w.finish(w.provider.instanceTypes(w.pool(), w.signal))).toHaveLength(1);
  });
});
