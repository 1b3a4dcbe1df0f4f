// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { Marks } from './marks.ts';

test.each([
  ['all', 100],
  ['a few', 3],
])('of %s pods, those are done with that were marked', (_, some) => {
  const marks = new Marks(100, some);
  for (const pod of [0, 7, 99]) marks.add(pod);
  expect([...Array(100).keys()].filter((pod) => marks.has(pod))).toEqual([0, 7, 99]);
});
