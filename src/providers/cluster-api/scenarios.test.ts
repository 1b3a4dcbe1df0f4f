// SPDX-License-Identifier: Apache-2.0
// The scenarios of Cluster API on our model of its managers; `test/real` plays the same ones on the real managers.
import { afterEach, describe, expect, test } from 'vitest';
import { ModelRig } from './testing/model-rig.ts';
import { scenarios } from './testing/scenarios.ts';

let rig: ModelRig;
afterEach(() => rig.stop());

describe('on the model', () => {
  for (const scenario of scenarios) {
    test(scenario.name, async () => {
      rig = await ModelRig.start();
      expect(await scenario.run(rig)).toEqual(scenario.outcome);
    });
  }
});
