// SPDX-License-Identifier: Apache-2.0
// Puts mutants to the test, one at a time, in a copy of the repository that has all of them in it, asleep: first the quick
// tests that pass its place, then the slow ones, then the simulator. A mutant that nobody notices survives, and is listed.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Candidate, drawn, readShard, shardOf } from './choose.ts';
import { firstThatCompile } from './compile.ts';
import { copyOf, plantAll } from './copy.ts';
import { type Judge, simulator, tests } from './judges.ts';
import { Notes } from './notes.ts';
import { recorded } from './recording.ts';

const wanted = 200;
const seed = 1;
/** Of all mutants so many must be noticed. */
const share = 0.8;

/** What is known of a mutant. */
interface Verdict {
  readonly id: string;
  /** Who did not notice it. */
  readonly missedBy: readonly string[];
  /** Who did; undefined when nobody has so far. */
  readonly by?: string;
  readonly notice?: string;
}

/**
 * `npm run nightly -- mutants`: resolves to whether enough of them were noticed.
 * `--shard I/N`: only these of them. `--in FOLDER`: what was found out is kept there and not found out again, so that a run can
 * go on later, in parts. `--again`: but survivors are judged anew, and test files that have changed are recorded anew.
 * `--without-simulation`, `--seeds N` (of the simulator), `--workers N` (mutants at the same time), `--count N`.
 */
export async function mutants(...args: readonly string[]): Promise<boolean> {
  const option = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const kept = option('--in');
  const folder = kept ? resolve(kept) : mkdtempSync(join(tmpdir(), 'karpenter-mutants-'));
  mkdirSync(folder, { recursive: true });
  try {
    const root = resolve('.');
    const copy = copyOf(root, join(folder, 'copy'));
    const workers = Number(option('--workers') ?? 1);
    const candidates = await firstThatCompile(copy, drawn(root, seed), Number(option('--count') ?? wanted), folder);
    plantAll(copy, candidates);
    const judges = [tests(copy, await recorded(copy, folder, workers))];
    if (!args.includes('--without-simulation')) judges.push(simulator(copy, Number(option('--seeds') ?? 3)));
    const chosen = shardOf(candidates, readShard(option('--shard') ?? '1/1'));
    const verdicts = await judged(chosen, judges, { folder, workers, again: args.includes('--again') });
    return report(chosen, verdicts);
  } finally {
    if (!kept) rmSync(folder, { recursive: true, force: true });
  }
}

interface JudgingOptions {
  readonly folder: string;
  readonly workers: number;
  readonly again: boolean;
}

async function judged(
  chosen: readonly Candidate[],
  judges: readonly Judge[],
  { folder, workers, again }: JudgingOptions,
): Promise<Map<string, Verdict>> {
  const notes = new Notes<Verdict>(join(folder, 'verdicts.jsonl'));
  const verdicts = new Map(notes.all().map((verdict) => [verdict.id, verdict]));
  const begun = performance.now();
  const open = chosen.entries();
  const work = async (): Promise<void> => {
    for (const [i, mutant] of open) {
      const known = verdicts.get(mutant.id);
      const missedBy = again ? [] : (known?.missedBy ?? []);
      const ahead = judges.filter(({ name }) => !missedBy.includes(name));
      if (known?.by !== undefined || ahead.length === 0) continue;
      const verdict = await judge(mutant, ahead, missedBy);
      verdicts.set(mutant.id, verdict);
      notes.add(verdict);
      const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
      console.log(`${minutes} min, ${i + 1} of ${chosen.length}: ${toldVerdict(mutant, verdict)}`);
    }
  };
  await Promise.all(Array.from({ length: workers }, work));
  return verdicts;
}

async function judge(mutant: Candidate, judges: readonly Judge[], before: readonly string[]): Promise<Verdict> {
  const missedBy = [...before];
  for (const one of judges) {
    const notice = await one.noticed(mutant);
    if (notice !== undefined) return { id: mutant.id, missedBy, by: one.name, notice };
    missedBy.push(one.name);
  }
  return { id: mutant.id, missedBy };
}

function toldVerdict({ id, line, told }: Candidate, { by, notice }: Verdict): string {
  return `${by ? `killed by ${by} (${notice})` : 'SURVIVED'}: ${id} ${told.replace(':', `:${line}:`)}`;
}

function report(chosen: readonly Candidate[], verdicts: ReadonlyMap<string, Verdict>): boolean {
  const by = new Map<string, number>();
  const survivors: Candidate[] = [];
  for (const mutant of chosen) {
    const killer = verdicts.get(mutant.id)?.by;
    if (killer === undefined) survivors.push(mutant);
    else by.set(killer, (by.get(killer) ?? 0) + 1);
  }
  const killed = chosen.length - survivors.length;
  const parts = Array.from(by, ([name, count]) => `${count} by ${name}`);
  console.log(`${killed} of ${chosen.length} mutants killed (${parts.join(', ')})`);
  for (const { id, line, told } of survivors) console.log(`survivor ${id}: ${told.replace(':', `:${line}:`)}`);
  return killed >= chosen.length * share;
}
