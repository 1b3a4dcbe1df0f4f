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
/** So many columns must save this part of the cost, or the program is as good as solved. */
const patience = 24;
const progress = 5e-4;
const tolerance = 1e-7;
/** What part of its price a new pattern must save to be looked into. */
const worthwhile = 5e-3;
const maxNear = 8;
/** The machine of a pattern that is no machine. */
const nothing = -1;
/** The part of its price that a first way to fill a machine must be worth for a second one to be tried. */
const nearly = 0.9;

/** What to buy for these pods, largest part first; pods that no machine holds, or that rounding leaves over, are left out. */
export function planPurchases(machines: Machines, wanted: readonly Wanted[]): Purchase[] {
  const purchases: Purchase[] = [];
  const usable = undominated(machines, wanted);
  const left = Int32Array.from(wanted, ({ count }) => count);
  const known = new Patterns();
  for (let round = 0; round < maxRounds && left.some((count) => count > 0); round++) {
    const { patterns, amounts } = new Program(machines, usable, wanted, left, known).solve();
    // What the first program leaves over is little: there the nearest whole number does.
    const rounding = round === 0 ? tolerance : 0.5;
    let bought = false;
    let largest = -1;
    for (let i = 0; i < patterns.length; i++) {
      if (patterns[i]!.machine === nothing) continue;
      if (largest < 0 || amounts[i]! > amounts[largest]!) largest = i;
      const times = Math.floor(amounts[i]! + rounding);
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

/** Machines that no cheaper one exceeds in every resource, as far as anything is wanted of it. */
function undominated({ width, units, prices }: Machines, wanted: readonly Wanted[]): number[] {
  const most = new Float64Array(width);
  for (const { request, count } of wanted) for (let r = 0; r < width; r++) most[r]! += request[r]! * count;
  const order = Array.from(prices.keys()).sort((a, b) => prices[a]! - prices[b]! || a - b);
  const kept: number[] = [];
  const covers = (a: number, b: number): boolean => {
    for (let r = 0; r < width; r++) {
      const has = units[a * width + r]!;
      if (has < units[b * width + r]! && has < most[r]!) return false;
    }
    return true;
  };
  // The largest of those kept covers most of the others: it is asked first.
  for (const machine of order) {
    let covered = false;
    for (let i = kept.length - 1; i >= 0 && !covered; i--) covered = covers(kept[i]!, machine);
    if (!covered) kept.push(machine);
  }
  return kept;
}

/** Patterns that were found, with what they hold side by side: all are asked again and again. */
class Patterns {
  readonly patterns: Pattern[] = [];
  /** By pattern: where what it holds begins in `shapes` and `counts`. */
  readonly starts: number[] = [0];
  readonly shapes: number[] = [];
  readonly counts: number[] = [];

  add(pattern: Pattern): void {
    this.patterns.push(pattern);
    for (let shape = 0; shape < pattern.counts.length; shape++) {
      if (pattern.counts[shape] === 0) continue;
      this.shapes.push(shape);
      this.counts.push(pattern.counts[shape]!);
    }
    this.starts.push(this.shapes.length);
  }
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
  /** Patterns that were found so far, also by the programs before this one. */
  readonly #known: Patterns;
  #near: number[] = [];
  /** Shapes that a machine which is being filled may still have room for. */
  readonly #open: Int32Array;
  #best = -1;

  constructor(
    machines: Machines,
    usable: readonly number[],
    wanted: readonly Wanted[],
    counts: Int32Array,
    known: Patterns,
  ) {
    this.#machines = machines;
    this.#known = known;
    this.#usable = usable;
    this.#requests = wanted.map(({ request }) => request);
    this.#counts = counts;
    this.#room = new Float64Array(machines.width);
    this.#filled = new Int32Array(counts.length);
    this.#open = new Int32Array(counts.length);
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
    // The inverse of the basis, row by row.
    const inverse = new Float64Array(size * size);
    const amounts = new Float64Array(size);
    const worth = new Float64Array(this.#counts.length);
    for (let i = 0; i < size; i++) {
      const each = basis[i]!.counts[rows[i]!]!;
      inverse[i * size + i] = 1 / each;
      amounts[i] = this.#counts[rows[i]!]! / each;
      worth[rows[i]!] = this.#priceOf(basis[i]!) / each;
    }
    const step = new Float64Array(size);
    let before = Number.POSITIVE_INFINITY;
    for (let column = 0; column < maxColumns; column++) {
      if (column % patience === 0) {
        let cost = 0;
        for (let i = 0; i < size; i++) cost += this.#priceOf(basis[i]!) * amounts[i]!;
        // Many ways that cost the same: what is still to be saved is less than rounding loses.
        if (cost > before * (1 - progress)) break;
        before = cost;
      }
      const entering = this.#surplus(worth) ?? this.#bestPattern(worth);
      if (!entering) break;
      step.fill(0);
      let saved = -this.#priceOf(entering);
      for (let j = 0; j < size; j++) {
        const count = entering.counts[rows[j]!]!;
        if (count === 0) continue;
        saved += count * worth[rows[j]!]!;
        for (let i = 0, at = j; i < size; i++, at += size) step[i]! += inverse[at]! * count;
      }
      let leaving = -1;
      for (let i = 0; i < size; i++) {
        if (step[i]! <= tolerance) continue;
        if (leaving < 0 || amounts[i]! / step[i]! < amounts[leaving]! / step[leaving]!) leaving = i;
      }
      if (leaving < 0) break;
      pivot(inverse, amounts, step, leaving);
      basis[leaving] = entering;
      for (let j = 0, at = leaving * size; j < size; j++, at++) worth[rows[j]!]! -= saved * inverse[at]!;
    }
    return { patterns: basis, amounts };
  }

  #priceOf({ machine }: Pattern): number {
    return machine === nothing ? 0 : this.#machines.prices[machine]!;
  }

  /** Room for more of a shape than there are pods, when that much seems to be worth less than nothing. */
  #surplus(worth: Float64Array): Pattern | undefined {
    let least = -tolerance;
    let shape = -1;
    for (const row of this.#rows) if (worth[row]! < least) [shape, least] = [row, worth[row]!];
    if (shape < 0) return undefined;
    const counts = new Int32Array(worth.length);
    counts[shape] = -1;
    return { machine: nothing, counts };
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
    const known = this.#bestKnown(worth);
    if (known) return known;
    // Machines that were good a moment ago mostly still are: all are looked at only when those have nothing to offer.
    let best = this.#bestOf(this.#near, worth);
    if (!best && this.#near.length < this.#usable.length) {
      const rates = new Map<number, number>();
      best = this.#bestOf(this.#usable, worth, rates);
      this.#near = [...rates.keys()].sort((a, b) => rates.get(b)! - rates.get(a)! || a - b).slice(0, maxNear);
    }
    return best;
  }

  /** The best of the patterns that were found before and that there are still pods enough for. */
  #bestKnown(worth: Float64Array): Pattern | undefined {
    const { patterns, starts, shapes, counts } = this.#known;
    const { prices } = this.#machines;
    const wanted = this.#counts;
    let best = -1;
    let bestRate = 1 + worthwhile;
    for (let i = 0; i < patterns.length; i++) {
      let held = 0;
      const end = starts[i + 1]!;
      for (let at = starts[i]!; at < end; at++) {
        const shape = shapes[at]!;
        const count = counts[at]!;
        if (count > wanted[shape]!) {
          held = 0;
          break;
        }
        held += count * worth[shape]!;
      }
      const rate = held / prices[patterns[i]!.machine]!;
      if (rate > bestRate) {
        best = i;
        bestRate = rate;
      }
    }
    return patterns[best];
  }

  #bestOf(machines: readonly number[], worth: Float64Array, rates?: Map<number, number>): Pattern | undefined {
    let best: Pattern | undefined;
    let bestRate = 1 + worthwhile;
    const hopes = rates ? this.#hopes(worth) : undefined;
    const { width, units, prices } = this.#machines;
    for (const machine of machines) {
      const price = prices[machine]!;
      // What two resources alone do not allow, nothing does.
      if (hopes && !hopes.every((hope) => hope.of(units, machine * width) > bestRate * price)) continue;
      // A close look is for machines that are nearly worth it.
      for (let look = 0, rate = 1; look < 2 && rate > nearly; look++) {
        this.#filled.fill(0);
        rate = this.#fill(machine, worth, this.#filled, look === 0) / price;
        rates?.set(machine, Math.max(rate, rates.get(machine) ?? 0));
        if (rate <= 1 + worthwhile) continue;
        // All that save something are kept: what is second now is often best next.
        const pattern = { machine, counts: this.#filled.slice() };
        this.#known.add(pattern);
        if (rate > bestRate) [best, bestRate] = [pattern, rate];
      }
    }
    return best;
  }

  /** What machines could hold at most, by every two resources that some shape needs. */
  #hopes(worth: Float64Array): Hope[] {
    const { width } = this.#machines;
    const hopes: Hope[] = [];
    for (let a = 0; a < width; a++)
      for (let b = a + 1; b < width; b++) hopes.push(new Hope(a, b, this.#rows, this.#flat, width, worth));
    return hopes;
  }

  /**
   * Fills a machine with what is worth most for the room it takes, one after the other; returns the worth. The room counts
   * in all resources together or, when `tight`, in the scarcest.
   */
  #fill(machine: number, worth: Float64Array, counts: Int32Array, tight: boolean): number {
    this.#empty(machine);
    const most = this.#counts;
    const open = this.#open;
    let size = 0;
    for (const shape of this.#rows) if (worth[shape]! > 0 && counts[shape]! < most[shape]!) open[size++] = shape;
    let held = 0;
    for (;;) {
      size = this.#densest(worth, size, tight);
      const best = this.#best;
      if (best < 0) return held;
      // Many at once while there is much room, one at a time near the end.
      const times = Math.min(most[best]! - counts[best]!, Math.max(1, this.#fitting(best) >> 2));
      counts[best]! += times;
      held += times * worth[best]!;
      const request = this.#requests[best]!;
      for (let r = 0; r < request.length; r++) this.#room[r]! -= times * request[r]!;
      if (counts[best]! >= most[best]!) size = without(open, size, best);
    }
  }

  /** Finds the best of the first `size` shapes that are open; those for which there is no room are not open any more. Gives how many still are. */
  #densest(worth: Float64Array, size: number, tight: boolean): number {
    const room = this.#room;
    const flat = this.#flat;
    const open = this.#open;
    const width = room.length;
    let best = -1;
    let most = 0;
    let kept = 0;
    next: for (let i = 0; i < size; i++) {
      const shape = open[i]!;
      let share = 1e-12;
      for (let r = 0, at = shape * width; r < width; r++, at++) {
        const need = flat[at]!;
        if (need === 0) continue;
        if (need > room[r]!) continue next;
        const part = need / room[r]!;
        if (!tight) share += part;
        else if (part > share) share = part;
      }
      open[kept++] = shape;
      const density = worth[shape]! / share;
      if (density > most) {
        best = shape;
        most = density;
      }
    }
    this.#best = best;
    return kept;
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

/** Leaves one of the first `size` numbers out and keeps the others in order. */
function without(list: Int32Array, size: number, one: number): number {
  const at = list.indexOf(one);
  list.copyWithin(at, at + 1, size);
  return size - 1;
}

/**
 * The most that pods on a machine can be worth if only two resources count and pods can be cut: an upper bound. Each shape is a
 * point, what a unit of worth needs of both; the hull of the points towards the origin is all that matters.
 */
class Hope {
  readonly #a: number;
  readonly #b: number;
  /** Needs per unit of worth along the hull: `x` grows, `y` falls. */
  readonly #x: number[] = [];
  readonly #y: number[] = [];

  constructor(
    a: number,
    b: number,
    shapes: readonly number[],
    requests: Float64Array,
    width: number,
    worth: Float64Array,
  ) {
    this.#a = a;
    this.#b = b;
    const points: [number, number][] = [];
    for (const shape of shapes)
      if (worth[shape]! > 0)
        points.push([requests[shape * width + a]! / worth[shape]!, requests[shape * width + b]! / worth[shape]!]);
    points.sort((p, q) => p[0] - q[0] || p[1] - q[1]);
    for (const [x, y] of points) {
      if (this.#y.length > 0 && y >= this.#y.at(-1)!) continue;
      while (this.#x.length > 1 && this.#isAbove(x, y)) {
        this.#x.pop();
        this.#y.pop();
      }
      this.#x.push(x);
      this.#y.push(y);
    }
  }

  /** Whether the last corner lies on or above the line from the one before it to a new one. */
  #isAbove(x: number, y: number): boolean {
    const [x1, y1] = [this.#x.at(-2)!, this.#y.at(-2)!];
    const [x2, y2] = [this.#x.at(-1)!, this.#y.at(-1)!];
    return (y2 - y1) * (x - x1) >= (y - y1) * (x2 - x1);
  }

  of(units: Float64Array, at: number): number {
    const [hasA, hasB] = [units[at + this.#a]!, units[at + this.#b]!];
    const [xs, ys] = [this.#x, this.#y];
    const last = xs.length - 1;
    if (last < 0) return 0;
    // Up to the first corner only the second resource is scarce, from the last one on only the first is.
    let most = Math.min(limit(hasB, ys[last]!), limit(hasA, xs[0]!));
    for (let i = 0; i < last; i++) {
      // On the edge: p·x + q·y = 1, so no unit of worth costs less than p of the one and q of the other.
      const det = xs[i]! * ys[i + 1]! - xs[i + 1]! * ys[i]!;
      const p = (ys[i + 1]! - ys[i]!) / det;
      const q = (xs[i]! - xs[i + 1]!) / det;
      if (p >= 0 && q >= 0) most = Math.min(most, p * hasA + q * hasB);
    }
    return most;
  }
}

function limit(has: number, need: number): number {
  return need > 0 ? has / need : Number.POSITIVE_INFINITY;
}

/** One pivot of the inverse of the basis and of the amounts. */
function pivot(inverse: Float64Array, amounts: Float64Array, step: Float64Array, leaving: number): void {
  const size = amounts.length;
  const start = leaving * size;
  const by = step[leaving]!;
  for (let c = 0; c < size; c++) inverse[start + c]! /= by;
  amounts[leaving]! /= by;
  for (let r = 0; r < size; r++) {
    const factor = step[r]!;
    if (r === leaving || factor === 0) continue;
    for (let c = 0, at = r * size; c < size; c++, at++) inverse[at]! -= factor * inverse[start + c]!;
    amounts[r] = Math.max(0, amounts[r]! - factor * amounts[leaving]!);
  }
}
