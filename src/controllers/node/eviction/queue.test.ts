// SPDX-License-Identifier: Apache-2.0
import { afterEach, describe, expect, test, vi } from 'vitest';
import { annotations } from '../../../api/labels.ts';
import { ApiError } from '../../../kube/api-error.ts';
import { kinds, type Pod } from '../../../kube/kinds.ts';
import { ResourceClient } from '../../../kube/resource-client.ts';
import { budget, contextOf, machine, runningPod, standing } from '../../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { EvictionQueue } from './queue.ts';

const minute = 60_000;
let world: TestWorld;
let queue: EvictionQueue;
afterEach(() => world.close());

/** A world with a machine `a` that is being deleted, and nothing but the queue at work. */
async function start(): Promise<void> {
  world = await testWorld();
  await world.advance(1000 - (world.clock.now() % 1000));
  queue = new EvictionQueue({ context: contextOf(world) });
  world.run(queue.controller);
  await machine(world, 'a');
  await world.workload.resource(kinds.Node).delete('a');
  await world.settle();
}

async function add(pod: Pod, deadlineMs?: number): Promise<void> {
  queue.add([pod], deadlineMs);
  await world.settle();
}

function requests(code: string): Promise<number | undefined> {
  return world.metrics.value('karpenter_pods_eviction_requests_total', { code });
}

describe('the eviction queue', () => {
  test('evicts a pod, and says why its node goes', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a');
    await add(pod);
    expect(await standing(world)).toEqual([]);
    expect(queue.has(pod)).toBe(false);
    expect(await requests('200')).toBe(1);
    expect(await world.metrics.value('karpenter_pods_drained_total', { reason: 'Forceful Termination' })).toBe(1);
    expect(await world.events('Evicted')).toEqual(['Evicted Pod/web: Evicted pod: Forceful Termination']);
  });

  test('names the reason of the disruption', async () => {
    await start();
    const claims = { group: 'karpenter.sh', version: 'v1', kind: 'NodeClaim', plural: 'nodeclaims', namespaced: false };
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const condition = { type: 'DisruptionReason', status: 'True', reason: 'Empty', message: '', lastTransitionTime };
    await world.karpenter.resource(claims).patchStatus('a', { status: { conditions: [condition] } });
    await world.settle();
    await add(await runningPod(world, 'web', 'a'));
    expect(await world.events('Evicted')).toEqual(['Evicted Pod/web: Evicted pod: Empty']);
  });

  test('asks again, less and less often, while a budget does not allow it, and evicts when it does', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a', { labels: { app: 'web' } });
    await budget(world, 'web', 0);
    await add(pod);
    await world.advance(minute);
    expect(await standing(world)).toEqual(['web']);
    const asked = (await requests('429'))!;
    expect(asked).toBeGreaterThan(6);
    expect(asked).toBeLessThan(20);
    expect(await world.events('FailedDraining')).toEqual([
      'FailedDraining Node/a: Failed to drain node, evicting pod violates a PDB (Pod=default/web)',
    ]);
    await budget(world, 'web', 1);
    await world.advance(10_000);
    expect(await standing(world)).toEqual([]);
  });

  test('does not fail when a budget does not allow it, and does when it cannot be asked', async () => {
    const failures = (): Promise<number | undefined> =>
      world.metrics.value('controller_runtime_reconcile_errors_total', { controller: 'eviction-queue' });
    await start();
    const pod = await runningPod(world, 'web', 'a', { labels: { app: 'web' } });
    await budget(world, 'web', 0);
    await add(pod);
    await world.advance(minute);
    expect((await failures()) ?? 0).toBe(0);
    const broken = vi.spyOn(ResourceClient.prototype, 'evict').mockRejectedValue(new Error('connection refused'));
    await world.advance(minute);
    expect(await failures()).toBeGreaterThan(0);
    broken.mockRestore();
  });

  test('says when a pod has two budgets, which the API cannot handle, and waits', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a', { labels: { app: 'web' } });
    await budget(world, 'web', 1);
    await budget(world, 'web', 1, 'another');
    await add(pod);
    await world.advance(minute);
    expect(await standing(world)).toEqual(['web']);
    expect(await world.events('FailedDraining')).toEqual([
      'FailedDraining Node/a: Failed to drain node, eviction does not support multiple PDBs (Pod=default/web)',
    ]);
  });

  test('leaves a pod alone that must not be disrupted', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    await add(pod);
    await world.advance(10 * minute);
    expect(await standing(world)).toEqual(['web']);
    expect(await requests('200')).toBeUndefined();
  });

  test('never touches another pod of the same name', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a');
    await add({ ...pod, metadata: { ...pod.metadata, uid: 'of-the-one-before' } }, world.clock.now());
    await world.advance(minute);
    expect(await standing(world)).toEqual(['web']);
  });

  test('never touches pods of a node that stays', async () => {
    await start();
    await machine(world, 'b');
    const pod = await runningPod(world, 'web', 'b');
    await add(pod, world.clock.now() - minute);
    await world.advance(minute);
    expect(await standing(world)).toEqual(['web']);
    expect(queue.has(pod)).toBe(false);
  });

  test('of several deadlines keeps the earliest', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    const soon = world.clock.now() + 5 * minute;
    await add(pod, soon);
    await add(pod, soon + 60 * minute);
    await add(pod);
    await world.advance(4.5 * minute - 1000);
    expect(await standing(world)).toEqual(['web']);
    await world.advance(12_000);
    expect(await standing(world)).toEqual([]);
  });

  test('does not wait out its backoff when the time of a pod comes', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
    const deadline = world.clock.now() + 5 * minute;
    await add(pod, deadline);
    await world.advance(4.5 * minute + 1);
    await add(pod, deadline);
    const stored = await world.find(kinds.Pod, 'web', 'default');
    expect(stored?.metadata.deletionGracePeriodSeconds).toBe(29);
  });

  test('gives a pod one second at least', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a');
    await add(pod, world.clock.now() - 60 * minute);
    const stored = await world.find(kinds.Pod, 'web', 'default');
    expect(stored?.metadata.deletionGracePeriodSeconds).toBe(1);
  });

  test('asks the API server to spare a pod of the same name that it has not heard of yet', async () => {
    await start();
    const bodies: unknown[] = [];
    world.doors.workload.beforeWrite(({ path, body }) => void (path.includes('/pods/') && bodies.push(body)));
    const [one, two] = [await runningPod(world, 'one', 'a'), await runningPod(world, 'two', 'a')];
    await add(one);
    await add(two, world.clock.now());
    const preconditions = (uid: string | undefined) => ({ preconditions: { uid } });
    expect(bodies).toMatchObject([{ deleteOptions: preconditions(one.metadata.uid) }, preconditions(two.metadata.uid)]);
  });

  test('tries again when the API server fails', async () => {
    await start();
    const pod = await runningPod(world, 'web', 'a');
    const failing = new ApiError({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: 500 });
    const evict = vi.spyOn(ResourceClient.prototype, 'evict');
    evict.mockRejectedValueOnce(failing).mockRejectedValueOnce(failing);
    await add(pod);
    await world.advance(1000);
    evict.mockRestore();
    expect(await requests('500')).toBe(2);
    expect(await standing(world)).toEqual([]);
  });
});
