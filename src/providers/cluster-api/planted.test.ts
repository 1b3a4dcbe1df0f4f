// SPDX-License-Identifier: Apache-2.0
// The scenarios find what they are there to find: each of the upstream provider's gravest defects, planted here, makes one
// of them fail.
import { afterEach, expect, test } from 'vitest';
import { type Defect, plant } from '../../base/defects.ts';
import { ModelRig } from './testing/model-rig.ts';
import { scenarios } from './testing/scenarios.ts';

let rig: ModelRig;
afterEach(async () => {
  plant(undefined);
  await rig.stop();
});

test.each<[Defect, string]>([
  ['cluster-api-lowers-again', 'managers that stand still in the middle of launching and of removing'],
  ['cluster-api-binds-twice', 'from nothing to five machines and back'],
  ['cluster-api-adopts-strangers', 'a machine that somebody else has in the same MachineDeployment stays theirs'],
])('%s is found', async (defect, name) => {
  const scenario = scenarios.find((candidate) => candidate.name === name)!;
  rig = await ModelRig.start({ patienceMs: 45_000 });
  plant(defect);
  const outcome = await scenario.run(rig).catch((error: unknown) => String(error));
  expect(outcome).not.toEqual(scenario.outcome);
});
