// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { plant } from '../base/defects.ts';
import { planOf, prefixOf, sizeOf } from './plan.ts';
import { summaryText, violationText } from './report-text.ts';
import { type RunReport, runWorld, scenarioNamed } from './run.ts';
import { shortestPrefix } from './shrink.ts';
import { tiny } from './testing/tiny.ts';

function run(seed: number): Promise<RunReport> {
  return runWorld({ scenario: tiny, seed, hours: 1 });
}

describe('a world', () => {
  test('runs the same way again from the same seed, and another way from another', async () => {
    const [first, again, other] = [await run(1), await run(1), await run(2)];
    expect(again).toEqual(first);
    expect(other.hash).not.toBe(first.hash);
  }, 120_000);

  test.each([3, 4, 5, 6])(
    'keeps every promise (seed %i)',
    async (seed) => {
      const report = await run(seed);
      expect(report.violations).toEqual([]);
      expect(report.summary.changes).toBeGreaterThan(5);
      expect(report.summary.podsPlaced).toBeGreaterThan(10);
      expect(summaryText(report)).toContain(`seed ${seed}`);
    },
    120_000,
  );

  test('tells of a broken promise with the seed and what led to it', async () => {
    // Pods are deleted instead of evicted.
    plant('ignores-disruption-budgets');
    try {
      const report = await firstViolation();
      expect(report.trace.length).toBeGreaterThan(10);
      const shrunk = await shortestPrefix(report, { scenario: tiny, seed: report.seed, hours: 1 }, 3);
      expect(shrunk.report.violations[0]?.invariant).toBe(report.violations[0]?.invariant);
      expect(shrunk.events).toBeLessThan(shrunk.of);
      const text = violationText(report, shrunk);
      expect(text).toContain(`--seed ${report.seed} --hours 1 --events ${shrunk.events}`);
      expect(text).toContain('pods/moved-gently');
    } finally {
      plant(undefined);
    }
  }, 120_000);
});

async function firstViolation(): Promise<RunReport> {
  for (let seed = 1; seed < 10; seed++) {
    const report = await run(seed);
    if (report.violations.length > 0) return report;
  }
  throw new Error('a planted defect was not found');
}

describe('a plan', () => {
  const shape = scenarioNamed('faults')!;

  test('is in order, rests when it should, and ends with a look at what is quiet', () => {
    const { moments, endMs } = planOf(shape, 7, 6);
    expect(moments.map(({ atMs }) => atMs)).toEqual(moments.map(({ atMs }) => atMs).toSorted((a, b) => a - b));
    expect(moments.filter(({ what }) => what === 'quiet')).toHaveLength(3);
    expect(moments.at(-1)).toMatchObject({ what: 'quiet' });
    const cycle = shape.activeMs + shape.restMs;
    for (const { what, atMs, lastsMs } of moments) {
      if (what !== 'quiet') expect((atMs % cycle) + lastsMs).toBeLessThanOrEqual(shape.activeMs);
      expect(atMs).toBeLessThan(endMs);
    }
  });

  test('is cut to a prefix without losing its quiet moments', () => {
    const plan = planOf(shape, 7, 6);
    const short = prefixOf(plan, 10);
    expect(sizeOf(short)).toBe(10);
    expect(short.moments.filter(({ what }) => what === 'quiet')).toHaveLength(3);
  });
});
