// SPDX-License-Identifier: Apache-2.0
// Shows that the simulator finds every planted defect within its seeds, which invariant notices it, and that nothing is
// noticed when nothing is wrong.
import { parseArgs } from 'node:util';
import { type Defect, defects } from '../../src/base/defects.ts';
import { allDefects, cloudDefects, hunt, huntHours, huntSeeds } from '../../src/simulation/defects.ts';

/** `npm run nightly -- defects [DEFECT…] [--seeds N] [--hours H]`: all of them, and none at all, unless some are named. */
export async function huntDefects(...args: string[]): Promise<boolean> {
  const options = { seeds: { type: 'string' }, hours: { type: 'string' } } as const;
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
  const unknown = positionals.filter((name) => !Object.hasOwn(defects, name));
  if (unknown.length > 0) throw new Error(`no such defect: ${unknown.join(', ')}`);
  const seeds = huntSeeds.slice(0, values.seeds === undefined ? huntSeeds.length : Number(values.seeds));
  const hours = Number(values.hours ?? huntHours);
  const named = positionals as Defect[];
  let isGood = true;
  const all = [...allDefects, ...cloudDefects, undefined];
  for (const defect of named.length > 0 ? named : all) {
    const found = await hunt(defect, { seeds, hours });
    isGood &&= (found !== undefined) === (defect !== undefined);
    const told = found
      ? `${found.invariant}, seed ${found.seed}, minute ${found.minute}: ${found.message}`
      : `nothing found in ${seeds.length} seeds`;
    console.log(`${(defect ?? '(none planted)').padEnd(34)} ${told}`);
  }
  return isGood;
}
