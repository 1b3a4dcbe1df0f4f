// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { annotations } from '../../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../../api/node-claim.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { formatTime } from '../../../kube/time.ts';
import { claimOf, contextOf, going, machine, openPool, runningPod } from '../../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { nodeHealthController } from './controller.ts';

const minute = 60_000;
let world: TestWorld;
beforeEach(async () => {
  world = await testWorld();
  world.cloud.repairPolicies = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 30 * minute },
    { conditionType: 'BadDisk', conditionStatus: 'True', tolerationMs: 10 * minute },
  ];
  await openPool(world, { spec: { disruption: { budgets: [{ nodes: '0' }] } } });
});
afterEach(() => world.close());

async function condition(node: string, type: string, status: string): Promise<void> {
  const lastTransitionTime = formatTime(world.clock.now());
  const known = (await world.find(kinds.Node, node))!.status!.conditions!.filter((one) => one.type !== type);
  const conditions = [...known, { type, status, lastTransitionTime }];
  await world.workload.resource(kinds.Node).patchStatus(node, { status: { conditions } });
  await world.settle();
}

test('a broken node is replaced after its time, whatever budgets and pods say', async () => {
  for (const name of ['a', 'b', 'c']) await machine(world, name, { spec: { terminationGracePeriod: '24h' } });
  await runningPod(world, 'p', 'a', { annotations: { [annotations.doNotDisrupt]: 'true' } });
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'BadDisk', 'True');
  await world.advance(10 * minute - 1000);
  expect(await going(world)).toEqual([]);
  await world.advance(1000);
  expect(await going(world)).toEqual(['a']);
  const claim = await claimOf(world, 'a');
  expect(claim?.metadata.annotations?.[annotations.terminationTimestamp]).toBe(formatTime(world.clock.now()));
  expect(
    await world.metrics.value('karpenter_nodeclaims_unhealthy_disrupted_total', {
      condition: 'bad_disk',
      nodepool: 'default',
      capacity_type: 'on-demand',
      image_id: '',
    }),
  ).toBe(1);
});

test('the condition whose time is over first decides', async () => {
  await machine(world, 'a');
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'Ready', 'False');
  await world.advance(15 * minute);
  await condition('a', 'BadDisk', 'True');
  await world.advance(10 * minute);
  expect(await going(world)).toEqual(['a']);
});

test('a node that recovers stays', async () => {
  await machine(world, 'a');
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'BadDisk', 'True');
  await world.advance(9 * minute);
  await condition('a', 'BadDisk', 'False');
  await world.advance(60 * minute);
  expect(await going(world)).toEqual([]);
});

test('a clock that was a day behind for a minute delays nothing', async () => {
  await machine(world, 'a');
  await condition('a', 'BadDisk', 'True');
  const now = world.clock.now.bind(world.clock);
  const clock = vi.spyOn(world.clock, 'now').mockImplementation(() => now() - 24 * 60 * minute);
  world.run(nodeHealthController(contextOf(world)));
  await world.advance(minute);
  clock.mockRestore();
  await world.advance(14 * minute);
  expect(await going(world)).toEqual(['a']);
});

test('a node that was broken before its NodeClaim named the machine is replaced', async () => {
  await machine(world, 'a');
  const claim = (await claimOf(world, 'a'))!;
  await world.delete({ ...claim, apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim' });
  const claims = world.karpenter.resource(nodeClaimKind as ResourceType<NodeClaim>);
  await claims.patch('a', { metadata: { finalizers: [] } });
  await world.settle();
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'BadDisk', 'True');
  const { status, ...unlaunched } = claim;
  await world.apply(unlaunched as NodeClaim);
  await world.settle();
  await claims.patchStatus('a', { status: status ?? {} });
  await world.advance(10 * minute);
  expect(await going(world)).toEqual(['a']);
});

test('when more than a fifth of the pool is broken, nothing is replaced and users are told', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) await machine(world, name);
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'BadDisk', 'True');
  await condition('b', 'BadDisk', 'True');
  await world.advance(11 * minute);
  expect(await going(world)).toEqual([]);
  expect(await world.events('NodeRepairBlocked')).toContain(
    'NodeRepairBlocked Node/a: more than 20% nodes are unhealthy in the nodepool default',
  );
  await condition('b', 'BadDisk', 'False');
  await world.advance(5 * minute);
  expect(await going(world)).toEqual(['a']);
});

test('an earlier end that was set before is kept', async () => {
  await machine(world, 'a');
  const early = formatTime(world.clock.now());
  const claim = (await claimOf(world, 'a'))!;
  await world.apply({
    ...claim,
    metadata: { ...claim.metadata, annotations: { [annotations.terminationTimestamp]: early } },
  });
  world.run(nodeHealthController(contextOf(world)));
  await condition('a', 'BadDisk', 'True');
  await world.advance(10 * minute);
  expect((await claimOf(world, 'a'))?.metadata.annotations?.[annotations.terminationTimestamp]).toBe(early);
});
