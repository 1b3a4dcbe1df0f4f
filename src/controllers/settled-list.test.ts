// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { KubeObject } from '../kube/object.ts';
import { SettledList } from './settled-list.ts';

interface Thing extends KubeObject {
  readonly size: number;
}

const thing = (name: string, size = 1, resourceVersion = '1'): Thing => ({ metadata: { name, resourceVersion }, size });
const bySize = (a: Thing, b: Thing): boolean => a.size === b.size;

test('a list is the same until something that matters changes', () => {
  const list = new SettledList(bySize);
  const first = list.settled([thing('a'), thing('b')]);
  expect(list.settled([thing('a', 1, '2'), thing('b')])).toBe(first);
  expect(list.settled([thing('a', 1, '2'), thing('b', 1, '7')])).toBe(first);
  const second = [thing('a', 1, '2'), thing('b', 2)];
  expect(list.settled(second)).toBe(second);
  expect(list.settled([thing('a', 1, '3'), thing('b', 2)])).toBe(second);
});

test('one more, one fewer and one in the place of another are changes', () => {
  const list = new SettledList(bySize);
  const [a, b, c] = [thing('a'), thing('b'), thing('c')];
  for (const next of [[a, b], [a, b, c], [a, c], [a], []]) expect(list.settled(next)).toBe(next);
});

test('the order makes no difference', () => {
  const list = new SettledList(bySize);
  const first = list.settled([thing('a'), thing('b', 2)]);
  expect(list.settled([thing('b', 2), thing('a')])).toBe(first);
  const other = [thing('a', 2), thing('b')];
  expect(list.settled(other)).toBe(other);
});
