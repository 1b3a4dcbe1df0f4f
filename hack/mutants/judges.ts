// SPDX-License-Identifier: Apache-2.0
// Who may notice a mutant: tests, and the simulator.

import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { huntSeeds } from '../../src/simulation/defects.ts';
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
export function simulator(copy: string, count: number): Judge {
  const known = new Map<string, Promise<readonly World[]>>();
  return {
    name: 'simulation',
    noticed: async ({ id, path }) => {
      const [, cloud = ''] = /^src\/providers\/(cluster-api|linode)\//.exec(path) ?? [];
      let worlds = known.get(cloud);
      if (!worlds) known.set(cloud, (worlds = soundWorlds(copy, cloud, count)));
      const seeds = (await worlds).filter(({ passes }) => passes.has(id)).map(({ seed }) => seed);
      if (seeds.length === 0) return undefined;
      const { code, output } = await ended(commandOf(seeds, cloud), copy, {
        env: { MUTANT: id },
        limitMs: 10 * limitMs,
      });
      if (code === 0) return undefined;
      return code === undefined ? 'does not end' : output.trim().split('\n').at(-1)!.slice(0, 300);
    },
  };
}

/** A world in which all is well without a mistake, and the places that it passes. */
interface World {
  readonly seed: number;
  readonly passes: ReadonlySet<string>;
}

/** The first so many. Where something is wrong without any mistake, nothing can be noticed: that is told. */
async function soundWorlds(copy: string, cloud: string, count: number): Promise<World[]> {
  const path = join(copy, 'passed.json');
  const worlds: World[] = [];
  for (const seed of huntSeeds) {
    if (worlds.length === count) break;
    const { code, output } = await ended(commandOf([seed], cloud), copy, { env: { MUTANTS_PASSED: path } });
    if (code === 0) worlds.push({ seed, passes: new Set(JSON.parse(readFileSync(path, 'utf8')) as string[]) });
    else console.log(`a world ${cloud} is not well without any mistake, and not asked: ${output.trim()}`);
  }
  return worlds;
}

function commandOf(seeds: readonly number[], cloud: string): string[] {
  return ['node', 'hack/mutants/worlds.ts', seeds.join(), cloud];
}
