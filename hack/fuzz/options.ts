// SPDX-License-Identifier: Apache-2.0
// What a fuzz run is told on its command line.
import { parseArgs } from 'node:util';
import { SystemRandom } from '../../src/base/random.ts';

export interface FuzzOptions {
  readonly what: string;
  /** How long it goes on, … */
  readonly seconds: number;
  /** … and how much it sends at most. With an amount alone, time does not matter: each machine judges by the same. */
  readonly count: number;
  readonly seed: number;
}

/** Reads the command line; without a seed, one by chance. */
export function fuzzOptions(): FuzzOptions {
  const { values, positionals } = parseArgs({
    options: { seconds: { type: 'string' }, count: { type: 'string' }, seed: { type: 'string' } },
    allowPositionals: true,
  });
  const seed = values.seed === undefined ? new SystemRandom().int(2 ** 31) : Number(values.seed);
  const count = values.count === undefined ? Number.POSITIVE_INFINITY : Number(values.count);
  const seconds = Number(values.seconds ?? (values.count === undefined ? 60 : Number.POSITIVE_INFINITY));
  return { what: positionals[0] ?? 'requests', seconds, count, seed };
}
