// SPDX-License-Identifier: Apache-2.0
// Which machines to buy for many pods of few shapes, and what to put on each: the linear program over ways to fill a machine
// (patterns), solved by column generation, then rounded. Rules between pods are not looked at: it is a plan, not a promise.
import type { Machines } from './resource-prices.ts';

/** Pods of one shape. */
export interface Wanted {
  readonly request: Float64Array;
  readonly count: number;
}

/** One way to fill a machine. */
export interface Pattern {
  readonly machine: number;
  /** By shape. */
  readonly counts: Int32Array;
}

/** A pattern, and on how many machines. */
export interface Purchase extends Pattern {
  times: number;
}

/** More shapes than this are not planned for: the program would take longer than it saves. */
export const maxShapes = 64;
const maxRounds = 16;
const maxColumns = 300;
const tolerance = 1e-7;
/** What part of its price a new pattern must save to be looked into. */
const worthwhile = 3e-3;
const maxNear = 8;
/** The part of its price that a first way to fill a machine must be worth for a second one to be tried. */
const nearly = 0.9;

/** What to buy for these pods, largest part first; pods that no machine holds, or that rounding leaves over, are left out. */
export function planPurchases(machines: Machines, wanted: readonly Wanted[]): Purchase[] {
  const purchases: Purchase[] = [];
  const usable = undominated(machines);
  const left = Int32Array.from(wanted, ({ count }) => count);
  for (let round = 0; round < maxRounds && left.some((count) => count > 0); round++) {
    const { patterns, amounts } = new Program(machines, usable, wanted, left).solve();
    let bought = false;
    let largest = -1;
    for (let i = 0; i < patterns.length; i++) {
      if (largest < 0 || amounts[i]! > amounts[largest]!) largest = i;
      const times = Math.floor(amounts[i]! + tolerance);
      bought = buy(purchases, patterns[i]!, times, left) || bought;
    }
    if (!bought && (largest < 0 || !buy(purchases, patterns[largest]!, 1, left))) break;
  }
  return purchases;
}

function buy(purchases: Purchase[], pattern: Pattern, times: number, left: Int32Array): boolean {
  let possible = times;
  for (let s = 0; s < left.length; s++) {
    const each = pattern.counts[s]!;
    if (each > 0) possible = Math.min(possible, Math.floor(left[s]! / each));
  }
  if (possible <= 0) return false;
  for (let s = 0; s < left.length; s++) left[s]! -= possible * pattern.counts[s]!;
  purchases.push({ ...pattern, times: possible });
  return true;
}

/** Machines that no cheaper one exceeds in every resource. */
function undominated({ width, units, prices }: Machines): number[] {
  const order = Array.from(prices.keys()).sort((a, b) => prices[a]! - prices[b]! || a - b);
  const kept: number[] = [];
  const covers = (a: number, b: number): boolean => {
    for (let r = 0; r < width; r++) if (units[a * width + r]! < units[b * width + r]!) return false;
    return true;
  };
  for (const machine of order) if (!kept.some((other) => covers(other, machine))) kept.push(machine);
  return kept;
}

/** The linear program: cover the pods of each shape with patterns at the least cost. */
class Program {
  readonly #machines: Machines;
  readonly #usable: readonly number[];
  readonly #requests: readonly Float64Array[];
  readonly #counts: Int32Array;
  /** The shapes that are left, by row of the program. */
  readonly #rows: number[] = [];
  readonly #room: Float64Array;
  readonly #filled: Int32Array;
  /** By shape and resource: the requests. */
  readonly #flat: Float64Array;
  #near: number[] = [];

  constructor(machines: Machines, usable: readonly number[], wanted: readonly Wanted[], counts: Int32Array) {
    this.#machines = machines;
    this.#usable = usable;
    this.#requests = wanted.map(({ request }) => request);
    this.#counts = counts;
    this.#room = new Float64Array(machines.width);
    this.#filled = new Int32Array(counts.length);
    this.#flat = new Float64Array(wanted.length * machines.width);
    for (const [i, { request }] of wanted.entries()) this.#flat.set(request, i * machines.width);
  }

  solve(): { patterns: Pattern[]; amounts: Float64Array } {
    const basis: Pattern[] = [];
    for (let s = 0; s < this.#counts.length; s++) {
      const pattern = this.#counts[s]! > 0 ? this.#alone(s) : undefined;
      if (!pattern) continue;
      this.#rows.push(s);
      basis.push(pattern);
    }
    const rows = this.#rows;
    const size = rows.length;
    const inverse = basis.map((pattern, i) =>
      Float64Array.from(rows, (_, j) => (i === j ? 1 / pattern.counts[rows[i]!]! : 0)),
    );
    const amounts = Float64Array.from(basis, (pattern, i) => this.#counts[rows[i]!]! / pattern.counts[rows[i]!]!);
    const worth = new Float64Array(this.#counts.length);
    const step = new Float64Array(size);
    for (let column = 0; column < maxColumns; column++) {
      for (let j = 0; j < size; j++) {
        let sum = 0;
        for (let i = 0; i < size; i++) sum += this.#machines.prices[basis[i]!.machine]! * inverse[i]![j]!;
        worth[rows[j]!] = Math.max(0, sum);
      }
      const entering = this.#bestPattern(worth);
      if (!entering) break;
      let leaving = -1;
      for (let i = 0; i < size; i++) {
        let sum = 0;
        for (let j = 0; j < size; j++) sum += inverse[i]![j]! * entering.counts[rows[j]!]!;
        step[i] = sum;
        if (sum <= tolerance) continue;
        if (leaving < 0 || amounts[i]! / sum < amounts[leaving]! / step[leaving]!) leaving = i;
      }
      if (leaving < 0) break;
      pivot(inverse, amounts, step, leaving);
      basis[leaving] = entering;
    }
    return { patterns: basis, amounts };
  }

  /** The cheapest way to place pods of one shape alone. */
  #alone(shape: number): Pattern | undefined {
    const { prices } = this.#machines;
    let best = -1;
    let most = 0;
    for (const machine of this.#usable) {
      this.#empty(machine);
      const count = Math.min(this.#fitting(shape), this.#counts[shape]!);
      if (count > 0 && (best < 0 || prices[machine]! / count < prices[best]! / most)) [best, most] = [machine, count];
    }
    if (best < 0) return undefined;
    const counts = new Int32Array(this.#counts.length);
    counts[shape] = most;
    return { machine: best, counts };
  }

  /** A pattern that saves much for its price; undefined when none saves anything. */
  #bestPattern(worth: Float64Array): Pattern | undefined {
    // Machines that were good a moment ago mostly still are: all are looked at only when those have nothing to offer.
    const near = this.#bestOf(this.#near, worth);
    if (near) return near;
    const rates = new Map<number, number>();
    const best = this.#bestOf(this.#usable, worth, rates);
    this.#near = [...rates.keys()].sort((a, b) => rates.get(b)! - rates.get(a)! || a - b).slice(0, maxNear);
    return best;
  }

  #bestOf(machines: readonly number[], worth: Float64Array, rates?: Map<number, number>): Pattern | undefined {
    let best: Pattern | undefined;
    let bestRate = 1 + worthwhile;
    for (const machine of machines) {
      const price = this.#machines.prices[machine]!;
      // A close look is for machines that are nearly worth it.
      for (let look = 0, rate = 1; look < 2 && rate > nearly; look++) {
        this.#filled.fill(0);
        rate = this.#fill(machine, worth, this.#filled, look === 0) / price;
        rates?.set(machine, Math.max(rate, rates.get(machine) ?? 0));
        if (rate > bestRate) [best, bestRate] = [{ machine, counts: this.#filled.slice() }, rate];
      }
    }
    return best;
  }

  /**
   * Fills a machine with what is worth most for the room it takes, one after the other; returns the worth. The room counts
   * in all resources together or, when `tight`, in the scarcest.
   */
  #fill(machine: number, worth: Float64Array, counts: Int32Array, tight: boolean): number {
    this.#empty(machine);
    let held = 0;
    for (;;) {
      const best = this.#densest(worth, counts, tight);
      if (best < 0) return held;
      // Many at once while there is much room, one at a time near the end.
      const times = Math.min(this.#counts[best]! - counts[best]!, Math.max(1, this.#fitting(best) >> 2));
      counts[best]! += times;
      held += times * worth[best]!;
      const request = this.#requests[best]!;
      for (let r = 0; r < request.length; r++) this.#room[r]! -= times * request[r]!;
    }
  }

  #densest(worth: Float64Array, counts: Int32Array, tight: boolean): number {
    const room = this.#room;
    const flat = this.#flat;
    const rows = this.#rows;
    const width = room.length;
    let best = -1;
    let most = 0;
    for (let i = 0; i < rows.length; i++) {
      const shape = rows[i]!;
      if (counts[shape]! >= this.#counts[shape]! || worth[shape]! <= 0) continue;
      let share = 1e-12;
      for (let r = 0; r < width; r++) {
        const need = flat[shape * width + r]!;
        if (need === 0) continue;
        if (need > room[r]!) {
          share = Number.POSITIVE_INFINITY;
          break;
        }
        const part = need / room[r]!;
        if (!tight) share += part;
        else if (part > share) share = part;
      }
      const density = worth[shape]! / share;
      if (density > most) {
        best = shape;
        most = density;
      }
    }
    return best;
  }

  #empty(machine: number): void {
    const { width, units } = this.#machines;
    for (let r = 0; r < width; r++) this.#room[r] = units[machine * width + r]!;
  }

  #fitting(shape: number): number {
    const request = this.#requests[shape]!;
    let count = Number.POSITIVE_INFINITY;
    for (let r = 0; r < request.length; r++)
      if (request[r]! > 0) count = Math.min(count, Math.floor(this.#room[r]! / request[r]!));
    return count;
  }
}

/** One pivot of the inverse of the basis and of the amounts. */
function pivot(inverse: readonly Float64Array[], amounts: Float64Array, step: Float64Array, leaving: number): void {
  const row = inverse[leaving]!;
  for (let c = 0; c < row.length; c++) row[c]! /= step[leaving]!;
  amounts[leaving]! /= step[leaving]!;
  for (let r = 0; r < row.length; r++) {
    if (r === leaving || step[r] === 0) continue;
    const other = inverse[r]!;
    for (let c = 0; c < row.length; c++) other[c]! -= step[r]! * row[c]!;
    amounts[r] = Math.max(0, amounts[r]! - step[r]! * amounts[leaving]!);
  }
}
