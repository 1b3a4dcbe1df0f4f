// SPDX-License-Identifier: Apache-2.0
// What some pods would cost on machines of one size: a quick measure of how good a buy something is.
import type { Catalog, View } from './catalog.ts';

export interface Demand {
  /** Everything the pods request. */
  readonly total: Float64Array;
  /** Of each resource, the most that one of them requests. */
  readonly largest: Float64Array;
  /** How many machines they need at least, whatever the size. */
  machines: number;
}

/** Nothing yet. */
export function noDemand(width: number): Demand {
  return { total: new Float64Array(width), largest: new Float64Array(width), machines: 1 };
}

/** Adds pods with the same requests. */
export function addDemand({ total, largest }: Demand, request: Float64Array, count = 1): void {
  for (let r = 0; r < request.length; r++) {
    total[r]! += count * request[r]!;
    if (request[r]! > largest[r]!) largest[r] = request[r]!;
  }
}

/** The price of as many machines of one size as the pods need, for the size where that is least; infinite when none fits. */
export function bestSizePrice(catalog: Catalog, view: View, { total, largest, machines }: Demand): number {
  const { rows, prices } = catalog.byPrice(view);
  const { free } = catalog;
  const width = total.length;
  let best = Number.POSITIVE_INFINITY;
  next: for (let i = 0; i < rows.length && prices[i]! * machines < best; i++) {
    let count = machines;
    for (let r = 0, at = rows[i]! * width; r < width; r++, at++) {
      const has = free[at]!;
      if (has < largest[r]!) continue next;
      if (total[r]! > count * has) count = total[r]! / has;
    }
    const price = Math.ceil(count) * prices[i]!;
    if (price < best) best = price;
  }
  return best;
}
