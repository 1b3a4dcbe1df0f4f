// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { type Answer, Answers } from './answers.ts';
import type { Removal } from './removals.ts';

const bought = { purchase: { price: 1 }, whyNot: undefined } as unknown as Answer;
const refused: Answer = { purchase: undefined, whyNot: undefined };

/** A node goes, and its pod moves to another. */
function removal(slot: number, to: number): Removal {
  return { slots: [slot], moves: [{ pod: slot, slot: to }], claims: [] };
}

describe('what was found out about nodes', () => {
  test('is known in whatever order they are named', () => {
    const answers = new Answers();
    answers.note([1, 2], 5, bought);
    expect(answers.of([2, 1], 5)).toBe(bought);
    expect(answers.of([2, 1], 4)).toBeUndefined();
    expect(answers.of([1], 5)).toBeUndefined();
  });

  test('is known again when the same others are gone, in whatever order they went', () => {
    const answers = new Answers();
    answers.keep(removal(7, 0));
    answers.keep(removal(8, 0));
    answers.note([1], 5, bought);
    answers.reset();
    expect(answers.of([1], 5)).toBeUndefined();
    answers.keep(removal(8, 0));
    answers.keep(removal(7, 0));
    expect(answers.of([1], 5)).toBe(bought);
  });

  test('does not hold when others went elsewhere', () => {
    const answers = new Answers();
    answers.keep(removal(7, 0));
    answers.note([1], 5, bought);
    answers.reset();
    answers.keep(removal(7, 3));
    expect(answers.of([1], 5)).toBeUndefined();
  });

  test('holds when more are gone only where nothing could be bought', () => {
    const answers = new Answers();
    answers.note([1], 5, bought);
    answers.note([2], 5, refused);
    answers.keep(removal(7, 0));
    expect(answers.of([1], 5)).toBeUndefined();
    expect(answers.of([2], 5)).toBe(refused);
    expect(answers.of([2], 6), 'for more money something may be had').toBeUndefined();
    answers.note([3], 5, refused);
    answers.reset();
    expect(answers.of([3], 5), 'with fewer gone there is more room').toBeUndefined();
  });
});
