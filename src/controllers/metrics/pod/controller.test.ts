// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { labels } from '../../../api/labels.ts';
import { kinds, type Pod, type PodStatus } from '../../../kube/kinds.ts';
import { formatTime } from '../../../kube/time.ts';
import { boundPod, node, ownedBy, pendingPod, pod } from '../../../state/testing/objects.ts';
import { ControllerContext } from '../../nodeclaim/context.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { podMetricsObserver } from './controller.ts';

let world: TestWorld;
beforeEach(async () => {
  world = await testWorld();
  world.run(podMetricsObserver(new ControllerContext(world)));
});
afterEach(() => world.close());

const value = (name: string, series: Record<string, string> = {}): Promise<number | undefined> =>
  world.metrics.value(`karpenter_pods_${name}`, series);

async function write(wanted: Pod): Promise<Pod> {
  const [stored] = await world.apply(wanted);
  await world.settle();
  return stored;
}

/** What a kubelet reports: the phase, and conditions that are True since now. */
async function report(name: string, phase: string, ...conditions: string[]): Promise<void> {
  const lastTransitionTime = formatTime(world.clock.now());
  const status: PodStatus = {
    phase,
    conditions: conditions.map((type) => ({ type, status: 'True', lastTransitionTime })),
  };
  await world.workload.resource(kinds.Pod).patchStatus(name, { status }, { namespace: 'default' });
  await world.settle();
}

describe('a pod', () => {
  test('shows where it is and how it does', async () => {
    await world.apply(
      node('n', {
        labels: {
          [labels.nodePool]: 'default',
          [labels.zone]: 'zone-a',
          [labels.arch]: 'arm64',
          [labels.capacityType]: 'spot',
          [labels.instanceType]: 'c-4x',
        },
      }),
    );
    await write(ownedBy(boundPod('a', 'n'), 'apps/v1', 'ReplicaSet', 'web'));
    const where = { node: 'n', scheduled: 'true', nodepool: 'default', zone: 'zone-a', arch: 'arm64', managed: 'true' };
    const how = { capacity_type: 'spot', instance_type: 'c-4x', phase: 'Running', ready: 'false' };
    const owner = '/apis/apps/v1/namespaces/default/replicasets/web';
    expect(await value('state', { name: 'a', namespace: 'default', owner, ...where, ...how })).toBe(1);
    await report('a', 'Running', 'Ready');
    expect(await value('state', { name: 'a', ready: 'false' })).toBeUndefined();
    expect(await value('state', { name: 'a', ready: 'true' })).toBe(1);
    await world.workload.resource(kinds.Pod).delete('a', { namespace: 'default', gracePeriodSeconds: 0 });
    await world.settle();
    expect(await value('state', { name: 'a' })).toBeUndefined();
  });

  test('without a node says so', async () => {
    await write(pendingPod('a'));
    expect(await value('state', { name: 'a', node: '', scheduled: 'false', managed: 'false', owner: '' })).toBe(1);
  });

  test('counts the time until it is bound and until it is ready', async () => {
    await write(pendingPod('a'));
    await world.advance(4000);
    expect(await value('unbound_time_seconds', { name: 'a', namespace: 'default' })).toBe(4);
    expect(await value('unstarted_time_seconds', { name: 'a' })).toBe(4);
    expect(await value('provisioning_unbound_time_seconds', { name: 'a' })).toBeUndefined();
    await report('a', 'Pending', 'PodScheduled');
    await world.advance(2000);
    expect(await value('unbound_time_seconds', { name: 'a' })).toBeUndefined();
    expect(await value('unstarted_time_seconds', { name: 'a' })).toBe(6);
    await report('a', 'Running', 'PodScheduled');
    await world.advance(1000);
    expect(await value('unstarted_time_seconds', { name: 'a' })).toBe(7);
    await report('a', 'Running', 'PodScheduled', 'Ready');
    expect(await value('unstarted_time_seconds', { name: 'a' })).toBeUndefined();
    const text = await world.metrics.render();
    expect(text).toContain('karpenter_pods_bound_duration_seconds_sum 4\n');
    expect(text).toContain('karpenter_pods_startup_duration_seconds_sum 7\n');
    expect(text).toContain('karpenter_pods_startup_duration_seconds_count 1\n');
    expect(await value('provisioning_bound_duration_seconds')).toBe(0);
  });

  test('that a pass found a place for counts from that moment as well', async () => {
    const { metadata } = await write(pendingPod('a'));
    const uid = metadata.uid ?? '';
    const { bookkeeping } = world.state;
    bookkeeping.acknowledge(uid);
    await world.advance(3000);
    expect(await value('provisioning_scheduling_undecided_time_seconds', { name: 'a' })).toBe(3);
    bookkeeping.decide({ failed: [], placed: [{ uid, healthyPool: true }] });
    expect(await value('provisioning_scheduling_undecided_time_seconds', { name: 'a' })).toBeUndefined();
    await world.advance(5000);
    expect(await value('provisioning_unbound_time_seconds', { name: 'a' })).toBe(5);
    expect(await value('provisioning_unstarted_time_seconds', { name: 'a' })).toBe(5);
    await report('a', 'Running', 'PodScheduled', 'Ready');
    const text = await world.metrics.render();
    expect(text).toContain('karpenter_pods_provisioning_bound_duration_seconds_sum 5\n');
    expect(text).toContain('karpenter_pods_provisioning_startup_duration_seconds_sum 5\n');
    expect(text).not.toContain('karpenter_pods_provisioning_unstarted_time_seconds{');
    expect(bookkeeping.of(uid)).toBeUndefined();
  });

  test('that a later pass found no place for has no such moment', async () => {
    const { metadata } = await write(pendingPod('a'));
    const uid = metadata.uid ?? '';
    const { bookkeeping } = world.state;
    bookkeeping.decide({ failed: [], placed: [{ uid, healthyPool: true }] });
    bookkeeping.decide({ failed: [uid], placed: [] });
    expect(await value('provisioning_unbound_time_seconds', { name: 'a' })).toBeUndefined();
    expect(await value('provisioning_unstarted_time_seconds', { name: 'a' })).toBeUndefined();
  });

  test('that ends without having been ready did not start', async () => {
    await write(pendingPod('a'));
    await report('a', 'Failed', 'PodScheduled');
    expect(await value('unstarted_time_seconds', { name: 'a' })).toBeUndefined();
    expect(await world.metrics.render()).not.toContain('karpenter_pods_startup_duration_seconds_count 1');
    expect(await value('bound_duration_seconds')).toBe(1);
  });

  test('that is deleted while it waits waits no more', async () => {
    await write(pendingPod('a'));
    await world.delete(pod('a'));
    await world.settle();
    expect(await world.metrics.render()).not.toContain('name="a"');
  });

  test('that ran before anybody looked is not measured', async () => {
    const later = await testWorld();
    await later.apply(boundPod('a', 'n'));
    await later.apply({ ...boundPod('a', 'n'), status: { phase: 'Running' } });
    await later.settle();
    later.run(podMetricsObserver(new ControllerContext(later)));
    const conditions = ['PodScheduled', 'Ready'].map((type) => ({ type, status: 'True' }));
    await later.workload.resource(kinds.Pod).patchStatus('a', { status: { conditions } }, { namespace: 'default' });
    await later.settle();
    expect(await later.metrics.value('karpenter_pods_bound_duration_seconds')).toBe(0);
    expect(await later.metrics.render()).not.toContain('karpenter_pods_startup_duration_seconds_count 1');
    await later.close();
  });

  test('that is bound within the second in which it was placed took no time', async () => {
    const { metadata } = await write(pendingPod('a'));
    await world.advance(700);
    world.state.bookkeeping.decide({ failed: [], placed: [{ uid: metadata.uid ?? '', healthyPool: true }] });
    await report('a', 'Running', 'PodScheduled');
    expect(await world.metrics.render()).toContain('karpenter_pods_provisioning_bound_duration_seconds_sum 0\n');
  });
});
