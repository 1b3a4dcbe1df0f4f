// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { problemsOf, verdictProblems } from './conformance.ts';

const line = (i: number) => ({ id: `area/case-${i}`, verdict: 'passed', requests: 4, clients: 2 });
const report = (...changes: ((cases: ReturnType<typeof line>[]) => void)[]) => {
  const cases = Array.from({ length: 300 }, (_, i) => line(i));
  for (const change of changes) change(cases);
  return { cases, skipped: 0 };
};

describe('two reports of one suite', () => {
  test('agree when both passed all', () => {
    expect(problemsOf(report(), report())).toEqual([]);
  });

  test.each([
    ['a case failed', report((cases) => (cases[3]!.verdict = 'failed')), /area\/case-3: embedded failed, real passed/],
    ['a case is missing', report((cases) => cases.pop()), /area\/case-299: embedded missing, real passed/],
    ['a case came twice', report((cases) => cases.push(line(0))), /1 ids come twice/],
    ['cases were skipped', { ...report(), skipped: 2 }, /2 cases were skipped/],
  ])('do not when %s', (_, embedded, problem) => {
    expect(problemsOf(embedded, report()).join('\n')).toMatch(problem);
  });

  test('are not enough when most cases are a single step of a single client', () => {
    const small = report((cases) =>
      cases.splice(0, 151, ...cases.slice(0, 151).map((each) => ({ ...each, clients: 1 }))),
    );
    expect(problemsOf(small, small)).toEqual(['only 149 of 300 cases have several steps and more than one client']);
  });
});

describe('two servers that judged the same objects', () => {
  const judged = (i: number) => ({ id: `kind/${i}`, valid: i % 2 === 0, message: `because of ${i}` });
  const all = (change: (verdicts: ReturnType<typeof judged>[]) => void = () => {}) => {
    const verdicts = Array.from({ length: 150 }, (_, i) => judged(i));
    change(verdicts);
    return { verdicts, skipped: 0 };
  };

  test('agree when they said the same', () => {
    expect(verdictProblems(all(), all())).toEqual([]);
  });

  test.each([
    ['a verdict differs', all((v) => (v[4]!.valid = false)), /kind\/4: embedded invalid: .*, real valid/],
    [
      'the words differ',
      all((v) => (v[5]!.message = 'no')),
      /kind\/5: embedded invalid: no, real invalid: because of 5/,
    ],
    ['an object is missing', all((v) => v.pop()), /kind\/149: embedded missing/],
    ['there are too few', all((v) => v.splice(10)), /10 objects, at least 150 are needed/],
    ['an object came twice', all((v) => v.push(judged(0))), /1 objects come twice/],
    ['objects were skipped', { ...all(), skipped: 1 }, /1 objects were skipped/],
    ['none is valid', all((v) => v.forEach((each) => (each.valid = false))), /no object is valid/],
  ])('do not when %s', (_, embedded, problem) => {
    expect(verdictProblems(embedded, all()).join('\n')).toMatch(problem);
  });
});
