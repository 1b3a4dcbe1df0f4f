// SPDX-License-Identifier: Apache-2.0
// Ranges of sizes and costs, as cel-go reckons with them: whole numbers that stop growing at the largest it has.

/** At least and at most. Both sizes (characters, items) and costs. */
export interface CelRange {
  readonly min: number;
  readonly max: number;
}

/** The largest number of 64 bits, as near as a double comes to it. */
export const most: number = 2 ** 64;

export const unknownSize: CelRange = { min: 0, max: most };
export const nothing: CelRange = { min: 0, max: 0 };

export function exactly(value: number): CelRange {
  return { min: value, max: value };
}

export function plus(a: CelRange, b: CelRange): CelRange {
  return { min: Math.min(a.min + b.min, most), max: Math.min(a.max + b.max, most) };
}

export function times(a: CelRange, b: CelRange): CelRange {
  return { min: Math.min(a.min * b.min, most), max: Math.min(a.max * b.max, most) };
}

/** Times a factor, rounded up. */
export function scaled(range: CelRange, factor: number): CelRange {
  const by = (value: number): number => Math.min(Math.ceil(value * factor), most);
  return { min: by(range.min), max: by(range.max) };
}

/** What covers both. */
export function span(a: CelRange, b: CelRange): CelRange {
  return { min: Math.min(a.min, b.min), max: Math.max(a.max, b.max) };
}
