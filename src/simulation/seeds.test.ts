// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { scenarios } from './scenarios.ts';
import { scenarioOfSeed } from './seeds.ts';

const first = Array.from({ length: 30 }, (_, i) => scenarioOfSeed(i + 1));

test('every seed has a scenario that there is', () => {
  const names = scenarios.map(({ name }) => name);
  for (const name of first) expect(names).toContain(name);
});

test('the worlds of all providers have their turn within thirty seeds, two of them within the first ten', () => {
  expect(first.filter((name) => name === 'cluster-api')).toHaveLength(3);
  expect(first.filter((name) => name.startsWith('linode')).toSorted()).toEqual([
    'linode',
    'linode-instance',
    'linode-shared',
  ]);
  expect(first.filter((name) => name === 'apart' || name === 'several')).toEqual(['apart', 'several']);
  expect([first[5], first[7]]).toEqual(['linode', 'cluster-api']);
});
