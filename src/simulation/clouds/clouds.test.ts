// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type RunReport, runWorld } from '../run.ts';
import { tiny } from '../testing/tiny.ts';
import type { CloudName } from './index.ts';

function run(clouds: readonly [CloudName, ...CloudName[]], seed: number, apart = false): Promise<RunReport> {
  return runWorld({ scenario: { ...tiny, name: `tiny-${clouds.join('-')}`, clouds, apart }, seed, hours: 1 });
}

describe.each<CloudName>(['cluster-api', 'linode', 'linode-instance'])('a world of %s', (cloud) => {
  test('keeps every promise, and is the same again from the same seed', async () => {
    const [first, again] = [await run([cloud], 1), await run([cloud], 1)];
    expect(first.violations).toEqual([]);
    expect(first.summary.podsPlaced).toBeGreaterThan(10);
    expect(first.summary.machinesLaunched).toBeGreaterThan(2);
    expect(again.hash).toBe(first.hash);
  }, 180_000);
});

test('a world of two clouds that have nothing in common keeps every promise', async () => {
  const { violations, summary } = await run(['scripted', 'cluster-api'], 1);
  expect(violations).toEqual([]);
  expect(summary.podsPlaced).toBeGreaterThan(10);
}, 180_000);

test('a world with NodeClaims in one API server and Nodes in another keeps every promise', async () => {
  const [first, again] = [await run(['scripted', 'kwok'], 1, true), await run(['scripted', 'kwok'], 1, true)];
  expect(first.violations).toEqual([]);
  expect(first.summary.podsPlaced).toBeGreaterThan(10);
  expect(again.hash).toBe(first.hash);
}, 180_000);
