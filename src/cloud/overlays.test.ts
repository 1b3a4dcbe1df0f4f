// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { commonLabelSet, labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodeOverlay, NodeOverlaySpec } from '../api/node-overlay.ts';
import type { NodePool } from '../api/node-pool.ts';
import { InsufficientCapacityError } from './errors.ts';
import { OverlayStore, overlaidPrice, withOverlays } from './overlays.ts';
import type { CloudProvider, Instance, InstanceType } from './provider.ts';

const never = new AbortController().signal;
const requirement = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values });
const type = (name: string, price: number, parts: Partial<InstanceType['offerings'][number]> = {}): InstanceType => ({
  name,
  requirements: [requirement(labels.instanceType, name), requirement(labels.zone, 'a', 'b')],
  offerings: ['a', 'b'].map((zone) => ({ price, requirements: [requirement(labels.zone, zone)], ...parts })),
  capacity: { cpu: '4' },
});
const pool = {
  metadata: { name: 'pool' },
  spec: { template: { metadata: { labels: { team: 'red' } }, spec: {} } },
} as unknown as NodePool;
const overlay = (name: string, spec: Partial<NodeOverlaySpec>): NodeOverlay =>
  ({ metadata: { name }, spec: { requirements: [], ...spec } }) as NodeOverlay;

/** A cloud that remembers which instance types it was asked for, and has none of some. */
function cloud(types: readonly InstanceType[], soldOut: readonly string[] = []) {
  const asked: string[][] = [];
  const provider = {
    name: 'cloud',
    labels: commonLabelSet,
    instanceTypes: () => Promise.resolve(types),
    create: ({ spec }: NodeClaim) => {
      const allowed = spec.requirements.findLast(({ key }) => key === labels.instanceType)?.values ?? [];
      asked.push([...allowed]);
      const name = allowed.find((candidate) => !soldOut.includes(candidate));
      if (name === undefined) throw new InsufficientCapacityError('sold out');
      const instance: Instance = {
        providerID: `cloud://${name}`,
        labels: { [labels.instanceType]: name },
        capacity: { cpu: '4' },
        allocatable: { cpu: '3' },
      };
      return Promise.resolve(instance);
    },
  } as unknown as CloudProvider;
  const store = new OverlayStore();
  return { asked, store, seen: withOverlays(provider, store, () => pool) };
}

async function prices(types: readonly InstanceType[], ...overlays: NodeOverlay[]): Promise<number[][]> {
  const { store, seen } = cloud(types);
  store.accepted = overlays;
  return (await seen.instanceTypes(pool, never)).map(({ offerings }) => offerings.map(({ price }) => price));
}

describe('the price of an overlay', () => {
  test.each([
    [{ price: '0.5' }, 0.5],
    [{ priceAdjustment: '+0.5' }, 2.5],
    [{ priceAdjustment: '-3' }, 0],
    [{ priceAdjustment: '+10%' }, 2.2],
    [{ priceAdjustment: '-25%' }, 1.5],
    [{ priceAdjustment: '-100%' }, 0],
    [{}, 2],
  ])('%j makes 2 into %d', (spec, price) => {
    expect(overlaidPrice(overlay('o', spec), 2)).toBeCloseTo(price, 10);
  });
});

describe('instance types', () => {
  test('are shown as they are where no overlay applies, and not at all before overlays were looked at', async () => {
    const { store, seen } = cloud([type('a', 1)]);
    await expect(seen.instanceTypes(pool, never)).rejects.toThrow('have not been evaluated yet');
    store.accepted = [];
    expect(await seen.instanceTypes(pool, never)).toEqual([type('a', 1)]);
    store.accepted = [overlay('o', { requirements: [requirement('team', 'blue')], price: '9' })];
    const [first] = await seen.instanceTypes(pool, never);
    expect(first).toEqual(type('a', 1));
    // The same objects: what was compiled of them is kept.
    expect((await seen.instanceTypes(pool, never))[0]).toBe(first);
  });

  test('are one list while nothing that they depend on changes, also where pools share what a cloud sells', async () => {
    const { store, seen } = cloud([type('one', 1)]);
    store.accepted = [overlay('dearer', { price: '2' })];
    const other = { ...pool, metadata: { name: 'other' } };
    const [first, second] = [await seen.instanceTypes(pool, never), await seen.instanceTypes(other, never)];
    const grown = { ...pool, status: { nodes: 1 } } as NodePool;
    expect(await seen.instanceTypes(grown, never)).toBe(first);
    expect(await seen.instanceTypes(other, never)).toBe(second);
    const labelled = structuredClone(pool);
    labelled.spec.template.metadata!.labels!['team'] = 'blue';
    expect(await seen.instanceTypes(labelled, never)).not.toBe(first);
  });

  test('have the price of the first overlay that fits: type, place, labels of the pool', async () => {
    const zoneB = overlay('b', { requirements: [requirement(labels.zone, 'b')], price: '5' });
    const red = overlay('red', { requirements: [requirement('team', 'red')], priceAdjustment: '+1' });
    expect(await prices([type('a', 1)], zoneB, red)).toEqual([[2, 5]]);
    const ofPool = overlay('pool', { requirements: [requirement(labels.nodePool, 'pool')], price: '7' });
    expect(await prices([type('a', 1)], ofPool, red)).toEqual([[7, 7]]);
    const unknown = overlay('unknown', { requirements: [requirement('example.com/x', 'y')], price: '7' });
    expect(await prices([type('a', 1)], unknown)).toEqual([[1, 1]]);
  });

  test('have resources of overlays, of each the first', async () => {
    const { store, seen } = cloud([type('a', 1)]);
    store.accepted = [
      overlay('x', { capacity: { 'example.com/gpu': '2' } }),
      overlay('y', { capacity: { 'example.com/gpu': '4', 'example.com/nic': 1 } }),
    ];
    const [first] = await seen.instanceTypes(pool, never);
    expect(first!.capacity).toEqual({ cpu: '4', 'example.com/gpu': '2', 'example.com/nic': '1' });
  });

  test('whose price was a guess have one that is none once somebody wrote it down', async () => {
    const guess = type('a', 1, { estimated: true });
    const { store, seen } = cloud([guess]);
    const estimated = async () => (await seen.instanceTypes(pool, never))[0]!.offerings[0]!.estimated;
    store.accepted = [overlay('share', { priceAdjustment: '-10%' })];
    expect(await estimated()).toBe(true);
    store.accepted = [overlay('told', { price: '3' })];
    expect(await estimated()).toBeUndefined();
  });
});

describe('a launch', () => {
  const claim = {
    metadata: { name: 'c' },
    spec: { requirements: [requirement(labels.instanceType, 'a', 'b', 'c')], resources: { requests: { cpu: '1' } } },
  } as unknown as NodeClaim;
  const types = [type('a', 1), type('b', 2), type('c', 3)];
  const dearA = overlay('dear', { requirements: [requirement(labels.instanceType, 'a')], price: '10' });

  test('takes the cheapest by the prices that overlays make, and another when that is sold out', async () => {
    const { asked, store, seen } = cloud(types);
    store.accepted = [dearA];
    expect((await seen.create(claim, never)).providerID).toBe('cloud://b');
    expect(asked).toEqual([['b']]);
    const scarce = cloud(types, ['b']);
    scarce.store.accepted = [dearA];
    expect((await scarce.seen.create(claim, never)).providerID).toBe('cloud://a');
  });

  test('is left to the cloud where overlays change no price', async () => {
    const { asked, store, seen } = cloud(types);
    store.accepted = [overlay('gpu', { capacity: { 'example.com/gpu': '2' } })];
    const instance = await seen.create(claim, never);
    expect(asked).toEqual([['a', 'b', 'c']]);
    expect(instance.capacity).toEqual({ cpu: '4', 'example.com/gpu': '2' });
    expect(instance.allocatable).toEqual({ cpu: '3', 'example.com/gpu': '2' });
  });
});
