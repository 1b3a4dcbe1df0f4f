// SPDX-License-Identifier: Apache-2.0
// Random problems over the whole feature list: no result breaks a rule, none depends on anything but the problem.
// `npm test` tries a sample; CI sets KARPENTER_PROPERTY_RUNS to the full number.
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { deepFreeze } from '../../base/freeze.ts';
import { SeededRandom } from '../../base/random.ts';
import type { Problem, SolveResult } from '../problem.ts';
import { solve } from '../solve.ts';
import { arbitrary, type Chooser } from './chooser.ts';
import { type GenerateOptions, generateProblem } from './generate.ts';
import { withRareFeatures } from './generate-rare.ts';
import { reduceProblem } from './reduce.ts';
import { shuffledKeys } from './shuffle.ts';
import { validate } from './validator.ts';

const problems = Number(process.env['KARPENTER_PROPERTY_RUNS'] ?? 1000);
const batches = 10;

function problemOf(chooser: Chooser, options?: GenerateOptions): Problem {
  return withRareFeatures(chooser, generateProblem(chooser, options));
}

interface Tally {
  readonly missed: string[];
}

/** What is wrong with the solver's answer to this problem, as text; undefined when nothing is. Missed pods are tallied. */
function complaint(problem: Problem, tally?: Tally, name = ''): string | undefined {
  const result = solve(deepFreeze(problem));
  const { violations, missed } = validate(problem, result, { missed: tally !== undefined });
  if (violations.length > 0) return violations.map((v) => `${v.rule}: ${v.pod ?? ''} ${v.detail}`).join('\n');
  if (tally) {
    tally.missed.push(...missed.map((m) => `${name}: ${m.pod} would fit on ${m.place}`));
  }
  const bytes = JSON.stringify(result);
  if (JSON.stringify(solve(problem)) !== bytes) return 'a second run gave another result';
  return undefined;
}

/** Fails with the smallest problem that still shows the same kind of complaint. */
function mustBeFlawless(problem: Problem, name: string, tally: Tally): void {
  const found = complaint(problem, tally, name);
  if (found === undefined) return;
  const kind = found.split(':')[0];
  const small = reduceProblem(problem, (p) => complaint(p)?.split(':')[0] === kind);
  expect.fail(`${name}\n${complaint(small)}\n${JSON.stringify(small)}`);
}

describe('a random problem', () => {
  const share = Math.ceil(problems / batches);
  test.each(Array.from({ length: batches }, (_, i) => i * share + 1))(
    'from seeds %i and on gets a result that breaks no rule and misses no pod',
    (first) => {
      const tally: Tally = { missed: [] };
      for (let seed = first; seed < first + share; seed++)
        mustBeFlawless(problemOf(new SeededRandom(seed)), `seed ${seed}`, tally);
      expect(tally.missed).toEqual([]);
    },
    600_000,
  );

  test('of any shape that fast-check thinks of gets one too', () => {
    fc.assert(
      fc.property(
        arbitrary((chooser) => problemOf(chooser)),
        (problem) => {
          const found = complaint(problem);
          if (found !== undefined) throw new Error(found);
        },
      ),
      { numRuns: Math.ceil(problems / 5), seed: 1 },
    );
  }, 600_000);

  test('gets the same answer whatever the order of the keys in its objects', () => {
    const random = new SeededRandom(7);
    // How many classes it took to get there may differ: that is work, not an answer.
    const answer = ({ stats: { podClasses: _c, podShapes: _s, ...stats }, ...rest }: SolveResult) =>
      JSON.stringify({ ...rest, stats });
    for (let seed = 1; seed <= Math.ceil(problems / 5); seed++) {
      const problem = problemOf(new SeededRandom(seed));
      expect(answer(solve(shuffledKeys(problem, random))), `seed ${seed}`).toBe(answer(solve(problem)));
    }
  }, 600_000);

  test('larger ones too', () => {
    for (let seed = 1; seed <= Math.ceil(problems / 50); seed++) {
      const random = new SeededRandom(1_000_000 + seed);
      mustBeFlawless(
        problemOf(random, { workloads: 12, replicas: 25, types: 20, nodes: 12 }),
        `large problem, seed ${1_000_000 + seed}`,
        { missed: [] },
      );
    }
  }, 600_000);
});
