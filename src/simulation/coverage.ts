// SPDX-License-Identifier: Apache-2.0
import { compareStrings } from '../base/order.ts';
import type { Coverage, CoverageKind } from './contract.ts';

/** Counts in memory. */
export class CoverageCounts implements Coverage {
  readonly #counts = new Map<string, number>();

  count(kind: CoverageKind, name: string, times = 1): void {
    const key = `${kind}/${name}`;
    this.#counts.set(key, (this.#counts.get(key) ?? 0) + times);
  }

  counts(): ReadonlyMap<string, number> {
    return new Map([...this.#counts].sort(([a], [b]) => compareStrings(a, b)));
  }
}

/** The sum of many runs. */
export function sumOfCounts(all: Iterable<Readonly<Record<string, number>>>): Record<string, number> {
  const sum = new Map<string, number>();
  for (const counts of all) {
    for (const [key, count] of Object.entries(counts)) sum.set(key, (sum.get(key) ?? 0) + count);
  }
  return Object.fromEntries([...sum].sort(([a], [b]) => compareStrings(a, b)));
}

/**
 * What was never exercised: faults, happenings and invariants that were counted and came to nothing, and controllers that
 * never reconciled anything, whatever the result.
 */
export function neverExercised(counts: Readonly<Record<string, number>>): string[] {
  const never = Object.keys(counts).filter((name) => !name.startsWith('path/') && counts[name] === 0);
  const controllers = new Map<string, number>();
  for (const [name, count] of Object.entries(counts)) {
    const controller = /^(path\/reconcile\/.*)\/[^/]+$/.exec(name)?.[1];
    if (controller !== undefined) controllers.set(controller, (controllers.get(controller) ?? 0) + count);
  }
  for (const [controller, count] of controllers) if (count === 0) never.push(controller);
  return never;
}
