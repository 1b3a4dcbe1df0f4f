// SPDX-License-Identifier: Apache-2.0
// What becomes of machines when pods go where they like. Kube-scheduler knows nothing of plans: the machine that is ready
// first gets whatever is waiting, and one that was meant for pods with much memory is filled with others, whose own machine
// then stands half empty. So a plan counts with what it takes to place those that would be left over; and machines that are
// alike and suit the mix of all pods leave none.
import { addDemand, bestSizePrice, noDemand } from './best-size.ts';
import type { Catalog, View } from './catalog.ts';
import { hasRoom } from './existing-nodes.ts';

/** Pods of one shape. */
export interface Wanted {
  readonly request: Float64Array;
  readonly count: number;
}

/** A machine, and how many pods of each shape it holds. */
export interface Filled {
  readonly row: number;
  readonly counts: Int32Array;
}

/** How much dearer than the best a size may be at first sight to be tried, */
const promising = 1.15;
/** and how many are. */
const maxSizes = 16;
/** A plan of more machines than that is no plan. */
const maxMachines = 2000;

/** What machines cost in the end: they are filled in both directions, and those left over need machines of their own. */
export function lastingPrice(
  catalog: Catalog,
  view: View,
  rows: readonly number[],
  wanted: readonly Wanted[],
  price: number,
): number {
  if (rows.length < 2 || wanted.length < 2) return price;
  const more = [rows, rows.toReversed()].map((order) => {
    const left = Int32Array.from(wanted, ({ count }) => count);
    for (const row of order) fill(catalog, row, wanted, left);
    if (left.every((count) => count === 0)) return 0;
    const demand = noDemand(catalog.width);
    for (const [i, { request }] of wanted.entries()) if (left[i]! > 0) addDemand(demand, request, left[i]);
    return bestSizePrice(catalog, view, demand);
  });
  return price + (more[0]! + more[1]!) / 2;
}

/** Machines of one size for all pods, the last one only as large as it has to be; for each size that may be a good one. */
export function* alike(catalog: Catalog, view: View, wanted: readonly Wanted[]): Generator<Filled[]> {
  const demand = noDemand(catalog.width);
  for (const { request, count } of wanted) addDemand(demand, request, count);
  const { rows, prices } = catalog.byPrice(view);
  const sizes: { row: number; cost: number }[] = [];
  const seen = new Set<string>();
  for (const [i, row] of rows.entries()) {
    if (!catalog.fitsRow(row, demand.largest)) continue;
    // Many differ in name only.
    const size = `${prices[i]} ${catalog.free.subarray(row * catalog.width, (row + 1) * catalog.width).join()}`;
    if (seen.has(size)) continue;
    seen.add(size);
    let machines = 0;
    for (let r = 0; r < catalog.width; r++)
      if (demand.total[r]! > 0)
        machines = Math.max(machines, demand.total[r]! / catalog.free[row * catalog.width + r]!);
    sizes.push({ row, cost: machines * prices[i]! });
  }
  const best = Math.min(...sizes.map(({ cost }) => cost));
  sizes.sort((a, b) => a.cost - b.cost);
  for (const { row, cost } of sizes.slice(0, maxSizes)) {
    if (cost > best * promising) return;
    const filled = filledWith(catalog, view, row, wanted);
    if (filled) yield filled;
  }
}

function filledWith(catalog: Catalog, view: View, row: number, wanted: readonly Wanted[]): Filled[] | undefined {
  const left = Int32Array.from(wanted, ({ count }) => count);
  const filled: Filled[] = [];
  while (left.some((count) => count > 0)) {
    if (filled.length === maxMachines) return undefined;
    const counts = fill(catalog, row, wanted, left);
    filled.push({ row: cheapestFor(catalog, view, wanted, counts) ?? row, counts });
  }
  return filled;
}

/** The row of the cheapest machine for some pods. */
export function cheapestFor(
  catalog: Catalog,
  view: View,
  wanted: readonly Wanted[],
  counts: Int32Array,
): number | undefined {
  const total = totalOf(catalog, wanted, counts);
  return catalog.byPrice(view).rows.find((row) => catalog.fitsRow(row, total));
}

/** What some pods request together. */
export function totalOf({ width }: Catalog, wanted: readonly Wanted[], counts: Int32Array): Float64Array {
  const total = new Float64Array(width);
  for (const [i, { request }] of wanted.entries())
    for (let r = 0; r < width; r++) total[r]! += counts[i]! * request[r]!;
  return total;
}

/** Takes what a machine holds from those left, in the mix in which they are. */
function fill(catalog: Catalog, row: number, wanted: readonly Wanted[], left: Int32Array): Int32Array {
  const { width } = catalog;
  const room = catalog.free.slice(row * width, (row + 1) * width);
  const counts = new Int32Array(wanted.length);
  const take = (i: number, count: number): void => {
    const { request } = wanted[i]!;
    for (let r = 0; r < width; r++) room[r]! -= count * request[r]!;
    counts[i]! += count;
    left[i]! -= count;
  };
  // Most of it at once.
  const share = shareThatFits(room, wanted, left) - 1e-9;
  for (let i = 0; i < counts.length; i++) take(i, Math.max(0, Math.floor(left[i]! * share)));
  const open = new Set<number>();
  for (let i = 0; i < counts.length; i++) if (left[i]! > 0) open.add(i);
  while (open.size > 0) {
    // The one of which the largest part is still waiting.
    let next = -1;
    let most = 0;
    for (const i of open) {
      const part = left[i]! / wanted[i]!.count;
      if (part > most) [next, most] = [i, part];
    }
    if (next >= 0 && hasRoom(room, wanted[next]!.request)) take(next, 1);
    else open.delete(next);
    if (next < 0) break;
    if (left[next] === 0) open.delete(next);
  }
  return counts;
}

/** Which part of those left fits into a room, all of them if one. */
function shareThatFits(room: Float64Array, wanted: readonly Wanted[], left: Int32Array): number {
  let share = 1;
  for (let r = 0; r < room.length; r++) {
    let sum = 0;
    for (let i = 0; i < left.length; i++) sum += left[i]! * wanted[i]!.request[r]!;
    if (sum > 0) share = Math.min(share, room[r]! / sum);
  }
  return share;
}
