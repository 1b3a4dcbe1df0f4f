// SPDX-License-Identifier: Apache-2.0
// The simulator as a judge of a mutant: `worlds.ts SEEDS [CLOUD]` runs the first of the seeds that planted defects are hunted
// with. Ends with 1 at the first violation, which it tells.
import { writeFileSync } from 'node:fs';
import { hunt, huntSeeds } from '../../src/simulation/defects.ts';
import { passed } from './active.ts';

const [seeds, cloud] = process.argv.slice(2);
const clouds = cloud === 'linode' || cloud === 'cluster-api' ? { clouds: [cloud] as const } : {};
const found = await hunt(undefined, { seeds: huntSeeds.slice(0, Number(seeds)), ...clouds });
if (found) console.error(`seed ${found.seed}: ${found.invariant}: ${found.message}`);
const record = process.env['MUTANTS_PASSED'];
if (record) writeFileSync(record, JSON.stringify([...passed]));
process.exitCode = found ? 1 : 0;
