// SPDX-License-Identifier: Apache-2.0
// Which mutants a run is about. Their order is drawn by a seed from what each one does, not from where it stands: a changed
// line brings and takes its own mutants, and all others stay chosen.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { lineOf, type Mutant, mutantsOf, told } from './mutate.ts';

const mutatedRooms = ['src/controllers', 'src/providers'] as const;

/** A mutant that can be told from all others, by programs and by people. */
export interface Candidate extends Mutant {
  readonly id: string;
  readonly line: number;
  readonly told: string;
}

/** The source files of a folder, without tests and what only tests use. */
function* sourcesIn(folder: string): Generator<string> {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  for (const entry of entries) {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) {
      if (entry.name !== 'testing') yield* sourcesIn(path);
    } else if (/(?<!\.test)\.ts$/.test(entry.name)) yield path;
  }
}

/** All mutants of a file. */
export function candidatesOf(path: string, source: string, seed: number): Candidate[] {
  const before = new Map<string, number>();
  const found: Candidate[] = [];
  for (const mutant of mutantsOf(path, source)) {
    const text = told(source, mutant);
    const nth = before.get(text) ?? 0;
    before.set(text, nth + 1);
    const id = createHash('sha256').update(`${seed}/${nth}/${text}`).digest('hex').slice(0, 12);
    found.push({ ...mutant, id, line: lineOf(source, mutant), told: text });
  }
  return found;
}

/** All mutants of the rooms below `root`, in the order of the draw. */
export function drawn(root: string, seed: number): Candidate[] {
  const all: Candidate[] = [];
  for (const room of mutatedRooms) {
    for (const path of sourcesIn(join(root, room))) {
      all.push(...candidatesOf(path.slice(root.length + 1), readFileSync(path, 'utf8'), seed));
    }
  }
  return all.sort((a, b) => (a.id < b.id ? -1 : 1));
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
