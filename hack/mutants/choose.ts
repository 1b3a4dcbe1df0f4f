// SPDX-License-Identifier: Apache-2.0
// Which mutants a run is about: as many of each kind as there are, drawn by a seed over all files of the rooms, so that
// every run and every shard of it means the same ones.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SeededRandom } from '../../src/base/random.ts';
import { type Mutant, mutantsOf } from './mutate.ts';

export const mutatedRooms = ['src/controllers', 'src/providers'] as const;

/** The source files of a folder, without tests and what only tests use. */
export function* sourcesIn(folder: string): Generator<string> {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'testing') yield* sourcesIn(path);
    } else if (/(?<!\.test)\.ts$/.test(entry.name)) yield path;
  }
}

/** `count` mutants of the rooms below `root`; the same for the same sources and seed. */
export function chosenMutants(root: string, count: number, seed: number): Mutant[] {
  const all: Mutant[] = [];
  for (const room of mutatedRooms) {
    for (const path of sourcesIn(join(root, room))) {
      const name = path.slice(root.length + 1);
      all.push(...mutantsOf(name, readFileSync(path, 'utf8')));
    }
  }
  const random = new SeededRandom(seed);
  const chosen: Mutant[] = [];
  while (chosen.length < count && all.length > 0) {
    const at = random.int(all.length);
    chosen.push(all[at]!);
    all[at] = all.at(-1)!;
    all.pop();
  }
  return chosen;
}

/** The `index`-th of `of` shards, counted from 1. */
export function shardOf<T>(items: readonly T[], { index, of }: { readonly index: number; readonly of: number }): T[] {
  return items.filter((_, i) => i % of === index - 1);
}

/** Reads `2/7`; throws for anything else. */
export function readShard(text: string): { index: number; of: number } {
  const [, index, of] = /^([0-9]+)\/([0-9]+)$/.exec(text)?.map(Number) ?? [];
  if (!index || !of || index > of) throw new Error(`a shard is written 1/4, not ${text}`);
  return { index, of };
}
