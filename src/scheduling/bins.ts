// SPDX-License-Identifier: Apache-2.0
// Nodes of one pool exchange their pods in thought. A few of them, rather those that waste much, are taken apart and their pods packed
// anew in another order, over and over: what costs less stays, and what costs a little more sometimes does, for a way out of where
// nothing small helps. Only for pods that no rule ties to others, so that nothing has to be counted.
import { SeededRandom } from '../base/random.ts';
import type { PricedRows, View } from './catalog.ts';
import type { PodClass } from './pod-class.ts';
import { combinedOn } from './reach.ts';
import { incompatible, type SetId } from './requirement-space.ts';
import type { Template } from './templates.ts';
import type { World } from './world.ts';

/** How many nodes are taken apart at a time. */
const [fewest, most] = [2, 4];
/** How far the order of pods is from that of their worth. */
const disorder = 0.3;
/** How many sizes of machine are tried for the next one. */
const sizesTried = 6;
/** What may be lost at first in one exchange, as a part of the whole price. */
const usualLeeway = 0.0002;
/** What a node more counts, as a part of what one costs on average. */
const nodeCharge = 0.002;

/** Pods that can replace each other. */
interface Kind {
  readonly request: Float64Array;
  /** What it asks of a node's labels. */
  readonly wish: SetId;
  /** A fresh node with such a pod. */
  readonly base: SetId;
  /** What it costs on machines that are full of its like. */
  readonly worth: number;
}

/** A node in thought. */
export interface Bin {
  readonly total: Float64Array;
  readonly pods: number[];
  set: SetId;
  price: number;
  worth: number;
  /** The nodes that its pods came from, and all that have exchanged pods with those. */
  from: readonly number[];
}

export interface ExchangeOptions {
  readonly exchanges: number;
  /** What may be lost at first in one exchange, as a part of the whole price; something unless told. */
  readonly leeway?: number;
  /** How many nodes may have to do with each other. */
  readonly mostTogether?: number;
}

/** What is sold to a requirement set: of machines that are no better in anything, the cheapest. */
interface Shelf {
  readonly view: View;
  readonly rows: Int32Array;
  readonly prices: Float64Array;
  /** By row of the catalog; infinite for what is not sold. */
  readonly priceOfRow: Float64Array;
}

/** What nodes of one pool may become, and what pods of it are worth. */
export class Market {
  readonly template: Template;
  readonly mask: number;
  readonly width: number;
  readonly #world: World;
  readonly #shelves = new Map<SetId, Shelf>();
  readonly #byView = new Map<View, Shelf>();
  readonly #kinds = new Map<number, Map<SetId, Kind>>();
  readonly #kindOf = new Map<number, Kind>();

  constructor(world: World, template: Template, mask: number) {
    this.#world = world;
    this.template = template;
    this.mask = mask;
    this.width = template.catalog.width;
  }

  kindOf(pod: number): Kind {
    let kind = this.#kindOf.get(pod);
    if (kind) return kind;
    const { batch, classOf, requests } = this.#world;
    const shape = batch.shapeOf[pod]!;
    const wish = classOf[pod]!.side.wishes[this.template.dialect.index]!.all;
    let byWish = this.#kinds.get(shape);
    if (!byWish) this.#kinds.set(shape, (byWish = new Map()));
    kind = byWish.get(wish);
    if (!kind) {
      const base = this.join(this.template.requirements, wish);
      const request = requests[shape]!;
      kind = { request, wish, base, worth: this.#worthAlone(base, request) };
      byWish.set(wish, kind);
    }
    this.#kindOf.set(pod, kind);
    return kind;
  }

  /** What pods are worth. */
  worthOf(pods: readonly number[]): number {
    let sum = 0;
    for (let i = 0; i < pods.length; i++) sum += this.kindOf(pods[i]!).worth;
    return sum;
  }

  /** What a node is with a pod that asks for `wish` on it. */
  join(set: SetId, wish: SetId): SetId {
    return combinedOn(this.#world.space, this.template, set, wish);
  }

  shelf(set: SetId): Shelf {
    let shelf = this.#shelves.get(set);
    if (!shelf) {
      const { catalog } = this.template;
      const view = catalog.view(set, this.mask);
      shelf = this.#byView.get(view) ?? this.#stock(view, catalog.byPrice(view));
      this.#shelves.set(set, shelf);
      this.#byView.set(view, shelf);
    }
    return shelf;
  }

  #stock(view: View, { rows, prices }: PricedRows): Shelf {
    const { free } = this.template.catalog;
    const { width } = this;
    const priceOfRow = new Float64Array(view.has.length).fill(Number.POSITIVE_INFINITY);
    const kept: number[] = [];
    // Cheapest first: whatever is left out costs as much as something that has no less of anything.
    for (let i = 0; i < rows.length; i++) {
      const at = rows[i]! * width;
      priceOfRow[rows[i]!] = prices[i]!;
      const isDominated = kept.some((other) => {
        const base = rows[other]! * width;
        for (let r = 0; r < width; r++) if (free[base + r]! < free[at + r]!) return false;
        return true;
      });
      if (!isDominated && Number.isFinite(prices[i])) kept.push(i);
    }
    return {
      view,
      rows: Int32Array.from(kept, (i) => rows[i]!),
      prices: Float64Array.from(kept, (i) => prices[i]!),
      priceOfRow,
    };
  }

  /** The least that a node costs which holds so much and `more`. */
  priceOf(set: SetId, total: Float64Array, more: Float64Array): number {
    const { rows, prices } = this.shelf(set);
    const { free } = this.template.catalog;
    const { width } = this;
    next: for (let i = 0; i < rows.length; i++) {
      const at = rows[i]! * width;
      for (let r = 0; r < width; r++) if (free[at + r]! < total[r]! + more[r]!) continue next;
      return prices[i]!;
    }
    return Number.POSITIVE_INFINITY;
  }

  #worthAlone(base: SetId, request: Float64Array): number {
    const { rows, prices } = this.shelf(base);
    const { free } = this.template.catalog;
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < rows.length; i++) {
      let part = 0;
      for (let r = 0, at = rows[i]! * this.width; r < this.width; r++, at++)
        if (request[r]! > 0) part = Math.max(part, request[r]! / free[at]!);
      if (part <= 1) least = Math.min(least, part * prices[i]!);
    }
    return least;
  }
}

export class Exchange {
  readonly #market: Market;
  readonly #random = new SeededRandom(1);
  readonly #nothing: Float64Array;
  readonly #charge: number;
  #bins: Bin[];

  /** `nodes`: what is on each, and what it costs; the cheapest for it unless told. */
  constructor(market: Market, nodes: readonly { readonly pods: readonly number[]; readonly price?: number }[]) {
    this.#market = market;
    this.#nothing = new Float64Array(market.width);
    this.#bins = nodes.map(({ pods, price }, i) => {
      const bin = this.#filled(pods, [i]);
      if (price !== undefined) bin.price = price;
      return bin;
    });
    this.#charge = (nodeCharge * this.price) / nodes.length;
  }

  /** What all nodes cost. */
  get price(): number {
    return this.#bins.reduce((sum, { price }) => sum + price, 0);
  }

  /** The best of what so many exchanges led to; undefined when that is no better than it was. */
  run({
    exchanges,
    leeway = usualLeeway,
    mostTogether = Number.POSITIVE_INFINITY,
  }: ExchangeOptions): readonly Bin[] | undefined {
    let now = this.#costOf(this.#bins);
    let best = now;
    let found: readonly Bin[] | undefined;
    for (let i = 0; i < exchanges && this.#bins.length > 1; i++) {
      const chosen = this.#choose();
      const old = [...chosen].map((at) => this.#bins[at]!);
      const from = [...new Set(old.flatMap((bin) => bin.from))];
      if (from.length > mostTogether) continue;
      const others = this.#random.int(2) === 0 ? this.#joinedCheaply(old) : this.#filledInTurn(old);
      const more = this.#costOf(others) - this.#costOf(old);
      const allowed = leeway * now * (1 - i / exchanges) * this.#random.next();
      if (!(more <= allowed) || (leeway === 0 && more >= 0)) continue;
      for (const bin of others) bin.from = from;
      if (mostTogether < Number.POSITIVE_INFINITY) this.#tie(from, chosen);
      this.#bins = [...this.#bins.filter((_, at) => !chosen.has(at)), ...others];
      now += more;
      // Where nothing may be lost the last is always the best.
      if (leeway === 0 || now < best * (1 - 1e-9)) [best, found] = [now, this.#bins];
    }
    return found;
  }

  /** Nodes that stay have to do with the same others as those that had to do with them. */
  #tie(from: readonly number[], chosen: ReadonlySet<number>): void {
    const tied = new Set(from);
    for (const [at, bin] of this.#bins.entries())
      if (!chosen.has(at) && bin.from.some((one) => tied.has(one))) bin.from = from;
  }

  #costOf(bins: readonly Bin[]): number {
    let sum = 0;
    for (const { price } of bins) sum += price + this.#charge;
    return sum;
  }

  /** Some nodes, each the most wasteful of three. Of what cannot be bought any more that is no number, and any will do. */
  #choose(): Set<number> {
    const bins = this.#bins;
    const count = Math.min(bins.length, fewest + this.#random.int(most - fewest + 1));
    const chosen = new Set<number>();
    while (chosen.size < count) {
      let [worst, waste] = [-1, Number.NEGATIVE_INFINITY];
      for (let i = 0; i < 3; i++) {
        const at = this.#random.int(bins.length);
        const own = bins[at]!.price - bins[at]!.worth;
        if (!chosen.has(at) && (worst < 0 || own > waste)) [worst, waste] = [at, own];
      }
      if (worst >= 0) chosen.add(worst);
    }
    return chosen;
  }

  /** Their pods, about the most valuable first. */
  #shuffled(bins: readonly Bin[]): number[] {
    const keyed: { pod: number; rank: number }[] = [];
    for (const { pods } of bins)
      for (const pod of pods) {
        const rank = this.#market.kindOf(pod).worth * (1 + disorder * (2 * this.#random.next() - 1));
        keyed.push({ pod, rank });
      }
    return keyed.sort((a, b) => b.rank - a.rank).map(({ pod }) => pod);
  }

  /** Each pod goes where it adds least to the price, or alone where that adds less. */
  #joinedCheaply(old: readonly Bin[]): Bin[] {
    const market = this.#market;
    const bins: Bin[] = [];
    for (const pod of this.#shuffled(old)) {
      const { wish, base, request } = market.kindOf(pod);
      let least = market.priceOf(base, this.#nothing, request);
      let best: Bin | undefined;
      for (const bin of bins) {
        const set = market.join(bin.set, wish);
        if (set === incompatible) continue;
        const price = market.priceOf(set, bin.total, request) - bin.price;
        if (price <= least) [best, least] = [bin, price];
      }
      if (!best) bins.push((best = this.#emptyBin()));
      this.#put(best, pod);
      this.#priced(best);
    }
    return bins;
  }

  /** One node after the other is filled, of the size that some were best at. */
  #filledInTurn(old: readonly Bin[]): Bin[] {
    const bins: Bin[] = [];
    for (let left = this.#shuffled(old); left.length > 0; ) {
      const taken = this.#bestFilling(left);
      const bin = this.#emptyBin();
      for (const at of taken) this.#put(bin, left[at]!);
      bins.push(this.#priced(bin));
      const gone = new Set(taken);
      left = left.filter((_, at) => !gone.has(at));
    }
    return bins;
  }

  /** Which of these pods, the first among them, a machine holds whose size was drawn by chance and proved the best buy. */
  #bestFilling(pods: readonly number[]): readonly number[] {
    const first = this.#market.kindOf(pods[0]!);
    const { rows } = this.#market.shelf(first.base);
    let best: readonly number[] = [0];
    let lowest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < sizesTried; i++) {
      const filling = this.#filling(pods, rows[this.#random.int(rows.length)]!);
      if (filling && filling.rate < lowest) [best, lowest] = [filling.taken, filling.rate];
    }
    return best;
  }

  #filling(pods: readonly number[], row: number): { taken: number[]; rate: number } | undefined {
    const market = this.#market;
    const { width } = market;
    const room = market.template.catalog.free.slice(row * width, (row + 1) * width);
    let set = market.kindOf(pods[0]!).base;
    const price = market.shelf(set).priceOfRow[row]!;
    const taken: number[] = [];
    let worth = 0;
    next: for (let at = 0; at < pods.length; at++) {
      const { wish, request, worth: own } = market.kindOf(pods[at]!);
      for (let r = 0; r < width; r++)
        if (request[r]! > room[r]!) {
          if (at === 0) return undefined;
          continue next;
        }
      const joined = market.join(set, wish);
      if (joined === incompatible || market.shelf(joined).priceOfRow[row]! > price) continue;
      set = joined;
      for (let r = 0; r < width; r++) room[r]! -= request[r]!;
      taken.push(at);
      worth += own;
    }
    return { taken, rate: price / worth };
  }

  #emptyBin(): Bin {
    const { template, width } = this.#market;
    return { total: new Float64Array(width), pods: [], set: template.requirements, price: 0, worth: 0, from: [] };
  }

  #filled(pods: readonly number[], from: readonly number[]): Bin {
    const bin = this.#emptyBin();
    for (const pod of pods) this.#put(bin, pod);
    bin.from = from;
    return this.#priced(bin);
  }

  #put(bin: Bin, pod: number): void {
    const { request, wish, worth } = this.#market.kindOf(pod);
    for (let r = 0; r < request.length; r++) bin.total[r]! += request[r]!;
    bin.set = this.#market.join(bin.set, wish);
    bin.pods.push(pod);
    bin.worth += worth;
  }

  #priced(bin: Bin): Bin {
    bin.price = this.#market.priceOf(bin.set, bin.total, this.#nothing);
    return bin;
  }
}

/** Whether no rule of its own or of others asks where a pod's neighbours are. */
export function isUntied({ counted }: World, { labels, owns, hostRules, hostAffinities, keyRules }: PodClass): boolean {
  const { hosted, zoned } = counted[labels]!;
  return [hosted, zoned, owns, hostRules, hostAffinities, keyRules].every(({ length }) => length === 0);
}

/** Whether a node has all that a pod asks for as it is written: wishes that were given up are not taken up again. */
export function isHeeded({ space }: World, template: Template, set: SetId, { side }: PodClass): boolean {
  const wish = side.wishes[template.dialect.index];
  if (!wish || wish.volumes.length !== 1 || wish.volumes[0] !== space.empty) return false;
  return combinedOn(space, template, set, wish.all) === set;
}
