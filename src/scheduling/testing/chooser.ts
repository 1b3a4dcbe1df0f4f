// SPDX-License-Identifier: Apache-2.0
// Choices, from a seed or from a tape of numbers. A tape lets fast-check shrink what a generator makes: zero is always
// the simplest choice, and a tape that has run out answers zero.
import fc from 'fast-check';

export interface Chooser {
  /** A whole number in [0, below). */
  int(below: number): number;
}

export class Tape implements Chooser {
  readonly #numbers: readonly number[];
  #at = 0;

  constructor(numbers: readonly number[]) {
    this.#numbers = numbers;
  }

  int(below: number): number {
    return (this.#numbers[this.#at++] ?? 0) % below;
  }
}

export function pick<T>(chooser: Chooser, from: readonly T[]): T {
  return from[chooser.int(from.length)]!;
}

/** True in `percent` of the cases; false is the simple answer. */
export function chance(chooser: Chooser, percent: number): boolean {
  return chooser.int(100) >= 100 - percent;
}

/** Some of the items, in their order. */
export function some<T>(chooser: Chooser, from: readonly T[], percent: number): T[] {
  return from.filter(() => chance(chooser, percent));
}

/** Anything that `make` makes, as an arbitrary that shrinks. */
export function arbitrary<T>(make: (chooser: Chooser) => T, longest = 1200): fc.Arbitrary<T> {
  return fc
    .array(fc.nat({ max: 999_999 }), { minLength: 0, maxLength: longest, size: 'max' })
    .map((numbers) => make(new Tape(numbers)));
}
