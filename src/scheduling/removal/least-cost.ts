// SPDX-License-Identifier: Apache-2.0
// The least that machines for some pods can cost, whatever is bought: prices of resources at which no machine on sale is a
// bargain. A bound, quick to ask: what cannot become cheaper is not tried.
import { allTypes } from '../catalog.ts';
import { resourcePrices } from '../resource-prices.ts';
import type { World } from '../world.ts';

export class LeastCost {
  /** Each: a price per unit of each resource. */
  readonly #prices: readonly Float64Array[];

  /** `demands`: mixes of resources for which the bound should be sharp. */
  constructor(world: World, demands: readonly Float64Array[]) {
    const width = world.axis.size;
    const units: number[] = [];
    const prices: number[] = [];
    for (const { catalog, requirements } of world.templates) {
      const priced = catalog.byPrice(catalog.view(requirements, allTypes));
      for (let i = 0; i < priced.rows.length; i++) {
        if (!Number.isFinite(priced.prices[i])) continue;
        const row = priced.rows[i]!;
        for (let r = 0; r < width; r++) units.push(catalog.free[row * width + r]!);
        prices.push(priced.prices[i]!);
      }
    }
    const machines = undominated(width, units, prices);
    this.#prices =
      prices.length === 0 ? [] : demands.map((demand) => feasible(machines, resourcePrices(machines, demand)));
  }

  /** The bound for pods that request so much in sum; 0 when nothing is known. */
  of(total: Float64Array): number {
    let least = 0;
    for (const prices of this.#prices) {
      let cost = 0;
      for (let r = 0; r < prices.length; r++) if (prices[r]! > 0) cost += prices[r]! * total[r]!;
      if (cost > least) least = cost;
    }
    return least;
  }
}

/** Only machines of which no other gives as much of everything for the money: the rest cannot make anything cheaper. */
function undominated(
  width: number,
  units: readonly number[],
  prices: readonly number[],
): { width: number; units: Float64Array; prices: Float64Array } {
  const rates = prices.map((price, m) =>
    Float64Array.from({ length: width }, (_, r) => Math.max(0, units[m * width + r]!) / Math.max(price, 1e-9)),
  );
  const order = prices.map((_, m) => m).sort((a, b) => sumOf(rates[b]!) - sumOf(rates[a]!) || a - b);
  const kept: number[] = [];
  for (const m of order) {
    const own = rates[m]!;
    if (!kept.some((other) => rates[other]!.every((rate, r) => rate >= own[r]!))) kept.push(m);
  }
  return {
    width,
    units: Float64Array.from(kept.flatMap((m) => units.slice(m * width, (m + 1) * width))),
    prices: Float64Array.from(kept, (m) => prices[m]!),
  };
}

function sumOf(values: Float64Array): number {
  return values.reduce((sum, value) => sum + value, 0);
}

/** The same prices, lowered until no machine holds more than it costs: a bound whatever the program behind them did. */
function feasible(
  { width, units, prices }: { width: number; units: Float64Array; prices: Float64Array },
  worth: Float64Array,
): Float64Array {
  let most = 1;
  for (let m = 0; m < prices.length; m++) {
    let holds = 0;
    for (let r = 0; r < width; r++) if (worth[r]! > 0) holds += worth[r]! * Math.max(0, units[m * width + r]!);
    if (holds > 0) most = Math.max(most, prices[m]! > 0 ? holds / prices[m]! : Number.POSITIVE_INFINITY);
  }
  return worth.map((value) => value / most);
}
