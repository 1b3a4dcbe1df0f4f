// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import type { Fleet } from '../process/fleet.ts';
import { disruptionInvariants } from './disruption.ts';
import { poolLabel } from './reading.ts';

const now = 10 * 60_000;
const pool = { metadata: { name: 'pool' }, spec: { disruption: { budgets: [{ nodes: '1' }] } } };
const marked = { type: 'DisruptionReason', status: 'True', reason: 'Empty' };

function claim(name: string, isMarked: boolean, deletionTimestamp?: string): object {
  const conditions = [{ type: 'Initialized', status: 'True' }, ...(isMarked ? [marked] : [])];
  return { metadata: { name, uid: name, labels: { [poolLabel]: 'pool' }, deletionTimestamp }, status: { conditions } };
}

/** What the judge says when one node of a pool goes and another is marked, where its budget allows one. */
function judged({ resumedAt }: { readonly resumedAt: number }): string[] {
  const fleet = { alive: [{ name: 'karpenter-1', resumedAt }] } as unknown as Fleet;
  const judge = disruptionInvariants({ fleet }).find(({ name }) => name === 'budgets/kept')!;
  const said: string[] = [];
  const second = claim('b', true);
  const facts = {
    now,
    clouds: [],
    get: () => pool,
    list: (of: string) => (of === collections.claims ? [claim('a', true, '2026-01-01T00:00:00Z'), second] : []),
  } as unknown as Facts;
  const event = { type: 'MODIFIED', object: second, previous: claim('b', false) } as unknown as StoreEvent;
  judge.onChange!({ at: now, by: 'karpenter-1', request: '', collection: collections.claims, event }, facts, {
    violated: (message) => said.push(message),
    checked: () => undefined,
  });
  return said;
}

test('no more nodes go at once than a budget allows', () => {
  expect(judged({ resumedAt: Number.NEGATIVE_INFINITY })).toEqual([
    '2 nodes of NodePool pool go at once, and its budgets allow 1 for Empty: a, b',
  ]);
});

test('a process that hung a moment ago could not see that a budget became smaller', () => {
  expect(judged({ resumedAt: now - 1000 })).toEqual([]);
});
