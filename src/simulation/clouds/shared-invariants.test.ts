// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { Facts, Invariant, Ledger, LedgerInstance } from '../contract.ts';
import { keptForClaims, namedByClaims } from './shared-invariants.ts';

const machine: LedgerInstance = {
  providerID: 'cloud://a',
  claim: { name: 'claim', uid: 'uid' },
  instanceType: '',
  zone: '',
  capacityType: '',
  price: 1,
  launchedAt: 0,
};

/** What a judge says of one machine and its NodeClaim. */
function judged(judge: (ledger: Ledger) => Invariant, of: Partial<LedgerInstance>, claim: object): string[] {
  const machines = [{ ...machine, ...of }];
  const said: string[] = [];
  const facts = { list: () => [claim] } as unknown as Facts;
  judge({ all: () => machines, alive: () => machines }).onMinute!(facts, {
    violated: (message) => said.push(message),
    checked: () => undefined,
  });
  return said;
}

const metadata = { name: 'claim', uid: 'uid' };

test('a machine is the one that its NodeClaim names, as soon as it names one', () => {
  expect(judged(namedByClaims, {}, { metadata, status: { providerID: 'cloud://a' } })).toEqual([]);
  expect(judged(namedByClaims, {}, { metadata })).toEqual([]);
  const other = { metadata, status: { providerID: 'cloud://b' } };
  expect(judged(namedByClaims, {}, other)).toEqual(['NodeClaim claim names cloud://b, and has cloud://a']);
  expect(judged(namedByClaims, { deletingAt: 1 }, other)).toEqual([]);
});

test('a machine whose NodeClaim stays is not given back, but may die', () => {
  expect(judged(keptForClaims, { deletingAt: 1 }, { metadata })).toEqual([
    'machine cloud://a was given back, and NodeClaim claim is meant to stay',
  ]);
  expect(judged(keptForClaims, { deletingAt: 1, goneBecause: 'died' }, { metadata })).toEqual([]);
  const going = { metadata: { ...metadata, deletionTimestamp: 'now' } };
  expect(judged(keptForClaims, { deletingAt: 1 }, going)).toEqual([]);
});
