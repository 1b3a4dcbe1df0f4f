// SPDX-License-Identifier: Apache-2.0
// The scenarios of `test/real/cluster-api.test.ts` with managers that stand still for a minute at a time, or one of them.
import { isDeepStrictEqual } from 'node:util';
import { scenarios } from '../../src/providers/cluster-api/testing/scenarios.ts';
import { RealRig } from '../../test/real/cluster-api/rig.ts';

const frozenMs = 60_000;

/** Gives whether every outcome was the model's; `wanted` is part of a scenario's name. */
export async function clusterApi(wanted = ''): Promise<boolean> {
  const chosen = scenarios.filter(({ name }) => name.includes(wanted));
  const rig = await RealRig.start({ frozenMs });
  let isGood = chosen.length > 0;
  for (const scenario of chosen) {
    rig.begin();
    const started = performance.now();
    const outcome = await scenario.run(rig).catch((error: unknown) => String(error));
    const isSame = isDeepStrictEqual(outcome, scenario.outcome);
    const seconds = Math.round((performance.now() - started) / 1000);
    console.log(`${isSame ? 'as on the model' : 'DIFFERENT'}: ${scenario.name} (${seconds} s)`);
    if (isSame) continue;
    console.log(outcome, 'instead of', scenario.outcome);
    isGood = false;
    // What it left behind would fail the others too.
    break;
  }
  const code = await rig.stop();
  if (code !== 0) console.log(`the controller ended with ${code}:\n${rig.controller.output.slice(-4000)}`);
  return isGood && code === 0;
}
