// SPDX-License-Identifier: Apache-2.0
// What a fuzz run is told on its command line.
import { parseArgs } from 'node:util';
import { SystemRandom } from '../../src/base/random.ts';

export interface FuzzOptions {
  readonly what: string;
  readonly seconds: number;
  readonly seed: number;
}

/** Reads the command line; without a seed, one by chance. */
export function fuzzOptions(): FuzzOptions {
  const { values, positionals } = parseArgs({
    options: { seconds: { type: 'string', default: '60' }, seed: { type: 'string' } },
    allowPositionals: true,
  });
  const seed = values.seed === undefined ? new SystemRandom().int(2 ** 31) : Number(values.seed);
  return { what: positionals[0] ?? 'requests', seconds: Number(values.seconds), seed };
}
