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

/** A judge, and what can happen before it. Times are in ms. */
function court() {
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
  const plain = (uid: string) => ({ metadata: { name: uid, uid } });
  const marked = (uid: string) => ({ ...plain(uid), status: { conditions: [why] } });
  return {
    said,
    costs: (uid: string, price: number, capacityType = 'on-demand'): void => {
      const claim = { name: uid, uid };
      machines.push({ providerID: uid, claim, price, capacityType, instanceType: '', zone: '', launchedAt: 0 });
    },
    marks: (at: number, uid: string): void => told(at, collections.claims, 'MODIFIED', marked(uid), plain(uid)),
    spares: (at: number, uid: string): void => told(at, collections.claims, 'MODIFIED', plain(uid), marked(uid)),
    buys: (at: number, uid: string): void => {
      told(at, collections.claims, 'ADDED', plain(uid));
      const message = 'Launching NodeClaim: Underutilized';
      told(at + 50, collections.events, 'ADDED', { message, involvedObject: { uid } });
    },
    deletes: (at: number, uid: string): void => {
      const object = { ...marked(uid), metadata: { name: uid, uid, deletionTimestamp: 'now' } };
      told(at, collections.claims, 'MODIFIED', object, marked(uid));
    },
  };
}

/** What the judge says when nodes go one after the other, and others were bought for them. */
function judged({ going, coming, capacityType = 'on-demand', laterMs = 100 }: Story): string[] {
  const { said, costs, marks, buys, deletes } = court();
  for (const [i, price] of going.entries()) {
    costs(`old-${i}`, price, capacityType);
    marks(1000 + i, `old-${i}`);
  }
  for (const [i, price] of coming.entries()) {
    costs(`new-${i}`, price, capacityType);
    buys(1000 + laterMs, `new-${i}`);
  }
  for (const i of going.keys()) deletes(90_000 + i, `old-${i}`);
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

// linode 66: somebody took the first replacement away by force, and the node was replaced by another within a minute.
test('a node that was spared and is marked again is replaced anew, by what is bought from then on', () => {
  const second = (price: number): string[] => {
    const { said, costs, marks, spares, buys, deletes } = court();
    for (const [uid, at] of Object.entries({ old: 4, first: 3, second: price })) costs(uid, at);
    marks(1000, 'old');
    buys(1100, 'first');
    spares(28_000, 'old');
    marks(57_000, 'old');
    buys(57_100, 'second');
    deletes(120_000, 'old');
    return said;
  };
  expect(second(2)).toEqual([]);
  expect(second(4)).toEqual(['old at 4.0000 $/h made way for machines at 4.0000 $/h']);
});

test('nodes that are marked beside it may be of its new pass or of the first, and count in both', () => {
  const beside = (forFirst: number, forThird: number): string[] => {
    const { said, costs, marks, spares, buys, deletes } = court();
    const prices = {
      again: 4,
      first: 4,
      third: 4,
      'for-again': 3,
      'for-first': forFirst,
      anew: 3,
      'for-third': forThird,
    };
    for (const [uid, at] of Object.entries(prices)) costs(uid, at);
    for (const uid of ['again', 'first']) marks(1000, uid);
    for (const uid of ['for-again', 'for-first']) buys(1100, uid);
    spares(28_000, 'again');
    for (const uid of ['third', 'again']) marks(57_000, uid);
    for (const uid of ['for-third', 'anew']) buys(57_100, uid);
    for (const uid of ['first', 'again', 'third']) deletes(120_000, uid);
    return said;
  };
  expect(beside(3, 3)).toEqual([]);
  expect(beside(3, 5)).toEqual(['third, again at 8.0000 $/h made way for machines at 8.0000 $/h']);
  expect(beside(9, 3)).toEqual(
    Array(2).fill('again, first, third at 12.0000 $/h made way for machines at 12.0000 $/h'),
  );
});
