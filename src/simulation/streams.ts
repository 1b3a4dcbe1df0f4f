// SPDX-License-Identifier: Apache-2.0
// Chance, divided by what it is for: one stream for each name, so that a part that draws more often shifts nobody else.
import { SeededRandom } from '../base/random.ts';

/** The stream of a name under a seed. The same two give the same stream. */
export function stream(seed: number, name: string): SeededRandom {
  let hash = 0x811c9dc5 ^ seed;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  // The last bits of such a hash are poor; neighbouring seeds must not give neighbouring streams.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  return new SeededRandom((hash ^ (hash >>> 13)) >>> 0);
}
