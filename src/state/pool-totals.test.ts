// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { ReadonlyAmounts } from './amounts.ts';
import { PoolTotals } from './pool-totals.ts';
import type { StateNode } from './state-node.ts';

interface Parts {
  nodePool: string | undefined;
  markedForDeletion: boolean;
  capacity: ReadonlyAmounts;
}

const machine = (cpu: bigint): Parts => ({
  nodePool: 'p',
  markedForDeletion: false,
  capacity: new Map([['cpu', cpu]]),
});

test('only what a pool has in sum is news, not that a node was read anew', () => {
  const told: string[] = [];
  const totals = new PoolTotals((pool) => told.push(pool));
  const parts = machine(4n);
  const node = parts as unknown as StateNode;
  totals.recount(node);
  parts.capacity = new Map([['cpu', 4n]]);
  totals.recount(node);
  expect(told).toEqual(['p']);
  parts.capacity = new Map([['cpu', 8n]]);
  totals.recount(node);
  expect([told.length, totals.usageOf('p').get('cpu')]).toEqual([2, 8n]);
  parts.capacity = new Map([
    ['cpu', 8n],
    ['gpu', 1n],
  ]);
  totals.recount(node);
  parts.markedForDeletion = true;
  totals.recount(node);
  expect([told.length, [...totals.usageOf('p')], totals.nodesOf('p').size]).toEqual([4, [], 1]);
  parts.nodePool = 'q';
  totals.recount(node);
  expect(told.slice(4)).toEqual(['p', 'q']);
  totals.recount(node, true);
  expect(totals.nodesOf('q').size).toBe(0);
});
