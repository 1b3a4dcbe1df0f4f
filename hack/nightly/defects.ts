// SPDX-License-Identifier: Apache-2.0
// Shows that the simulator finds every planted defect within its seeds, which invariant notices it, and that nothing is
// noticed when nothing is wrong. One process for each core.
import { type ChildProcess, fork } from 'node:child_process';
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
import { worldArgv } from '../world-flags.ts';

interface Task {
  readonly defect: Defect | undefined;
  readonly seeds: readonly number[];
  readonly hours: number;
}

/**
 * `npm run nightly -- defects [DEFECT…] [--seeds N] [--hours H] [--known]`: all of them, and none at all, unless some are
 * named. `--known`: each begins with the seed that found it before; one that was never found fails. `--minutes M`: no other hunt is
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
  const hunted = positionals.length > 0 ? (positionals as Defect[]) : [undefined, ...all];
  const unfound = values.known ? hunted.filter((name) => name !== undefined && knownSeeds[name] === undefined) : [];
  for (const name of unfound)
    console.log(`${name} has no known seed: hunt it, and note the seed in src/simulation/defects.ts`);
  const tasks = hunted.map((defect): Task => {
    const seeds = values.known ? seedsFor(defect) : huntSeeds;
    return {
      defect,
      seeds: seeds.slice(0, Number(values.seeds ?? seeds.length)),
      hours: Number(values.hours ?? huntHours),
    };
  });
  const end = performance.now() + Number(values.minutes) * 60_000;
  let isGood = unfound.length === 0;
  const worker = async (): Promise<void> => {
    const hunter = new Hunter();
    for (let task = tasks.shift(); task; task = tasks.shift()) {
      const name = (task.defect ?? '(none planted)').padEnd(34);
      if (performance.now() > end) {
        console.log(`${name} not hunted: out of time`);
        continue;
      }
      const started = performance.now();
      const found = await hunter.hunt(task);
      const seconds = Math.round((performance.now() - started) / 1000);
      isGood &&= typeof found !== 'string' && (found !== undefined) === (task.defect !== undefined);
      console.log(`${name} ${String(seconds).padStart(4)} s  ${textOf(found, task)}`);
    }
    hunter.close();
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  return isGood;
}

function textOf(found: Find | string | undefined, { seeds }: Task): string {
  if (typeof found === 'string') return found;
  if (!found) return `nothing found in ${seeds.length} seeds`;
  return `${found.invariant}, seed ${found.seed}, minute ${found.minute}: ${found.message.slice(0, 160)}`;
}

/**
 * A process that hunts one defect after the other: it is planted in the whole process, and taken out again. The first world
 * of a process costs twice what later ones do.
 */
class Hunter {
  #child: ChildProcess | undefined;

  hunt(task: Task): Promise<Find | string | undefined> {
    const child = (this.#child ??= fork(import.meta.filename, ['worker'], { execArgv: worldArgv() }));
    return new Promise((resolve) => {
      const ended = (code: number | null): void => {
        this.#child = undefined;
        resolve(`its process ended with ${code}`);
      };
      child.once('exit', ended);
      child.once('message', ({ found }: { found?: Find }) => {
        child.off('exit', ended);
        resolve(found);
      });
      child.send(task);
    });
  }

  close(): void {
    this.#child?.disconnect();
  }
}

if (import.meta.main && process.argv[2] === 'worker') {
  process.on('message', ({ defect, seeds, hours }: Task) => {
    hunt(defect, { seeds, hours })
      .then((found) => process.send?.({ found }))
      .catch(() => process.exit(1));
  });
}
