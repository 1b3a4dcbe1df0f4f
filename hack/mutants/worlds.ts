// SPDX-License-Identifier: Apache-2.0
// The simulator as a judge of a mutant: a few of its normal seeds. Ends with 1 at the first violation.
import { runWorld } from '../../src/simulation/run.ts';

const seeds = [1, 2, 3, 4, 5, 6];
const hours = 3;

for (const seed of seeds) {
  const { violations } = await runWorld({ scenario: 'faults', seed, hours });
  if (violations.length === 0) continue;
  console.error(`seed ${seed}: ${violations[0]!.invariant}: ${violations[0]!.message}`);
  process.exit(1);
}
