// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test } from 'vitest';
import { kinds, type Pod } from '../kube/kinds.ts';
import { template, World } from './testing/world.ts';
import { podCondition } from './workloads/pods.ts';

let world: World;
afterEach(async () => {
  await world?.stop();
  const failures = world.log.lines.filter((line) => line.level === 'error');
  expect(failures).toEqual([]);
});

async function start(...nodes: string[]): Promise<World> {
  world = await World.start();
  for (const name of nodes) await world.addNode(name);
  return world;
}

function imagesOf(pods: readonly Pod[]): string[] {
  return pods.map((pod) => pod.spec.containers[0]!.image!);
}

describe('a new cluster', () => {
  test('has two small nodes that are ready, and every namespace its service account', async () => {
    world = await World.start({ withBaseNodes: true });
    await world.pass();
    const { items: nodes } = await world.client.resource(kinds.Node).list();
    expect(nodes.map((node) => [node.metadata.name, node.status!.capacity!['cpu'], node.spec?.taints])).toEqual([
      ['base-1', '2', undefined],
      ['base-2', '2', undefined],
    ]);
    expect(nodes[0]!.status!.capacity).toMatchObject({ cpu: '2', memory: '4Gi', pods: '17' });
    const { items: accounts } = await world.client.resource(kinds.ServiceAccount).list();
    expect(accounts.map((account) => `${account.metadata.namespace}/${account.metadata.name}`)).toEqual([
      'default/default',
      'kube-node-lease/default',
      'kube-public/default',
      'kube-system/default',
    ]);
  });

  test('leaves no timer behind when it is closed', async () => {
    await start('a');
    await world.deploy('web', 2);
    await world.pass(5000);
    await world.stop();
    expect(world.clock.pendingTimers).toBe(0);
  });

  test('lives the same life again from the same seed', async () => {
    const lives: string[] = [];
    for (let run = 0; run < 2; run++) {
      world = await World.start({ seed: 7 });
      for (const name of ['a', 'b', 'c']) await world.addNode(name);
      await world.deploy('web', 9);
      await world.pass(3000);
      await world.client
        .resource(kinds.Deployment)
        .patch('web', { spec: { template: template('web', 'app:2') } }, { namespace: 'default' });
      await world.pass(10_000);
      lives.push(JSON.stringify([await world.pods(), await world.events('Pod')]));
      if (run === 0) await world.stop();
    }
    expect(lives[0]).toBe(lives[1]);
  });
});

describe('a scheduler that is paused', () => {
  test('places nothing, and everything that waits once it goes on', async () => {
    await start('a');
    const goOn = world.cluster.pauseScheduler();
    await world.deploy('web', 2);
    await world.pass(60_000);
    expect((await world.pods()).map(({ spec }) => spec.nodeName)).toEqual([undefined, undefined]);
    goOn();
    await world.pass(5000);
    expect((await world.pods()).map(({ spec }) => spec.nodeName)).toEqual(['a', 'a']);
  });
});

describe('a deployment', () => {
  test('gets its pods, placed, running and ready', async () => {
    await start('a', 'b');
    await world.deploy('web', 4);
    await world.pass();
    const pods = await world.readyPods('app=web');
    expect(pods).toHaveLength(4);
    expect(new Set(pods.map((pod) => pod.spec.nodeName))).toEqual(new Set(['a', 'b']));
    expect(new Set(pods.map((pod) => pod.status!.podIP)).size).toBe(4);
    const { status, metadata } = await world.deployment('web');
    expect(status).toMatchObject({ replicas: 4, updatedReplicas: 4, readyReplicas: 4, availableReplicas: 4 });
    expect(status!.conditions!.map((c) => `${c.type}=${c.status} ${c.reason}`).sort()).toEqual([
      'Available=True MinimumReplicasAvailable',
      'Progressing=True NewReplicaSetAvailable',
    ]);
    expect(metadata.annotations!['deployment.kubernetes.io/revision']).toBe('1');
    expect(await world.events('Deployment')).toEqual([
      expect.stringMatching(/^Normal ScalingReplicaSet Scaled up replica set web-\w+ from 0 to 4$/),
    ]);
  });

  test('rolls to a new template without falling below what must be available, and back', async () => {
    await start('a', 'b');
    await world.deploy('web', 4);
    await world.pass();
    const deployments = world.client.resource(kinds.Deployment);
    await deployments.patch('web', { spec: { template: template('web', 'app:2') } }, { namespace: 'default' });
    for (let step = 0; step < 60; step++) {
      await world.pass(50);
      // maxUnavailable 25 % of 4, maxSurge 25 % of 4
      expect((await world.readyPods('app=web')).length).toBeGreaterThanOrEqual(3);
      const alive = (await world.pods('app=web')).filter((pod) => !pod.metadata.deletionTimestamp);
      expect(alive.length).toBeLessThanOrEqual(5);
    }
    expect(imagesOf(await world.readyPods('app=web'))).toEqual(Array(4).fill('app:2'));
    await deployments.patch('web', { spec: { template: template('web', 'app:1') } }, { namespace: 'default' });
    await world.pass(3000);
    expect(imagesOf(await world.readyPods('app=web'))).toEqual(Array(4).fill('app:1'));
    const { items: sets } = await world.client.resource(kinds.ReplicaSet).list({ namespace: 'default' });
    expect(sets.map((set) => set.metadata.annotations!['deployment.kubernetes.io/revision']!).sort()).toEqual([
      '2',
      '3',
    ]);
    expect((await world.deployment('web')).metadata.annotations!['deployment.kubernetes.io/revision']).toBe('3');
  });

  test('that recreates has no two generations at the same time', async () => {
    await start('a');
    await world.deploy('web', 3, { strategy: { type: 'Recreate' } });
    await world.pass();
    await world.client
      .resource(kinds.Deployment)
      .patch('web', { spec: { template: template('web', 'app:2') } }, { namespace: 'default' });
    for (let step = 0; step < 40; step++) {
      await world.pass(50);
      expect(new Set(imagesOf(await world.pods('app=web'))).size).toBeLessThanOrEqual(1);
    }
    expect(imagesOf(await world.readyPods('app=web'))).toEqual(Array(3).fill('app:2'));
  });

  test('keeps only as much history as asked for', async () => {
    await start('a');
    await world.deploy('web', 1, { revisionHistoryLimit: 2 });
    for (let version = 2; version <= 6; version++) {
      await world.pass(2000);
      await world.client
        .resource(kinds.Deployment)
        .patch('web', { spec: { template: template('web', `app:${version}`) } }, { namespace: 'default' });
    }
    await world.pass(5000);
    expect((await world.client.resource(kinds.ReplicaSet).list({ namespace: 'default' })).items).toHaveLength(3);
  });

  test('that cannot progress says so when its deadline has passed', async () => {
    await start('a');
    await world.deploy('huge', 1, {
      progressDeadlineSeconds: 60,
      template: {
        metadata: { labels: { app: 'huge' } },
        spec: { containers: [{ name: 'app', image: 'x', resources: { requests: { cpu: '64' } } }] },
      },
    });
    await world.pass(59_000);
    const progressing = async () =>
      (await world.deployment('huge')).status!.conditions!.find((c) => c.type === 'Progressing');
    expect(await progressing()).toMatchObject({ status: 'True' });
    await world.pass(5000);
    expect(await progressing()).toMatchObject({ status: 'False', reason: 'ProgressDeadlineExceeded' });
  });

  test('paused changes its size but not its template', async () => {
    await start('a');
    await world.deploy('web', 2);
    await world.pass();
    const spec = { paused: true, replicas: 4, template: template('web', 'app:2') };
    await world.client.resource(kinds.Deployment).patch('web', { spec }, { namespace: 'default' });
    await world.pass(2000);
    expect(imagesOf(await world.readyPods('app=web'))).toEqual(Array(4).fill('app:1'));
    await world.client.resource(kinds.Deployment).patch('web', { spec: { paused: false } }, { namespace: 'default' });
    await world.pass(3000);
    expect(imagesOf(await world.readyPods('app=web'))).toEqual(Array(4).fill('app:2'));
  });

  test('deleted takes its pods with it, an orphaned ReplicaSet is adopted by the next', async () => {
    await start('a');
    await world.deploy('web', 2);
    await world.pass();
    const before = (await world.pods()).map((pod) => pod.metadata.name);
    await world.client.resource(kinds.Deployment).delete('web', { namespace: 'default', propagationPolicy: 'Orphan' });
    await world.pass();
    await world.deploy('web', 2);
    await world.pass();
    expect((await world.pods()).map((pod) => pod.metadata.name)).toEqual(before);
    await world.client.resource(kinds.Deployment).delete('web', { namespace: 'default' });
    await world.pass(2000);
    expect(await world.pods()).toEqual([]);
  });
});

describe('scheduling', () => {
  test('a pod that fits nowhere says why, and is placed when a node comes', async () => {
    await start('a');
    await world.deploy('web', 1, { template: withCpu('8') });
    await world.pass();
    const [pod] = await world.pods();
    expect(podCondition(pod!, 'PodScheduled')).toMatchObject({
      status: 'False',
      reason: 'Unschedulable',
      message: expect.stringMatching(/^0\/1 nodes are available: 1 Insufficient cpu\. /),
    });
    expect(await world.events('Pod')).toEqual([expect.stringMatching(/^Warning FailedScheduling 0\/1 nodes/)]);
    await world.addNode('large', { allocatable: { cpu: '16' } });
    await world.pass(2000);
    expect((await world.readyPods()).map((ready) => ready.spec.nodeName)).toEqual(['large']);
  });

  test('a pod waits for a full node to be freed', async () => {
    await start('a');
    await world.deploy('first', 1, { selector: { matchLabels: { app: 'web' } }, template: withCpu('3') });
    await world.pass();
    await world.deploy('second', 1, { selector: { matchLabels: { app: 'web' } }, template: withCpu('3') });
    await world.pass();
    expect(await world.readyPods()).toHaveLength(1);
    await world.client.resource(kinds.Deployment).delete('first', { namespace: 'default' });
    await world.pass(12_000);
    expect(await world.readyPods()).toHaveLength(1);
    expect(await world.pods()).toHaveLength(1);
  });

  test('higher priority goes first, a gated pod waits for its gates', async () => {
    await start();
    const priorities = world.client.resource(kinds.PriorityClass);
    await priorities.create({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 1000,
    });
    await world.client.resource(kinds.Pod).create(barePod('low', {}));
    await world.client.resource(kinds.Pod).create(barePod('high', { priorityClassName: 'high' }));
    await world.client.resource(kinds.Pod).create(barePod('gated', { schedulingGates: [{ name: 'wait' }] }));
    await world.pass();
    await world.addNode('a', { allocatable: { pods: '1' } });
    await world.pass(12_000);
    expect((await world.readyPods()).map((pod) => pod.metadata.name)).toEqual(['high']);
    await world.addNode('b');
    await world.pass(12_000);
    expect((await world.readyPods()).map((pod) => pod.metadata.name)).toEqual(['high', 'low']);
    await world.client
      .resource(kinds.Pod)
      .patch('gated', { spec: { schedulingGates: null } }, { namespace: 'default' });
    await world.pass(12_000);
    expect(await world.readyPods()).toHaveLength(3);
  });

  test('a claim that waits for its consumer is bound where the pod goes', async () => {
    await start();
    await world.addNode('a', { labels: { 'topology.kubernetes.io/zone': 'z1' } });
    await world.client.resource(kinds.PersistentVolumeClaim).create({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    });
    const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }];
    await world.client.resource(kinds.Pod).create(barePod('db', { volumes }));
    await world.pass(2000);
    expect(await world.readyPods()).toHaveLength(1);
    const { items: bound } = await world.client.resource(kinds.PersistentVolume).list();
    expect(bound.map((volume) => volume.status!.phase)).toEqual(['Bound']);
    await world.client.resource(kinds.PersistentVolumeClaim).delete('data', { namespace: 'default' });
    await world.pass();
    expect((await world.client.resource(kinds.PersistentVolumeClaim).list()).items).toHaveLength(1);
    await world.client.resource(kinds.Pod).delete('db', { namespace: 'default' });
    await world.pass(2000);
    expect((await world.client.resource(kinds.PersistentVolumeClaim).list()).items).toEqual([]);
    expect((await world.client.resource(kinds.PersistentVolume).list()).items).toEqual([]);
  });
});

describe('a daemon set', () => {
  test('has a pod on every node that will have it, also on those that come and those that are cordoned', async () => {
    await start('a');
    await world.addNode('tainted', { taints: [{ key: 'gpu', effect: 'NoSchedule' }] });
    await world.addNode('cordoned', { unschedulable: true });
    await createDaemon('agent');
    await world.pass();
    const places = async () => (await world.readyPods('app=agent')).map((pod) => pod.spec.nodeName!).sort();
    expect(await places()).toEqual(['a', 'cordoned']);
    await world.addNode('b');
    await world.pass();
    expect(await places()).toEqual(['a', 'b', 'cordoned']);
    const { status } = await world.client.resource(kinds.DaemonSet).get('agent', { namespace: 'default' });
    expect(status).toMatchObject({ desiredNumberScheduled: 3, numberReady: 3, numberAvailable: 3 });
  });

  test('is replaced one node at a time', async () => {
    await start('a', 'b', 'c');
    await createDaemon('agent');
    await world.pass();
    await world.client
      .resource(kinds.DaemonSet)
      .patch('agent', { spec: { template: template('agent', 'app:2') } }, { namespace: 'default' });
    for (let step = 0; step < 60; step++) {
      await world.pass(50);
      expect((await world.readyPods('app=agent')).length).toBeGreaterThanOrEqual(2);
    }
    expect(imagesOf(await world.readyPods('app=agent'))).toEqual(Array(3).fill('app:2'));
  });
});

describe('a stateful set', () => {
  test('starts in order, shrinks from the end and updates from the end down to its partition', async () => {
    await start('a');
    const sets = world.client.resource(kinds.StatefulSet);
    await sets.create({
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db', namespace: 'default' },
      spec: { serviceName: 'db', replicas: 3, selector: { matchLabels: { app: 'db' } }, template: template('db') },
    });
    await world.pass(50);
    expect((await world.pods()).map((pod) => pod.metadata.name)).toEqual(['db-0']);
    await world.pass(3000);
    expect((await world.readyPods()).map((pod) => pod.metadata.name)).toEqual(['db-0', 'db-1', 'db-2']);
    const rollingUpdate = { partition: 1 };
    const spec = { template: template('db', 'app:2'), updateStrategy: { type: 'RollingUpdate', rollingUpdate } };
    await sets.patch('db', { spec }, { namespace: 'default' });
    await world.pass(5000);
    expect(imagesOf(await world.readyPods())).toEqual(['app:1', 'app:2', 'app:2']);
    await sets.patch('db', { spec: { replicas: 1 } }, { namespace: 'default' });
    await world.pass(5000);
    expect((await world.readyPods()).map((pod) => pod.metadata.name)).toEqual(['db-0']);
  });
});

describe('a job', () => {
  test('runs as many at once as it may until enough have succeeded', async () => {
    await start('a');
    await createJob({ completions: 5, parallelism: 2 });
    await world.pass(500);
    expect(await world.pods()).toHaveLength(2);
    await world.pass(20_000);
    const { status } = await world.client.resource(kinds.Job).get('work', { namespace: 'default' });
    expect(status).toMatchObject({ succeeded: 5 });
    expect(status!.conditions!.map((c) => c.type)).toEqual(['SuccessCriteriaMet', 'Complete']);
    expect((await world.pods()).map((pod) => pod.status!.phase)).toEqual(Array(5).fill('Succeeded'));
    expect((await world.pods()).flatMap((pod) => pod.metadata.finalizers ?? [])).toEqual([]);
  });

  test('gives up after too many failures, and goes when its time to live is over', async () => {
    await start('a');
    await createJob({ backoffLimit: 1, ttlSecondsAfterFinished: 60 }, { 'kwok.x-k8s.io/stage': 'unhealthy' });
    for (let failure = 0; failure < 2; failure++) {
      await world.pass(15_000);
      for (const pod of (await world.pods()).filter((p) => p.status!.phase === 'Running')) {
        const status = { phase: 'Failed' };
        await world.client.resource(kinds.Pod).patchStatus(pod.metadata.name!, { status }, { namespace: 'default' });
      }
    }
    await world.pass(1000);
    const { status } = await world.client.resource(kinds.Job).get('work', { namespace: 'default' });
    expect(status!.conditions!.map((c) => `${c.type} ${c.reason}`)).toContain('Failed BackoffLimitExceeded');
    await world.pass(65_000);
    expect((await world.client.resource(kinds.Job).list()).items).toEqual([]);
  });
});

describe('a job that is deleted while it runs', () => {
  const slow = { 'kwok.x-k8s.io/stage': 'unhealthy' };

  test('takes its pods along, though nobody counts them any more', async () => {
    await start('a');
    await createJob({ completions: 2, parallelism: 2 }, slow);
    await world.pass(2000);
    expect((await world.pods()).map((pod) => pod.metadata.finalizers)).toEqual(
      Array(2).fill(['batch.kubernetes.io/job-tracking']),
    );
    await world.client.resource(kinds.Job).delete('work', { namespace: 'default', propagationPolicy: 'Background' });
    await world.pass(40_000);
    expect(await world.pods()).toEqual([]);
  });

  test('leaves orphans that can go', async () => {
    await start('a');
    await createJob({ completions: 2, parallelism: 2 }, slow);
    await world.pass(2000);
    await world.client.resource(kinds.Job).delete('work', { namespace: 'default', propagationPolicy: 'Orphan' });
    await world.pass(5000);
    expect((await world.pods()).map((pod) => pod.metadata.finalizers)).toEqual([undefined, undefined]);
  });
});

describe('a disruption budget', () => {
  test('counts what is healthy and lets evictions through one by one', async () => {
    await start('a', 'b');
    await world.deploy('web', 3);
    await world.client.resource(kinds.PodDisruptionBudget).create({
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'default' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'web' } } },
    });
    await world.pass(2000);
    const budget = async () =>
      (await world.client.resource(kinds.PodDisruptionBudget).get('web', { namespace: 'default' })).status;
    expect(await budget()).toMatchObject({
      expectedPods: 3,
      currentHealthy: 3,
      desiredHealthy: 2,
      disruptionsAllowed: 1,
      conditions: [{ type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods' }],
    });
    const [first, second] = await world.pods('app=web');
    await world.client.resource(kinds.Pod).evict(first!.metadata.name!, { namespace: 'default' });
    await expect(
      world.client.resource(kinds.Pod).evict(second!.metadata.name!, { namespace: 'default' }),
    ).rejects.toThrow(/disruption budget/);
    await world.pass(3000);
    expect(await budget()).toMatchObject({ currentHealthy: 3, disruptionsAllowed: 1 });
  });
});

describe('nodes', () => {
  test('conditions and cordons become taints, and go with them', async () => {
    await start('a');
    const nodes = world.client.resource(kinds.Node);
    const taints = async () => (await nodes.get('a')).spec?.taints?.map((t) => `${t.key}:${t.effect}`) ?? [];
    expect(await taints()).toEqual([]);
    await nodes.patch('a', { spec: { unschedulable: true } });
    await world.pass();
    expect(await taints()).toEqual(['node.kubernetes.io/unschedulable:NoSchedule']);
    await nodes.patch('a', { spec: { unschedulable: null } });
    const ready = { type: 'Ready', status: 'False', reason: 'Broken', message: 'by a test' };
    await nodes.patchStatus('a', { status: { conditions: [ready] } }, { type: 'strategic' });
    await world.pass();
    expect(await taints()).toEqual([
      'node.kubernetes.io/not-ready:NoSchedule',
      'node.kubernetes.io/not-ready:NoExecute',
    ]);
    await nodes.patchStatus('a', { status: { conditions: [{ ...ready, status: 'True' }] } }, { type: 'strategic' });
    await world.pass();
    expect(await taints()).toEqual([]);
  });

  test('pods leave a NoExecute taint at once, or after the time they tolerate it', async () => {
    await start('a');
    const tolerations = [{ key: 'fire', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 30 }];
    await world.client.resource(kinds.Pod).create(barePod('brave', { tolerations }));
    await world.client.resource(kinds.Pod).create(barePod('shy', {}));
    await world.pass();
    const taints = [{ key: 'fire', effect: 'NoExecute', timeAdded: new Date(world.clock.now()).toISOString() }];
    await world.client.resource(kinds.Node).patch('a', { spec: { taints } });
    await world.pass(2000);
    expect((await world.pods()).map((pod) => pod.metadata.name)).toEqual(['brave']);
    await world.pass(35_000);
    expect(await world.pods()).toEqual([]);
  });

  test('a node whose kubelet falls silent is unknown, and its pods go after five minutes', async () => {
    world = await World.start({ heartbeatMs: 20_000 });
    await world.addNode('a');
    await world.addNode('b');
    await world.deploy('web', 2, {
      template: {
        ...template('web'),
        spec: { ...template('web').spec, nodeSelector: { 'kubernetes.io/hostname': 'a' } },
      },
    });
    await world.pass(90_000);
    expect(await world.readyPods()).toHaveLength(2);
    // Without the annotation nobody plays its kubelet any longer.
    await world.client.resource(kinds.Node).patch('a', { metadata: { annotations: { 'kwok.x-k8s.io/node': null } } });
    await world.pass(120_000);
    const ready = (await world.client.resource(kinds.Node).get('a')).status!.conditions!.find(
      (c) => c.type === 'Ready',
    );
    expect(ready).toMatchObject({ status: 'Unknown', reason: 'NodeStatusUnknown' });
    expect(await world.readyPods()).toEqual([]);
    await world.pass(310_000);
    expect((await world.pods()).filter((pod) => pod.spec.nodeName && !pod.metadata.deletionTimestamp)).toEqual([]);
    expect((await world.client.resource(kinds.Node).get('b')).spec?.taints).toBeUndefined();
  });

  test('pods of a node that is gone are collected', async () => {
    await start('a');
    await world.client.resource(kinds.Pod).create(barePod('left', {}));
    await world.pass();
    await world.client.resource(kinds.Node).delete('a');
    await world.pass(30_000);
    expect(await world.pods()).toHaveLength(1);
    await world.pass(60_000);
    expect(await world.pods()).toEqual([]);
  });
});

describe('pods', () => {
  test('stop at once, or after the time they are annotated with, never later than their grace', async () => {
    await start('a');
    const slow = { 'pod-delete.stage.kwok.x-k8s.io/delay': '10s' };
    const stubborn = { 'pod-delete.stage.kwok.x-k8s.io/delay': '10h' };
    await world.client.resource(kinds.Pod).create(barePod('quick', {}));
    await world.client.resource(kinds.Pod).create(barePod('slow', {}, slow));
    await world.client.resource(kinds.Pod).create(barePod('stubborn', {}, stubborn));
    await world.pass();
    for (const pod of await world.pods()) {
      await world.client.resource(kinds.Pod).delete(pod.metadata.name!, { namespace: 'default' });
    }
    const names = async () => (await world.pods()).map((pod) => pod.metadata.name);
    await world.pass(100);
    expect(await names()).toEqual(['slow', 'stubborn']);
    await world.pass(11_000);
    expect(await names()).toEqual(['stubborn']);
    await world.pass(20_000);
    expect(await names()).toEqual([]);
  });

  test('that are labelled as unhealthy run and are never ready, until the label goes', async () => {
    await start('a');
    const pod = barePod('sick', {});
    pod.metadata.labels = { 'kwok.x-k8s.io/stage': 'unhealthy' };
    await world.client.resource(kinds.Pod).create(pod);
    await world.pass();
    expect((await world.pods())[0]!.status!.phase).toBe('Running');
    expect(await world.readyPods()).toEqual([]);
    await world.client.resource(kinds.Pod).patch('sick', { metadata: { labels: null } }, { namespace: 'default' });
    await world.pass();
    expect(await world.readyPods()).toHaveLength(1);
  });
});

describe('a namespace', () => {
  test('is emptied before it goes', async () => {
    await start('a');
    await world.client
      .resource(kinds.Namespace)
      .create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } });
    await world.pass();
    await world.client.resource(kinds.Deployment).create({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'shop' },
      spec: { replicas: 2, selector: { matchLabels: { app: 'web' } }, template: template('web') },
    });
    await world.pass();
    await world.client.resource(kinds.Namespace).delete('shop');
    await world.pass(5000);
    const { items } = await world.client.resource(kinds.Namespace).list();
    expect(items.map((namespace) => namespace.metadata.name)).not.toContain('shop');
    expect((await world.client.resource(kinds.Pod).list()).items).toEqual([]);
    expect((await world.client.resource(kinds.ReplicaSet).list()).items).toEqual([]);
  });
});

function withCpu(cpu: string): ReturnType<typeof template> {
  return {
    metadata: { labels: { app: 'web' } },
    spec: { containers: [{ name: 'app', image: 'x', resources: { requests: { cpu } } }] },
  };
}

function barePod(name: string, spec: Partial<Pod['spec']>, annotations?: Record<string, string>): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', ...(annotations ? { annotations } : {}) },
    spec: { containers: [{ name: 'app', image: 'x' }], ...spec },
  };
}

async function createDaemon(name: string): Promise<void> {
  await world.client.resource(kinds.DaemonSet).create({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app: name } }, template: template(name) },
  });
}

async function createJob(spec: object, labels: Record<string, string> = {}): Promise<void> {
  await world.client.resource(kinds.Job).create({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name: 'work', namespace: 'default' },
    spec: {
      ...spec,
      template: {
        metadata: { labels },
        spec: { restartPolicy: 'Never', containers: [{ name: 'app', image: 'x' }] },
      },
    },
  });
}
