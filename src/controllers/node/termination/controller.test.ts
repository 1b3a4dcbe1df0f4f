// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test, vi } from 'vitest';
import { getCondition } from '../../../api/conditions.ts';
import { annotations, labels, terminationFinalizer } from '../../../api/labels.ts';
import { disruptedTaint } from '../../../api/taints.ts';
import { kinds, type Node, type Pod, type VolumeAttachment } from '../../../kube/kinds.ts';
import { formatTime } from '../../../kube/time.ts';
import {
  budget,
  claimOf,
  contextOf,
  letPodsGo,
  machine,
  runningPod,
  runUntilKilled,
  standing,
} from '../../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { terminationControllers } from './index.ts';

const minute = 60_000;
let world: TestWorld;
let kill: () => void;
afterEach(() => world.close());

/** A world with a machine `a` in which nodes can be terminated. */
async function start(parts: Parameters<typeof machine>[2] = {}): Promise<void> {
  world = await testWorld();
  kill = run();
  // Times in objects are whole seconds.
  await world.advance(1000 - (world.clock.now() % 1000));
  await machine(world, 'a', parts);
}

/** Starts the controllers, as a program does; gives the way to kill it. */
function run(): () => void {
  return runUntilKilled(world, terminationControllers(contextOf(world)));
}

function nodeA(): Promise<Node | undefined> {
  return world.find(kinds.Node, 'a');
}

async function deleteNode(): Promise<void> {
  await world.workload.resource(kinds.Node).delete('a');
  await world.settle();
}

async function conditionOf(type: string): Promise<[string, string | undefined] | undefined> {
  const claim = await claimOf(world, 'a');
  const condition = claim && getCondition(claim, type);
  return condition && [condition.status, condition.reason];
}

/** The time by which the node must be gone, as the lifecycle controller writes it. */
async function deadlineIn(ms: number): Promise<void> {
  const value = formatTime(world.clock.now() + ms);
  const patch = { metadata: { annotations: { [annotations.terminationTimestamp]: value } } };
  await world.karpenter.resource(kindOfClaims).patch('a', patch);
  await world.settle();
}

const kindOfClaims = {
  group: 'karpenter.sh',
  version: 'v1',
  kind: 'NodeClaim',
  plural: 'nodeclaims',
  namespaced: false,
};

function podOn(name: string, nodeName: string): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: { nodeName, containers: [{ name: 'main', image: 'pause' }] },
  };
}

describe('a node that is deleted', () => {
  test('is tainted, taken from load balancers, drained, its machine given back, and only then let go', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    await deleteNode();
    const tainted = (await nodeA())!;
    expect(tainted.spec?.taints).toEqual([disruptedTaint]);
    expect(tainted.metadata.labels?.[labels.excludeFromLoadBalancers]).toBe('karpenter');
    expect((await claimOf(world, 'a'))?.metadata.deletionTimestamp).toBeDefined();
    expect(await standing(world)).toEqual([]);
    expect(await conditionOf('Drained')).toEqual(['Unknown', 'Draining']);
    await letPodsGo(world);
    await world.advance(4000);
    expect(await conditionOf('Drained')).toEqual(['Unknown', 'Draining']);
    await world.advance(1000);
    expect(await conditionOf('Drained')).toEqual(['True', 'Drained']);
    expect(await conditionOf('VolumesDetached')).toEqual(['True', 'VolumesDetached']);
    expect(await conditionOf('InstanceTerminating')).toEqual(['True', 'InstanceTerminating']);
    expect(world.cloud.instances.size).toBe(0);
    expect(await nodeA()).toBeDefined();
    await world.advance(5000);
    expect(await nodeA()).toBeUndefined();
    expect(world.log.messages()).toEqual(expect.arrayContaining(['tainted node', 'deleted node']));
    expect(await world.metrics.value('karpenter_nodes_drained_total', { nodepool: 'default' })).toBe(1);
    expect(await world.metrics.value('karpenter_nodes_terminated_total', { zone: 'zone-a' })).toBe(1);
    expect(await world.metrics.render()).toContain(
      'karpenter_nodes_termination_duration_seconds_sum{nodepool="default"} 10',
    );
    expect(await world.metrics.value('karpenter_nodes_lifetime_duration_seconds')).toBe(1);
  });

  test('goes in time when the clock is set back by a day', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    await deleteNode();
    const now = world.clock.now.bind(world.clock);
    vi.spyOn(world.clock, 'now').mockImplementation(() => now() - 24 * 3_600_000);
    await letPodsGo(world);
    await world.advance(30_000);
    expect(await nodeA()).toBeUndefined();
  });

  test('waits for a pod that the watch has not told of', async () => {
    await start();
    const door = world.doors.workload;
    door.fail('WATCH /pods', { status: 500, reason: 'InternalError' }, 1000);
    door.breakWatches();
    await world.advance(1000);
    const pod = podOn('late', 'a');
    await world.workload.resource(kinds.Pod).create(pod);
    await deleteNode();
    await world.advance(minute);
    expect(world.cloud.instances.size).toBe(1);
    expect(await nodeA()).toBeDefined();
    expect(await conditionOf('Drained')).toEqual(['Unknown', 'Draining']);
    await world.workload.resource(kinds.Pod).delete('late', { namespace: 'default', gracePeriodSeconds: 0 });
    await world.advance(minute);
    expect(await nodeA()).toBeUndefined();
  });

  test('keeps the taints, labels and finalizers of others', async () => {
    const taint = { key: 'example.com/gpu', effect: 'NoSchedule' } as const;
    await start({ taints: [taint] });
    const patch = { metadata: { finalizers: ['example.com/other', terminationFinalizer], labels: { team: 'red' } } };
    await world.workload.resource(kinds.Node).patch('a', patch);
    await deleteNode();
    expect((await nodeA())?.spec?.taints).toEqual([taint, disruptedTaint]);
    await world.advance(15_000);
    const left = (await nodeA())!;
    expect(left.metadata.finalizers).toEqual(['example.com/other']);
    expect(left.metadata.labels).toMatchObject({ team: 'red', [labels.nodePool]: 'default' });
  });

  test('is let alone when no cloud of ours knows it', async () => {
    world = await testWorld();
    run();
    const metadata = { name: 'a', finalizers: [terminationFinalizer] };
    await world.apply({ apiVersion: 'v1', kind: 'Node', metadata, spec: { providerID: 'other://a' } });
    await deleteNode();
    await world.advance(minute);
    const left = (await nodeA())!;
    expect(left.metadata.finalizers).toEqual([terminationFinalizer]);
    expect(left.spec?.taints).not.toContainEqual(disruptedTaint);
  });

  test('is not drained when it is not ready and its machine is gone', async () => {
    await start({ ready: false });
    await runningPod(world, 'web', 'a');
    world.cloud.instances.clear();
    await deleteNode();
    expect(await nodeA()).toBeUndefined();
    expect(await standing(world)).toEqual(['web']);
  });

  test('is drained as usual when it is ready although its cloud does not find the machine', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    world.cloud.instances.clear();
    await deleteNode();
    expect(await nodeA()).toBeDefined();
    expect(await standing(world)).toEqual([]);
  });

  test('goes without a word to the cloud when nobody speaks for its machine', async () => {
    await start();
    const patch = { metadata: { finalizers: null } };
    await world.karpenter.resource(kindOfClaims).patch('a', patch);
    await world.karpenter.resource(kindOfClaims).delete('a');
    await world.settle();
    await deleteNode();
    expect(await nodeA()).toBeUndefined();
    expect(world.cloud.calls.filter(({ method }) => method === 'delete')).toEqual([]);
  });

  test('goes alike when two NodeClaims claim to speak for it: neither is believed', async () => {
    await start();
    const claim = (await claimOf(world, 'a'))!;
    await world.apply({ ...claim, metadata: { name: 'copy', labels: claim.metadata.labels ?? {} } });
    await world.settle();
    await deleteNode();
    await world.advance(minute);
    expect(await nodeA()).toBeUndefined();
    expect(world.cloud.calls.filter(({ method }) => method === 'delete')).toEqual([]);
    expect((await world.claims()).map(({ metadata }) => metadata.deletionTimestamp)).toEqual([undefined, undefined]);
  });

  test('stays until the cloud says that the machine is gone, also when the cloud fails in between', async () => {
    await start();
    world.cloud.deletesAtOnce = false;
    world.cloud.fail('delete', new Error('the cloud is on fire'), 2);
    await deleteNode();
    await world.advance(minute);
    expect(await nodeA()).toBeDefined();
    expect(await conditionOf('Drained')).toEqual(['True', 'Drained']);
    world.cloud.finishDeletions();
    await world.advance(5000);
    expect(await nodeA()).toBeUndefined();
    expect(await world.metrics.value('karpenter_nodes_drained_total')).toBe(1);
  });

  test('goes on where it was after a restart of the program', async () => {
    await start();
    world.cloud.deletesAtOnce = false;
    await deleteNode();
    await world.advance(6000);
    kill();
    await world.advance(minute);
    world.cloud.finishDeletions();
    run();
    await world.settle();
    expect(await nodeA()).toBeUndefined();
    expect(await world.metrics.value('karpenter_nodes_terminated_total')).toBe(1);
  });
});

describe('the drain of a node', () => {
  test('asks the next tier only when the one before is gone', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    await runningPod(world, 'daemon', 'a', { owner: 'DaemonSet' });
    await runningPod(world, 'dns', 'a', { spec: { priorityClassName: 'system-cluster-critical' } });
    await deleteNode();
    expect(await standing(world)).toEqual(['daemon', 'dns']);
    await letPodsGo(world);
    await world.advance(1000);
    expect(await standing(world)).toEqual(['dns']);
    await letPodsGo(world);
    await world.advance(1000);
    expect(await standing(world)).toEqual([]);
    expect(await world.events('FailedDraining')).toContain(
      'FailedDraining Node/a: Failed to drain node, 3 pods are waiting to be evicted',
    );
  });

  test('also takes a pod that was bound after the node was tainted', async () => {
    await start();
    await deleteNode();
    await world.advance(3000);
    await runningPod(world, 'late', 'a');
    await world.advance(1000);
    expect(await standing(world)).toEqual([]);
    expect(await conditionOf('Drained')).toEqual(['Unknown', 'Draining']);
  });

  test('waits for ever for a pod that must not be disrupted, and says so', async () => {
    await start();
    await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    await deleteNode();
    await world.advance(60 * minute);
    expect(await standing(world)).toEqual(['precious']);
    expect(await conditionOf('Drained')).toEqual(['Unknown', 'Draining']);
  });

  test('waits for as long as a pod protects itself', async () => {
    await start();
    await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: '10m' } });
    const until = formatTime(world.clock.now() + 10 * minute);
    await deleteNode();
    await world.advance(10 * minute - 1000);
    expect(await standing(world)).toEqual(['precious']);
    expect(await world.events('DoNotDisruptUntil')).toEqual([
      `DoNotDisruptUntil Pod/precious: The karpenter.sh/do-not-disrupt grace period will elapse at ${until}`,
    ]);
    await world.advance(12_000);
    expect(await standing(world)).toEqual([]);
  });
});

test('a drain that waits is not looked at every second, and goes on as soon as the pod is gone', async () => {
  await start();
  await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
  await deleteNode();
  const looks = async (): Promise<number> => {
    const text = await world.metrics.render();
    const found = text.matchAll(/reconcile_total\{controller="node.termination",result="[a-z_]+"\} (\d+)/g);
    return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  await world.advance(minute);
  const before = await looks();
  await world.advance(10 * minute);
  expect((await looks()) - before).toBeLessThanOrEqual(60);
  await world.workload.resource(kinds.Pod).delete('precious', { namespace: 'default', gracePeriodSeconds: 0 });
  await world.settle();
  expect(await conditionOf('Drained')).toEqual(['True', 'Drained']);
});

test('a deadline that comes while the drain waits is kept', async () => {
  await start();
  await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
  await deleteNode();
  await world.advance(5000);
  await deadlineIn(31_000);
  await world.advance(2000);
  expect(await standing(world)).toEqual([]);
});

describe('a node with a termination grace period', () => {
  test('says by when its pods will be deleted', async () => {
    await start();
    await runningPod(world, 'web', 'a');
    await deadlineIn(5 * minute);
    const deadline = formatTime(world.clock.now() + 5 * minute);
    await deleteNode();
    expect(await world.events('TerminationGracePeriodExpiring')).toEqual([
      `TerminationGracePeriodExpiring Node/a: All pods will be deleted by ${deadline}`,
    ]);
  });

  test('deletes a protected pod as late as its grace period allows, and not before', async () => {
    await start();
    await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    await runningPod(world, 'guarded', 'a', { labels: { app: 'web' } });
    await budget(world, 'web', 0);
    await deadlineIn(10 * minute);
    await deleteNode();
    await world.advance(9.5 * minute);
    expect(await standing(world)).toEqual(['guarded', 'precious']);
    await world.advance(1000);
    expect(await standing(world)).toEqual([]);
    const pod = await world.find(kinds.Pod, 'precious', 'default');
    expect(pod?.metadata.deletionGracePeriodSeconds).toBe(29);
    const disrupted = await world.events('Disrupted');
    expect(disrupted).toHaveLength(2);
    expect(disrupted[0]).toContain('The pod was granted 29 seconds of grace-period of its 30');
  });

  test('hurries a pod that is going but would take longer', async () => {
    await start();
    await runningPod(world, 'slow', 'a', { spec: { terminationGracePeriodSeconds: 3600 } });
    await world.workload.resource(kinds.Pod).delete('slow', { namespace: 'default' });
    await deadlineIn(minute);
    await deleteNode();
    const pod = (await world.find(kinds.Pod, 'slow', 'default'))!;
    expect(pod.metadata.deletionTimestamp).toBe(formatTime(world.clock.now() + minute));
  });

  test('never deletes a pod for a time that cannot be read', async () => {
    await start();
    await runningPod(world, 'precious', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    const patch = { metadata: { annotations: { [annotations.terminationTimestamp]: 'soon' } } };
    await world.karpenter.resource(kindOfClaims).patch('a', patch);
    await deleteNode();
    await world.advance(60 * minute);
    expect(await standing(world)).toEqual(['precious']);
  });
});

describe('the volumes of a node', () => {
  const attach = (name: string, volume?: string): VolumeAttachment => ({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'VolumeAttachment',
    metadata: { name },
    spec: { attacher: 'csi', nodeName: 'a', source: volume ? { persistentVolumeName: volume } : {} },
  });

  test('are detached before the machine goes', async () => {
    await start();
    await world.apply(attach('disk', 'pv-1'));
    await deleteNode();
    await world.advance(20_000);
    expect(await conditionOf('VolumesDetached')).toEqual(['Unknown', 'AwaitingVolumeDetachment']);
    expect(world.cloud.instances.size).toBe(1);
    expect(await world.events('AwaitingVolumeDetachment')).toEqual([
      'AwaitingVolumeDetachment Node/a: Awaiting deletion of bound volumeattachments (disk)',
    ]);
    await world.delete(attach('disk'));
    await world.advance(1000);
    expect(await conditionOf('VolumesDetached')).toEqual(['True', 'VolumesDetached']);
    expect(world.cloud.instances.size).toBe(0);
  });

  test('are not waited for when no PersistentVolume is behind them', async () => {
    await start();
    await world.apply(attach('nothing'));
    await deleteNode();
    await world.advance(10_000);
    expect(await nodeA()).toBeUndefined();
  });

  test('are not waited for when their pods stay to the end', async () => {
    await start();
    await world.apply(attach('disk', 'pv-1'));
    await world.apply({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], volumeName: 'pv-1', resources: { requests: { storage: '1Gi' } } },
    } as never);
    await runningPod(world, 'tolerant', 'a', {
      spec: {
        tolerations: [{ operator: 'Exists' }],
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
      },
    });
    await deleteNode();
    await world.advance(10_000);
    expect(await nodeA()).toBeUndefined();
  });

  test('are not waited for beyond the deadline', async () => {
    await start();
    await world.apply(attach('disk', 'pv-1'));
    await deadlineIn(minute);
    await deleteNode();
    await world.advance(minute);
    expect(world.cloud.instances.size).toBe(1);
    await world.advance(2000);
    expect(await conditionOf('VolumesDetached')).toEqual(['False', 'TerminationGracePeriodElapsed']);
    expect(world.cloud.instances.size).toBe(0);
  });
});
