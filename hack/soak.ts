// SPDX-License-Identifier: Apache-2.0
// `npm run soak -- --minutes M`: world after world, seed after seed, on every core, until the time or the hours are over.
// Prints each broken promise with its seed, and in the end how often what was exercised. Ends with 1 when one was broken.
import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { messageOf } from '../src/base/errors.ts';
import { neverExercised, sumOfCounts } from '../src/simulation/coverage.ts';
import type { RunReport } from '../src/simulation/run.ts';
import { scenarios } from '../src/simulation/scenarios.ts';
import { scenarioOfSeed } from '../src/simulation/seeds.ts';
import { worldArgv } from './world-flags.ts';

interface Task {
  readonly scenario: string;
  readonly seed: number;
  readonly hours: number;
}

type Result = { readonly report: RunReport; readonly cpuSeconds: number } | { readonly error: string };

export interface SoakOptions {
  /** No world is begun after this. */
  readonly minutes: number;
  /** Nor when so many hours of the worlds' time have been run. */
  readonly clusterHours?: number;
  /** One scenario for all, instead of the usual rotation. */
  readonly scenario?: string;
  readonly firstSeed?: number;
  /** Of each world. */
  readonly hours?: number;
  /**
   * It is also wrong when some fault, happening, invariant or controller was never exercised, or when the median world is an idle
   * one; where time ends before 900 hours, or those that are wanted, are over only the latter.
   */
  readonly complete?: boolean;
  /** One line for each world. */
  readonly verbose?: boolean;
}

/** What the median world has at least, and its changes a minute: an idle world proves nothing. */
const lively = { nodes: 30, pods: 300, changes: 1 };
const progressMs = 30_000;
/** In so many hours everything must have been exercised, however few of what was wanted they are. */
const hoursToTell = 900;

/** Runs until time or hours are over. Gives whether every promise was kept. */
export async function soak(options: SoakOptions): Promise<boolean> {
  const { minutes, clusterHours = Number.POSITIVE_INFINITY, hours = 6, firstSeed = 1 } = options;
  const started = performance.now();
  const left = (): boolean => performance.now() - started < minutes * 60_000 && begun < clusterHours;
  let [seed, begun, done, cpu, failures] = [firstSeed, 0, 0, 0, 0];
  const coverage: Readonly<Record<string, number>>[] = [];
  const [nodes, pods, changes, costs]: number[][] = [[], [], [], []];
  const noted = (task: Task, result: Result): void => {
    const name = `${task.scenario} --seed ${task.seed} --hours ${task.hours}`;
    if ('error' in result) {
      failures++;
      console.log(`FAILED   karpenter simulate ${name}: ${result.error}`);
      return;
    }
    const { report, cpuSeconds } = result;
    done += task.hours;
    cpu += cpuSeconds;
    coverage.push(report.coverage);
    nodes!.push(report.summary.medianNodes);
    pods!.push(report.summary.medianPods);
    changes!.push(report.summary.changes / (task.hours * 60));
    costs!.push(cpuSeconds / task.hours);
    for (const { invariant, message } of report.violations) {
      failures++;
      console.log(`VIOLATED karpenter simulate ${name}: ${invariant}: ${message}`);
    }
    if (!options.verbose) return;
    const { medianNodes, medianPods, changes: made, writes } = report.summary;
    console.log(
      `${name}: ${report.hash}, ${(cpuSeconds / task.hours).toFixed(1)} CPU s/h, ` +
        `${medianNodes} nodes, ${medianPods} pods, ${made} changes, ${writes} writes`,
    );
  };
  const progress = setInterval(() => {
    const of = clusterHours === Number.POSITIVE_INFINITY ? '' : ` of ${clusterHours}`;
    console.error(`soak: ${done}${of} cluster-hours, ${failures} violations`);
  }, progressMs);
  const worker = async (): Promise<void> => {
    while (left()) {
      const child = fork(import.meta.filename, ['worker'], { execArgv: worldArgv() });
      // A process forgets nothing of what leaked: a new one now and then. But the first world of one costs twice as much.
      for (let i = 0; i < 100 && left(); i++) {
        const task = { scenario: options.scenario ?? scenarioOfSeed(seed), seed: seed++, hours };
        begun += hours;
        noted(task, await ask(child, task));
      }
      child.disconnect();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker)).finally(() => clearInterval(progress));
  const median = (of: number[]): number => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;
  const counts = sumOfCounts(coverage);
  const never = neverExercised(counts);
  const tells = options.complete || options.verbose;
  for (const [name, count] of tells ? Object.entries(counts) : [])
    console.log(`  ${String(count).padStart(9)} ${name}`);
  if (tells && never.length > 0) console.log(`never exercised: ${never.join(', ')}`);
  console.log(
    `soak: ${done} cluster-hours in ${coverage.length} worlds (median ${median(nodes!)} nodes, ${median(pods!)} pods, ` +
      `${median(changes!).toFixed(2)} changes a minute), ` +
      `${(cpu / Math.max(1, done)).toFixed(2)} CPU s per hour (median ${median(costs!).toFixed(2)}), ${failures} violations`,
  );
  if (!options.complete) return failures === 0;
  const { ok, complaints } = completeness({
    nodes: median(nodes!),
    pods: median(pods!),
    changes: median(changes!),
    never,
    done,
    wanted: clusterHours,
  });
  for (const complaint of complaints) console.log(`soak: ${complaint}`);
  return failures === 0 && ok;
}

/** Whether a run without violations proves what it is meant to prove; what it lacks, for people. */
export function completeness(run: {
  /** Of the median world, and its changes a minute. */
  readonly nodes: number;
  readonly pods: number;
  readonly changes: number;
  readonly never: readonly string[];
  /** Hours that were run, and that were asked for. */
  readonly done: number;
  readonly wanted: number;
}): { readonly ok: boolean; readonly complaints: readonly string[] } {
  const { nodes, pods, changes, never, done, wanted } = run;
  const isLively = nodes >= lively.nodes && pods >= lively.pods && changes >= lively.changes;
  const isCut = never.length > 0 && done < Math.min(wanted, hoursToTell);
  return {
    ok: isLively && (never.length === 0 || isCut),
    complaints: [
      ...(isLively
        ? []
        : [`too idle: ${lively.nodes} nodes, ${lively.pods} pods and ${lively.changes} change a minute wanted`]),
      ...(isCut
        ? [`${done} of ${wanted} cluster-hours in the time there was: too few to judge what was exercised`]
        : []),
    ],
  };
}

function ask(child: ChildProcess, task: Task): Promise<Result> {
  return new Promise((resolve) => {
    const onExit = (code: number | null): void => resolve({ error: `its process ended with ${code}` });
    child.once('exit', onExit);
    child.once('message', (result) => {
      child.off('exit', onExit);
      resolve(result as Result);
    });
    child.send(task);
  });
}

async function work(): Promise<void> {
  const { runWorld } = await import('../src/simulation/run.ts');
  process.on('message', (task: Task) => {
    const before = process.cpuUsage();
    runWorld(task)
      .then((whole): Result => {
        const { user, system } = process.cpuUsage(before);
        return { report: { ...whole, trace: [] }, cpuSeconds: (user + system) / 1e6 };
      })
      .catch((error: unknown): Result => ({ error: String(error instanceof Error ? error.stack : error) }))
      .then((result) => process.send?.(result))
      .catch(() => process.exit(1));
  });
}

const usage =
  'usage: npm run soak -- [--minutes M] [--cluster-hours H] [--scenario NAME] [--seed N] [--hours H] [--complete] [--verbose]';

/** What the command line asks for, or what is wrong with it. */
function optionsOf(args: string[]): SoakOptions | string {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const known = {
    minutes: text,
    'cluster-hours': text,
    scenario: text,
    seed: text,
    hours: text,
    complete: flag,
    verbose: flag,
  };
  let values: ReturnType<typeof parseArgs<{ args: string[]; options: typeof known }>>['values'];
  try {
    ({ values } = parseArgs({ args, options: known }));
  } catch (error) {
    return messageOf(error);
  }
  const { minutes = '5', hours = '6', seed = '1', scenario, complete, verbose } = values;
  const clusterHours = values['cluster-hours'] ?? 'Infinity';
  const numbers = { minutes, hours, 'cluster-hours': clusterHours };
  for (const [name, given] of Object.entries(numbers)) {
    if (!(Number(given) > 0)) return `--${name} ${given} is not a positive number`;
  }
  if (!Number.isSafeInteger(Number(seed)) || Number(seed) < 0) return `--seed ${seed} is not a whole number`;
  if (scenario !== undefined && !scenarios.some(({ name }) => name === scenario))
    return `no scenario is named ${scenario}`;
  return {
    minutes: Number(minutes),
    hours: Number(hours),
    clusterHours: Number(clusterHours),
    firstSeed: Number(seed),
    complete,
    verbose,
    ...(scenario === undefined ? {} : { scenario }),
  };
}

if (import.meta.main) {
  if (process.argv[2] === 'worker') await work();
  else {
    const options = optionsOf(process.argv.slice(2));
    if (typeof options === 'string') {
      console.error(`soak: ${options}\n${usage}`);
      process.exitCode = 2;
    } else process.exitCode = (await soak(options)) ? 0 : 1;
  }
}
