// SPDX-License-Identifier: Apache-2.0
// What is remembered of machines from one pass to the next changes no plan.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { deepClone, deepFreeze } from '../base/freeze.ts';
import type { Problem } from './problem.ts';
import { solve } from './solve.ts';
import { arbitrary } from './testing/chooser.ts';
import { generateProblem } from './testing/generate.ts';

/** The same machines in other passes: with all of their pods, with some, with one that goes, with one that is asked about. */
function* passes(problem: Problem): Generator<Problem> {
  const [first = ''] = (problem.nodes ?? []).map(({ metadata }) => metadata.name ?? '');
  yield problem;
  yield { ...problem, pods: problem.pods.filter((_pod, i) => i % 2 === 0) };
  yield { ...problem, state: { ...problem.state, candidates: [first] } };
  yield problem;
  yield { ...problem, state: { ...problem.state, markedForDeletion: [first] } };
  yield { ...problem, nodeClaims: [] };
  yield problem;
}

test('plans for objects that cannot change are those for copies of them, pass after pass', () => {
  fc.assert(
    fc.property(
      arbitrary((c) => generateProblem(c)),
      (problem) => {
        for (const pass of passes(deepFreeze(problem))) expect(solve(pass)).toEqual(solve(deepClone(pass)));
      },
    ),
    { numRuns: 30 },
  );
});
