// SPDX-License-Identifier: Apache-2.0
// What a unit of each resource is worth on a market of machines: the dual of the linear program that covers a demand with
// fractions of machines at the least cost. A machine is a good buy when its price is near the worth of what it holds.

export interface Machines {
  /** Number of resources. */
  readonly width: number;
  /** Units of each machine, row by row. */
  readonly units: Float64Array;
  readonly prices: Float64Array;
}

const maxPivots = 400;
const tolerance = 1e-9;
/** The price of a resource that no machine has: large enough to be left out of every optimum. */
const unaffordable = 1e6;

/** The worth of one unit of each resource, for this demand; never negative. */
export function resourcePrices({ width, units, prices }: Machines, demand: Float64Array): Float64Array {
  const machines = prices.length;
  // Everything in parts of the largest machine and the highest price, so that no number dwarfs another.
  const scale = new Float64Array(width).fill(1);
  for (let m = 0; m < machines; m++)
    for (let r = 0; r < width; r++) scale[r] = Math.max(scale[r]!, units[m * width + r]!);
  const dearest = prices.reduce((a, b) => Math.max(a, b), 0) || 1;
  // Columns below `machines` are machines, then surplus, then artificial ones; the basis has one per resource.
  const basis = Array.from({ length: width }, (_, r) => machines + width + r);
  const inverse: number[][] = basis.map((_, r) => basis.map((__, c) => (r === c ? 1 : 0)));
  const amount = Float64Array.from(demand, (wanted, r) => wanted / scale[r]!);
  const cost = (column: number): number =>
    column < machines ? prices[column]! / dearest : column < machines + width ? 0 : unaffordable;
  const entry = (column: number, r: number): number => {
    if (column < machines) return units[column * width + r]! / scale[r]!;
    if (column < machines + width) return column - machines === r ? -1 : 0;
    return column - machines - width === r ? 1 : 0;
  };
  let worth: number[] = basis.map(() => 0);
  for (let pivot = 0; pivot < maxPivots; pivot++) {
    worth = basis.map((_, c) => basis.reduce((sum, column, r) => sum + cost(column) * inverse[r]![c]!, 0));
    const entering = mostNegative(machines + width, worth, cost, entry);
    if (entering < 0) break;
    const step = inverse.map((row) => row.reduce((sum, value, c) => sum + value * entry(entering, c), 0));
    let leaving = -1;
    for (let r = 0; r < width; r++) {
      if (step[r]! <= tolerance) continue;
      if (leaving < 0 || amount[r]! / step[r]! < amount[leaving]! / step[leaving]!) leaving = r;
    }
    if (leaving < 0) break;
    pivotOn(inverse, amount, step, leaving);
    basis[leaving] = entering;
  }
  return Float64Array.from(worth, (value, r) => {
    const known = value > 0 && value < unaffordable / 10 ? value : 0;
    return (known * dearest) / scale[r]!;
  });
}

function mostNegative(
  columns: number,
  worth: readonly number[],
  cost: (column: number) => number,
  entry: (column: number, r: number) => number,
): number {
  let best = -1;
  let least = -tolerance;
  for (let column = 0; column < columns; column++) {
    let reduced = cost(column);
    for (let r = 0; r < worth.length; r++) reduced -= worth[r]! * entry(column, r);
    if (reduced < least) [best, least] = [column, reduced];
  }
  return best;
}

/** One pivot of the inverse of the basis and of the amounts. */
function pivotOn(inverse: number[][], amount: Float64Array, step: readonly number[], leaving: number): void {
  const row = inverse[leaving]!;
  for (let c = 0; c < row.length; c++) row[c]! /= step[leaving]!;
  amount[leaving]! /= step[leaving]!;
  for (let r = 0; r < row.length; r++) {
    if (r === leaving || step[r] === 0) continue;
    for (let c = 0; c < row.length; c++) inverse[r]![c]! -= step[r]! * row[c]!;
    amount[r] = Math.max(0, amount[r]! - step[r]! * amount[leaving]!);
  }
}
