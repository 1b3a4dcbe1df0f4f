// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { annotations, capacityTypes, labels } from '../../../api/labels.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { NodeClaimNotFoundError } from '../../../cloud/errors.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { hashController } from '../../nodepool/hash/controller.ts';
import { instanceType } from '../../testing/fake-cloud.ts';
import { type ClaimParts, type ClaimWorld, claimType, claimWorld } from '../testing/claim-world.ts';
import { disruptionConditionsController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  await w.run(disruptionConditionsController);
});
afterEach(() => w.world.close());

const hour = 3_600_000;
const minute = 60_000;

async function patchPool(spec: unknown): Promise<void> {
  await w.world.karpenter.resource(nodePoolKind as ResourceType<NodePool>).patch('default', { spec });
  await w.world.settle();
}

/** A running node of the pool `default`. */
async function running(pool: NodePool, parts: ClaimParts = {}): Promise<string> {
  await w.write('a', { pool, ...parts });
  await w.world.advance(1000);
  return (await w.claim('a'))!.status!.providerID!;
}

describe('Drifted', () => {
  test('says that the template of the NodePool changed', async () => {
    await w.run(hashController);
    await w.world.pool();
    const pool = (await w.world.find(nodePoolKind as ResourceType<NodePool>, 'default'))!;
    const { nodePoolHash, nodePoolHashVersion } = annotations;
    const { [nodePoolHash]: hash = '', [nodePoolHashVersion]: version = '' } = pool.metadata.annotations ?? {};
    await running(pool, { annotations: { [nodePoolHash]: hash, [nodePoolHashVersion]: version } });
    expect(await w.condition('a', 'drifted')).toBe('');
    await patchPool({ template: { metadata: { labels: { team: 'red' } } } });
    expect(await w.condition('a', 'drifted')).toBe('True NodePoolDrifted');
    await patchPool({ template: { metadata: { labels: null } } });
    expect(await w.condition('a', 'drifted')).toBe('');
  });

  test('does not compare hashes of different versions', async () => {
    const pool = await w.world.pool();
    const { nodePoolHash, nodePoolHashVersion } = annotations;
    await w.run(hashController);
    await running(pool, { annotations: { [nodePoolHash]: '1', [nodePoolHashVersion]: 'v2' } });
    expect(await w.condition('a', 'drifted')).toBe('');
  });

  test('says that the NodePool asks for other nodes now', async () => {
    await running(await w.world.pool());
    await patchPool({
      template: { spec: { requirements: [{ key: labels.zone, operator: 'In', values: ['zone-b'] }] } },
    });
    expect(await w.condition('a', 'drifted')).toBe('True RequirementsDrifted');
    // A label the node does not have is one it cannot satisfy.
    await patchPool({ template: { spec: { requirements: [{ key: 'rack', operator: 'Exists' }] } } });
    expect(await w.condition('a', 'drifted')).toBe('True RequirementsDrifted');
    await patchPool({ template: { spec: { requirements: [{ key: 'rack', operator: 'DoesNotExist' }] } } });
    expect(await w.condition('a', 'drifted')).toBe('');
  });

  test('says that the instance type is gone, for nodes of more than an hour, looking twice an hour', async () => {
    await running(await w.world.pool());
    w.world.cloud.types = [instanceType(2)];
    await w.world.advance(55 * minute);
    expect(await w.condition('a', 'drifted')).toBe('');
    await w.world.advance(11 * minute);
    expect(await w.condition('a', 'drifted')).toBe('True InstanceTypeNotFound');
    w.world.cloud.types = [instanceType(1)];
    await w.world.advance(5 * minute);
    expect(await w.condition('a', 'drifted')).toBe('');
    w.world.cloud.types = [];
    await w.world.advance(20 * minute);
    expect(await w.condition('a', 'drifted')).toBe('');
    await w.world.advance(15 * minute);
    expect(await w.condition('a', 'drifted')).toBe('True InstanceTypeNotFound');
  });

  test('takes an offering that is sold out for one that exists', async () => {
    await running(await w.world.pool());
    const type = instanceType(1);
    w.world.cloud.types = [
      { ...type, offerings: type.offerings.map((offering) => ({ ...offering, available: false })) },
    ];
    await w.world.advance(2 * hour);
    expect(await w.condition('a', 'drifted')).toBe('');
    w.world.cloud.types = [{ ...type, offerings: type.offerings.slice(-1) }];
    await w.world.advance(hour);
    expect(await w.condition('a', 'drifted')).toBe('True InstanceTypeNotFound');
  });

  test('lets a reserved node become one on demand', async () => {
    await running(await w.world.pool(), { labels: { [labels.capacityType]: capacityTypes.reserved } });
    await w.world.advance(2 * hour);
    expect(await w.condition('a', 'drifted')).toBe('');
  });

  test('repeats what the cloud says, every five minutes', async () => {
    const id = await running(await w.world.pool());
    w.world.cloud.drift.set(id, 'ImageDrifted');
    await w.world.advance(5 * minute);
    expect(await w.condition('a', 'drifted')).toBe('True ImageDrifted');
    w.world.cloud.fail('driftReason', new NodeClaimNotFoundError('gone'));
    w.world.cloud.fail('driftReason', new Error('throttled'));
    w.world.cloud.drift.delete(id);
    await w.world.advance(30 * minute);
    expect(await w.condition('a', 'drifted')).toBe('True ImageDrifted');
  });

  test('is not asked of the cloud again because pods come and go, but at once when the pool changes', async () => {
    const pool = await w.world.pool();
    await running(pool);
    await w.world.advance(minute);
    const asked = (): number => w.world.cloud.calls.filter(({ method }) => method === 'driftReason').length;
    const before = asked();
    for (const lastPodEventTime of ['2026-01-01T00:01:00Z', '2026-01-01T00:01:10Z'])
      await w.world.karpenter.resource(claimType).patchStatus('a', { status: { lastPodEventTime } });
    await w.world.advance(1000);
    expect(asked()).toBe(before);
    await patchPool({ template: { metadata: { labels: { team: 'red' } } } });
    expect(asked()).toBeGreaterThan(before);
  });

  test('is written soon when the API server fails at first', async () => {
    const id = await running(await w.world.pool());
    w.world.cloud.drift.set(id, 'ImageDrifted');
    w.world.doors.karpenter.fail('PATCH /nodeclaims/a/status', { status: 500, reason: 'InternalError' }, 2);
    await w.world.advance(5 * minute + 5000);
    expect(await w.condition('a', 'drifted')).toBe('True ImageDrifted');
  });

  test('is nothing for a NodeClaim without a NodePool', async () => {
    await w.write('a');
    await w.world.advance(2 * hour);
    expect(await w.condition('a', 'drifted')).toBe('');
    expect(await w.condition('a', 'consolidatable')).toBe('');
  });
});

describe('Consolidatable', () => {
  const consolidateAfter = (text: string) => ({ spec: { disruption: { consolidateAfter: text } } });

  test('comes at once when the pool does not wait', async () => {
    await running(await w.world.pool(consolidateAfter('0s')));
    expect(await w.condition('a', 'consolidatable')).toBe('True Consolidatable');
  });

  test('comes when no pod has come or gone for long enough, and goes with the next one', async () => {
    await running(await w.world.pool(consolidateAfter('5m')));
    await w.world.advance(4 * minute);
    expect(await w.condition('a', 'consolidatable')).toBe('');
    await w.world.advance(minute);
    expect(await w.condition('a', 'consolidatable')).toBe('True Consolidatable');
    const lastPodEventTime = `${new Date(w.world.clock.now()).toISOString().slice(0, 19)}Z`;
    await w.world.karpenter.resource(claimType).patchStatus('a', { status: { lastPodEventTime } });
    await w.world.settle();
    expect(await w.condition('a', 'consolidatable')).toBe('');
    await w.world.advance(5 * minute);
    expect(await w.condition('a', 'consolidatable')).toBe('True Consolidatable');
  });

  test('follows the pool', async () => {
    await running(await w.world.pool(consolidateAfter('0s')));
    await patchPool({ disruption: { consolidateAfter: 'Never' } });
    expect(await w.condition('a', 'consolidatable')).toBe('');
    await patchPool({ disruption: { consolidateAfter: '1s' } });
    await w.world.advance(1000);
    expect(await w.condition('a', 'consolidatable')).toBe('True Consolidatable');
  });

  test('waits for the node to be initialized', async () => {
    await running(await w.world.pool(consolidateAfter('0s')), {
      spec: { startupTaints: [{ key: 'x', effect: 'NoExecute' }] },
    });
    expect(await w.condition('a', 'consolidatable')).toBe('');
  });

  test('is nothing for static pools', async () => {
    await running(await w.world.pool({ spec: { replicas: 1 } }));
    expect(await w.condition('a', 'consolidatable')).toBe('');
  });
});
