// SPDX-License-Identifier: Apache-2.0
// The scheduler as work for an executor: plain data in, plain data out. A deadline needs a clock in the thread that works.
import { RealClock } from '../../base/clock.ts';
import { defineTask, type TaskRef } from '../../runtime/executor.ts';
import type { Problem, SolveResult } from '../../scheduling/problem.ts';
import { solve } from '../../scheduling/solve.ts';

export interface SolveInput {
  readonly problem: Problem;
  /** When it is over, the pass ends with what it has. */
  readonly timeoutMs?: number;
}

/** Solves a problem within its time. */
export function solveWithin({ problem, timeoutMs }: SolveInput): SolveResult {
  const clock = new RealClock();
  const options = { clock: () => clock.monotonic(), ...(timeoutMs === undefined ? {} : { timeoutMs }) };
  return solve(problem, options);
}

export const solveTask: TaskRef<SolveInput, SolveResult> = defineTask(import.meta.url, 'solveWithin', solveWithin);
