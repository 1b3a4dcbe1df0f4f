// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations, labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { nodePool } from '../../api/testing/objects.ts';
import { kinds, type Pod, type PodSpec, type ReplicaSet } from '../../kube/kinds.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import { snapshotProblem } from '../../state/snapshot.ts';
import { boundPod, launchedClaim, node, pendingPod } from '../../state/testing/objects.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { type TestWorld, type TestWorldOptions, testWorld } from '../testing/world.ts';
import { registerProvisioning } from './controller.ts';

let world: TestWorld;

async function begin(options: TestWorldOptions = {}): Promise<void> {
  world = await testWorld(options);
  registerProvisioning(world.manager, world);
}

afterEach(() => world.close());

/** A batch: pods come, the window ends. */
async function provision(...pods: readonly Pod[]): Promise<NodeClaim[]> {
  const before = new Set((await world.claims()).map(({ metadata }) => metadata.name));
  await world.apply(...pods);
  await world.advance(1100);
  return (await world.claims()).filter(({ metadata }) => !before.has(metadata.name));
}

function replicaSet(name: string): ReplicaSet {
  const metadata = { name, namespace: 'default' };
  const selector = { matchLabels: { app: name } };
  const template = { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'main', image: 'app' }] } };
  return { apiVersion: 'apps/v1', kind: 'ReplicaSet', metadata, spec: { replicas: 0, selector, template } };
}

function requirement(claim: NodeClaim, key: string): readonly string[] | undefined {
  return claim.spec.requirements.find((spec) => spec.key === key)?.values;
}

const cpus = (count: number): Partial<PodSpec> => ({
  containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: String(count) } } }],
});

describe('a pod that no node can take', () => {
  beforeEach(() => begin());

  test('becomes a NodeClaim after the batch window', async () => {
    await world.pool();
    await world.apply(pendingPod('web'));
    await world.advance(900);
    expect(await world.claims()).toHaveLength(0);
    await world.advance(200);
    expect(await world.claims()).toHaveLength(1);
  });

  test('gets one of a pool whose budgets cannot be read: that only keeps its nodes from being disrupted', async () => {
    const budgets = [{ nodes: '100%', schedule: 'a b c d e', duration: '1h' }];
    await world.pool({ spec: { disruption: { budgets } } });
    expect(await provision(pendingPod('web'))).toHaveLength(1);
  });

  test('shares its NodeClaim with others that come at about the same time', async () => {
    world.cloud.types = [instanceType(4)];
    await world.pool();
    const claims = await provision(...[1, 2, 3].map((i) => pendingPod(`web-${i}`)));
    expect(claims).toHaveLength(1);
    expect(claims[0]?.spec.resources?.requests).toEqual({ cpu: '3', memory: '3Gi', pods: '3' });
  });

  test('is planned for with siblings that kube-scheduler has not come to when the longest batch ends', async () => {
    world.cloud.types = [instanceType(4)];
    await world.pool();
    const [web, api] = await world.apply(replicaSet('web'), replicaSet('api'));
    const of = (owner: ReplicaSet, pod: Pod): Pod => {
      const { name = '', uid = '' } = owner.metadata;
      const ownerReferences = [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name, uid, controller: true }];
      return { ...pod, metadata: { ...pod.metadata, ownerReferences } };
    };
    const unseen = (name: string): Pod => ({ ...pendingPod(name), status: {} });
    await world.apply(of(web, pendingPod('web-0')));
    await world.advance(800);
    // All the while others come that nobody has looked at: the batch lasts its longest time.
    await world.apply(of(web, unseen('web-1')), of(web, unseen('web-2')), of(api, unseen('api-0')));
    await world.advance(8800);
    expect(await world.claims()).toHaveLength(0);
    await world.advance(1000);
    const claims = await world.claims();
    expect(claims).toHaveLength(1);
    expect(claims[0]?.spec.resources?.requests).toEqual({ cpu: '3', memory: '3Gi', pods: '3' });
  });

  test('gets a NodeClaim in the shape of its pool', async () => {
    const pool = await world.pool({
      name: 'general',
      labels: { team: 'a' },
      template: {
        requirements: [{ key: labels.zone, operator: 'In', values: ['zone-a', 'zone-b'] }],
        taints: [{ key: 'dedicated', effect: 'NoSchedule' }],
        startupTaints: [{ key: 'cni', effect: 'NoExecute' }],
        expireAfter: '24h',
        terminationGracePeriod: '30m',
      },
    });
    const tolerations = [{ key: 'dedicated', operator: 'Exists' }];
    const [claim] = await provision(pendingPod('web', { ...cpus(3), tolerations }));
    expect(claim?.metadata).toMatchObject({
      name: expect.stringMatching(/^general-[a-z0-9]{5}$/),
      labels: { team: 'a', [labels.nodePool]: 'general', 'karpenter.kwok.sh/kwoknodeclass': 'default' },
      annotations: {
        [annotations.nodePoolHash]: expect.stringMatching(/^\d+$/),
        [annotations.nodePoolHashVersion]: 'v3',
        [annotations.minValuesRelaxed]: 'false',
      },
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodePool',
          name: 'general',
          uid: pool.metadata.uid,
          blockOwnerDeletion: true,
        },
      ],
    });
    expect(claim?.spec).toMatchObject({
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      taints: [{ key: 'dedicated', effect: 'NoSchedule' }],
      startupTaints: [{ key: 'cni', effect: 'NoExecute' }],
      expireAfter: '24h',
      terminationGracePeriod: '30m',
      resources: { requests: { cpu: '3', pods: '1' } },
    });
    expect(requirement(claim!, labels.instanceType)).toEqual(['c-4x', 'c-8x', 'c-16x', 'c-32x']);
    expect(requirement(claim!, labels.capacityType)).toEqual(['on-demand', 'spot']);
    expect(requirement(claim!, labels.zone)).toEqual(['zone-a', 'zone-b']);
    const keys = claim?.spec.requirements.map(({ key }) => key);
    expect(keys).toEqual(keys?.toSorted());
  });

  test('gets the labels of its own that it asks for', async () => {
    await world.pool({
      template: {
        requirements: [
          { key: 'example.com/team', operator: 'In', values: ['b', 'a'] },
          { key: 'example.com/tier', operator: 'Exists' },
          { key: 'example.com/score', operator: 'Gt', values: ['7'] },
          { key: 'example.com/not', operator: 'NotIn', values: ['x'] },
        ],
      },
    });
    const [claim] = await provision(pendingPod('web'));
    expect(claim?.metadata.labels).toMatchObject({
      'example.com/team': 'a',
      'example.com/tier': '1',
      'example.com/score': '8',
    });
    expect(claim?.metadata.labels).not.toHaveProperty('example.com/not');
  });

  test('keeps minValues on the list of instance types', async () => {
    await world.pool({ template: { requirements: [{ key: labels.instanceType, operator: 'Exists', minValues: 3 }] } });
    const [claim] = await provision(pendingPod('web', cpus(5)));
    const spec = claim?.spec.requirements.find(({ key }) => key === labels.instanceType);
    expect(spec).toEqual({
      key: labels.instanceType,
      operator: 'In',
      values: ['c-8x', 'c-16x', 'c-32x'],
      minValues: 3,
    });
  });

  test('lists only ways to pay that can be had', async () => {
    const type = instanceType(4);
    const offerings = type.offerings.map((offering) => ({
      ...offering,
      available: offering.requirements.every(({ values }) => !values?.includes('spot')),
    }));
    world.cloud.types = [{ ...type, offerings }];
    await world.pool();
    const [claim] = await provision(pendingPod('web'));
    expect(requirement(claim!, labels.capacityType)).toEqual(['on-demand']);
  });

  test('is told where it should go', async () => {
    await world.pool();
    const [claim] = await provision(pendingPod('web'));
    expect(await world.events('Nominated')).toEqual([
      `Nominated Pod/web: Pod should schedule on: nodeclaim/${claim?.metadata.name}`,
    ]);
    const uid = (await world.find(kinds.Pod, 'web', 'default'))?.metadata.uid ?? '';
    expect(world.state.bookkeeping.of(uid)).toMatchObject({ nodeClaim: claim?.metadata.name });
  });

  test('shows in the log and the metrics', async () => {
    await world.pool();
    await provision(pendingPod('web'));
    expect(world.log.messages()).toEqual([
      'found provisionable pod(s)',
      'computed new nodeclaim(s) to fit pod(s)',
      'created nodeclaim',
    ]);
    const created = { reason: 'provisioned', nodepool: 'default', min_values_relaxed: 'false' };
    expect(await world.metrics.value('karpenter_nodeclaims_created_total', created)).toBe(1);
    expect(
      await world.metrics.value('karpenter_scheduler_scheduling_duration_seconds', { controller: 'provisioner' }),
    ).toBe(1);
    expect(
      await world.metrics.value('karpenter_scheduler_unschedulable_pods_count', { controller: 'provisioner' }),
    ).toBe(0);
    expect(await world.metrics.value('karpenter_pods_scheduling_decision_duration_seconds')).toBe(1);
    // No time passes while a test plans.
    expect(await world.metrics.render()).toContain(
      'karpenter_scheduler_scheduling_duration_seconds_sum{controller="provisioner"} 0\n',
    );
  });

  test('is planned for once: its machine is on its way', async () => {
    await world.pool();
    await provision(pendingPod('web'));
    await world.advance(30_000);
    expect(await world.claims()).toHaveLength(1);
    await world.launch();
    await world.advance(30_000);
    expect(await world.claims()).toHaveLength(1);
    expect([...world.state.nodes()].some((machine) => world.state.isNominated(machine.key))).toBe(true);
  });
});

describe('a machine that was bought', () => {
  beforeEach(() => begin());

  test('is kept for the pods it was bought for while they wait', async () => {
    await world.pool();
    const [claim] = await provision(pendingPod('web'));
    await world.launch();
    await world.apply(pendingPod('late'));
    await world.advance(100);
    const { state, registry } = world;
    const catalog = { pools: [], instanceTypes: {}, labels: {}, failures: [] } as unknown as PoolCatalog;
    const problem = snapshotProblem(state, { catalog, registry, now: world.clock.now(), keepsPromises: true });
    const promised = Object.entries(problem.state?.promised ?? {});
    expect(promised.map(([pod, name]) => [pod, state.nodeByName(name)?.nodeClaim?.metadata.name])).toEqual([
      ['default/web', claim?.metadata.name],
    ]);
  });
});

describe('while a NodeClaim waits for its machine', () => {
  beforeEach(() => begin());

  test('nothing is planned, and it goes on as soon as the machine is there', async () => {
    await world.pool();
    await provision(pendingPod('first', cpus(30)));
    expect(await provision(pendingPod('second', cpus(30)))).toHaveLength(0);
    await world.launch();
    await world.advance(200);
    expect(await world.claims()).toHaveLength(2);
  });
});

describe('pods that fit on a machine that is there or on its way', () => {
  beforeEach(() => begin());

  test('get no NodeClaim but a promise', async () => {
    await world.pool();
    await world.apply(launchedClaim('on-its-way', { providerID: 'fake://x' }));
    expect(await provision(pendingPod('web'))).toHaveLength(0);
    expect(world.state.isNominated('fake://x')).toBe(true);
    expect(await world.events('Nominated')).toEqual([
      'Nominated Pod/web: Pod should schedule on: nodeclaim/on-its-way',
    ]);
    expect(world.log.messages()).toContain('computed unready node(s) will fit pod(s)');
  });
});

describe('pods on a node that goes away', () => {
  beforeEach(() => begin());

  test('get a place elsewhere before they are evicted', async () => {
    await world.pool();
    const taints = [{ key: 'karpenter.sh/disrupted', effect: 'NoSchedule' }];
    await world.apply(
      launchedClaim('old', { providerID: 'fake://old' }),
      node('old', {
        labels: {
          [labels.nodePool]: 'default',
          [labels.registered]: 'true',
          [labels.initialized]: 'true',
          [labels.instanceType]: 'c-10x',
        },
        spec: { providerID: 'fake://old', taints },
      }),
      boundPod('web', 'old'),
    );
    await world.settle();
    world.state.markForDeletion(['fake://old']);
    await world.advance(1100);
    expect((await world.claims()).map(({ metadata }) => metadata.name)).toHaveLength(2);
  });
});

describe('a pool takes no part', () => {
  beforeEach(() => begin());

  test.each([
    ['that is not ready', { name: 'pool' }, { conditions: [] }],
    ['whose size is fixed', { name: 'pool', spec: { replicas: 3 } }, undefined],
    [
      'whose NodeClass nobody serves',
      { template: { nodeClassRef: { group: 'x.sh', kind: 'X', name: 'x' } } },
      undefined,
    ],
  ])('%s', async (_, options, status) => {
    if (status) await world.apply({ ...nodePool(options), status });
    else await world.pool(options);
    expect(await provision(pendingPod('web'))).toHaveLength(0);
    expect(await world.events('FailedScheduling')).toHaveLength(1);
    expect(world.log.messages()).toContain('no nodepools found');
  });

  test('that is being deleted', async () => {
    const pool = await world.pool();
    await world.apply({ ...pool, metadata: { ...pool.metadata, finalizers: ['test/hold'] } });
    await world.delete(pool);
    expect(await provision(pendingPod('web'))).toHaveLength(0);
  });

  test('whose cloud does not answer, and others serve', async () => {
    await world.pool({ name: 'a' });
    await world.pool({ name: 'b', spec: { weight: 100 } });
    world.cloud.fail('instanceTypes', new Error('throttled'));
    const [claim] = await provision(pendingPod('web'));
    expect(claim?.metadata.labels?.[labels.nodePool]).toBe('a');
    expect(world.log.messages('error')).toContain('skipping, unable to resolve instance types');
  });

  test('whose requirements leave nothing to buy, and it is told', async () => {
    await world.pool({ template: { requirements: [{ key: labels.instanceType, operator: 'In', values: ['none'] }] } });
    expect(await provision(pendingPod('web'))).toHaveLength(0);
    expect(await world.events('NoCompatibleInstanceTypes')).toHaveLength(1);
  });
});

describe('pools', () => {
  beforeEach(() => begin());

  test('are tried by weight', async () => {
    await world.pool({ name: 'light', spec: { weight: 1 } });
    await world.pool({ name: 'heavy', spec: { weight: 50 } });
    const [claim] = await provision(pendingPod('web'));
    expect(claim?.metadata.labels?.[labels.nodePool]).toBe('heavy');
  });

  test('are not filled beyond their limits, neither in one pass nor over several', async () => {
    await world.pool({
      spec: { limits: { cpu: '8' } },
      template: { requirements: [{ key: labels.instanceType, operator: 'In', values: ['c-4x'] }] },
    });
    expect(await provision(...[1, 2, 3].map((i) => pendingPod(`web-${i}`, cpus(4))))).toHaveLength(2);
    await world.launch();
    await world.advance(15_000);
    expect(await world.claims()).toHaveLength(2);
    expect(await world.events('FailedScheduling')).toHaveLength(1);
  });

  test('may be limited by the number of nodes', async () => {
    await world.pool({ spec: { limits: { nodes: '1' } } });
    expect(await provision(pendingPod('a', cpus(30)), pendingPod('b', cpus(30)))).toHaveLength(1);
  });
});

describe('a pod that cannot be planned for', () => {
  beforeEach(() => begin());

  test('because it is too large is told so, and counted', async () => {
    await world.pool();
    expect(await provision(pendingPod('huge', cpus(1000)), pendingPod('web'))).toHaveLength(1);
    const [event] = await world.events('FailedScheduling');
    expect(event).toMatch(/^FailedScheduling Pod\/huge: Failed to schedule pod, /);
    expect(
      await world.metrics.value('karpenter_scheduler_unschedulable_pods_count', { controller: 'provisioner' }),
    ).toBe(1);
    expect(world.log.messages('error')).toContain('could not schedule pod');
  });

  test('because its volume claim does not exist is left out, and told why', async () => {
    await world.pool();
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'missing' } }];
    expect(await provision(pendingPod('db', { volumes }))).toHaveLength(0);
    expect(await world.events('FailedScheduling')).toEqual([
      'FailedScheduling Pod/db: Failed to schedule pod, persistent volume claim missing does not exist',
    ]);
    expect(await world.metrics.value('karpenter_scheduler_ignored_pods_count')).toBe(1);
  });

  test('because it refuses nodes of pools is left alone without a word', async () => {
    await world.pool();
    const nodeSelectorTerms = [{ matchExpressions: [{ key: labels.nodePool, operator: 'DoesNotExist' }] }];
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } };
    expect(await provision(pendingPod('legacy', { affinity }))).toHaveLength(0);
    expect(await world.events('FailedScheduling')).toEqual([]);
    expect(await world.metrics.value('karpenter_scheduler_ignored_pods_count')).toBe(1);
  });

  test('is tried again every ten seconds, until something changed that helps', async () => {
    world.cloud.types = [instanceType(1)];
    await world.pool();
    expect(await provision(pendingPod('web', cpus(2)))).toHaveLength(0);
    world.cloud.types = [instanceType(4)];
    await world.advance(11_000);
    expect(await world.claims()).toHaveLength(1);
  });
});

describe('a NodeClaim that cannot be written', () => {
  beforeEach(() => begin());

  const refused = { status: 500, reason: 'InternalError' };

  test('takes no other with it, and is tried again', async () => {
    await world.pool();
    world.doors.karpenter.fail('POST /nodeclaims', refused);
    expect(await provision(pendingPod('a', cpus(20)), pendingPod('b', cpus(20)))).toHaveLength(1);
    expect(world.log.messages('error')).toEqual(['failed creating nodeclaim']);
    await world.launch();
    await world.advance(11_000);
    expect(await world.claims()).toHaveLength(2);
  });

  test('but was written all the same is not written twice', async () => {
    await world.pool();
    world.doors.karpenter.fail('POST /nodeclaims', 'answer lost');
    expect(await provision(pendingPod('web'))).toHaveLength(1);
    await world.advance(30_000);
    await world.launch();
    await world.advance(30_000);
    expect(await world.claims()).toHaveLength(1);
  });

  test('because its pool is gone by now is not written', async () => {
    const pool = await world.pool();
    world.cloud.types = [instanceType(4)];
    // The pool goes while the clouds are asked: after it was chosen, before its NodeClaim is written.
    const ask = world.cloud.instanceTypes.bind(world.cloud);
    world.cloud.instanceTypes = async (...args) => {
      const types = await ask(...args);
      await world.delete(pool);
      await world.settle();
      return types;
    };
    expect(await provision(pendingPod('web'))).toHaveLength(0);
    expect(world.log.messages('error')).toContain('failed creating nodeclaim');
  });
});

describe('with NodePools in one cluster and pods in another', () => {
  beforeEach(() => begin({ apart: true }));

  test('NodeClaims are written where their pools are', async () => {
    await world.pool();
    const [claim] = await provision(pendingPod('web'));
    expect(claim?.metadata.ownerReferences).toHaveLength(1);
    expect(await world.events('Nominated')).toHaveLength(1);
  });
});
