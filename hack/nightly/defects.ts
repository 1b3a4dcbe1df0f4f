// SPDX-License-Identifier: Apache-2.0
// Shows that the simulator finds every planted defect within its seeds, which invariant notices it, and that nothing is
// noticed when nothing is wrong. One process for each core.
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { type Defect, defects } from '../../src/base/defects.ts';
import {
  allDefects,
  cloudDefects,
  type Find,
  hunt,
  huntHours,
  huntSeeds,
  knownSeeds,
  seedsFor,
} from '../../src/simulation/defects.ts';

interface Task {
  readonly defect: Defect | undefined;
  readonly seeds: readonly number[];
  readonly hours: number;
}

/**
 * `npm run nightly -- defects [DEFECT…] [--seeds N] [--hours H] [--known]`: all of them, and none at all, unless some are
 * named. `--known`: those that were found before, beginning with the seed that found each. `--minutes M`: no other hunt is
 * begun after that; those that were not are named, and decide nothing.
 */
export async function huntDefects(...args: string[]): Promise<boolean> {
  const options = {
    seeds: { type: 'string' },
    hours: { type: 'string' },
    minutes: { type: 'string', default: 'Infinity' },
    known: { type: 'boolean' },
  } as const;
  const { positionals, values } = parseArgs({ args, allowPositionals: true, options });
  const unknown = positionals.filter((name) => !Object.hasOwn(defects, name));
  if (unknown.length > 0) throw new Error(`no such defect: ${unknown.join(', ')}`);
  const all = [...allDefects, ...cloudDefects];
  const named = values.known ? all.filter((name) => knownSeeds[name] !== undefined) : all;
  const hunted = positionals.length > 0 ? (positionals as Defect[]) : values.known ? named : [...named, undefined];
  const tasks = hunted.map((defect): Task => {
    const seeds = values.known ? seedsFor(defect) : huntSeeds;
    return {
      defect,
      seeds: seeds.slice(0, Number(values.seeds ?? seeds.length)),
      hours: Number(values.hours ?? huntHours),
    };
  });
  const end = performance.now() + Number(values.minutes) * 60_000;
  let isGood = true;
  const worker = async (): Promise<void> => {
    for (let task = tasks.shift(); task; task = tasks.shift()) {
      if (performance.now() > end) {
        console.log(`${(task.defect ?? '(none planted)').padEnd(34)} not hunted: out of time`);
        continue;
      }
      const found = await inProcess(task);
      isGood &&= typeof found !== 'string' && (found !== undefined) === (task.defect !== undefined);
      console.log(`${(task.defect ?? '(none planted)').padEnd(34)} ${textOf(found, task)}`);
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return isGood;
}

function textOf(found: Find | string | undefined, { seeds }: Task): string {
  if (typeof found === 'string') return found;
  if (!found) return `nothing found in ${seeds.length} seeds`;
  return `${found.invariant}, seed ${found.seed}, minute ${found.minute}: ${found.message.slice(0, 160)}`;
}

/** A defect is planted in a whole process. */
function inProcess(task: Task): Promise<Find | string | undefined> {
  return new Promise((resolve) => {
    const child = fork(import.meta.filename, ['worker']);
    child.once('exit', (code) => resolve(`its process ended with ${code}`));
    child.once('message', ({ found }: { found?: Find }) => {
      resolve(found);
      child.disconnect();
    });
    child.send(task);
  });
}

if (import.meta.main && process.argv[2] === 'worker') {
  process.once('message', ({ defect, seeds, hours }: Task) => {
    hunt(defect, { seeds, hours })
      .then((found) => process.send?.({ found }))
      .catch(() => process.exit(1));
  });
}
