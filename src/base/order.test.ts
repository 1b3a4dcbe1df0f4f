// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { chain, compareStrings } from './order.ts';

test('strings are ordered by code units, not by locale', () => {
  expect(['b', 'a', 'B', 'ä', '10', '9'].toSorted(compareStrings)).toEqual(['10', '9', 'B', 'a', 'b', 'ä']);
});

test('the order of strings is total', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), fc.string(), (a, b, c) => {
      expect(compareStrings(a, b) + compareStrings(b, a)).toBe(0);
      expect(compareStrings(a, b) === 0).toBe(a === b);
      if (compareStrings(a, b) < 0 && compareStrings(b, c) < 0) expect(compareStrings(a, c)).toBeLessThan(0);
    }),
  );
});

test('a chain goes on to the next comparison where the one before sees no difference', () => {
  const byAgeThenName = chain<{ age: number; name: string }>(
    (a, b) => a.age - b.age,
    (a, b) => compareStrings(a.name, b.name),
  );
  const people = [
    { age: 2, name: 'b' },
    { age: 1, name: 'z' },
    { age: 2, name: 'a' },
  ];
  expect(people.toSorted(byAgeThenName).map(({ name }) => name)).toEqual(['z', 'a', 'b']);
  expect(chain()(1, 2)).toBe(0);
});
