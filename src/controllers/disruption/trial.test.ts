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
});
