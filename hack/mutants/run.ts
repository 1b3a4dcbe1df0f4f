// SPDX-License-Identifier: Apache-2.0
// Puts mutants to the test, one at a time, in a copy of the repository: first the tests beside the file, then all that
// depend on it, then the simulator. A mutant that nothing notices survives, and is listed.
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { chosenMutants, readShard, shardOf } from './choose.ts';
import { applied, described, type Mutant } from './mutate.ts';

const wanted = 200;
const seed = 1;
/** Of all mutants so many must be noticed. */
const share = 0.8;

interface Killer {
  readonly name: string;
  readonly command: (mutant: Mutant) => readonly string[];
  /** Whoever takes longer has been made to hang: that is noticed, too. */
  readonly limitMs: number;
}

const minute = 60_000;
const vitest = (...args: string[]): string[] => ['vitest', ...args, '--bail=1', '--reporter=dot', '--no-color'];

const killers: readonly Killer[] = [
  {
    name: 'tests beside it',
    command: ({ path }) => vitest('run', dirname(path), '--passWithNoTests'),
    limitMs: 4 * minute,
  },
  { name: 'tests that use it', command: ({ path }) => vitest('related', '--run', path), limitMs: 15 * minute },
  { name: 'simulation', command: () => ['node', 'hack/mutants/worlds.ts'], limitMs: 15 * minute },
];

interface Verdict {
  readonly mutant: string;
  /** Who noticed it; undefined when nobody did. */
  readonly by?: string;
}

/** `npm run nightly -- mutants [--shard i/n] [--count n] [--without-simulation]`. Resolves to whether enough of them were noticed. */
export async function mutants(...args: readonly (string | undefined)[]): Promise<boolean> {
  const option = (name: string): string | undefined => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const root = resolve('.');
  const shard = readShard(option('--shard') ?? '1/1');
  const chosen = shardOf(chosenMutants(root, Number(option('--count') ?? wanted), seed), shard);
  const judges = args.includes('--without-simulation') ? killers.filter(({ name }) => name !== 'simulation') : killers;
  const copy = copyOf(root);
  const verdicts: Verdict[] = [];
  try {
    for (const mutant of chosen) {
      const verdict = await judge(mutant, judges, root, copy);
      verdicts.push(verdict);
      console.log(`${verdict.by ? `killed by ${verdict.by}` : 'SURVIVED'}: ${verdict.mutant}`);
    }
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
  return report(verdicts);
}

function report(verdicts: readonly Verdict[]): boolean {
  const killed = verdicts.filter(({ by }) => by !== undefined).length;
  const by = killers.map(({ name }) => `${verdicts.filter((verdict) => verdict.by === name).length} by ${name}`);
  console.log(`${killed} of ${verdicts.length} mutants killed (${by.join(', ')})`);
  for (const { mutant, by: killer } of verdicts) if (!killer) console.log(`survivor: ${mutant}`);
  return killed >= verdicts.length * share;
}

/** A copy that may be broken: sources are its own, packages are shared. */
function copyOf(root: string): string {
  const copy = mkdtempSync(join(tmpdir(), 'karpenter-mutants-'));
  const left = new Set(['node_modules', '.git', 'dist'].map((name) => join(root, name)));
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(path) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

async function judge(mutant: Mutant, judges: readonly Killer[], root: string, copy: string): Promise<Verdict> {
  const source = readFileSync(join(root, mutant.path), 'utf8');
  const target = join(copy, mutant.path);
  const told = described(source, mutant);
  for (const { name, command, limitMs } of judges) {
    writeFileSync(target, applied(source, mutant));
    const noticed = !(await passes(command(mutant), copy, limitMs));
    writeFileSync(target, source);
    // Only what is well without the mistake can notice it.
    if (noticed && (await passes(command(mutant), copy, limitMs))) return { mutant: told, by: name };
    if (noticed) console.log(`${name} also fail without the mistake, and do not count: ${told}`);
  }
  return { mutant: told };
}

/** Whether a command ends well and in time. */
function passes(command: readonly string[], folder: string, limitMs: number): Promise<boolean> {
  return new Promise((settle, reject) => {
    const child = spawn(process.execPath, ['hack/run.js', ...command], {
      cwd: folder,
      stdio: 'ignore',
      detached: true,
    });
    const timer = setTimeout(() => {
      // The whole group: a runner has workers.
      process.kill(-child.pid!, 'SIGKILL');
    }, limitMs);
    child.on('error', reject);
    child.on('exit', (code) => {
      clearTimeout(timer);
      settle(code === 0);
    });
  });
}
