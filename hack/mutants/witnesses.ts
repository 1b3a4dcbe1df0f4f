// SPDX-License-Identifier: Apache-2.0
// Which tests can notice a mutant: those that pass its place when none is made, as a recording of one clean run tells.
import { createHash } from 'node:crypto';
import { dirname } from 'node:path';

export interface WitnessTest {
  readonly name: string;
  readonly ms: number;
  /** The ids of the mutants whose places it passes. */
  readonly passes: readonly string[];
}

/** What was recorded of a test file. */
export interface TestFile {
  readonly path: string;
  /** Of its text: a changed file is recorded anew. */
  readonly digest: string;
  readonly tests: readonly WitnessTest[];
}

/** Some tests, run together. */
export interface Hearing {
  readonly files: readonly string[];
  readonly names: readonly string[];
}

/** What it takes to begin with a test file, about. */
const startMs = 1_000;

/**
 * The tests that pass the place of a mutant, in rounds that take no longer than `roundsMs` each: those of its own file first, then
 * those beside it, and the quick ones before the slow ones. What does not fit into the last round is left out.
 */
export function hearings(
  { id, path }: { readonly id: string; readonly path: string },
  files: readonly TestFile[],
  roundsMs: readonly number[],
): Hearing[] {
  const found = files.flatMap((file) =>
    file.tests
      .filter(({ passes }) => passes.includes(id))
      .map(({ name, ms }) => ({ name, ms, file: file.path, near: nearness(path, file.path) })),
  );
  found.sort((a, b) => b.near - a.near || a.ms - b.ms || (a.name < b.name ? -1 : 1));
  const rounds: Hearing[] = [];
  for (const roundMs of roundsMs) {
    const names = new Set<string>();
    const chosen = new Set<string>();
    let left = roundMs;
    while (found.length > 0) {
      const { name, ms, file } = found[0]!;
      left -= ms + (chosen.has(file) ? 0 : startMs);
      // One at least, however long it takes.
      if (left < 0 && names.size > 0) break;
      names.add(name);
      chosen.add(file);
      found.shift();
    }
    if (names.size > 0) rounds.push({ names: [...names], files: [...chosen] });
  }
  return rounds;
}

/** How likely a test is about a source file. */
function nearness(path: string, test: string): number {
  if (test === path.replace(/\.ts$/, '.test.ts')) return 2;
  return dirname(test) === dirname(path) ? 1 : 0;
}

export function digestOf(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}
