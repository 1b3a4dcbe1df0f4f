// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StateNode } from '../../state/state-node.ts';
import type { Candidate } from './candidates.ts';
import type { Proposal } from './method.ts';
import { Recurrences } from './recurrences.ts';

const minute = 60_000;

/** A machine with pods of these workloads. */
function machine(type: string, ...workloads: string[]): StateNode {
  const pods = workloads.map((uid) => ({ metadata: { ownerReferences: [{ uid, controller: true }] } }));
  return {
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

test('the same again waits longer each time', () => {
  const [a, b] = [machine('c-4x', 'web'), machine('c-8x', 'web', 'api')];
  const recurrences = new Recurrences();
  const waitMs = (now: number): number => recurrences.waitMs(removalOf(a), [a, b], now);
  expect(waitMs(0)).toBe(0);
  expect(waitMs(minute)).toBe(4 * minute);
  expect(waitMs(5 * minute)).toBe(0);
  expect(waitMs(5 * minute)).toBe(10 * minute);
  expect(waitMs(15 * minute)).toBe(0);
  expect(waitMs(15 * minute)).toBe(20 * minute);
});

test('one of many alike goes after the other: each time there are fewer', () => {
  const alike = Array.from({ length: 5 }, () => machine('c-4x', 'web'));
  const recurrences = new Recurrences();
  for (; alike.length > 0; alike.pop()) expect(recurrences.waitMs(removalOf(alike.at(-1)!), alike, 0)).toBe(0);
});

test('other pods, or other machines instead, are another matter', () => {
  const recurrences = new Recurrences();
  const now = 0;
  for (const of of [machine('c-4x', 'web'), machine('c-4x', 'api'), machine('c-8x', 'web')])
    expect(recurrences.waitMs(removalOf(of), [of], now)).toBe(0);
  const of = machine('c-4x', 'web');
  const claim = { nodePool: 'default', instanceTypes: ['c-2x'] } as unknown as Proposal['replacements'][number];
  expect(recurrences.waitMs({ ...removalOf(of), replacements: [claim] }, [of], now)).toBe(0);
});
