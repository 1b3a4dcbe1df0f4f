// SPDX-License-Identifier: Apache-2.0
// Who may notice a mutant: tests, and the simulator.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Candidate } from './choose.ts';
import { type Ended, ended } from './process.ts';
import { type Hearing, hearings, type TestFile } from './witnesses.ts';

/** What was noticed, in a line. */
export type Notice = string;

export interface Judge {
  readonly name: string;
  noticed(mutant: Candidate): Promise<Notice | undefined>;
}

const minute = 60_000;
/** So long the tests of a round take without a mistake. */
const roundsMs = [3_000, 40_000];
/** Whoever takes longer has been made to hang, if it does not without the mistake. */
const limitMs = 6 * minute;

/** The tests that pass the place of a mutant: a few quick ones, and others. */
export function tests(copy: string, files: readonly TestFile[]): Judge[] {
  return ['quick tests', 'other tests'].map((name, round) => ({
    name,
    noticed: async (mutant) => {
      const rounds = hearings(mutant, files, roundsMs);
      // A place that no test was seen at, as in another thread: all tests beside it are asked.
      const hearing = rounds.length === 0 ? { files: beside(mutant, files), names: [] } : rounds[round];
      if (!hearing || hearing.files.length === 0) return undefined;
      const command = commandFor(hearing);
      const heard = await ended(command, copy, { env: { MUTANT: mutant.id }, limitMs });
      if (heard.code === 0) return undefined;
      // A busy machine is late as well: only who is in time without the mistake has noticed it.
      if (isLate(heard) && (await ended(command, copy, { limitMs })).code !== 0) return undefined;
      return noticeOf(heard);
    },
  }));
}

function beside({ path }: Candidate, files: readonly TestFile[]): string[] {
  return files.map((file) => file.path).filter((file) => dirname(file) === dirname(path));
}

function commandFor({ files, names }: Hearing): string[] {
  const escaped = names.map((name) => name.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'));
  const only = names.length > 0 ? ['-t', `^(?:${escaped.join('|')})$`] : [];
  const config = ['--config', 'hack/mutants/vitest.config.ts', '--bail=1', '--reporter=dot', '--no-color'];
  return ['vitest', 'run', ...config, ...files, ...only];
}

function isLate({ code, output }: Ended): boolean {
  return code === undefined || /timed out in \d+ms/.test(output);
}

function noticeOf({ code, output }: Ended): Notice {
  if (code === undefined) return 'does not end';
  const lines = output.split('\n').map((line) => line.trim());
  const failed = lines
    .find((line) => line.startsWith('FAIL '))
    ?.slice(5)
    .trim();
  const error = lines.find((line) => /^[A-Za-z]*Error\b/.test(line));
  return [failed, error].filter(Boolean).join(': ').slice(0, 300) || 'ends badly';
}

/** Worlds of the cloud whose provider it is, or of all that are simulated together. */
export function simulator(copy: string, seeds: number): Judge {
  const clean = new Map<string, Promise<ReadonlySet<string>>>();
  return {
    name: 'simulation',
    noticed: async ({ id, path }) => {
      const [, cloud = ''] = /^src\/providers\/(cluster-api|linode)\//.exec(path) ?? [];
      const command = ['node', 'hack/mutants/worlds.ts', String(seeds), cloud];
      let passed = clean.get(cloud);
      if (!passed) clean.set(cloud, (passed = passedBy(command, copy)));
      if (!(await passed).has(id)) return undefined;
      const { code, output } = await ended(command, copy, { env: { MUTANT: id }, limitMs: 10 * limitMs });
      if (code === 0) return undefined;
      return code === undefined ? 'does not end' : output.trim().split('\n').at(-1)!.slice(0, 300);
    },
  };
}

/** The places that the worlds pass when nothing is wrong. Throws when something is. */
async function passedBy(command: readonly string[], copy: string): Promise<ReadonlySet<string>> {
  const path = join(copy, 'passed.json');
  const { code, output } = await ended(command, copy, { env: { MUTANTS_PASSED: path } });
  if (code !== 0) throw new Error(`the worlds are not well without any mistake: ${output}`);
  return new Set(JSON.parse(readFileSync(path, 'utf8')) as string[]);
}
