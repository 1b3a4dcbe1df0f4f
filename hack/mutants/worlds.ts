// SPDX-License-Identifier: Apache-2.0
// The simulator as a judge of a mutant: `worlds.ts SEED,… [CLOUD]` runs worlds that planted defects are hunted in. Ends with 1 at
// the first violation, which it tells.
import { writeFileSync } from 'node:fs';
import { hunt } from '../../src/simulation/defects.ts';
import { passed } from './active.ts';

const [seeds = '', cloud] = process.argv.slice(2);
const clouds = cloud === 'linode' || cloud === 'cluster-api' ? { clouds: [cloud] as const } : {};
const found = await hunt(undefined, { seeds: seeds.split(',').map(Number), ...clouds });
if (found) console.error(`seed ${found.seed}: ${found.invariant}: ${found.message}`);
const record = process.env['MUTANTS_PASSED'];
if (record) writeFileSync(record, JSON.stringify([...passed]));
process.exitCode = found ? 1 : 0;
