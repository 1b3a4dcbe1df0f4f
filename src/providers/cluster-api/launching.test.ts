// SPDX-License-Identifier: Apache-2.0
// From a NodeClaim to its Machine, over the model of Cluster API. Where a test stands for a mark of the specification it
// is named by it.
import { afterEach, describe, expect, test } from 'vitest';
import { nodeClaimKind } from '../../api/node-claim.ts';
import { isInsufficientCapacity, isNodeClassNotReady } from '../../cloud/errors.ts';
import type { Machine } from './kinds.ts';
import { annotations, capi, memberLabel } from './names.ts';
import { CapiWorld, conflictAnswer, failure, type WorldOptions } from './testing/world.ts';

let w: CapiWorld;
afterEach(() => w.stop());

async function world(options?: WorldOptions): Promise<CapiWorld> {
  w = await CapiWorld.start(options);
  return w;
}

const owners = (machines: readonly Machine[]): (string | undefined)[] =>
  machines.map(({ metadata }) => metadata.annotations?.[annotations.claimName]);

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

  test('waits a second at most for company, however many come one after the other', async () => {
    await world();
    await w.member('md');
    await w.pass();
    const launches: Promise<unknown>[] = [];
    for (let i = 0; i < 25; i++) {
      launches.push(w.provider.create(await w.claim(`c${i}`), w.signal).catch(() => undefined));
      await w.pass(80);
    }
    expect(await w.replicas('md')).toBeGreaterThan(10);
    await w.finish(Promise.all(launches));
    expect(await w.replicas('md')).toBe(25);
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
    await w.running('md', 2);
    const before = (await w.machines()).map(({ metadata }) => metadata.name);
    const claim = await w.launch(await w.claim('a'));
    expect(await w.replicas('md')).toBe(3);
    const own = (await w.machines()).find(({ spec }) => spec?.providerID === claim.status?.providerID);
    expect(before).not.toContain(own?.metadata.name);
  });

  test('takes one that was there before when it is told to', async () => {
    await world({ nodeClass: { machineAdoption: 'IfUnclaimed' } });
    await w.running('md', 1);
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

  test('a member that makes no Machine, and does not say why, is not for sale for a while once it was waited for in vain', async () => {
    await world({ withoutManagers: true });
    await w.member('md');
    await w.pass();
    const available = async () =>
      (await w.finish(w.provider.instanceTypes(w.pool(), w.signal)))[0]?.offerings[0]?.available;
    const giveUpAfter = async (name: string, ms: number): Promise<void> => {
      const claim = await w.claim(name);
      const waiting = { conditionReason: 'WaitingForMachine' };
      expect(await failure(w.finish(w.provider.create(claim, w.signal)))).toMatchObject(waiting);
      await w.pass(ms);
      await failure(w.finish(w.provider.delete(claim, w.signal)));
    };
    await giveUpAfter('a', 30_000);
    expect(await available()).toBe(true);
    await giveUpAfter('b', 300_000);
    expect(await available()).toBe(false);
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
