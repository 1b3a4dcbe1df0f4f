// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { expirationController } from './controller.ts';

let w: ClaimWorld;
beforeEach(async () => {
  w = await claimWorld();
  await w.run(expirationController);
});
afterEach(() => w.world.close());

describe('a NodeClaim', () => {
  test('is deleted when it has reached its age, and not before', async () => {
    const pool = await w.world.pool();
    await w.write('a', { pool, spec: { expireAfter: '1h', terminationGracePeriod: '5m' } });
    await w.world.advance(3_590_000);
    expect(await w.claim('a')).toBeDefined();
    await w.world.advance(11_000);
    expect(await w.claim('a')).toBeUndefined();
    const labelled = { reason: 'expired', nodepool: 'default', termination_mode: 'eventual' };
    expect(await w.world.metrics.value('karpenter_nodeclaims_disrupted_total', labelled)).toBe(1);
  });

  test('lives for 30 days unless told, and for ever when told so', async () => {
    const usual = await w.write('usual');
    expect(usual.spec.expireAfter).toBe('720h');
    await w.write('eternal', { spec: { expireAfter: 'Never' } });
    await w.write('mortal', { spec: { expireAfter: '30m' } });
    await w.world.advance(24 * 3_600_000);
    expect(await w.claim('mortal')).toBeUndefined();
    expect((await w.world.claims()).length).toBe(2);
  });

  test('of somebody else is left alone', async () => {
    await w.write('a', { spec: { expireAfter: '1s', nodeClassRef: { group: 'other.sh', kind: 'X', name: 'x' } } });
    await w.world.advance(60_000);
    expect(await w.claim('a')).toBeDefined();
  });
});

test('a clock that was a day behind for a minute lets nothing live longer', async () => {
  const own = await claimWorld();
  const { world } = own;
  await own.write('a', { spec: { expireAfter: '1h' } });
  const now = world.clock.now.bind(world.clock);
  const clock = vi.spyOn(world.clock, 'now').mockImplementation(() => now() - 24 * 3_600_000);
  await own.run(expirationController);
  await world.advance(60_000);
  clock.mockRestore();
  await world.advance(3_600_000);
  expect(await own.claim('a')).toBeUndefined();
  await world.close();
});
