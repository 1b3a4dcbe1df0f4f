// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  allowedDisruptions,
  type BudgetQuestion,
  budgetNodes,
  budgetProblem,
  unlimitedDisruptions,
} from './budgets.ts';
import type { Budget } from './node-pool.ts';

const ask = (budgets: Budget[] | undefined, question: Partial<BudgetQuestion> = {}): number =>
  allowedDisruptions(budgets, { nodeCount: 20, reason: 'Empty', isActive: () => true, ...question });

describe('budgets', () => {
  test('none means no bound', () => {
    expect(ask(undefined)).toBe(unlimitedDisruptions);
    expect(ask([])).toBe(unlimitedDisruptions);
  });

  test('the tightest counts', () => {
    expect(ask([{ nodes: '10%' }, { nodes: '1' }, { nodes: '50%' }])).toBe(1);
  });

  test('a budget for other reasons does not', () => {
    expect(ask([{ nodes: '5' }, { nodes: '0', reasons: ['Drifted', 'Underutilized'] }])).toBe(5);
    expect(ask([{ nodes: '5' }, { nodes: '0', reasons: ['Drifted', 'Empty'] }])).toBe(0);
    expect(ask([{ nodes: '0', reasons: [] }])).toBe(0);
  });

  test('a budget outside its window does not bound, and the window is handed over whole', () => {
    const budget = { nodes: '0', schedule: '@daily', duration: '1h30m' };
    expect(ask([budget], { isActive: () => false })).toBe(unlimitedDisruptions);
    const asked: unknown[] = [];
    ask([budget], { isActive: (window) => asked.push(window) > 0 });
    expect(asked).toContainEqual({ schedule: '@daily', durationMs: 5_400_000 });
  });

  test('a budget that cannot be understood allows nothing, for whatever reason', () => {
    const isActive = (): boolean => {
      throw new Error('no cron');
    };
    const broken: Budget = { nodes: '5', schedule: '99 99 * * *', duration: '1h', reasons: ['Drifted'] };
    expect(ask([broken], { isActive, reason: 'Drifted' })).toBe(0);
    expect(ask([broken, { nodes: '7' }], { isActive })).toBe(0);
    expect(budgetProblem([{ nodes: '7' }, broken], isActive)).toBe('no cron');
    expect(ask([{ nodes: 'ten' }])).toBe(0);
    expect(ask([{ nodes: 'ten', reasons: ['Drifted'] }])).toBe(0);
    expect(budgetProblem([{ nodes: 'ten' }], isActive)).toBe('"ten" is no number of nodes');
    expect(budgetProblem([{ nodes: '10%' }], isActive)).toBeUndefined();
    expect(budgetProblem(undefined, isActive)).toBeUndefined();
  });
});

describe('the number of nodes', () => {
  test.each([
    ['0%', 19, 0],
    ['10%', 19, 2],
    ['10%', 1, 1],
    ['100%', 7, 7],
    ['29%', 100, 29],
    ['5', 3, 5],
    ['99999999999999999999', 3, unlimitedDisruptions],
  ])('%s of %d is %d', (text, nodes, expected) => {
    expect(budgetNodes(text, nodes)).toBe(expected);
  });

  test.each(['', '-1', '101%', '1.5', '5 %', '٣'])('%j is no number of nodes', (text) => {
    expect(budgetNodes(text, 10)).toBeUndefined();
  });

  test('a share is never rounded down, and never more than one above', () => {
    fc.assert(
      fc.property(fc.nat(100), fc.nat(100_000), (percent, nodes) => {
        const scaled = budgetNodes(`${percent}%`, nodes)!;
        expect(scaled * 100).toBeGreaterThanOrEqual(percent * nodes);
        expect(scaled * 100).toBeLessThan(percent * nodes + 100);
      }),
    );
  });
});
