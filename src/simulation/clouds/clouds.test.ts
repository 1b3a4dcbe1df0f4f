// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type RunReport, runWorld } from '../run.ts';
import type { ScenarioShape } from '../scenarios.ts';
import type { CloudName } from './index.ts';

const minute = 60_000;

/** A handful of nodes of one cloud, faults all the time, a rest. */
function tiny(cloud: CloudName): ScenarioShape {
  return {
    name: `tiny-${cloud}`,
    description: 'for tests',
    pods: 15,
    changeEveryMs: 40_000,
    faultEveryMs: 2 * minute,
    activeMs: 25 * minute,
    restMs: 35 * minute,
    twoReplicas: 0.5,
    clouds: [cloud],
  };
}

function run(cloud: CloudName, seed: number): Promise<RunReport> {
  return runWorld({ scenario: tiny(cloud), seed, hours: 1 });
}

describe.each<CloudName>(['cluster-api', 'linode-instance'])('a world of %s', (cloud) => {
  test('keeps every promise, and is the same again from the same seed', async () => {
    const [first, again] = [await run(cloud, 1), await run(cloud, 1)];
    expect(first.violations).toEqual([]);
    expect(first.summary.podsPlaced).toBeGreaterThan(10);
    expect(first.summary.machinesLaunched).toBeGreaterThan(2);
    expect(again.hash).toBe(first.hash);
  }, 180_000);
});
