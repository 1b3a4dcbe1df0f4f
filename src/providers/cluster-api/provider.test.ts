// SPDX-License-Identifier: Apache-2.0
// What the provider tells of Machines, over the model of Cluster API. Where a test stands for a mark of the specification it
// is named by it.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { isNodeClaimNotFound } from '../../cloud/errors.ts';
import { kinds } from '../../kube/kinds.ts';
import { annotations, capi } from './names.ts';
import { CapiWorld, failure, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

test('§14 GAP: nodes are repaired as the MachineHealthChecks of their Cluster say', async () => {
  await world();
  const { spec: member } = await w.member('md');
  const definitions = w.hub.resource(kinds.CustomResourceDefinition);
  const { spec, ...like } = await definitions.get('machines.cluster.x-k8s.io');
  const names = { kind: 'MachineHealthCheck', listKind: 'MachineHealthCheckList', plural: 'machinehealthchecks' };
  const metadata = { name: `${names.plural}.cluster.x-k8s.io` };
  await definitions.create({
    ...like,
    metadata,
    spec: { ...spec, names: { ...names, singular: 'machinehealthcheck' } },
  });
  const policies = (): string[] => w.provider.repairPolicies.map(({ conditionType }) => conditionType);
  const usual = policies();
  const unhealthyConditions = [{ type: 'DiskBroken', status: 'True', timeout: '5m' }];
  await w.hub.resource(w.kinds.machineHealthCheck).create({
    apiVersion: `cluster.x-k8s.io/${w.version}`,
    kind: 'MachineHealthCheck',
    metadata: { name: 'disks', namespace: 'default' },
    spec: { clusterName: member!.clusterName, unhealthyConditions },
  } as never);
  await w.pass(300_000);
  expect(policies()).toEqual([...usual, 'DiskBroken']);
});

describe('what there is', () => {
  test('§6.6 BUG: one Machine whose MachineDeployment is gone does not hide the others', async () => {
    await world();
    await w.member('one');
    await w.pass();
    const a = await w.launch(await w.claim('a'));
    await w.member('two', { annotations: { 'karpenter.cluster.x-k8s.io/price': '0.0001' } });
    await w.pass();
    const b = await w.launch(await w.claim('b'));
    await w.stopManagers();
    await w.hub
      .resource(w.kinds.machineDeployment)
      .delete('one', { namespace: 'default', propagationPolicy: 'Orphan' });
    await w.pass();
    const ids = (await w.finish(w.provider.list(w.signal))).map(({ providerID }) => providerID);
    expect(ids).toHaveLength(2);
    expect(new Set(ids)).toEqual(new Set([a.status?.providerID, b.status?.providerID]));
  });

  test('counts once what Cluster API copies from a MachineDeployment onto its MachineSets', async () => {
    await world({ behavior: () => ({ neverProvisions: true }) });
    await w.member('md');
    await w.pass();
    await failure(w.finish(w.provider.create(await w.claim('a'), w.signal)));
    await w.pass(5000);
    const { items } = await w.hub.resource(w.kinds.machineSet).list();
    expect(Object.keys(items[0]!.metadata.annotations!).join(' ')).toContain('/nodeclaims.');
    expect(await w.provider.list(w.signal)).toHaveLength(1);
  });

  test.each([
    ['changed', 'elsewhere://1'],
    ['emptied', ''],
  ])('a Machine whose provider id was %s is still the one of its NodeClaim', async (_, providerID) => {
    await world();
    await w.running('md', 1);
    const [others] = await w.machines();
    const claim = await w.launch(await w.claim('a'));
    const [machine] = (await w.machines()).filter(({ metadata }) => metadata.uid !== others!.metadata.uid);
    const { name } = machine!.metadata;
    await w.stopManagers();
    await w.hub.resource(w.kinds.machine).patch(name!, { spec: { providerID } }, { namespace: 'default' });
    await w.pass(100);
    const [found, ...more] = await w.finish(w.provider.list(w.signal));
    expect([found?.nodeClaim?.uid, more]).toEqual([claim.metadata.uid, []]);
    expect(found?.providerID).toBe(providerID || `cluster-api-machine://default/${name}`);
    await w.startManagers();
    await w.remove(claim);
    expect((await w.machines()).map(({ metadata }) => metadata.uid)).toEqual([others!.metadata.uid]);
    expect(await w.replicas('md')).toBe(1);
  });

  test('§6.10 BUG: a NodeClaim that ended before it had a provider id is found, and leaves nothing', async () => {
    await world({ behavior: () => ({ neverProvisions: true }) });
    await w.member('md');
    await w.pass();
    const claim = await w.claim('a');
    await failure(w.finish(w.provider.create(claim, w.signal)));
    const [left] = await w.finish(w.provider.list(w.signal));
    expect(left?.nodeClaim).toEqual({ name: 'a', uid: claim.metadata.uid });
    await w.remove({ ...claim, status: { providerID: left!.providerID } });
    expect(await w.machines()).toEqual([]);
    expect(await w.replicas('md')).toBe(0);
    expect(await w.finish(w.provider.list(w.signal))).toEqual([]);
  });

  test('§6.10 BUG: also one whose Machine was never made', async () => {
    await world({ withoutManagers: true });
    await w.member('md');
    await w.pass();
    const claim = await w.claim('a');
    await failure(w.finish(w.provider.create(claim, w.signal)));
    expect(await w.replicas('md')).toBe(1);
    await w.restart();
    const [left] = await w.finish(w.provider.list(w.signal));
    expect(left?.nodeClaim?.uid).toBe(claim.metadata.uid);
    expect(await w.remove({ ...claim, status: { providerID: left!.providerID } })).toBe(1);
    expect(await w.replicas('md')).toBe(0);
  });

  test('§1.1 GAP: the whole controller keeps to one namespace where its credentials allow no more', async () => {
    const refusal = { status: 403, body: { kind: 'Status', reason: 'Forbidden', message: 'only in one' } };
    const isRefused = (path: string): boolean => /cluster\.x-k8s\.io\/v1beta1\/(?!namespaces\/one\/)[a-z]/.test(path);
    await world({
      hubNamespace: 'one',
      door: (transport) => ({
        request: async (request) => (isRefused(request.path) ? refusal : transport.request(request)),
        watch: async (request) => (isRefused(request.path) ? refusal : transport.watch(request)),
        close: () => transport.close(),
      }),
    });
    for (const name of ['one', 'two']) {
      await w.hub.resource(kinds.Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      await w.member('md', { namespace: name, annotations: { [annotations.price]: name === 'one' ? '2' : '1' } });
    }
    await w.pass(5000);
    const claim = await w.launch(await w.claim('a'));
    expect([await w.replicas('md', 'one'), await w.replicas('md', 'two')]).toEqual([1, 0]);
    await w.remove(claim);
    expect(await w.replicas('md', 'one')).toBe(0);
  });

  test('§1.1 GAP: NodeClaims of another cluster on the same management cluster are none of ours', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const a = await w.launch(await w.claim('a'));
    const [machine] = await w.machines();
    const metadata = { annotations: { [annotations.claimCluster]: 'another' } };
    await w.hub.resource(w.kinds.machine).patch(machine!.metadata.name!, { metadata }, { namespace: 'default' });
    await w.pass(100);
    expect(isNodeClaimNotFound(await failure(w.provider.get(a.status!.providerID!, w.signal)))).toBe(true);
    expect((await w.finish(w.provider.list(w.signal))).map(({ providerID }) => providerID)).not.toContain(
      a.status?.providerID,
    );
  });
});

test('Machines that change when nobody waits for one wake nobody', async () => {
  await world();
  await w.member('md');
  await w.pass();
  const claim = await w.launch(await w.claim('a'));
  await w.pass(60_000);
  const timers = vi.spyOn(w.clock, 'after');
  const [machine] = await w.machines();
  for (let beat = 0; beat < 50; beat++) {
    const status = { conditions: [{ type: 'NodeHealthy', status: 'True', reason: `beat-${beat}` }] };
    await w.hub.resource(w.kinds.machine).patchStatus(machine!.metadata.name!, { status }, { namespace: 'default' });
    await w.pass(100);
  }
  const wakes = (): number => timers.mock.calls.filter(([ms]) => ms === 20).length;
  expect(wakes()).toBe(0);
  // Somebody who waits does.
  await w.launch(await w.claim('b'));
  expect(wakes()).toBeGreaterThan(0);
  timers.mockRestore();
  await w.remove(claim);
});

test('a Node counts as registered once Cluster API has taken its taint off', async () => {
  await world({ behavior: () => ({ neverJoins: true }) });
  const [hook] = w.provider.registrationHooks;
  const claim = { ...(await w.claim('a')), status: { providerID: 'x://1' } };
  await w.karpenter.resource(kinds.Node).create({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n' },
    spec: { providerID: 'x://1', taints: [{ key: capi.uninitializedTaint, effect: 'NoSchedule' }] },
  });
  await w.pass(100);
  expect(await hook!.registered(claim, w.signal)).toEqual({ requeueAfterMs: 1000 });
  await w.karpenter.resource(kinds.Node).patch('n', { spec: { taints: null } });
  await w.pass(100);
  expect(await hook!.registered(claim, w.signal)).toEqual({ done: true });
});
