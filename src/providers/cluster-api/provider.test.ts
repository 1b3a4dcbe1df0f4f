// SPDX-License-Identifier: Apache-2.0
// The provider over the model of Cluster API. Where a test stands for a mark of the specification it is named by it.
import { afterEach, describe, expect, test, vi } from 'vitest';
import { nodeClaimKind } from '../../api/node-claim.ts';
import { isInsufficientCapacity, isNodeClaimNotFound, isNodeClassNotReady } from '../../cloud/errors.ts';
import { kinds } from '../../kube/kinds.ts';
import { isWatchStream, type Transport } from '../../kube/transport.ts';
import type { Machine } from './kinds.ts';
import { annotations, capacityAnnotations, capi, memberLabel } from './names.ts';
import { CapiWorld, conflictAnswer, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

const failure = (promise: Promise<unknown>): Promise<unknown> =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

const owners = (machines: readonly Machine[]): (string | undefined)[] =>
  machines.map(({ metadata }) => metadata.annotations?.[annotations.claimName]);

/** Changes of Machines are not told for as long as it is so. */
function lateMachines(transport: Transport, isLate: () => boolean): Transport {
  return {
    request: (request) => transport.request(request),
    close: () => transport.close(),
    watch: async (request) => {
      const stream = await transport.watch(request);
      if (!isWatchStream(stream) || !request.path.endsWith('/machines')) return stream;
      return {
        close: () => stream.close(),
        async *[Symbol.asyncIterator]() {
          for await (const event of stream) {
            while (isLate()) await w.clock.sleep(1000);
            yield event;
          }
        },
      };
    },
  };
}

async function running(name: string, replicas: number): Promise<void> {
  await w.member(name, { replicas });
  await w.pass(30_000);
}

describe.each(['v1beta1', 'v1beta2'] as const)('with Cluster API %s', (version) => {
  test('a NodeClaim has one Machine while it lives and none afterwards, in four writes', async () => {
    await world({ version });
    await w.member('md');
    await w.pass();
    const claim = await w.launch(await w.claim('a'));
    const [machine, ...others] = await w.machines();
    expect(others).toEqual([]);
    expect(machine?.metadata.labels).toHaveProperty([memberLabel]);
    expect(claim.status?.providerID).toBe(machine?.spec?.providerID);
    expect(await w.replicas('md')).toBe(1);
    await w.pass(20_000);
    await w.remove(claim);
    expect(await w.machines()).toEqual([]);
    expect(await w.replicas('md')).toBe(0);
    expect(w.writes).toHaveLength(4);
    // §10 GAP: and all of it is counted.
    const count = (name: string, labels = {}) => w.metrics.value(`karpenter_clusterapi_${name}`, labels);
    expect(await count('scale_writes_total', { outcome: 'written' })).toBe(2);
    expect(await count('machine_claims_total', { outcome: 'claimed' })).toBe(1);
    expect(await count('hub_reachable')).toBe(1);
  });
});

/** A status of v1beta1; v1beta2 keeps it in a place of its own. */
const inVersion = (version: string, status: object): object =>
  version === 'v1beta1' ? status : { deprecated: { v1beta1: status } };

describe('launching', () => {
  test('gives labels, capacity and what is left of it', async () => {
    await world();
    await w.member('md', {
      nodeLabels: { 'node.kubernetes.io/instance-type': 'm5.large' },
      annotations: { 'karpenter.cluster.x-k8s.io/price': '0.2' },
      templateLabels: { 'node.cluster.x-k8s.io/team': 'red' },
    });
    await w.pass();
    const claim = await w.claim('a');
    await w.launch(claim);
    const instance = await w.finish(w.provider.create(claim, w.signal));
    expect(instance.labels).toMatchObject({
      'node.kubernetes.io/instance-type': 'm5.large',
      'topology.kubernetes.io/zone': 'zone-a',
      'karpenter.sh/capacity-type': 'on-demand',
      'node.cluster.x-k8s.io/team': 'red',
      'karpenter.cluster.x-k8s.io/price-source': 'annotation',
      'karpenter.cluster.x-k8s.io/instance-size': 'large',
    });
    expect(instance.capacity).toEqual({ cpu: '4', memory: '8Gi', pods: '110' });
    expect(instance.allocatable).toEqual({ cpu: '4', memory: '8092Mi', pods: '110' });
    expect(instance.nodeClaim).toEqual({ name: 'a', uid: claim.metadata.uid });
  });

  test("§2 TRAP: Cluster API's own annotation of Nodes is not written to NodeClaims, which Nodes copy", async () => {
    await world();
    await w.member('md');
    await w.pass();
    const instance = await w.finish(w.provider.create(await w.claim('a'), w.signal));
    const [machine] = await w.machines();
    expect(instance.annotations).toEqual({ [annotations.machine]: `default/${machine!.metadata.name}` });
    expect(annotations.machine).not.toBe('cluster.x-k8s.io/machine');
  });

  test('§6.1 GAP: takes the cheapest that fits, then the smaller one', async () => {
    await world();
    const priced = (price: string) => ({ 'karpenter.cluster.x-k8s.io/price': price });
    await w.member('a-dear', { annotations: priced('2') });
    await w.member('b-cheap', { annotations: priced('1') });
    await w.member('c-cheaper-but-small', {
      annotations: { ...priced('0.1'), 'capacity.cluster-autoscaler.kubernetes.io/cpu': '500m' },
    });
    await w.pass();
    await w.launch(await w.claim('a'));
    expect(await w.replicas('b-cheap')).toBe(1);
    expect(await w.replicas('a-dear')).toBe(0);
  });

  test('§6.1 GAP: is refused for a NodeClass that is missing or not ready', async () => {
    await world();
    const missing = await w.claim('a', { nodeClass: 'missing' });
    expect(isNodeClassNotReady(await failure(w.finish(w.provider.create(missing, w.signal))))).toBe(true);
  });

  test('finds nothing where nothing fits, and raises nothing', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const huge = await w.claim('a', { requests: { cpu: '64' } });
    expect(isInsufficientCapacity(await failure(w.finish(w.provider.create(huge, w.signal))))).toBe(true);
    const elsewhere = await w.claim('b', {
      requirements: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-z'] }],
    });
    expect(isInsufficientCapacity(await failure(w.finish(w.provider.create(elsewhere, w.signal))))).toBe(true);
    expect(w.writes).toEqual([]);
  });

  test('§15 (28): many tries for a slow machine raise replicas once', async () => {
    await world({ behavior: () => ({ provisionMs: 120_000 }) });
    await w.member('md');
    await w.pass();
    const claim = await w.claim('a');
    const first = await failure(w.finish(w.provider.create(claim, w.signal)));
    expect(first).toMatchObject({ conditionReason: 'WaitingForProviderID' });
    await w.launch(claim);
    expect(await w.replicas('md')).toBe(1);
    expect(await w.machines()).toHaveLength(1);
  });

  test('tells a NodeClaim that nobody waits for when its Machine is there', async () => {
    await world({ behavior: () => ({ provisionMs: 60_000 }) });
    await w.member('md');
    await w.pass();
    const claim = await w.claim('a');
    await failure(w.finish(w.provider.create(claim, w.signal)));
    await w.pass(60_000);
    const told = await w.karpenter.resource(nodeClaimKind).get('a');
    const [machine] = await w.machines();
    expect(told.metadata.annotations?.[annotations.machine]).toBe(`default/${machine?.metadata.name}`);
    // §2 TRAP: not under Cluster API's own key, which it writes back on the Node with another value.
    expect(told.metadata.annotations).not.toHaveProperty([capi.upstreamMachine]);
  });

  test('goes on after a crash at any point, with one Machine', async () => {
    await world({ behavior: () => ({ provisionMs: 30_000 }) });
    await w.member('md');
    await w.pass();
    const claim = await w.claim('a');
    for (const waitMs of [50, 150, 400, 2000, 10_000]) {
      void failure(w.provider.create(claim, w.signal));
      await w.pass(waitMs);
      await w.restart();
    }
    await w.launch(claim);
    expect(await w.replicas('md')).toBe(1);
    expect(await w.machines()).toHaveLength(1);
  });

  test('counts once when the answer to the write is lost', async () => {
    await world();
    await w.member('md');
    await w.pass();
    let lost = 0;
    w.fault = () => (lost++ < 1 ? 'lost' : undefined);
    const claim = await w.claim('a');
    expect(await failure(w.finish(w.provider.create(claim, w.signal)))).toBeDefined();
    await w.launch(claim);
    expect(await w.replicas('md')).toBe(1);
    expect(owners(await w.machines())).toEqual(['a']);
  });

  test('takes one Machine only when the answer to its claim is lost', async () => {
    await world();
    await w.member('md');
    await w.pass();
    let lost = 0;
    w.fault = ({ path }) => (path.includes('/machines/') && lost++ < 1 ? 'lost' : undefined);
    const [a, b] = [await w.claim('a'), await w.claim('b')];
    await Promise.all([w.launch(a), w.launch(b)]);
    const taken = owners(await w.machines());
    expect(taken).toHaveLength(2);
    expect(new Set(taken)).toEqual(new Set(['a', 'b']));
  });

  test('§6.2 BUG: no Machine ever has two NodeClaims, whatever conflicts there are', async () => {
    await world();
    await w.member('md');
    await w.pass();
    let turn = 0;
    w.fault = ({ path }) => (path.includes('/machines/') && turn++ % 3 !== 2 ? conflictAnswer : undefined);
    const claims = await Promise.all(Array.from({ length: 10 }, (_, i) => w.claim(`c${i}`)));
    const launched = await Promise.all(claims.map((claim) => w.launch(claim)));
    expect(new Set(launched.map(({ status }) => status?.providerID)).size).toBe(10);
    expect(new Set(owners(await w.machines())).size).toBe(10);
    expect(await w.replicas('md')).toBe(10);
  });

  test('§6.2 BUG: a Machine that somebody claimed at the last moment stays theirs', async () => {
    await world();
    await w.member('md');
    await w.pass();
    let rival: string | undefined;
    w.fault = async ({ path }) => {
      if (!path.includes('/machines/') || rival !== undefined) return undefined;
      rival = path.split('/').at(-1)!;
      const metadata = { annotations: { [annotations.claimUid]: 'rival', [annotations.claimCluster]: 'another' } };
      await w.hub.resource(w.kinds.machine).patch(rival, { metadata }, { namespace: 'default' });
      // The rival had asked for one more as well.
      await w.scale('md', 2);
      return undefined;
    };
    await w.launch(await w.claim('a'));
    const machines = await w.machines();
    expect(machines).toHaveLength(2);
    const lost = machines.find(({ metadata }) => metadata.name === rival);
    expect(lost?.metadata.annotations?.[annotations.claimUid]).toBe('rival');
    expect(owners(machines.filter((machine) => machine !== lost))).toEqual(['a']);
  });

  test('what others write at the same moment is not overwritten', async () => {
    await world();
    await w.member('md');
    await w.pass();
    let scaled = false;
    w.fault = async ({ path }) => {
      if (path.includes('/machinedeployments/') && !scaled) {
        scaled = true;
        await w.scale('md', 3);
      }
      return undefined;
    };
    await w.launch(await w.claim('a'));
    expect(await w.replicas('md')).toBe(4);
  });

  test('§6.2 BUG: Machines that cannot be listed do not count as none: nothing is raised before they are known', async () => {
    let isBroken = true;
    const refusal = { status: 500, body: 'etcd is away' };
    const isOfMachines = (path: string): boolean => isBroken && /\/machines(\?|$)/.test(path);
    await world({
      door: (transport) => ({
        request: async (request) => (isOfMachines(request.path) ? refusal : transport.request(request)),
        watch: async (request) => (isOfMachines(request.path) ? refusal : transport.watch(request)),
        close: () => transport.close(),
      }),
    });
    await w.member('md', { replicas: 2 });
    await w.pass(5000);
    const claim = await w.claim('a');
    const refused = await failure(w.finish(w.provider.create(claim, w.signal)));
    expect(refused).toMatchObject({ code: 'KRP_HUB_UNAVAILABLE' });
    expect([await w.replicas('md'), w.writes]).toEqual([2, []]);
    isBroken = false;
    await w.pass(60_000);
    await w.launch(claim);
    expect(await w.replicas('md')).toBe(3);
  });

  test('§6.2 TRAP: never takes a Machine that was there before', async () => {
    await world();
    await running('md', 2);
    const before = (await w.machines()).map(({ metadata }) => metadata.name);
    const claim = await w.launch(await w.claim('a'));
    expect(await w.replicas('md')).toBe(3);
    const own = (await w.machines()).find(({ spec }) => spec?.providerID === claim.status?.providerID);
    expect(before).not.toContain(own?.metadata.name);
  });

  test('takes one that was there before when it is told to', async () => {
    await world({ nodeClass: { machineAdoption: 'IfUnclaimed' } });
    await running('md', 1);
    const [there] = await w.machines();
    const first = await w.launch(await w.claim('a'));
    expect(first.status?.providerID).toBe(there?.spec?.providerID);
    await w.launch(await w.claim('b'));
    expect(await w.replicas('md')).toBe(2);
  });

  test('§6.2 TRAP: works when the member label is in the template as well', async () => {
    await world();
    await w.member('md', { templateLabels: { [memberLabel]: '' } });
    await w.pass();
    await w.launch(await w.claim('a'));
    expect(await w.replicas('md')).toBe(1);
  });

  test('§5 BUG: a batch does not exceed the maximum size; who finds no room goes elsewhere', async () => {
    await world();
    const max = { [capi.maxSize]: '2', 'karpenter.cluster.x-k8s.io/price': '1' };
    await w.member('cheap', { annotations: max });
    await w.member('dear', { annotations: { 'karpenter.cluster.x-k8s.io/price': '9', [capi.maxSize]: '1' } });
    await w.pass();
    const claims = await Promise.all(Array.from({ length: 5 }, (_, i) => w.claim(`c${i}`)));
    const outcomes = await Promise.all(claims.map((claim) => failure(w.launch(claim))));
    expect(outcomes.filter((error) => error === undefined)).toHaveLength(3);
    expect(outcomes.filter(isInsufficientCapacity)).toHaveLength(2);
    expect([await w.replicas('cheap'), await w.replicas('dear')]).toEqual([2, 1]);
    await w.pass();
    const [type] = await w.finish(w.provider.instanceTypes(w.pool(), w.signal));
    expect(type?.offerings.some(({ available }) => available)).toBe(false);
  });

  test('a member whose record has no room left is passed over, before the API server refuses it', async () => {
    await world();
    const price = (amount: string) => ({ 'karpenter.cluster.x-k8s.io/price': amount });
    await w.member('full', { annotations: { ...price('0.1'), notes: 'x'.repeat(245_500) } });
    await w.member('other', { annotations: price('1') });
    await w.pass();
    await w.launch(await w.claim('a'));
    expect([await w.replicas('full'), await w.replicas('other')]).toEqual([0, 1]);
    expect(w.log.lines.map(({ message }) => message)).toContain('the ledger of a member is full: split it');
    // It is not tried again for the next.
    await w.launch(await w.claim('b'));
    expect([await w.replicas('full'), await w.replicas('other')]).toEqual([0, 2]);
  });

  test('a Machine that fails is given back, and its member is not for sale for a while', async () => {
    await world({ behavior: () => ({ fails: 'NoHosts' }) });
    await w.member('md');
    await w.pass();
    const refused = await failure(w.launch(await w.claim('a')));
    expect(isInsufficientCapacity(refused)).toBe(true);
    expect(String(refused)).toContain('NoHosts');
    expect(await w.replicas('md')).toBe(0);
    const available = async () =>
      (await w.finish(w.provider.instanceTypes(w.pool(), w.signal)))[0]?.offerings[0]?.available;
    expect(await available()).toBe(false);
    await w.pass(30_000);
    expect(await w.machines()).toEqual([]);
    await w.pass(180_000);
    expect(await available()).toBe(true);
  });

  test.each(['v1beta1', 'v1beta2'] as const)(
    'a member that says it cannot make Machines is given up after a while (%s)',
    async (version) => {
      await world({ withoutManagers: true, version });
      await w.member('md');
      await w.pass();
      const claim = await w.claim('a');
      expect(await failure(w.finish(w.provider.create(claim, w.signal)))).toMatchObject({
        conditionReason: 'WaitingForMachine',
      });
      const condition = {
        type: 'MachinesCreated',
        status: 'False',
        severity: 'Error',
        reason: 'CloningFailed',
        message: 'no template',
      };
      await w.hub
        .resource(w.kinds.machineDeployment)
        .patchStatus('md', { status: inVersion(version, { conditions: [condition] }) }, { namespace: 'default' });
      await w.pass(15_000);
      const refused = await failure(w.finish(w.provider.create(claim, w.signal)));
      expect(isInsufficientCapacity(refused)).toBe(true);
      expect(String(refused)).toContain('CloningFailed: no template');
      expect(await w.replicas('md')).toBe(0);
    },
  );

  test.each(['v1beta1', 'v1beta2'] as const)(
    'so is one whose infrastructure says it never will be (%s)',
    async (version) => {
      await world({ version, behavior: () => ({ neverProvisions: true }) });
      await w.member('md');
      await w.pass();
      const claim = await w.claim('a');
      await failure(w.finish(w.provider.create(claim, w.signal)));
      const [machine] = await w.machines();
      const condition = { type: 'InfrastructureReady', status: 'False', severity: 'Error', reason: 'QuotaExceeded' };
      await w.hub
        .resource(w.kinds.machine)
        .patchStatus(
          machine!.metadata.name!,
          { status: inVersion(version, { conditions: [condition] }) },
          { namespace: 'default' },
        );
      await w.pass(100);
      const refused = await failure(w.finish(w.provider.create(claim, w.signal)));
      expect(isInsufficientCapacity(refused)).toBe(true);
      expect(String(refused)).toContain('QuotaExceeded');
      await w.pass(30_000);
      expect([await w.replicas('md'), (await w.machines()).length]).toEqual([0, 0]);
    },
  );

  test('§1 GAP: MachineSets are members too, but not those of a MachineDeployment', async () => {
    await world();
    await w.member('ms', { kind: 'MachineSet' });
    await w.pass();
    const claim = await w.launch(await w.claim('a'));
    const sets = w.hub.resource(w.kinds.machineSet);
    expect((await sets.get('ms', { namespace: 'default' })).spec?.replicas).toBe(1);
    await w.remove(claim);
    expect((await sets.get('ms', { namespace: 'default' })).spec?.replicas).toBe(0);
    expect(await w.machines()).toEqual([]);
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

describe('removing', () => {
  async function launched(count: number): Promise<Awaited<ReturnType<CapiWorld['launch']>>[]> {
    const claims = await Promise.all(Array.from({ length: count }, (_, i) => w.claim(`c${i}`)));
    const done = await Promise.all(claims.map((claim) => w.launch(claim)));
    await w.pass(20_000);
    return done;
  }

  test('§6.4 BUG: lowers replicas once, however long Cluster API stands still', async () => {
    await world();
    await running('md', 1);
    const [a, b] = await launched(2);
    await w.stopManagers();
    for (let i = 0; i < 20; i++) {
      await w.finish(w.provider.delete(a!, w.signal));
      await w.pass(5000);
    }
    expect(await w.replicas('md')).toBe(2);
    await w.startManagers();
    await w.remove(a!);
    const left = await w.machines();
    expect(left).toHaveLength(2);
    expect(left.map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('lowers replicas once although Machines are told of late', async () => {
    let isLate = false;
    await world({ door: (transport) => lateMachines(transport, () => isLate) });
    await running('md', 1);
    const [a, b] = await launched(2);
    await w.stopManagers();
    isLate = true;
    for (let i = 0; i < 3; i++) await w.finish(w.provider.delete(a!, w.signal));
    expect(await w.replicas('md')).toBe(2);
    isLate = false;
    await w.startManagers();
    await w.remove(a!);
    expect((await w.machines()).map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('takes the right Machine out of many, all at once', async () => {
    await world();
    await running('md', 3);
    const claims = await launched(6);
    const writes = w.writes.length;
    await Promise.all(claims.slice(0, 4).map((claim) => w.remove(claim)));
    expect(await w.replicas('md')).toBe(5);
    const left = (await w.machines()).map(({ spec }) => spec?.providerID);
    expect(left).toHaveLength(5);
    for (const claim of claims.slice(4)) expect(left).toContain(claim.status?.providerID);
    // Four marks and one write to the member.
    expect(w.writes.length - writes).toBe(5);
  });

  test('goes on after a crash between the mark and the replicas', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const [claim] = await launched(1);
    let member = 0;
    w.fault = ({ path }) =>
      path.includes('/machinedeployments/') && member++ < 1 ? { status: 500, body: 'no' } : undefined;
    expect(await failure(w.finish(w.provider.delete(claim!, w.signal)))).toBeDefined();
    await w.restart();
    await w.remove(claim!);
    expect(await w.replicas('md')).toBe(0);
    expect(await w.machines()).toEqual([]);
  });

  test('works while somebody else scales', async () => {
    await world();
    await running('md', 2);
    const [a] = await launched(1);
    await w.scale('md', 5);
    await w.remove(a!);
    expect(await w.replicas('md')).toBe(4);
    expect(await w.machines()).toHaveLength(4);
  });

  test('§6.4 TRAP: waits for a rollout instead of lowering on the wrong side of it', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const claims = await launched(3);
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { spec: { template: { spec: { version: 'v2' } } } }, { namespace: 'default' });
    await w.pass(3000);
    await w.finish(w.provider.delete(claims[0]!, w.signal));
    expect(await w.replicas('md')).toBe(3);
    await w.pass(120_000);
    // Cluster API has replaced all three; each NodeClaim lost its Machine and gives its place back.
    for (const claim of claims) await w.remove(claim);
    await w.pass(30_000);
    expect(await w.replicas('md')).toBe(0);
    expect(await w.machines()).toEqual([]);
  });

  test('a Machine that was deleted under us is replaced by Cluster API; the replacement goes, nobody else', async () => {
    await world();
    await running('md', 2);
    const base = (await w.machines()).map(({ metadata }) => metadata.name);
    const [a, b] = await launched(2);
    const machine = (await w.machines()).find(({ spec }) => spec?.providerID === a?.status?.providerID);
    await w.hub.resource(w.kinds.machine).delete(machine!.metadata.name!, { namespace: 'default' });
    await w.pass(60_000);
    expect(await w.machines()).toHaveLength(4);
    expect(await w.remove(a!)).toBe(1);
    await w.pass(30_000);
    expect(await w.replicas('md')).toBe(3);
    const left = await w.machines();
    expect(left.map(({ metadata }) => metadata.name)).toEqual(expect.arrayContaining(base));
    expect(left.map(({ spec }) => spec?.providerID)).toContain(b?.status?.providerID);
  });

  test('when the wrong Machine was chosen, notices and removes the right one', async () => {
    await world();
    await running('md', 1);
    const [a] = await launched(1);
    await w.stopManagers();
    await w.finish(w.provider.delete(a!, w.signal));
    expect(await w.replicas('md')).toBe(1);
    // Somebody deletes the stranger by hand before Cluster API acts: the count is right, the Machine is not.
    const stranger = (await w.machines()).find(({ spec }) => spec?.providerID !== a?.status?.providerID);
    await w.hub
      .resource(w.kinds.machine)
      .patch(stranger!.metadata.name!, { metadata: { finalizers: [] } }, { namespace: 'default' });
    await w.hub.resource(w.kinds.machine).delete(stranger!.metadata.name!, { namespace: 'default' });
    const [set] = (await w.hub.resource(w.kinds.machineSet).list()).items;
    const lowered = { spec: { replicas: 1 } };
    await w.hub.resource(w.kinds.machineSet).patch(set!.metadata.name!, lowered, { namespace: 'default' });
    await w.startManagers();
    await w.pass(5000);
    await w.remove(a!);
    await w.pass(60_000);
    expect(await w.replicas('md')).toBe(1);
    const left = await w.machines();
    expect(left).toHaveLength(1);
    expect(left[0]?.spec?.providerID).not.toBe(a?.status?.providerID);
  });

  test('§2 GAP: keeps the minimum size; the Machine goes all the same', async () => {
    await world();
    await w.member('md', { annotations: { [capi.minSize]: '1' } });
    await w.pass();
    const [a] = await launched(1);
    await w.remove(a!);
    await w.pass(60_000);
    expect(await w.replicas('md')).toBe(1);
    expect((await w.machines()).map(({ spec }) => spec?.providerID)).not.toContain(a?.status?.providerID);
  });

  test('counts once although the record was taken off the member', async () => {
    await world();
    await running('md', 1);
    const [a] = await launched(1);
    const object = await w.hub.resource(w.kinds.machineDeployment).get('md', { namespace: 'default' });
    const key = Object.keys(object.metadata.annotations!).find((name) => name.includes('/nodeclaims.'))!;
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { metadata: { annotations: { [key]: null } } }, { namespace: 'default' });
    await w.pass(100);
    await w.remove(a!);
    expect(await w.replicas('md')).toBe(1);
    expect(await w.machines()).toHaveLength(1);
  });

  test("never touches a stranger's Machine", async () => {
    await world();
    await running('md', 1);
    const [stranger] = await w.machines();
    const claim = await w.claim('a');
    const wrong = { ...claim, status: { providerID: stranger!.spec!.providerID! } };
    expect(isNodeClaimNotFound(await failure(w.finish(w.provider.delete(wrong, w.signal))))).toBe(true);
    expect(isNodeClaimNotFound(await failure(w.provider.get(stranger!.spec!.providerID!, w.signal)))).toBe(true);
    expect(w.writes).toEqual([]);
  });

  test('a Machine whose MachineDeployment is gone is deleted itself', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const [a] = await launched(1);
    await w.stopManagers();
    await w.hub.resource(w.kinds.machineDeployment).delete('md', { namespace: 'default', propagationPolicy: 'Orphan' });
    await w.pass();
    await w.startManagers();
    await w.remove(a!);
    expect(isNodeClaimNotFound(await failure(w.provider.get(a!.status!.providerID!, w.signal)))).toBe(true);
  });
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
    await running('md', 1);
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

describe('drift', () => {
  const change = (spec: object): Promise<unknown> =>
    w.hub.resource(w.kinds.machineDeployment).patch('md', { spec }, { namespace: 'default' });

  async function one(strategy: string): Promise<Awaited<ReturnType<CapiWorld['launch']>>> {
    await w.member('md', { spec: { strategy: { type: strategy } } });
    await w.pass();
    const claim = await w.launch(await w.claim('a'));
    await w.pass(20_000);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
    return claim;
  }

  test.each([
    ['InfrastructureTemplateDrifted', { infrastructureRef: { name: 'other' } }],
    ['BootstrapTemplateDrifted', { bootstrap: { dataSecretName: 'other' } }],
    ['VersionDrifted', { version: 'v1.36.1' }],
    ['FailureDomainDrifted', { failureDomain: 'elsewhere' }],
  ])('§6.9 GAP: %s where Cluster API leaves replacing to others', async (reason, spec) => {
    await world();
    const claim = await one('OnDelete');
    await change({ template: { spec } });
    await w.pass();
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe(reason);
  });

  test('§15 (61): is left to Cluster API where it rolls out by itself', async () => {
    await world();
    const claim = await one('RollingUpdate');
    await change({ template: { spec: { version: 'v2' } } });
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
  });

  test('is left to it always when the NodeClass says so', async () => {
    await world({ nodeClass: { drift: 'Defer' } });
    const claim = await one('OnDelete');
    await change({ template: { spec: { version: 'v2' } } });
    await w.pass();
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
  });

  test('comes from a template that was changed under its name: user data, kubelet settings', async () => {
    await world();
    const template = {
      apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1',
      kind: 'EmbeddedMachineTemplate',
      metadata: { name: 'md-template', namespace: 'default' },
      spec: { template: { spec: { disk: '20Gi' } } },
    };
    const type = {
      group: 'infrastructure.cluster.x-k8s.io',
      version: 'v1beta1',
      kind: 'EmbeddedMachineTemplate',
      plural: 'embeddedmachinetemplates',
      namespaced: true,
    };
    await w.hub.resource(type).create(template as never);
    const claim = await one('RollingUpdate');
    await w.hub
      .resource(type)
      .patch('md-template', { spec: { template: { spec: { disk: '40Gi' } } } }, { namespace: 'default' });
    await w.pass(61_000);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('TemplateContentDrifted');
  });

  test('comes from labels that the member tells otherwise now; those of the template change in place', async () => {
    await world();
    const told = (labels: string): Promise<unknown> =>
      w.hub
        .resource(w.kinds.machineDeployment)
        .patch('md', { metadata: { annotations: { [capacityAnnotations.labels]: labels } } }, { namespace: 'default' });
    const before = 'kubernetes.io/arch=amd64,topology.kubernetes.io/zone=zone-a';
    const claim = await one('RollingUpdate');
    await change({ template: { metadata: { labels: { 'node.cluster.x-k8s.io/team': 'red' } } } });
    await told(`${before},node.kubernetes.io/instance-type=large`);
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('');
    await told(`${before},example.com/disk=fast`);
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('LabelsDrifted');
  });

  test('comes from a member that the NodeClass no longer selects', async () => {
    await world();
    const claim = await one('RollingUpdate');
    await w.hub
      .resource(w.kinds.machineDeployment)
      .patch('md', { metadata: { labels: { [memberLabel]: null } } }, { namespace: 'default' });
    await w.pass(100);
    expect(await w.finish(w.provider.driftReason(claim, w.signal))).toBe('MemberDrifted');
  });
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
