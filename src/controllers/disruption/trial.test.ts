// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { Trial } from './trial.ts';

const begin = (keys: readonly string[], gathers = false): Trial => new Trial([], keys, 100, { lengthMs: 15, gathers });

describe('a trial', () => {
  test('ends for those that concerned the method all along', () => {
    const trial = begin(['a', 'b']);
    trial.look(['a'], 105);
    trial.look(['a', 'b'], 110);
    expect(trial.dueAt).toBe(115);
    expect(trial.conclude(115)).toEqual(new Set(['a']));
    expect(trial.isOver).toBe(false);
    expect(trial.dueAt).toBe(125);
    expect(trial.conclude(125)).toEqual(new Set(['b']));
    expect(trial.isOver).toBe(true);
  });

  test('is due at its time even when nobody is left', () => {
    const trial = begin(['a']);
    trial.look([], 105);
    expect(trial.dueAt).toBe(115);
    expect(trial.conclude(115)).toEqual(new Set());
  });

  test('of a method that gathers waits for those that came later', () => {
    const trial = begin(['a'], true);
    trial.look(['a', 'b'], 110);
    expect(trial.dueAt).toBe(125);
    expect(trial.conclude(125)).toEqual(new Set(['a', 'b']));
  });

  test('waits for others no longer than it lasts itself', () => {
    const trial = begin(['a'], true);
    for (let now = 105; now <= 130; now += 5)
      trial.look(Array.from({ length: now }, (_, i) => `n${i}`).concat('a'), now);
    expect(trial.dueAt).toBe(130);
    expect(trial.conclude(130).has('a')).toBe(true);
  });

  test.each([false, true])('is over at once for those that stood one before, gathering or not (%s)', (gathers) => {
    const trial = new Trial([], ['a', 'b'], 100, { lengthMs: 15, gathers }, ['a']);
    expect(trial.dueAt).toBeLessThanOrEqual(100);
    expect(trial.conclude(100)).toEqual(new Set(['a']));
    expect(trial.dueAt).toBe(115);
  });

  test('is never due for those whose budget is used up, and decides about others as ever', () => {
    const trial = begin(['a', 'b']);
    trial.look(['a', 'b'], 105, new Set(['a', 'b']));
    expect(trial.dueAt).toBe(Number.POSITIVE_INFINITY);
    trial.look(['a', 'b'], 110, new Set(['a']));
    expect(trial.dueAt).toBe(115);
    trial.look(['a', 'b'], 120);
    expect(trial.conclude(120)).toEqual(new Set(['a', 'b']));
  });
});
