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

/** What the judge says of a NodeClaim of 4 CPUs in a pool that may have 10 and has one of 8, which stays in the end. */
function judged(oldAtBirth: object): string[] {
  const judge = limitsKept();
  const said: string[] = [];
  const capacity = { cpu: '4' };
  let claims: NodeClaim[] = [];
  const facts = {
    get: () => ({ spec: { limits: { cpu: '10' } } }),
    list: () => claims,
  } as unknown as Facts;
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
      { violated: (message) => said.push(message), checked: () => undefined },
    );
  const [fresh, launched] = [claimOf('fresh', 2), claimOf('fresh', 2, { capacity })];
  claims = [claimOf('old', 1, { capacity: { cpu: '8' }, ...oldAtBirth }), fresh];
  told('ADDED', fresh);
  claims = [claimOf('old', 1, { capacity: { cpu: '8' } }), launched];
  told('MODIFIED', launched, fresh);
  return said;
}

test('what a pool has and what is bought stay within its limits', () => {
  expect(judged({})).toEqual(['NodePool pool has 12 CPUs with NodeClaim fresh, and may have 10']);
});

test('what was to go when a NodeClaim was made does not count, though it stays after all', () => {
  expect(judged(leaving)).toEqual([]);
});
