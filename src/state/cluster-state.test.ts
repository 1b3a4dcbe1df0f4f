// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { labels } from '../api/labels.ts';
import { type TestWorld, testWorld } from '../controllers/testing/world.ts';
import { kinds, type Pod } from '../kube/kinds.ts';
import type { KubeObject } from '../kube/object.ts';
import { formatAmounts } from './amounts.ts';
import type { ClusterState } from './cluster-state.ts';
import type { PoolCatalog } from './pool-catalog.ts';
import { snapshotProblem } from './snapshot.ts';
import { boundPod, launchedClaim, node, ownedBy, pendingPod, pod } from './testing/objects.ts';

let world: TestWorld;
let state: ClusterState;

beforeEach(async () => {
  world = await testWorld();
  state = world.state;
});
afterEach(() => world.close());

async function given<T extends readonly KubeObject[]>(...objects: T): Promise<void> {
  await world.apply(...objects);
  await world.settle();
}

const registered = { [labels.nodePool]: 'default', [labels.registered]: 'true', [labels.instanceType]: 'c-10x' };
const initialized = { ...registered, [labels.initialized]: 'true' };

describe('a machine in the state', () => {
  test('is a Node and a NodeClaim with the same provider id, whichever comes first', async () => {
    await given(launchedClaim('claim-1', { providerID: 'fake://a' }));
    expect(state.nodeByClaim('claim-1')?.node).toBeUndefined();
    await given(node('a', { labels: registered }));
    const machine = state.nodeByProviderID('fake://a');
    expect(machine?.nodeClaim?.metadata.name).toBe('claim-1');
    expect(state.nodeByName('a')).toBe(machine);
    expect([...state.nodes()]).toHaveLength(1);

    await given(node('b', { labels: registered }), launchedClaim('claim-2', { providerID: 'fake://b' }));
    expect(state.nodeByName('b')).toBe(state.nodeByClaim('claim-2'));
  });

  test('speaks with the voice of its NodeClaim until its Node is registered', async () => {
    const taints = [{ key: 'team', value: 'a', effect: 'NoSchedule' as const }];
    await given(launchedClaim('claim-1', { providerID: 'fake://a', spec: { taints } }));
    await given(
      node('a', {
        labels: { [labels.nodePool]: 'default', [labels.instanceType]: 'c-10x' },
        spec: { providerID: 'fake://a', taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }] },
      }),
    );
    const machine = state.nodeByName('a')!;
    expect(machine).toMatchObject({ name: 'claim-1', registered: false, initialized: false, taints });
    expect(machine.labels[labels.zone]).toBe('zone-a');

    await given(node('a', { labels: registered }));
    expect(machine).toMatchObject({ name: 'a', registered: true, initialized: false, taints: [] });
    expect(machine.hostname).toBe('a');
  });

  test('hides taints that will go away until it is initialised, and shows them afterwards', async () => {
    const startupTaints = [{ key: 'cni', effect: 'NoSchedule' as const }];
    const taints = [
      { key: 'cni', effect: 'NoSchedule' },
      { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
      { key: 'team', effect: 'NoSchedule' },
    ];
    const spec = { providerID: 'fake://a', taints };
    await given(launchedClaim('claim-1', { providerID: 'fake://a', spec: { startupTaints } }));
    await given(node('a', { labels: registered, spec }));
    expect(state.nodeByName('a')?.taints.map(({ key }) => key)).toEqual(['team']);
    await given(node('a', { labels: initialized, spec }));
    expect(state.nodeByName('a')?.taints).toHaveLength(3);
  });

  test('that joined twice is the Node that its NodeClaim names, whichever was heard of last', async () => {
    const again = node('a-again', { spec: { providerID: 'fake://a' } });
    await given(launchedClaim('claim-1', { providerID: 'fake://a', nodeName: 'a' }));
    await given(node('a', { labels: initialized }), again);
    const machine = state.nodeByProviderID('fake://a')!;
    expect(machine.node?.metadata.name).toBe('a');
    await given({ ...again, metadata: { ...again.metadata, labels: { ...again.metadata.labels, noted: 'true' } } });
    expect(machine).toMatchObject({ name: 'a', initialized: true });

    // A program that starts now may hear of Nodes first, in any order.
    await given(node('b', { labels: initialized }), node('b-again', { spec: { providerID: 'fake://b' } }));
    await given(launchedClaim('claim-2', { providerID: 'fake://b', nodeName: 'b' }));
    expect(state.nodeByProviderID('fake://b')).toMatchObject({ name: 'b', initialized: true });
    expect(state.nodeByName('b')).toBe(state.nodeByClaim('claim-2'));
  });

  test('stays closed when its machine joined again under another name', async () => {
    const taints = [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' as const }];
    const claim = launchedClaim('claim-1', { providerID: 'fake://a' });
    await given({ ...claim, status: { ...claim.status, nodeName: 'a' } });
    await given(node('a-again', { spec: { providerID: 'fake://a', taints } }));
    expect(state.nodeByClaim('claim-1')?.taints).toContainEqual(taints[0]);
  });

  test('is not closed by what others put on its young Node before it is registered', async () => {
    await given(launchedClaim('claim-1', { providerID: 'fake://a' }));
    const taints = [{ key: 'node.cluster.x-k8s.io/uninitialized', effect: 'NoSchedule' as const }];
    await given(node('a', { spec: { providerID: 'fake://a', taints } }));
    expect(state.nodeByName('a')?.taints).toEqual([]);
  });

  test('has what the cloud promised until its Node reports it, and counts one node', async () => {
    await given(launchedClaim('claim-1', { providerID: 'fake://a' }));
    const machine = state.nodeByClaim('claim-1')!;
    expect(formatAmounts(machine.capacity)).toEqual({ cpu: '10', memory: '20Gi', nodes: '1', pods: '110' });
    const partial = { capacity: { cpu: '9', memory: '0' }, allocatable: { cpu: '8' } };
    await given(node('a', { labels: registered, status: partial }));
    expect(formatAmounts(machine.allocatable)).toEqual({ cpu: '8', memory: '20Gi', pods: '110' });
    expect(formatAmounts(machine.capacity)['memory']).toBe('20Gi');
    await given(node('a', { labels: initialized, status: partial }));
    expect(formatAmounts(machine.allocatable)).toEqual({ cpu: '8' });
  });

  test('is gone when both its Node and its NodeClaim are', async () => {
    const [claim, own] = [launchedClaim('claim-1', { providerID: 'fake://a' }), node('a', { labels: registered })];
    await given(claim, own);
    await world.delete(own);
    await world.settle();
    expect(state.nodeByClaim('claim-1')?.node).toBeUndefined();
    expect(state.nodeByName('a')).toBeUndefined();
    await world.delete(claim);
    await world.settle();
    expect(state.nodeCount).toBe(0);
  });

  test('may be a node of somebody else: ready as it is, known by its name when it has no provider id', async () => {
    await given(node('theirs', { spec: {} }));
    const machine = state.nodeByName('theirs');
    expect(machine).toMatchObject({ key: 'theirs', managed: false, registered: true, initialized: true });
    expect(machine?.taints.map(({ key }) => key)).toContain('node.kubernetes.io/not-ready');
  });

  test('is not taken in while a node of ours does not say which machine it is', async () => {
    await given(node('a', { labels: { [labels.nodePool]: 'default' }, spec: {} }));
    await given(node('b', { labels: { [labels.nodePool]: 'default' } }));
    expect(state.nodeCount).toBe(0);
    await given(node('b', { labels: registered }));
    expect(state.nodeByName('b')?.key).toBe('fake://b');
  });

  test('of a NodeClass that nobody serves is not ours', async () => {
    const claim = launchedClaim('claim-1', { providerID: 'fake://a' });
    const nodeClassRef = { group: 'other.sh', kind: 'NodeClass', name: 'default' };
    await given({ ...claim, spec: { ...claim.spec, nodeClassRef } });
    expect(state.nodeCount).toBe(0);
    expect(state.isSynced()).toBe(true);
  });
});

describe('pods', () => {
  test('count on their node, whether the pod or the Node is seen first', async () => {
    await given(boundPod('early', 'a'));
    await given(node('a'), boundPod('late', 'a'));
    const machine = state.nodeByName('a')!;
    expect(formatAmounts(machine.requests)).toEqual({ cpu: '2', memory: '2Gi', pods: '2' });
    expect(formatAmounts(machine.available())).toEqual({ cpu: '8', memory: '18Gi', pods: '108' });
    expect([...state.podsOn('a')].map(({ metadata }) => metadata.name)).toEqual(['early', 'late']);
  });

  test('of DaemonSets count apart as well, and the newest stands for its set', async () => {
    const daemon = (name: string, creationTimestamp: string) => {
      const owned = ownedBy(boundPod(name, 'a'), 'apps/v1', 'DaemonSet', 'agent');
      return { ...owned, metadata: { ...owned.metadata, creationTimestamp } };
    };
    await given(node('a'), boundPod('web', 'a'), daemon('agent-1', '2026-01-01T00:00:00Z'));
    await world.advance(5000);
    await given(daemon('agent-2', '2026-01-02T00:00:00Z'));
    const machine = state.nodeByName('a')!;
    expect(formatAmounts(machine.daemonRequests)).toEqual({ cpu: '2', memory: '2Gi', pods: '2' });
    expect(formatAmounts(machine.requests)['cpu']).toBe('3');
    expect(state.daemonSetPods().get('default/agent')?.metadata.name).toBe('agent-2');
  });

  test('that are over take nothing, and those that are gone are forgotten', async () => {
    const job = boundPod('job', 'a');
    await given(node('a'), job);
    await given({ ...job, status: { phase: 'Succeeded' } });
    expect(formatAmounts(state.nodeByName('a')!.requests)).toEqual({});
    expect([...state.podsOn('a')]).toHaveLength(1);
    await world.delete(job);
    await world.advance(60_000);
    expect([...state.podsOn('a')]).toHaveLength(0);
  });

  test('wait for a node from the moment the scheduler gives up until they are bound', async () => {
    const pod = pendingPod('web');
    await given(node('a'), pod);
    expect([...state.pendingPods()].map(({ metadata }) => metadata.name)).toEqual(['web']);
    await world.bind(pod, 'a');
    expect(state.pendingCount).toBe(0);
  });

  test('keep the NodeClaim that was made for them until they are bound, although kube-scheduler never came to them', async () => {
    const [fresh, refused] = [pod('new'), pendingPod('refused')];
    await given(fresh, refused);
    const uids = [...state.sources.pods.list()].map(({ metadata }) => [metadata.name, metadata.uid!] as const);
    for (const [name, uid] of uids) state.bookkeeping.assign(uid, `claim-of-${name}`);
    expect(state.awaitedClaims()).toEqual(new Set(['claim-of-new', 'claim-of-refused']));
    await given(node('a'));
    await world.bind(fresh, 'a');
    expect(state.awaitedClaims()).toEqual(new Set(['claim-of-refused']));
  });

  test('weigh on a node by what it costs to move them; daemons cost nothing', async () => {
    const cheap = {
      ...boundPod('cheap', 'a').metadata,
      annotations: { 'controller.kubernetes.io/pod-deletion-cost': '-2147483647' },
    };
    await given(
      node('a'),
      boundPod('web', 'a'),
      { ...boundPod('cheap', 'a'), metadata: cheap },
      ownedBy(boundPod('agent', 'a'), 'apps/v1', 'DaemonSet'),
    );
    expect(state.nodeByName('a')?.rescheduleCost()).toBe(2);
  });
});

describe('pools', () => {
  test('sum up their nodes; what is marked for deletion counts nothing until the mark is taken back', async () => {
    await given(launchedClaim('a'), launchedClaim('b'), launchedClaim('c', { pool: 'other' }));
    expect(formatAmounts(state.poolUsage('default'))).toEqual({ cpu: '20', memory: '40Gi', nodes: '2', pods: '220' });
    state.markForDeletion(['fake://a']);
    expect(formatAmounts(state.poolUsage('default'))['nodes']).toBe('1');
    expect(state.nodesOfPool('default').size).toBe(2);
    state.unmarkForDeletion(['fake://a']);
    expect(formatAmounts(state.poolUsage('default'))['nodes']).toBe('2');
    expect(formatAmounts(state.poolUsage('nobody'))).toEqual({});
  });

  test('do not count a NodeClaim that is being deleted', async () => {
    const claim = launchedClaim('a');
    await given({ ...claim, metadata: { ...claim.metadata, finalizers: ['karpenter.sh/termination'] } });
    await world.delete(claim);
    await world.settle();
    expect(state.nodeByClaim('a')).toMatchObject({ deleted: true, markedForDeletion: true });
    expect(formatAmounts(state.poolUsage('default'))).toEqual({});
  });
});

describe('the state is synced', () => {
  test('unless a NodeClaim waits for its machine', async () => {
    expect(state.isSynced()).toBe(true);
    await given(launchedClaim('a', { providerID: '' }));
    expect(state.isSynced()).toBe(false);
    expect([...state.unlaunchedClaims]).toEqual(['a']);
    await given(launchedClaim('a'));
    expect(state.isSynced()).toBe(true);
  });

  test('and knows a NodeClaim that was just created before the watch shows it', async () => {
    const [stored] = await world.apply(launchedClaim('a', { providerID: '' }));
    state.trackCreated(stored);
    expect(state.isSynced()).toBe(false);
  });

  test('also after a created NodeClaim vanished without a trace', async () => {
    state.trackCreated(launchedClaim('ghost', { providerID: '' }));
    expect(state.isSynced()).toBe(false);
    await world.advance(15_000);
    expect(state.isSynced()).toBe(true);
  });

  test('and is not fooled by an old version of a NodeClaim that has moved on', async () => {
    await given(launchedClaim('a'));
    state.trackCreated(launchedClaim('a', { providerID: '' }));
    expect(state.isSynced()).toBe(true);
  });
});

describe('promises', () => {
  test('last twice the longest batch', async () => {
    await given(node('a', { spec: { providerID: 'fake://a' } }));
    state.nominate('fake://a');
    await world.advance(19_999);
    expect(state.isNominated('fake://a')).toBe(true);
    await world.advance(1);
    expect(state.isNominated('fake://a')).toBe(false);
  });
});

describe('the place of a pod that has to leave its machine', () => {
  const uids = new Map<string, string>();
  const ofSet = (pod: Pod, set: string): Pod => {
    const owned = ownedBy(pod, 'apps/v1', 'ReplicaSet', set);
    const [owner] = owned.metadata.ownerReferences!;
    return { ...owned, metadata: { ...owned.metadata, ownerReferences: [{ ...owner!, uid: uids.get(set)! }] } };
  };
  const promised = () => {
    const catalog = { pools: [], instanceTypes: {}, labels: {}, failures: [] } as unknown as PoolCatalog;
    const { registry, clock } = world;
    return snapshotProblem(state, { catalog, registry, now: clock.now(), keepsPromises: true }).state?.promised;
  };
  const waiting = (name: string, set = 'web') => ofSet(pendingPod(name), set);

  beforeEach(async () => {
    for (const name of ['web', 'other']) {
      const labels = { app: name };
      const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app' }] } };
      const [set] = await world.apply({
        apiVersion: 'apps/v1',
        kind: 'ReplicaSet',
        metadata: { name, namespace: 'default' },
        spec: { replicas: 0, selector: { matchLabels: labels }, template },
      } as KubeObject);
      uids.set(name, set!.metadata.uid!);
    }
    await given(
      node('old', { spec: { providerID: 'fake://old' } }),
      ofSet(boundPod('web-1', 'old'), 'web'),
      launchedClaim('bought', { providerID: 'fake://bought' }),
    );
    state.trackCreated(launchedClaim('bought', { providerID: 'fake://bought' }), ['default/web-1']);
  });

  test('is where it was planned, once the machine is to go', () => {
    expect(promised()).toEqual({});
    state.markForDeletion(['fake://old']);
    expect(promised()).toEqual({ 'default/web-1': 'bought' });
    state.unmarkForDeletion(['fake://old']);
    expect(promised()).toEqual({});
  });

  test('is for the pod that its owner makes in its stead, and for no other', async () => {
    state.markForDeletion(['fake://old']);
    await world.workload.resource(kinds.Pod).delete('web-1', { namespace: 'default' });
    await given(waiting('other', 'other'), waiting('web-2'), waiting('web-3'));
    expect(promised()).toEqual({ 'default/web-2': 'bought' });
  });

  test('is left as soon as the pod is told to stop: the next comes before it is gone', async () => {
    state.markForDeletion(['fake://old']);
    await world.workload
      .resource(kinds.Pod)
      .patch('web-1', { metadata: { finalizers: ['example.com/slow'] } }, { namespace: 'default' });
    await world.workload.resource(kinds.Pod).delete('web-1', { namespace: 'default' });
    await given(waiting('web-2'));
    await given(waiting('web-3'));
    expect(promised()).toEqual({ 'default/web-2': 'bought' });
  });

  test('is not kept for ever, also when the clock goes back', async () => {
    state.markForDeletion(['fake://old']);
    await world.workload.resource(kinds.Pod).delete('web-1', { namespace: 'default' });
    await world.settle();
    const now = world.clock.now.bind(world.clock);
    vi.spyOn(world.clock, 'now').mockImplementation(() => now() - 24 * 3_600_000);
    await world.advance(20_000);
    await given(waiting('web-2'));
    expect(promised()).toEqual({});
  });

  test("is nobody else's when the pod goes from a machine that stays", async () => {
    await world.workload.resource(kinds.Pod).delete('web-1', { namespace: 'default' });
    await given(waiting('web-2'));
    expect(promised()).toEqual({});
  });
});

describe('the consolidation stamp', () => {
  async function changesWith(happening: () => Promise<unknown>): Promise<boolean> {
    const before = state.consolidationStamp();
    await happening();
    await world.settle();
    return state.consolidationStamp() !== before;
  }

  test('changes with nodes, bindings, ends of pods, marks and pools, and rests otherwise', async () => {
    const web = boundPod('web', 'a');
    expect(await changesWith(() => world.apply(node('a')))).toBe(true);
    expect(await changesWith(() => world.apply(web))).toBe(true);
    expect(await changesWith(() => world.apply(pendingPod('waiting')))).toBe(false);
    expect(await changesWith(() => world.apply(node('a', { labels: { team: 'x' } })))).toBe(false);
    expect(await changesWith(() => world.apply({ ...web, status: { phase: 'Succeeded' } }))).toBe(true);
    expect(await changesWith(async () => state.markForDeletion(['fake://a']))).toBe(true);
    expect(await changesWith(() => world.pool())).toBe(true);
    expect(await changesWith(async () => undefined)).toBe(false);
  });

  test('changes by itself every five minutes', async () => {
    state.markUnconsolidated();
    const before = state.consolidationStamp();
    await world.advance(299_999);
    expect(state.consolidationStamp()).toBe(before);
    await world.advance(1);
    expect(state.consolidationStamp()).not.toBe(before);
  });
});
