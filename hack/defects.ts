// SPDX-License-Identifier: Apache-2.0
// `node hack/run.js node hack/defects.ts [DEFECT…]`: shows that the simulator finds every planted defect within its seeds,
// which invariant notices it, and that nothing is noticed when nothing is wrong. Ends with 1 otherwise.
import { parseArgs } from 'node:util';
import { type Defect, defects } from '../src/base/defects.ts';
import { allDefects, hunt, huntHours, huntSeeds } from '../src/simulation/defects.ts';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string' }, hours: { type: 'string' }, 'skip-clean': { type: 'boolean' } },
});
const unknown = positionals.filter((name) => !Object.hasOwn(defects, name));
if (unknown.length > 0) throw new Error(`no such defect: ${unknown.join(', ')}`);
const seeds = huntSeeds.slice(0, values.seeds === undefined ? huntSeeds.length : Number(values.seeds));
const hours = Number(values.hours ?? huntHours);

let problems = 0;
for (const defect of positionals.length > 0 ? (positionals as Defect[]) : allDefects) {
  const found = await hunt(defect, { seeds, hours });
  if (!found) problems++;
  const told = found
    ? `${found.invariant}, seed ${found.seed}, minute ${found.minute}: ${found.message}`
    : `NOT FOUND in ${seeds.length} seeds`;
  console.log(`${defect.padEnd(34)} ${told}`);
}
if (!values['skip-clean']) {
  const found = await hunt(undefined, { seeds, hours });
  if (found) problems++;
  const told = found ? `${found.invariant}, seed ${found.seed}: ${found.message}` : `nothing in ${seeds.length} seeds`;
  console.log(`${'(none planted)'.padEnd(34)} ${told}`);
}
process.exitCode = problems === 0 ? 0 : 1;
