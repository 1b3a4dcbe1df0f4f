// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { nodePoolConditions } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../../api/node-pool.ts';
import { CreateError } from '../../../cloud/errors.ts';
import type { ResourceType } from '../../../kube/object.ts';
import { formatTime } from '../../../kube/time.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { lifecycleController } from './controller.ts';

let w: ClaimWorld;
let pool: NodePool;
beforeEach(async () => {
  w = await claimWorld({ lifecycle: true });
  w.world.cloud.nodesAppear = false;
  pool = await w.world.pool();
});
afterEach(() => w.world.close());

const minute = 60_000;

async function poolHealth(): Promise<string | undefined> {
  const stored = await w.world.find(nodePoolKind as ResourceType<NodePool>, 'default');
  const condition = stored?.status?.conditions?.find(({ type }) => type === nodePoolConditions.nodeRegistrationHealthy);
  return condition && `${condition.status} ${condition.reason}`;
}

describe('a NodeClaim that does not become a node', () => {
  test('is given up after five minutes without a launch', async () => {
    w.world.cloud.fail('create', new Error('down'), 1000);
    await w.write('a', { pool });
    await w.world.advance(5 * minute - 1000);
    expect(await w.claim('a')).toBeDefined();
    await w.world.advance(2 * minute);
    expect(await w.claim('a')).toBeUndefined();
    const labelled = { reason: 'launch_timeout', nodepool: 'default' };
    expect(await w.world.metrics.value('karpenter_nodeclaims_disrupted_total', labelled)).toBe(1);
  });

  test('is given up after fifteen minutes without a node, and its machine with it', async () => {
    await w.write('a', { pool });
    await w.world.advance(15 * minute - 1000);
    expect(await w.claim('a')).toBeDefined();
    await w.world.advance(1000 + 5000);
    expect(await w.claim('a')).toBeUndefined();
    expect(w.world.cloud.instances.size).toBe(0);
    const labelled = { reason: 'registration_timeout', nodepool: 'default' };
    expect(await w.world.metrics.value('karpenter_nodeclaims_disrupted_total', labelled)).toBe(1);
  });

  test('is given up all the same when the API server fails at first', async () => {
    await w.write('a', { pool });
    await w.world.settle();
    w.world.doors.karpenter.fail('DELETE /nodeclaims/a', { status: 500, reason: 'InternalError' }, 2);
    await w.world.advance(15 * minute + 10_000);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('counts from the change of the condition, not from its birth', async () => {
    await w.write('a', { pool });
    await w.world.settle();
    // Registration began anew ten minutes later.
    const claim = (await w.claim('a'))!;
    const later = '2026-01-01T00:10:00Z';
    const conditions = claim.status!.conditions!.map((condition) =>
      condition.type === 'Registered' ? { ...condition, lastTransitionTime: later } : condition,
    );
    await w.world.karpenter.resource(w.context.claims.informer.type).patchStatus('a', { status: { conditions } });
    await w.world.advance(16 * minute);
    expect(await w.claim('a')).toBeDefined();
    await w.world.advance(10 * minute);
    expect(await w.claim('a')).toBeUndefined();
  });

  test('has all the time it needs once it is registered', async () => {
    w.world.cloud.nodesAppear = true;
    await w.write('a', { pool, spec: { startupTaints: [{ key: 'cni', effect: 'NoExecute' }] } });
    await w.world.advance(24 * 60 * minute);
    expect(await w.condition('a', 'initialized')).toBe('Unknown StartupTaintsExist');
  });

  test('makes its NodePool unhealthy the second time, and three nodes that come make it healthy again', async () => {
    await w.write('a', { pool });
    await w.world.advance(16 * minute);
    expect(await poolHealth()).toBeUndefined();
    await w.write('b', { pool });
    await w.world.advance(16 * minute);
    expect(await poolHealth()).toBe('False RegistrationFailed');
    w.world.cloud.nodesAppear = true;
    for (const name of ['c', 'd']) {
      await w.write(name, { pool });
      await w.world.settle();
      expect(await poolHealth()).toBe('False RegistrationFailed');
    }
    await w.write('e', { pool });
    await w.world.settle();
    expect(await poolHealth()).toBe('True NodeRegistrationHealthy');
  });

  test('says in its NodePool why launches fail', async () => {
    w.world.cloud.fail('create', new CreateError('no', { reason: 'QuotaExceeded', message: 'ask for more' }), 1000);
    await w.write('a', { pool });
    await w.write('b', { pool });
    await w.world.advance(8 * minute);
    expect(await poolHealth()).toBe('False QuotaExceeded');
  });
});

test('a clock that was a day behind for a minute lets nobody wait longer', async () => {
  const own = await claimWorld();
  const { world } = own;
  await world.pool();
  const written = await own.write('a');
  const lastTransitionTime = formatTime(world.clock.now());
  const condition = (type: string, status: string) => ({ type, status, reason: type, message: '', lastTransitionTime });
  const conditions = [condition('Launched', 'True'), condition('Registered', 'Unknown')];
  await world.apply({ ...written, status: { providerID: 'fake://a', conditions } } as NodeClaim);
  const now = world.clock.now.bind(world.clock);
  const clock = vi.spyOn(world.clock, 'now').mockImplementation(() => now() - 24 * 60 * minute);
  await own.run(lifecycleController);
  await world.advance(minute);
  clock.mockRestore();
  await world.advance(20 * minute);
  expect(await own.claim('a')).toBeUndefined();
  await world.close();
});
