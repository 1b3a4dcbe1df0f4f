// SPDX-License-Identifier: Apache-2.0
// The scenarios of `test/real/cluster-api.test.ts` with managers that stand still for a minute at a time, or one of them.
import { isDeepStrictEqual } from 'node:util';
import { scenarios } from '../../src/providers/cluster-api/testing/scenarios.ts';
import { RealRig } from '../../test/real/cluster-api/rig.ts';

const frozenMs = 60_000;
/** How many writes the life of a NodeClaim may cost the management cluster. */
const mostWrites = 5;

/** Gives whether every outcome was the model's; `wanted` is part of a scenario's name. */
export async function clusterApi(wanted = ''): Promise<boolean> {
  const chosen = scenarios.filter(({ name }) => name.includes(wanted));
  const rig = await RealRig.start({ frozenMs });
  const begun = performance.now();
  let isGood = chosen.length > 0;
  let made = 0;
  for (const scenario of chosen) {
    rig.begin();
    const started = performance.now();
    const outcome = await scenario.run(rig).catch((error: unknown) => String(error));
    made += rig.seen.size;
    const isSame = isDeepStrictEqual(outcome, scenario.outcome);
    const seconds = Math.round((performance.now() - started) / 1000);
    console.log(`${isSame ? 'as on the model' : 'DIFFERENT'}: ${scenario.name} (${seconds} s)`);
    if (isSame) continue;
    console.log(outcome, 'instead of', scenario.outcome);
    isGood = false;
    // What it left behind would fail the others too.
    break;
  }
  const { writes, lists } = askedOf(rig);
  const minutes = (performance.now() - begun) / 60_000;
  console.log(
    `${made} Machines, ${writes} writes to the management cluster (${(writes / made).toFixed(1)} for each Machine, ` +
      `${(writes / minutes).toFixed(1)} a minute), ${lists} lists of its Machines`,
  );
  if (isGood && writes > mostWrites * made) isGood = false;
  const code = await rig.stop();
  if (code !== 0) console.log(`the controller ended with ${code}:\n${rig.controller.output.slice(-4000)}`);
  return isGood && code === 0;
}

/** What was carried out; what was refused, because Cluster API wrote in the same moment, changed nothing. */
function askedOf({ audits }: RealRig): { writes: number; lists: number } {
  const done = audits.hub.entries().filter(({ responseStatus }) => (responseStatus?.code ?? 0) < 300);
  return {
    writes: done.filter(({ verb }) => ['create', 'update', 'patch', 'delete'].includes(verb)).length,
    lists: done.filter(({ verb, objectRef }) => verb === 'list' && objectRef?.resource === 'machines').length,
  };
}
