// SPDX-License-Identifier: Apache-2.0
// Draws with the shapes that clusters have: most things are small, a few are large.
import type { Random } from '../base/random.ts';

/** One of a list; undefined of an empty one. */
export function pick<T>(random: Random, list: readonly T[]): T | undefined {
  return list[random.int(list.length)];
}

/** One of a list that is not empty. */
export function oneOf<T>(random: Random, list: readonly [T, ...T[]]): T {
  return list[random.int(list.length)]!;
}

/** One of a list by weight. */
export function weighted<T extends { readonly weight: number }>(random: Random, list: readonly T[]): T {
  let left = random.next() * list.reduce((sum, { weight }) => sum + weight, 0);
  for (const item of list) {
    left -= item.weight;
    if (left < 0) return item;
  }
  return list.at(-1)!;
}

export function chance(random: Random, share: number): boolean {
  return random.next() < share;
}

/** A whole number in [least, most]. */
export function between(random: Random, least: number, most: number): number {
  return least + random.int(most - least + 1);
}

/** A whole number in [least, most] that is small more often than large: evenly spread over the orders of magnitude. */
export function skewed(random: Random, least: number, most: number): number {
  return Math.min(most, Math.floor(least * ((most + 1) / least) ** random.next()));
}

/** From one to `most`, and mostly one or two: what an autoscaler of pods adds, or a crash takes. */
export function fewOf(random: Random, most: number): number {
  return skewed(random, 1, skewed(random, 1, most));
}

/** The time to the next of events that come independently, this far apart on average. */
export function waiting(random: Random, meanMs: number): number {
  return Math.ceil(-Math.log(1 - random.next()) * meanMs);
}
