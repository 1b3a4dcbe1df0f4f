// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { problemsOf } from './conformance.ts';

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
