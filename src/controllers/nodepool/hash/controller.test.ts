// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodeClaimConditions } from '../../../api/conditions.ts';
import { nodePoolHash, nodePoolHashVersion } from '../../../api/hash.ts';
import { annotations } from '../../../api/labels.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { type ClaimWorld, claimType, claimWorld } from '../../nodeclaim/testing/claim-world.ts';
import { hashController } from './controller.ts';

const { nodePoolHash: hashKey, nodePoolHashVersion: versionKey } = annotations;
const poolType = nodePoolKind as ResourceType<NodePool>;

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld();
});
afterEach(() => w.world.close());

async function stamps(of: string): Promise<unknown[]> {
  const object = of === 'pool' ? await w.world.find(poolType, 'default') : await w.claim(of);
  return [object?.metadata.annotations?.[hashKey], object?.metadata.annotations?.[versionKey]];
}

describe('the hash of a NodePool', () => {
  test('is written on it, and again when its template changes', async () => {
    await w.run(hashController);
    const pool = await w.world.pool();
    const first = nodePoolHash(pool);
    expect(await stamps('pool')).toEqual([first, nodePoolHashVersion]);
    const changed = await w.world.karpenter
      .resource(poolType)
      .patch('default', { spec: { template: { metadata: { labels: { team: 'red' } } } } });
    await w.world.settle();
    expect(nodePoolHash(changed)).not.toBe(first);
    expect(await stamps('pool')).toEqual([nodePoolHash(changed), nodePoolHashVersion]);
  });

  test('is mended when somebody writes over it, and not looked at for what is found out about the pool', async () => {
    await w.run(hashController);
    const pool = await w.world.pool();
    const pools = w.world.karpenter.resource(poolType);
    const hashed = vi.spyOn(w.context, 'pool');
    await pools.patchStatus('default', { status: { resources: { cpu: '4' } } });
    await w.world.settle();
    expect(hashed).not.toHaveBeenCalled();
    await pools.patch('default', { metadata: { annotations: { [hashKey]: '1' } } });
    await w.world.settle();
    expect(await stamps('pool')).toEqual([nodePoolHash(pool), nodePoolHashVersion]);
  });

  test('of another version brings the new one to the NodeClaims, but not to those that had drifted', async () => {
    const old = { [hashKey]: '1', [versionKey]: 'v2' };
    const pool = await w.world.pool();
    await w.world.karpenter.resource(poolType).patch('default', { metadata: { annotations: old } });
    await w.write('fine', { pool, annotations: { ...old, other: 'kept' } });
    await w.write('drifted', { pool, annotations: old });
    await w.write('stranger', { annotations: old });
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const conditions = [{ type: nodeClaimConditions.drifted, status: 'True', reason: 'X', lastTransitionTime }];
    await w.world.karpenter.resource(claimType).patchStatus('drifted', { status: { conditions } });
    await w.world.settle();
    await w.run(hashController);
    expect(await stamps('pool')).toEqual([nodePoolHash(pool), nodePoolHashVersion]);
    expect(await stamps('fine')).toEqual([nodePoolHash(pool), nodePoolHashVersion]);
    expect((await w.claim('fine'))?.metadata.annotations).toMatchObject({ other: 'kept' });
    expect(await stamps('drifted')).toEqual(['1', nodePoolHashVersion]);
    expect(await stamps('stranger')).toEqual(['1', 'v2']);
  });

  test('of another version is on the NodeClaims before the NodePool has it, also when a write fails', async () => {
    const old = { [hashKey]: '1', [versionKey]: 'v2' };
    const pool = await w.world.pool();
    await w.world.karpenter.resource(poolType).patch('default', { metadata: { annotations: old } });
    await w.write('a', { pool, annotations: old });
    await w.world.settle();
    w.world.doors.karpenter.fail('PATCH /nodeclaims/a', { status: 500, reason: 'InternalError' }, 100);
    await w.run(hashController);
    expect(await stamps('pool')).toEqual(['1', 'v2']);
  });

  test('of the same version leaves the NodeClaims alone', async () => {
    const pool = await w.world.pool();
    const own = { [hashKey]: '1', [versionKey]: nodePoolHashVersion };
    await w.write('a', { pool, annotations: own });
    await w.world.settle();
    await w.run(hashController);
    expect(await stamps('a')).toEqual(['1', nodePoolHashVersion]);
  });
});
