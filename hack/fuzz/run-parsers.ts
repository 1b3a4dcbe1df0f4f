// SPDX-License-Identifier: Apache-2.0
// Hostile texts to every reader of bytes from outside, in turn, for as long as is asked.
import { SeededRandom } from '../../src/base/random.ts';
import { Chance } from './chance.ts';
import { fuzzOptions } from './options.ts';
import { nextText, parsers, problemOf } from './parsers.ts';

const { seed, seconds, count } = fuzzOptions();
console.log(`fuzz: parsers, seed ${seed}`);
const chance = new Chance(new SeededRandom(seed));
const end = performance.now() + seconds * 1000;
let read = 0;
let failure: string | undefined;
while (failure === undefined && read < count && performance.now() < end) {
  for (const parser of parsers) {
    failure ??= await problemOf(parser, nextText(chance, parser));
    read++;
  }
}
console.log(`fuzz: ${read} texts for ${parsers.length} readers`);
if (failure !== undefined) {
  console.error(`fuzz: FAILED with seed ${seed}\n${failure}`);
  process.exitCode = 1;
}
