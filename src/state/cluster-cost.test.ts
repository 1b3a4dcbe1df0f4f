// SPDX-License-Identifier: Apache-2.0
import { beforeEach, describe, expect, test } from 'vitest';
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { InstanceType } from '../cloud/provider.ts';
import type { InformerHandler } from '../kube/informer.ts';
import { ClusterCost } from './cluster-cost.ts';
import { launchedClaim } from './testing/objects.ts';

let handler: InformerHandler<NodeClaim>;
let cost: ClusterCost;
beforeEach(() => {
  cost = new ClusterCost({
    nodeClaims: { addHandler: (added: InformerHandler<NodeClaim>) => (handler = added) },
    manages: ({ spec }) => spec.nodeClassRef.kind === 'KWOKNodeClass',
  });
});

function claim(name: string, own: Record<string, string> = {}, pool = 'default'): NodeClaim {
  const plain = launchedClaim(name, { pool });
  const capacityType = { [labels.capacityType]: 'spot' };
  return { ...plain, metadata: { ...plain.metadata, labels: { ...plain.metadata.labels, ...capacityType, ...own } } };
}

function withoutZone(launched: NodeClaim): NodeClaim {
  const { [labels.zone]: _zone, ...rest } = launched.metadata.labels ?? {};
  return { ...launched, metadata: { ...launched.metadata, labels: rest } };
}

function type(name: string, price: number, zone = 'zone-a', capacityType = 'spot'): InstanceType {
  const requirements = [
    { key: labels.zone, operator: 'In', values: [zone] },
    { key: labels.capacityType, operator: 'In', values: [capacityType] },
  ];
  return { name, requirements: [], capacity: {}, offerings: [{ requirements, price }] };
}

describe('the cost of a pool', () => {
  test('is what its machines cost together', () => {
    for (const name of ['a', 'b']) handler.added?.(claim(name));
    handler.added?.(claim('c', {}, 'other'));
    expect(cost.ofPool('default')).toBe(0);
    cost.setPrices('default', [type('c-10x', 2)]);
    cost.setPrices('other', [type('c-10x', 5)]);
    expect(cost.ofPool('default')).toBe(4);
    expect(cost.total()).toBe(9);
    handler.deleted?.(claim('b'), false);
    expect(cost.ofPool('default')).toBe(2);
    handler.added?.(claim('d'));
    expect(cost.ofPool('default')).toBe(4);
  });

  test('is of the zone and the capacity type', () => {
    handler.added?.(claim('a'));
    cost.setPrices('default', [type('c-10x', 1, 'zone-b'), type('other', 2), type('c-10x', 3, 'zone-a', 'on-demand')]);
    expect(cost.ofPool('default')).toBe(0);
    expect(cost.unpriced('default')).toEqual(['c-10x zone-a spot']);
  });

  test('is known in a cloud without zones', () => {
    handler.added?.(withoutZone(claim('a')));
    cost.setPrices('default', [type('c-10x', 2, '')]);
    expect(cost.ofPool('default')).toBe(2);
  });

  test('moves with a claim that turns out to be something else', () => {
    handler.added?.(claim('a'));
    cost.setPrices('default', [type('c-10x', 1), type('c-20x', 2)]);
    handler.updated?.(claim('a', { [labels.instanceType]: 'c-20x' }), claim('a'));
    cost.setPrices('default', [type('c-10x', 1), type('c-20x', 2)]);
    expect(cost.ofPool('default')).toBe(2);
  });

  test('leaves out claims without a pool, without a machine and of somebody else', () => {
    handler.added?.({ ...withoutZone(claim('a')), status: {} });
    const foreign = claim('b');
    const nodeClassRef = { ...foreign.spec.nodeClassRef, kind: 'Other' };
    handler.added?.({ ...foreign, spec: { ...foreign.spec, nodeClassRef } });
    expect(cost.unpriced('default')).toEqual([]);
  });

  test('forgets a pool with its last machine', () => {
    handler.added?.(claim('a'));
    cost.setPrices('default', [type('c-10x', 1)]);
    handler.deleted?.(claim('a'), false);
    handler.added?.(claim('b'));
    expect(cost.ofPool('default')).toBe(0);
  });
});

test('a price that is missing is asked for once', () => {
  handler.added?.(claim('a'));
  const asked: string[] = [];
  const undo = cost.onUnpriced((pool) => asked.push(pool));
  handler.added?.(claim('b'));
  handler.added?.(claim('c', { [labels.zone]: 'zone-b' }));
  expect(asked).toEqual(['default', 'default']);
  undo();
  handler.added?.(claim('d', {}, 'other'));
  expect(asked).toHaveLength(2);
});
