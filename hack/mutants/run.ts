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
const usualSeed = 1;
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
 * go on later, in parts; test files that have changed are recorded anew. `--again`: survivors are judged anew.
 * `--by quick|other|simulation`: only this judge is asked, `--seeds N`: so many worlds of the simulator, `--workers N`: so many
 * mutants at the same time, `--count N`: of so many mutants, `--seed N`: of another draw, which no test was written for.
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
    const all = drawn(root, Number(option('--seed') ?? usualSeed));
    const candidates = await firstThatCompile(copy, all, Number(option('--count') ?? wanted), folder);
    plantAll(copy, candidates);
    const judges = tests(copy, await recorded(copy, folder, workers));
    judges.push(simulator(copy, Number(option('--seeds') ?? 3)));
    const asked = judges.filter(({ name }) => name.startsWith(option('--by') ?? ''));
    const chosen = shardOf(candidates, readShard(option('--shard') ?? '1/1'));
    const verdicts = await judged(chosen, asked, { folder, workers, again: args.includes('--again') });
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

/** Each judge hears about all that those before it have not noticed: what is cheap comes first. */
async function judged(
  chosen: readonly Candidate[],
  judges: readonly Judge[],
  { folder, workers, again }: JudgingOptions,
): Promise<Map<string, Verdict>> {
  const notes = new Notes<Verdict>(join(folder, 'verdicts.jsonl'));
  const verdicts = new Map<string, Verdict>();
  for (const verdict of notes.all())
    verdicts.set(verdict.id, again && verdict.by === undefined ? { id: verdict.id, missedBy: [] } : verdict);
  const begun = performance.now();
  for (const judge of judges) {
    const open = chosen.filter(({ id }) => {
      const { by, missedBy = [] } = verdicts.get(id) ?? {};
      return by === undefined && !missedBy.includes(judge.name);
    });
    const ahead = open.entries();
    const work = async (): Promise<void> => {
      for (const [i, mutant] of ahead) {
        const { id } = mutant;
        const notice = await judge.noticed(mutant);
        const missedBy = verdicts.get(id)?.missedBy ?? [];
        const verdict: Verdict =
          notice === undefined ? { id, missedBy: [...missedBy, judge.name] } : { id, missedBy, by: judge.name, notice };
        verdicts.set(id, verdict);
        notes.add(verdict);
        const minutes = ((performance.now() - begun) / 60_000).toFixed(1);
        console.log(`${minutes} min, ${judge.name} ${i + 1} of ${open.length}: ${toldVerdict(mutant, verdict)}`);
      }
    };
    await Promise.all(Array.from({ length: workers }, work));
  }
  return verdicts;
}

function toldVerdict({ id, line, told }: Candidate, { by, notice }: Verdict): string {
  return `${by ? `killed (${notice})` : 'NOT NOTICED'}: ${id} ${told.replace(':', `:${line}:`)}`;
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
