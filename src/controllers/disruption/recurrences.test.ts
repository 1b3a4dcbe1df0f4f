// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StateNode } from '../../state/state-node.ts';
import type { Candidate } from './candidates.ts';
import type { Proposal } from './method.ts';
import { Recurrences } from './recurrences.ts';

const minute = 60_000;
let count = 0;

/** A machine with pods of these workloads. */
function machine(type: string, ...workloads: string[]): StateNode {
  const key = `machine-${count++}`;
  const pods = workloads.map((uid) => ({ metadata: { ownerReferences: [{ uid, controller: true }] } }));
  return {
    key,
    nodePool: 'default',
    labels: { 'node.kubernetes.io/instance-type': type },
    markedForDeletion: false,
    pods: () => pods,
  } as unknown as StateNode;
}

const removalOf = (...machines: StateNode[]): Proposal => ({
  candidates: machines.map((of) => ({ machine: of }) as unknown as Candidate),
  replacements: [],
  destinations: [],
});

/** How long each proposal has to wait; 0 for those to carry out. */
function waits(recurrences: Recurrences, proposals: readonly Proposal[], all: StateNode[], now: number): number[] {
  const { fresh, held } = recurrences.judge(proposals, all, now);
  return proposals.map((proposal) =>
    fresh.includes(proposal) ? 0 : held.find((one) => one.proposal === proposal)!.waitMs,
  );
}

test('the same again waits, and waits on while nothing changes', () => {
  const [a, b] = [machine('c-4x', 'web'), machine('c-8x', 'web', 'api')];
  const recurrences = new Recurrences();
  const wait = (now: number): number => waits(recurrences, [removalOf(a)], [a, b], now)[0]!;
  expect(wait(0)).toBe(0);
  expect(wait(minute)).toBe(4 * minute);
  expect(wait(5 * minute)).toBe(10 * minute);
  expect(wait(15 * minute)).toBe(20 * minute);
});

test('it is done again when something else runs in the cluster meanwhile', () => {
  const [a, b] = [machine('c-4x', 'web'), machine('c-8x', 'web', 'api')];
  const recurrences = new Recurrences();
  expect(waits(recurrences, [removalOf(a)], [a, b], 0)).toEqual([0]);
  expect(waits(recurrences, [removalOf(a)], [a, b, machine('c-8x', 'new')], 5 * minute)).toEqual([0]);
  expect(waits(recurrences, [removalOf(a)], [a, b, machine('c-8x', 'new')], 6 * minute)).toEqual([9 * minute]);
});

test('what comes up again every night is done every night', () => {
  const a = machine('c-4x', 'web');
  const recurrences = new Recurrences();
  for (let night = 0; night < 30; night++)
    expect(waits(recurrences, [removalOf(a)], [a], night * 24 * 60 * minute)).toEqual([0]);
});

test('machines that are alike go at once, or one after the other: each time there are fewer', () => {
  const alike = Array.from({ length: 5 }, () => machine('c-4x', 'web'));
  expect(
    waits(
      new Recurrences(),
      alike.map((one) => removalOf(one)),
      alike,
      0,
    ),
  ).toEqual([0, 0, 0, 0, 0]);
  const recurrences = new Recurrences();
  for (; alike.length > 0; alike.pop()) expect(waits(recurrences, [removalOf(alike.at(-1)!)], alike, 0)).toEqual([0]);
});

test('other pods, or other machines instead, are another matter', () => {
  const recurrences = new Recurrences();
  for (const of of [machine('c-4x', 'web'), machine('c-4x', 'api'), machine('c-8x', 'web')])
    expect(waits(recurrences, [removalOf(of)], [of], 0)).toEqual([0]);
  const of = machine('c-4x', 'web');
  const claim = { nodePool: 'default', instanceTypes: ['c-2x'] } as unknown as Proposal['replacements'][number];
  expect(waits(recurrences, [{ ...removalOf(of), replacements: [claim] }], [of], 0)).toEqual([0]);
});

test('a machine is left alone until its wait is over, or until its pods are others', () => {
  const recurrences = new Recurrences();
  const of = machine('c-4x', 'web');
  for (const now of [0, minute]) recurrences.judge([removalOf(of)], [of], now);
  expect([...recurrences.heldAt(2 * minute, [of])]).toEqual([of.key]);
  expect(recurrences.endInMs(2 * minute)).toBe(3 * minute);
  expect(recurrences.heldAt(5 * minute, [of]).size).toBe(0);
  expect(recurrences.endInMs(5 * minute)).toBe(Number.POSITIVE_INFINITY);
  recurrences.judge([removalOf(of)], [of], 5 * minute);
  const changed = Object.assign(machine('c-4x', 'api'), { key: of.key });
  expect(recurrences.heldAt(6 * minute, [changed]).size).toBe(0);
});
