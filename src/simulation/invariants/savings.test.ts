// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts, LedgerInstance } from '../contract.ts';
import { movesSave } from './savings.ts';

const why = { type: 'DisruptionReason', status: 'True', reason: 'Underutilized' };

interface Story {
  /** Prices of what goes and of what comes in its place. */
  readonly going: readonly number[];
  readonly coming: readonly number[];
  readonly capacityType?: string;
  /** From the marks to the purchase. */
  readonly laterMs?: number;
}

/** What the judge says when nodes go one after the other, and others were bought for them. */
function judged({ going, coming, capacityType = 'on-demand', laterMs = 100 }: Story): string[] {
  const judge = movesSave();
  const machines: LedgerInstance[] = [];
  const said: string[] = [];
  const facts = {
    clouds: [{ ledger: { all: () => machines, alive: () => machines }, steadyPrices: ['on-demand'] }],
  } as unknown as Facts;
  const told = (at: number, collection: string, type: StoreEvent['type'], object: object, previous?: object): void =>
    judge.onChange!(
      { at, by: 'karpenter-1', request: '', collection, event: { type, object, previous } as StoreEvent },
      facts,
      { violated: (message) => said.push(message), checked: () => undefined },
    );
  const machineOf = (uid: string, price: number): void => {
    const claim = { name: uid, uid };
    machines.push({ providerID: uid, claim, price, capacityType, instanceType: '', zone: '', launchedAt: 0 });
  };
  const metadata = (uid: string) => ({ name: uid, uid });
  for (const [i, price] of going.entries()) {
    machineOf(`old-${i}`, price);
    const plain = { metadata: metadata(`old-${i}`) };
    told(1000 + i, collections.claims, 'MODIFIED', { ...plain, status: { conditions: [why] } }, plain);
  }
  for (const [i, price] of coming.entries()) {
    const born = 1000 + laterMs;
    told(born, collections.claims, 'ADDED', { metadata: metadata(`new-${i}`) });
    machineOf(`new-${i}`, price);
    const message = 'Launching NodeClaim: Underutilized';
    told(born + 50, collections.events, 'ADDED', { message, involvedObject: { uid: `new-${i}` } });
  }
  for (const i of going.keys()) {
    const before = { metadata: metadata(`old-${i}`), status: { conditions: [why] } };
    const object = { ...before, metadata: { ...before.metadata, deletionTimestamp: 'now' } };
    told(90_000 + i, collections.claims, 'MODIFIED', object, before);
  }
  return said;
}

test('what comes costs less than what goes, all together', () => {
  expect(judged({ going: [2, 2], coming: [3] })).toEqual([]);
  expect(judged({ going: [2], coming: [2] })).toEqual(['old-0 at 2.0000 $/h made way for machines at 2.0000 $/h']);
  expect(judged({ going: [2, 2], coming: [3, 2] })).toHaveLength(2);
});

test('what goes without anything in its place always saves', () => {
  expect(judged({ going: [2], coming: [] })).toEqual([]);
});

test('where prices move, and where it is not sure what was bought for what, nobody is judged', () => {
  expect(judged({ going: [2], coming: [3], capacityType: 'spot' })).toEqual([]);
  expect(judged({ going: [2], coming: [3], laterMs: 120_000 })).toEqual([]);
});
