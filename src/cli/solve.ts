// SPDX-License-Identifier: Apache-2.0
// `karpenter solve FILE`: reads a scheduling problem, prints where its pods go and what has to be bought.
import { type Command, Option } from 'commander';
import { RealClock } from '../base/clock.ts';
import type { NewNodeClaim, Problem, SolveResult } from '../scheduling/problem.ts';
import { ProblemFileError, readProblem, refusingBadFiles } from './problem-file.ts';

interface SolveFlags {
  readonly output: 'json' | 'table';
  readonly explain?: string;
  readonly timeout?: string;
  readonly exitCode?: boolean;
}

/** Adds the `solve` command. Exit codes: 0 solved (also when pods are left over), 2 the file is no problem. */
export function registerSolve(program: Command): void {
  program
    .command('solve')
    .description('place the pods of a problem file (docs/reference/problem-file.md) and print what to buy')
    .argument('<file>', 'JSON or YAML; - reads standard input')
    .addOption(new Option('-o, --output <format>', 'what to print').choices(['json', 'table']).default('table'))
    .option('--explain <namespace/name>', 'explain why this pod was not placed')
    .option('--timeout <milliseconds>', 'end with what was found by then')
    .option('--exit-code', 'exit with 1 when a pod could not be placed')
    .action((file: string, flags: SolveFlags) => refusingBadFiles(() => run(file, flags)));
}

async function run(file: string, flags: SolveFlags): Promise<void> {
  const problem = readProblem(file);
  const { solve } = await import('../scheduling/solve.ts');
  const clock = new RealClock();
  const timeoutMs = flags.timeout === undefined ? undefined : Number(flags.timeout);
  if (timeoutMs !== undefined && !(timeoutMs > 0))
    throw new ProblemFileError('--timeout', 'must be a positive number of milliseconds');
  const result = solve(problem, { clock: () => clock.monotonic(), ...(timeoutMs === undefined ? {} : { timeoutMs }) });
  if (flags.explain !== undefined) console.log(await explain(problem, result, flags.explain));
  else console.log(flags.output === 'json' ? JSON.stringify(result, undefined, 2) : table(result));
  if (flags.exitCode && result.errors.length > 0) process.exitCode = 1;
}

async function explain(problem: Problem, result: SolveResult, pod: string): Promise<string> {
  const { explainPod, renderExplanation } = await import('../scheduling/explain.ts');
  const explanation = explainPod(problem, result, pod.includes('/') ? pod : `default/${pod}`);
  if (!explanation) throw new ProblemFileError('--explain', `the problem has no pod ${pod} to place`);
  return renderExplanation(explanation);
}

function table(result: SolveResult): string {
  const lines: string[] = [];
  const { newNodeClaims, existingNodes, errors, objectErrors, stats } = result;
  if (newNodeClaims.length > 0) {
    lines.push(
      ...columns(
        ['NODEPOOL', 'CHEAPEST', 'TYPES', 'PRICE/H', 'PODS', 'CPU', 'MEMORY', 'WHERE'],
        newNodeClaims.map(claimRow),
      ),
      '',
    );
  }
  if (existingNodes.length > 0) {
    lines.push(
      ...columns(
        ['NODE', 'NEW PODS'],
        existingNodes.map(({ name, pods }) => [name, String(pods.length)]),
      ),
      '',
    );
  }
  if (errors.length > 0)
    lines.push(
      ...columns(
        ['POD WITHOUT A PLACE', 'WHY'],
        errors.map(({ pod, reason }) => [pod, reason]),
      ),
      '',
    );
  if (objectErrors.length > 0)
    lines.push(
      ...columns(
        ['NOT USED', 'WHY'],
        objectErrors.map(({ object, reason }) => [object, reason]),
      ),
      '',
    );
  lines.push(
    `${stats.scheduled} of ${stats.pods} pods placed, ${newNodeClaims.length} nodes to buy for ${stats.totalPrice.toFixed(4)}/h, ` +
      `in ${stats.durationMs.toFixed(1)} ms${stats.timedOut ? ' (deadline reached)' : ''}`,
  );
  return lines.join('\n');
}

function claimRow({ nodePool, instanceTypes, price, pods, requests, requirements }: NewNodeClaim): string[] {
  const zone = requirements.find(({ key, operator }) => key === 'topology.kubernetes.io/zone' && operator === 'In');
  return [
    nodePool,
    instanceTypes[0] ?? '-',
    String(instanceTypes.length),
    price.toFixed(4),
    String(pods.length),
    requests['cpu'] ?? '0',
    requests['memory'] ?? '0',
    zone?.values?.join(',') ?? 'any',
  ];
}

/** Rows as columns that line up. */
export function columns(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const all = [head, ...rows];
  const widths = head.map((_, i) => all.reduce((most, row) => Math.max(most, row[i]?.length ?? 0), 0));
  return all.map((row) =>
    row
      .map((cell, i) => cell.padEnd(widths[i]!))
      .join('   ')
      .trimEnd(),
  );
}
