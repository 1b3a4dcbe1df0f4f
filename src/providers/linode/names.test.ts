// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { holdIdOf, linodeIdOf, poolIdOfHold, tagOf, wholeTagValue } from './names.ts';

test('a pool that waits for its machine is told from machines, and from what is no pool', () => {
  expect([holdIdOf(7), holdIdOf(7, 'ab')].map(poolIdOfHold)).toEqual([7, 7]);
  expect(['linode://7', '7', 'linode://pool/0', 'linode://pool/x'].map(poolIdOfHold)).toEqual(Array(4).fill(undefined));
  expect(linodeIdOf(holdIdOf(7))).toBeUndefined();
});

test('of a tag whose value was shortened nobody reads the value', () => {
  const long = tagOf('key', 'x'.repeat(100));
  expect(wholeTagValue([long], 'key')).toBeUndefined();
  for (const value of ['short', 'ends-in-0123abcd', 'y'.repeat(long.length - 4)])
    expect(wholeTagValue([tagOf('key', value)], 'key')).toBe(value);
});
