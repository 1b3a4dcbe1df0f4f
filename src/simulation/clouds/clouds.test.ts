// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type RunReport, runWorld } from '../run.ts';
import { tiny } from '../testing/tiny.ts';
import type { CloudName } from './index.ts';

function run(cloud: CloudName, seed: number): Promise<RunReport> {
  return runWorld({ scenario: { ...tiny, name: `tiny-${cloud}`, clouds: [cloud] }, seed, hours: 1 });
}

describe.each<CloudName>(['cluster-api', 'linode', 'linode-instance'])('a world of %s', (cloud) => {
  test('keeps every promise, and is the same again from the same seed', async () => {
    const [first, again] = [await run(cloud, 1), await run(cloud, 1)];
    expect(first.violations).toEqual([]);
    expect(first.summary.podsPlaced).toBeGreaterThan(10);
    expect(first.summary.machinesLaunched).toBeGreaterThan(2);
    expect(again.hash).toBe(first.hash);
  }, 180_000);
});
