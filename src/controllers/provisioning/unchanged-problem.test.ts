// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { annotations } from '../../api/labels.ts';
import { nodePoolKind } from '../../api/node-pool.ts';
import { kinds, type PodSpec } from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import { boundPod, launchedClaim, node, pendingPod } from '../../state/testing/objects.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { registerProvisioning } from './controller.ts';

const huge: Partial<PodSpec> = {
  containers: [{ name: 'main', image: 'app', resources: { requests: { cpu: '64' } } }],
};

let world: TestWorld;

beforeEach(async () => {
  world = await testWorld();
  registerProvisioning(world.manager, world);
  world.cloud.types = [instanceType(4)];
  await world.pool();
});

afterEach(() => world.close());

/** How often a plan is made while time passes. */
async function plansWithin(ms: number): Promise<number> {
  const run = vi.spyOn(world.executor, 'run');
  await world.advance(ms);
  const { length } = run.mock.calls;
  run.mockRestore();
  return length;
}

test('a pod that still waits is not planned again while nothing changes, and its trouble is told all the same', async () => {
  await world.apply(pendingPod('web', huge));
  expect(await plansWithin(5000)).toBe(1);
  const told = (): number => world.log.lines.filter(({ message }) => message === 'could not schedule pod').length;
  const before = told();
  expect(await plansWithin(30_000)).toBe(0);
  expect(told()).toBeGreaterThan(before);
});

test('it is planned again when another pod comes, and when another type is sold', async () => {
  await world.apply(pendingPod('web', huge));
  await world.advance(5000);
  await world.apply(pendingPod('api', huge));
  expect(await plansWithin(10_000)).toBe(1);
  world.cloud.types = [instanceType(4), instanceType(96)];
  expect(await plansWithin(20_000)).toBeGreaterThanOrEqual(1);
  expect(await world.claims()).not.toHaveLength(0);
});

test('it is planned again when a node comes', async () => {
  await world.apply(pendingPod('web', huge));
  await world.advance(5000);
  await world.apply(launchedClaim('other'), node('other'));
  expect(await plansWithin(11_000)).toBe(1);
});

test('it is planned again when a machine is about to go', async () => {
  await world.apply(launchedClaim('other'), node('other'), pendingPod('web', huge));
  await world.advance(5000);
  expect(await plansWithin(20_000)).toBe(0);
  world.state.markForDeletion([...world.state.nodes()].map(({ key }) => key));
  expect(await plansWithin(11_000)).toBe(1);
});

test('what kubelets and counters report is no reason to plan again', async () => {
  await world.apply(launchedClaim('other'), node('other'), pendingPod('web', huge));
  await world.advance(5000);
  const report = { status: { conditions: [{ type: 'DiskPressure', status: 'True', lastHeartbeatTime: null }] } };
  await world.workload.resource(kinds.Node).patch('other', report, { subresource: 'status', type: 'strategic' });
  const counted = { status: { nodes: 12 } };
  await world.karpenter.resource(nodePoolKind).patch('default', counted, { subresource: 'status' });
  expect(await plansWithin(20_000)).toBe(0);
});

test('it is planned again when a pod on a machine that goes no longer protects itself', async () => {
  await world.apply(launchedClaim('other'), node('other'), pendingPod('web', huge));
  const pod = boundPod('guarded', 'other');
  const metadata = { ...pod.metadata, annotations: { [annotations.doNotDisrupt]: '2m' } };
  await world.apply({ ...pod, metadata, status: { ...pod.status, startTime: formatTime(world.clock.now()) } });
  world.state.markForDeletion([...world.state.nodes()].map(({ key }) => key));
  await world.advance(60_000);
  expect(await plansWithin(50_000)).toBe(0);
  expect(await plansWithin(30_000)).toBeGreaterThanOrEqual(1);
});

test('after five minutes it is planned again whatever happened', async () => {
  await world.apply(pendingPod('web', huge));
  await world.advance(5000);
  expect(await plansWithin(6 * 60_000)).toBeGreaterThanOrEqual(1);
});

test('without anything to plan for the provisioner rests', async () => {
  await world.advance(5000);
  const { pendingTimers } = world.clock;
  const reconciled = async (): Promise<string | undefined> =>
    /controller_runtime_reconcile_total\{controller="provisioner",result="success"\} (\d+)/.exec(
      await world.metrics.render(),
    )?.[1];
  const before = await reconciled();
  await world.advance(60_000);
  expect(await reconciled()).toBe(before);
  expect(world.clock.pendingTimers).toBe(pendingTimers);
});
