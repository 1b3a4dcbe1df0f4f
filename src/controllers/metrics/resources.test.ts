// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { resourceValue } from './resources.ts';

test('CPUs are shown to a thousandth, everything else in whole units, rounded up', () => {
  expect([1n, 1_000_000n, 1_500_001_000_000n].map((nano) => resourceValue('cpu', nano))).toEqual([
    0.001, 0.001, 1500.001,
  ]);
  expect([0n, 1n, 1_000_000_000n, -1_500_000_000n].map((nano) => resourceValue('memory', nano))).toEqual([0, 1, 1, -1]);
});
