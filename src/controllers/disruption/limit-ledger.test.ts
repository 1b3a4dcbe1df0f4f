// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { Candidate } from './candidates.ts';
import { LimitLedger } from './limit-ledger.ts';
import type { MethodView } from './method.ts';

const machine = (name: string, cpus: number, isGoing = false) => ({
  name,
  nodePool: 'pool',
  markedForDeletion: isGoing,
  capacity: new Map([
    ['cpu', BigInt(cpus) * 1_000_000_000n],
    ['memory', 1n],
    ['nodes', 1_000_000_000n],
  ]),
});
const candidate = (name: string, cpus: number) => ({ machine: machine(name, cpus) }) as unknown as Candidate;
const buy = (...instanceTypes: string[]) => ({ nodePool: 'pool', instanceTypes }) as unknown as NewNodeClaim;

function ledger(limits: Record<string, string>, ...machines: ReturnType<typeof machine>[]): LimitLedger {
  const types = [4, 8, 16].map((cpus) => ({ name: `c-${cpus}`, capacity: { cpu: String(cpus) } }));
  return new LimitLedger({
    catalog: { pools: [{ metadata: { name: 'pool' }, spec: { limits } }], instanceTypes: { pool: types } },
    snapshot: { machines: { nodesOfPool: () => machines } },
  } as unknown as MethodView);
}

test('what goes makes room for what is bought in its place, as the largest it may become', () => {
  const limits = ledger({ cpu: '28' }, machine('a', 16), machine('b', 8));
  expect(limits.take({ candidates: [candidate('b', 8)], replacements: [buy('c-4', 'c-16')] })).toBe(false);
  expect(limits.take({ candidates: [candidate('b', 8)], replacements: [buy('c-4', 'c-8')] })).toBe(true);
});

test('what was let happen counts, and what is on its way out does not', () => {
  const limits = ledger({ nodes: '3' }, machine('a', 4), machine('b', 4), machine('c', 4, true));
  const one = { candidates: [], replacements: [buy('c-4')] };
  expect(limits.take(one)).toBe(true);
  expect(limits.take(one)).toBe(false);
});

test('nodes of a pool that has more than it may still go, for nothing', () => {
  const limits = ledger({ cpu: '4' }, machine('a', 16));
  expect(limits.take({ candidates: [candidate('a', 16)], replacements: [] })).toBe(true);
});

test('of a plan that was partly given up what it bought for the rest is left out', () => {
  const machines = [machine('a', 16), machine('b', 8)];
  const frees = { candidates: [candidate('a', 16)], replacements: [buy('c-8')] };
  const elsewhere = { machine: { ...machine('x', 8), nodePool: 'other' } } as unknown as Candidate;
  const needs = { candidates: [elsewhere], replacements: [buy('c-8')] };
  expect(ledger({ cpu: '24' }, ...machines).keeping([needs, frees])).toEqual([needs, frees]);
  expect(ledger({ cpu: '24' }, ...machines).keeping([needs])).toEqual([]);
});
