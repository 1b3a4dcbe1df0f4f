// SPDX-License-Identifier: Apache-2.0
// Mutants that the compiler refuses are no mistakes that anybody could make here, and do not count. Many are asked about at
// once: one of each file.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Candidate } from './choose.ts';
import { applied } from './mutate.ts';
import { Notes } from './notes.ts';
import { ended } from './process.ts';

/** What the compiler said. */
interface Answer {
  readonly id: string;
  readonly compiles: boolean;
}

/** The first `count` of the candidates that compile, in the copy of a repository, whose sources are left as they were. */
export async function firstThatCompile(
  copy: string,
  candidates: readonly Candidate[],
  count: number,
  folder: string,
): Promise<Candidate[]> {
  const notes = new Notes<Answer>(join(folder, 'compiler.jsonl'));
  const known = new Map(notes.all().map(({ id, compiles }) => [id, compiles]));
  const config = 'tsconfig.mutants.json';
  writeFileSync(
    join(copy, config),
    JSON.stringify({
      extends: './tsconfig.json',
      compilerOptions: { incremental: true, tsBuildInfoFile: 'mutants.tsbuildinfo' },
      include: ['src'],
      exclude: ['**/*.test.ts', '**/testing'],
    }),
  );
  const command = ['tsc', '-p', config, '--pretty', 'false'];
  const chosen: Candidate[] = [];
  let asked = 0;
  while (chosen.length < count && asked < candidates.length) {
    const batch = candidates.slice(asked, asked + count - chosen.length);
    asked += batch.length;
    for (const round of onePerFile(batch.filter(({ id }) => !known.has(id)))) {
      const refused = await refusedOf(copy, round, command);
      for (const one of round) {
        const compiles = !refused.includes(one);
        known.set(one.id, compiles);
        notes.add({ id: one.id, compiles });
      }
    }
    chosen.push(...batch.filter(({ id }) => known.get(id)));
    console.log(`${asked} mutants drawn, ${chosen.length} of them compile`);
  }
  return chosen;
}

function onePerFile(batch: readonly Candidate[]): Candidate[][] {
  const rounds: Candidate[][] = [];
  const before = new Map<string, number>();
  for (const candidate of batch) {
    const round = before.get(candidate.path) ?? 0;
    before.set(candidate.path, round + 1);
    (rounds[round] ??= []).push(candidate);
  }
  return rounds;
}

/** Those in whose files there are errors. */
async function refusedOf(copy: string, round: readonly Candidate[], command: readonly string[]): Promise<Candidate[]> {
  const sources = round.map(({ path }) => readFileSync(join(copy, path), 'utf8'));
  try {
    for (const [i, one] of round.entries()) writeFileSync(join(copy, one.path), applied(sources[i]!, one));
    const { output } = await ended(command, copy);
    return round.filter(({ path }) => output.includes(`${path}(`));
  } finally {
    for (const [i, one] of round.entries()) writeFileSync(join(copy, one.path), sources[i]!);
  }
}
