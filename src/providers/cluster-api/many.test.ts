// SPDX-License-Identifier: Apache-2.0
// Many NodeClaims at once, with a management cluster that refuses and loses answers: every count ends exact.
import { afterEach, expect, test } from 'vitest';
import { SeededRandom } from '../../base/random.ts';
import { annotations } from './names.ts';
import { CapiWorld, conflictAnswer } from './testing/world.ts';

const members = 50;
const perMember = 20;
let w: CapiWorld;
afterEach(() => w.stop());

/** Retries as controllers do, whatever went wrong. */
async function persistently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work();
    } catch (error) {
      const { code } = error as { code?: string };
      if (code === 'KRP_INSUFFICIENT_CAPACITY' || code === 'KRP_NODECLAIM_NOT_FOUND' || tries > 100) throw error;
      await w.clock.sleep(Math.min(1000 * 2 ** tries, 10_000));
    }
  }
}

test('1,000 NodeClaims over 50 MachineDeployments come and go, and nothing is lost or doubled', async () => {
  w = await CapiWorld.start({ behavior: () => ({ provisionMs: 20_000, bootMs: 5000, deleteMs: 5000 }) });
  const random = new SeededRandom(7);
  const base = new Map<string, number>();
  for (let i = 0; i < members; i++) {
    base.set(`md-${i}`, i % 3);
    const nodeLabels = { 'node.kubernetes.io/instance-type': `type-${i}` };
    await w.member(`md-${i}`, { replicas: i % 3, nodeLabels });
  }
  await w.pass(60_000);
  const strangers = new Set((await w.machines()).map(({ metadata }) => metadata.name));
  const claims = [];
  for (let i = 0; i < members * perMember; i++) {
    const values = [`type-${i % members}`];
    const requirements = [{ key: 'node.kubernetes.io/instance-type', operator: 'In' as const, values }];
    claims.push(await w.claim(`claim-${i}`, { requirements }));
  }
  await w.pass();
  let refused = 0;
  w.fault = () => {
    const draw = random.next();
    if (draw >= 0.15) return undefined;
    refused++;
    return draw < 0.1 ? conflictAnswer : draw < 0.13 ? 'lost' : { status: 500, body: 'no' };
  };
  const instances = await w.finish(
    Promise.all(claims.map((claim) => persistently(() => w.provider.create(claim, w.signal)))),
    600_000,
  );
  expect(new Set(instances.map(({ providerID }) => providerID)).size).toBe(claims.length);
  const up = await w.machines();
  expect(up).toHaveLength(claims.length + strangers.size);
  const owners = up.map(({ metadata }) => metadata.annotations?.[annotations.claimUid]).filter(Boolean);
  expect(new Set(owners).size).toBe(claims.length);
  for (const [name, others] of base) expect(await w.replicas(name)).toBe(others + perMember);

  const launched = claims.map((claim, i) => ({ ...claim, status: { providerID: instances[i]!.providerID } }));
  const gone = launched.map((claim) =>
    persistently(async () => {
      await w.provider.delete(claim, w.signal);
      throw new Error('on its way');
    }).catch((error: { code?: string }) => error.code),
  );
  const ends = await w.finish(Promise.all(gone), 1_200_000);
  expect(new Set(ends)).toEqual(new Set(['KRP_NODECLAIM_NOT_FOUND']));
  const left = await w.machines();
  expect(new Set(left.map(({ metadata }) => metadata.name))).toEqual(strangers);
  for (const [name, others] of base) expect(await w.replicas(name)).toBe(others);
  expect(refused).toBeGreaterThan(300);
  // One claim and one mark for each Machine, the rest shared; what was refused had to be sent again.
  expect((w.writes.length - refused) / claims.length).toBeLessThan(3);
  expect(w.writes.length / claims.length).toBeLessThan(5);
  expect(w.reads.filter((path) => /\/machines$|\/machinedeployments$/.test(path)).length).toBeLessThan(5);
}, 300_000);
