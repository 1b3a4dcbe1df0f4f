// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { type PoolCatalog, PoolCatalogReader, readPoolCatalog } from '../../state/pool-catalog.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { ClaimCreator, type CreateOutcome } from './create-claims.ts';

let world: TestWorld;
afterEach(() => world.close());

const revision = 'example.com/revision';

/** A plan from a time when the template of the pool had this label. */
function planOf(value: string): NewNodeClaim {
  return {
    nodePool: 'default',
    instanceTypes: ['c-2x'],
    requirements: [
      { key: labels.instanceType, operator: 'In', values: ['c-2x'] },
      { key: revision, operator: 'In', values: [value] },
    ],
    requests: { cpu: '1' },
    pods: [],
  } as unknown as NewNodeClaim;
}

async function create(plan: NewNodeClaim): Promise<CreateOutcome> {
  const { registry, signal, log } = world;
  const pool = await world.pool({ labels: { [revision]: 'r2' } });
  const catalog = await readPoolCatalog(registry, [pool], signal);
  const [outcome] = await new ClaimCreator(world).create([plan], { reason: 'test', catalog, log, signal });
  return outcome!;
}

test('a plan is carried out on the NodePool it was made for', async () => {
  world = await testWorld();
  expect(await create(planOf('r2'))).toMatchObject({ claim: { metadata: { labels: { [revision]: 'r2' } } } });
});

test('a plan that is older than the template of its NodePool is not carried out', async () => {
  world = await testWorld();
  expect(await create(planOf('r1'))).toMatchObject({ error: { cause: { code: 'KRP_NODEPOOL_CHANGED' } } });
  expect(await world.claims()).toEqual([]);
});

test('of two who planned without each other the second plans again: limits and reservations hold for both', async () => {
  world = await testWorld();
  const { registry, signal, log } = world;
  const pool = await world.pool({ labels: { [revision]: 'r2' } });
  const reader = new PoolCatalogReader({ registry, clock: world.clock });
  const reading = (): Promise<PoolCatalog> => reader.read([pool], signal);
  const buy = async (catalog: PoolCatalog): Promise<CreateOutcome> => {
    const [outcome] = await new ClaimCreator(world).create([planOf('r2')], { reason: 'test', catalog, log, signal });
    return outcome!;
  };
  const [provisioning, disruption] = [await reading(), await reading()];
  const [first, second] = await Promise.all([buy(provisioning), buy(disruption)]);
  expect(first).toHaveProperty('claim');
  expect(second).toMatchObject({ error: { cause: { code: 'KRP_CLOUD_TAKEN' } } });
  // It still is when the other is done, and not when it has looked again; nobody is in their own way.
  expect(await buy(disruption)).toMatchObject({ error: { cause: { code: 'KRP_CLOUD_TAKEN' } } });
  expect(await buy(provisioning)).toHaveProperty('claim');
  expect(await buy(await reading())).toHaveProperty('claim');
});
