// SPDX-License-Identifier: Apache-2.0
// `npm run soak -- --minutes M`: world after world, seed after seed, on every core, until the time or the hours are over.
// Prints each broken promise with its seed, and in the end how often what was exercised. Ends with 1 when one was broken.
import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { neverExercised, sumOfCounts } from '../src/simulation/coverage.ts';
import type { RunReport } from '../src/simulation/run.ts';
import { scenarioOfSeed } from '../src/simulation/seeds.ts';

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
  /** It is also wrong when some fault, happening, invariant or controller was never exercised. */
  readonly complete?: boolean;
  /** One line for each world. */
  readonly verbose?: boolean;
}

/** Room for what lives a moment only: worlds make much of that, and each clean-up copies what happens to be in use. */
const execArgv = [...process.execArgv, '--min-semi-space-size=64', '--max-semi-space-size=128'];

/** Runs until time or hours are over. Gives whether every promise was kept. */
export async function soak(options: SoakOptions): Promise<boolean> {
  const { minutes, clusterHours = Number.POSITIVE_INFINITY, hours = 2, firstSeed = 1 } = options;
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
  const worker = async (): Promise<void> => {
    while (left()) {
      const child = fork(import.meta.filename, ['worker'], { execArgv });
      // A process forgets nothing of what leaked: a new one now and then. But the first world of one costs twice as much.
      for (let i = 0; i < 100 && left(); i++) {
        const task = { scenario: options.scenario ?? scenarioOfSeed(seed), seed: seed++, hours };
        begun += hours;
        noted(task, await ask(child, task));
      }
      child.disconnect();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, worker));
  const median = (of: number[]): number => of.toSorted((a, b) => a - b)[Math.floor(of.length / 2)] ?? 0;
  const counts = sumOfCounts(coverage);
  for (const [name, count] of Object.entries(counts)) console.log(`  ${String(count).padStart(9)} ${name}`);
  const never = neverExercised(counts);
  if (never.length > 0) console.log(`never exercised: ${never.join(', ')}`);
  console.log(
    `soak: ${done} cluster-hours in ${coverage.length} worlds (median ${median(nodes!)} nodes, ${median(pods!)} pods, ` +
      `${median(changes!).toFixed(2)} changes a minute), ` +
      `${(cpu / Math.max(1, done)).toFixed(2)} CPU s per hour (median ${median(costs!).toFixed(2)}), ${failures} violations`,
  );
  if (options.complete && never.length > 0 && done < clusterHours) {
    console.log(
      `soak: ${done} of ${clusterHours} cluster-hours in the time there was: too few to judge what was exercised`,
    );
    return failures === 0;
  }
  return failures === 0 && !(options.complete && never.length > 0);
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

if (import.meta.main) {
  if (process.argv[2] === 'worker') await work();
  else {
    const { values } = parseArgs({
      options: {
        minutes: { type: 'string', default: '5' },
        'cluster-hours': { type: 'string' },
        scenario: { type: 'string' },
        seed: { type: 'string', default: '1' },
        hours: { type: 'string', default: '2' },
        complete: { type: 'boolean', default: false },
        verbose: { type: 'boolean', default: false },
      },
    });
    const kept = await soak({
      minutes: Number(values.minutes),
      hours: Number(values.hours),
      firstSeed: Number(values.seed),
      complete: values.complete,
      verbose: values.verbose,
      ...(values['cluster-hours'] === undefined ? {} : { clusterHours: Number(values['cluster-hours']) }),
      ...(values.scenario === undefined ? {} : { scenario: values.scenario }),
    });
    process.exitCode = kept ? 0 : 1;
  }
}
