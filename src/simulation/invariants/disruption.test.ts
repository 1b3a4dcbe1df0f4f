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
  const judge = disruptionInvariants({ fleet, gates: {} as never }).find(({ name }) => name === 'budgets/kept')!;
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

const minute = 60_000;
const node = (ready: 'True' | 'False', sinceMs: number): object => ({
  metadata: { name: 'node' },
  spec: { providerID: 'id' },
  status: { conditions: [{ type: 'Ready', status: ready, lastTransitionTime: new Date(sinceMs).toISOString() }] },
});
const owned = {
  metadata: { name: 'a', uid: 'a', labels: { [poolLabel]: 'pool' } },
  spec: {},
  status: { providerID: 'id', conditions: [{ type: 'Registered', status: 'True' }] },
};

interface Story {
  /** How long the node has been broken when its NodeClaim is deleted. */
  readonly brokenMs?: number;
  /** How many nodes its pool is to have; it has one. */
  readonly replicas?: number;
}

/** What the judge says when a NodeClaim that nobody marked is deleted, of a machine that is there. */
function deleted({ brokenMs, replicas }: Story): string[] {
  const gates = { NodeRepair: true, StaticCapacity: true } as never;
  const judge = disruptionInvariants({ fleet: { alive: [] } as unknown as Fleet, gates }).find(
    ({ name }) => name === 'claims/deleted-for-a-reason',
  )!;
  const said: string[] = [];
  const broken = brokenMs === undefined ? node('True', 0) : node('False', now - brokenMs);
  const facts = {
    now,
    calmSince: 0,
    clouds: [{ repairsAfterMs: 3 * minute, ledger: { alive: () => [{ providerID: 'id' }], all: () => [] } }],
    get: () => ({ metadata: { name: 'pool' }, spec: replicas === undefined ? {} : { replicas } }),
    list: (of: string) => (of === collections.claims ? [owned] : [broken]),
  } as unknown as Facts;
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  const told = (collection: string, object: object, previous: object): void =>
    judge.onChange!(
      {
        at: now,
        by: 'karpenter-1',
        request: 'DELETE',
        collection,
        event: { type: 'MODIFIED', object, previous } as unknown as StoreEvent,
      },
      facts,
      report,
    );
  told(collections.nodes, broken, node('True', 0));
  const going = { ...owned, metadata: { ...owned.metadata, deletionTimestamp: new Date(now).toISOString() } };
  told(collections.claims, going, owned);
  return said;
}

test('a node that nothing is wrong with is not deleted without being marked', () => {
  expect(deleted({})).toEqual(['NodeClaim a was deleted without a reason (DELETE)']);
});

test('repair is a reason once the patience of its cloud is over, and not before', () => {
  expect(deleted({ brokenMs: 3 * minute })).toEqual([]);
  expect(deleted({ brokenMs: 2 * minute })).toHaveLength(1);
});

test('a static pool with fewer replicas is a reason', () => {
  expect(deleted({ replicas: 0 })).toEqual([]);
  expect(deleted({ replicas: 1 })).toHaveLength(1);
});
