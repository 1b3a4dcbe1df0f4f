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
