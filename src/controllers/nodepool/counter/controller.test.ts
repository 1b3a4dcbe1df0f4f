// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { type ClaimWorld, claimType, claimWorld } from '../../nodeclaim/testing/claim-world.ts';
import { counterController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  await w.run(counterController);
});
afterEach(() => w.world.close());

async function pool(): Promise<NodePool> {
  return (await w.world.find(nodePoolKind as ResourceType<NodePool>, 'default'))!;
}

test('a NodePool shows the sum of its nodes, zeros included, and is only written when it changes', async () => {
  const stored = await w.world.pool();
  await w.world.advance(5000);
  const none = { cpu: '0', memory: '0', pods: '0', 'ephemeral-storage': '0', nodes: '0' };
  expect((await pool()).status).toMatchObject({ resources: none, nodes: 0 });
  const { resourceVersion } = (await pool()).metadata;
  await w.world.advance(60_000);
  expect((await pool()).metadata.resourceVersion).toBe(resourceVersion);

  await w.write('a', { pool: stored });
  await w.write('b', { pool: stored });
  await w.write('alone');
  await w.world.advance(5000);
  const two = { cpu: '2', memory: '4Gi', pods: '220', 'ephemeral-storage': '40Gi', nodes: '2' };
  expect((await pool()).status).toMatchObject({ resources: two, nodes: 2 });

  // One that goes away no longer counts.
  await w.world.karpenter.resource(claimType).delete('a');
  await w.world.advance(5000);
  expect((await pool()).status).toMatchObject({ nodes: 1, resources: { cpu: '1' } });
});

test('it rests while nothing changes, and mends what somebody else wrote over it', async () => {
  await w.world.pool();
  await w.world.advance(20_000);
  const { status } = await pool();
  const labels = { controller: 'nodepool.counter', result: 'success' };
  const before = await w.world.metrics.value('controller_runtime_reconcile_total', labels);
  await w.world.advance(10 * 60_000);
  expect(await w.world.metrics.value('controller_runtime_reconcile_total', labels)).toBe(before);
  const kind = nodePoolKind as ResourceType<NodePool>;
  await w.world.karpenter.resource(kind).patch('default', { status: { nodes: 7 } }, { subresource: 'status' });
  await w.world.advance(6000);
  expect((await pool()).status).toEqual(status);
});
