// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import type { Candidate } from './candidates.ts';
import { whyNotPaidBack } from './payback.ts';

const now = Date.parse('2026-01-02T00:00:00Z');
const candidate = (minutes: number, price = 1): Candidate =>
  ({
    price,
    nodeClaim: { metadata: { creationTimestamp: new Date(now - minutes * 60_000).toISOString() } },
  }) as unknown as Candidate;
const claims = (count: number): NewNodeClaim[] => Array.from({ length: count }, () => ({}) as NewNodeClaim);
const isPaid = (ages: readonly number[], bought: number, savings: number): boolean =>
  whyNotPaidBack(
    ages.map((age) => candidate(age)),
    claims(bought),
    savings,
    now,
  ) === undefined;

test('machines that go without replacement pay for themselves, however young', () => {
  expect(isPaid([0, 1], 0, 0.001)).toBe(true);
});

test.each([
  // One machine in place of others: only what is young is spared.
  { ages: [9], bought: 1, least: 0.25 },
  { ages: [10], bought: 1, least: 0 },
  { ages: [9, 30], bought: 1, least: 0.25 },
  // Several: what would have been saved since the others were bought has to pay for five minutes of them.
  { ages: [0, 0, 0], bought: 2, least: 1.5 },
  { ages: [10, 10, 10], bought: 2, least: 1.5 },
  { ages: [20, 20, 20], bought: 2, least: 0.75 },
  { ages: [50, 50, 50], bought: 2, least: 0.3 },
  { ages: [10, 20, 50], bought: 2, least: 0.5 + 0.25 + 0.1 },
  { ages: [60, 60, 60], bought: 2, least: 0 },
  { ages: [20], bought: 3, least: 0.25 },
  // As many as go: a twentieth at least, however old.
  { ages: [600, 600], bought: 2, least: 0.1 },
  { ages: [600, 600], bought: 3, least: 0.1 },
  { ages: [600], bought: 2, least: 0 },
])('$bought in place of machines of $ages minutes save $least at least', ({ ages, bought, least }) => {
  expect(isPaid(ages, bought, least + 1e-9)).toBe(true);
  if (least > 0) expect(isPaid(ages, bought, least - 1e-9)).toBe(false);
});

test('a machine whose age nobody knows counts as there for good', () => {
  const unknown = { price: 1, nodeClaim: { metadata: {} } } as unknown as Candidate;
  expect(whyNotPaidBack([unknown], claims(2), 0.01, now)).toBeUndefined();
});
