// SPDX-License-Identifier: Apache-2.0
// The scheduler's front door.
import type { Problem, SolveOptions, SolveResult } from './problem.ts';

/**
 * Places the pods of a problem: on existing nodes, then on nodes being bought, then on new ones. Pure and deterministic:
 * the same problem gives the same bytes. Never throws on bad objects: they become errors of their own in the result.
 */
export function solve(problem: Problem, options: SolveOptions = {}): SolveResult {
  void problem;
  void options;
  throw new Error('being built');
}
