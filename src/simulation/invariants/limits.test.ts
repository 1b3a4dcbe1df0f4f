// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { limitsKept } from './limits.ts';

const leaving = { conditions: [{ type: 'DisruptionReason', status: 'True', reason: 'Drifted' }] };

function claimOf(name: string, second: number, status: object = {}): NodeClaim {
  const metadata = {
    name,
    uid: name,
    labels: { 'karpenter.sh/nodepool': 'pool' },
    creationTimestamp: `2026-01-01T00:00:0${second}Z`,
  };
  return { metadata, status } as unknown as NodeClaim;
}

interface Story {
  /** Of the machine that is there when the other is made. */
  readonly oldAtBirth?: object;
  /** How many minutes ago the limits were edited, and what they were before. */
  readonly edited?: { readonly ago: number; readonly before: Readonly<Record<string, string>> };
  /** Since how many minutes nothing is broken; undefined while something is. */
  readonly calm?: number | undefined;
}

/** What the judge says of a NodeClaim of 4 CPUs and 16 Gi in a pool that has one of 8 and 32 Gi, which stays in the end. */
function judged(limits: Readonly<Record<string, string>>, story: Story = {}): string[] {
  const { oldAtBirth = {}, edited } = story;
  const now = 60 * 60_000;
  const calm = 'calm' in story ? story.calm : 30;
  const judge = limitsKept();
  const said: string[] = [];
  const [capacity, old] = [
    { cpu: '4', memory: '16Gi' },
    { cpu: '8', memory: '32Gi' },
  ];
  let claims: NodeClaim[] = [];
  const facts = {
    now,
    calmSince: calm === undefined ? undefined : now - calm * 60_000,
    get: () => ({ spec: { limits } }),
    list: () => claims,
  } as unknown as Facts;
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  if (edited) {
    const [object, previous] = [limits, edited.before].map((own) => ({
      metadata: { name: 'pool' },
      spec: { limits: own },
    }));
    const event = { type: 'MODIFIED', object, previous } as unknown as StoreEvent;
    const at = now - edited.ago * 60_000;
    judge.onChange!({ at, by: 'user', request: '', collection: collections.pools, event }, facts, report);
  }
  const told = (type: StoreEvent['type'], object: NodeClaim, previous?: NodeClaim): void =>
    judge.onChange!(
      {
        at: 0,
        by: 'karpenter-1',
        request: '',
        collection: collections.claims,
        event: { type, object, previous } as unknown as StoreEvent,
      },
      facts,
      report,
    );
  const [fresh, launched] = [claimOf('fresh', 2), claimOf('fresh', 2, { capacity })];
  claims = [claimOf('old', 1, { capacity: old, ...oldAtBirth }), fresh];
  told('ADDED', fresh);
  claims = [claimOf('old', 1, { capacity: old }), launched];
  told('MODIFIED', launched, fresh);
  return said;
}

test('what a pool has and what is bought stay within its limits', () => {
  expect(judged({ cpu: '10' })).toEqual(['NodePool pool has 12 cpu with NodeClaim fresh, and may have 10']);
  expect(judged({ cpu: '12' })).toEqual([]);
});

test('every resource of the limits counts, and the number of nodes', () => {
  expect(judged({ cpu: '12', memory: '47Gi' })).toEqual([
    `NodePool pool has ${48 * 2 ** 30} memory with NodeClaim fresh, and may have ${47 * 2 ** 30}`,
  ]);
  expect(judged({ nodes: '1' })).toEqual(['NodePool pool has 2 nodes with NodeClaim fresh, and may have 1']);
  expect(judged({ memory: '48Gi', nodes: '2' })).toEqual([]);
});

test('what was to go when a NodeClaim was made does not count, though it stays after all', () => {
  expect(judged({ cpu: '10' }, { oldAtBirth: leaving })).toEqual([]);
});

test('limits that were lowered while something was broken may not have been seen for a quarter of an hour', () => {
  const lowered = (ago: number, calm: number | undefined, before: Readonly<Record<string, string>> = { cpu: '12' }) =>
    judged({ cpu: '10' }, { edited: { ago, before }, calm });
  expect(lowered(14, undefined)).toEqual([]);
  expect(lowered(16, undefined)).toHaveLength(1);
  expect(lowered(5, 0.5)).toEqual([]);
  expect(lowered(5, 2)).toHaveLength(1);
  expect(lowered(5, undefined, {})).toEqual([]);
  expect(lowered(5, undefined, { cpu: '11' })).toHaveLength(1);
});
