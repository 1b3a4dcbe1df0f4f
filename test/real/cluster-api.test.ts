// SPDX-License-Identifier: Apache-2.0
// Cluster API's own managers, hub and workload as two real API servers, and our controller between them: the scenarios
// that src/providers/cluster-api/scenarios.test.ts plays on the model, with the same outcomes.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { scenarios } from '../../src/providers/cluster-api/testing/scenarios.ts';
import { RealRig } from './cluster-api/rig.ts';

let rig: RealRig;
beforeAll(async () => {
  const logs = process.env['KARPENTER_TEST_LOGS'];
  rig = await RealRig.start(logs ? { logs } : {});
}, 300_000);
beforeEach(() => rig.begin());
afterAll(async () => {
  expect(await rig?.stop(), rig?.controller.output.slice(-4000)).toBe(0);
}, 60_000);

for (const scenario of scenarios) {
  test(scenario.name, async () => {
    expect(await scenario.run(rig)).toEqual(scenario.outcome);
  }, 300_000);
}
