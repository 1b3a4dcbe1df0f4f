// SPDX-License-Identifier: Apache-2.0
// Buying with an eye on the price: a new node is meant to become the machine that holds the most of what is still waiting
// for its price, and may become nothing that is a worse buy.
import { type Catalog, noRow, type View } from './catalog.ts';
import { maxShapes, type Purchase, planPurchases } from './patterns.ts';
import { type Machines, resourcePrices } from './resource-prices.ts';
import type { Template } from './templates.ts';

/** Pods of one shape. */
export interface Waiting {
  readonly shape: number;
  readonly request: Float64Array;
  /** All of them, in the order of the queue. */
  readonly pods: number[];
  /** How many are not placed yet. */
  left: number;
  /** Those before this place in `pods` are placed. */
  first: number;
}

/** The machines that some pods can choose from, and what these pods need. */
interface Market {
  readonly id: number;
  readonly catalog: Catalog;
  readonly view: View;
  /** Requests of all its pods: the mix that a machine should be made for. */
  readonly demand: Float64Array;
  /** Requests of those that are not placed yet. */
  readonly left: Float64Array;
  /** The same by shape. */
  readonly waiting: Map<number, Waiting>;
  /** The shapes, largest share of the demand first. Worked out when first asked for. */
  sorted: readonly Waiting[] | undefined;
  /** What a unit of each resource is worth. Worked out when first asked for. */
  worth: Float64Array | undefined;
  /** By row: the most that was paid for one. */
  readonly bought: Map<number, number>;
  /** What is planned to be bought, by place among its shapes. Worked out when first asked for. */
  purchases: readonly Planned[] | undefined;
  /** What the node that was opened last is meant to hold besides. */
  filling: Map<Waiting, number>;
  /** Whether that node is part of the plan. */
  planned: boolean;
}

/** Machines to buy, and what to put on each. */
interface Planned {
  readonly row: number;
  readonly price: number;
  readonly contents: ReadonlyMap<Waiting, number>;
  times: number;
}

/** How far above the best rate a machine may be at first sight to be looked at closely. */
const promising = 2.5;

/** What thrifty packings of one world have worked out: it serves the next ones as well. */
export class ThriftMemo {
  /** By market and what is left to place. */
  readonly purchases = new Map<View, Map<string, readonly Purchase[]>>();
  /** By market and what its pods need. */
  readonly worth = new Map<View, Map<string, Float64Array>>();
}

export class Thrift {
  readonly #markets = new Map<View, Market>();
  /** How many times its best rate a pod may pay. */
  readonly #tolerance: number;
  readonly #memo: ThriftMemo;

  constructor(tolerance = 1.1, memo = new ThriftMemo()) {
    this.#tolerance = tolerance;
    this.#memo = memo;
  }

  /** Says that a pod will look for a place among these machines. */
  expect({ catalog }: Template, view: View, request: Float64Array, shape: number, pod: number): void {
    let market = this.#markets.get(view);
    if (!market) {
      const none = new Float64Array(request.length);
      market = {
        id: this.#markets.size,
        catalog,
        view,
        demand: none,
        left: none.slice(),
        waiting: new Map(),
        bought: new Map(),
        sorted: undefined,
        worth: undefined,
        purchases: undefined,
        filling: new Map(),
        planned: false,
      };
      this.#markets.set(view, market);
    }
    let waiting = market.waiting.get(shape);
    if (!waiting) {
      waiting = { shape, request, pods: [], left: 0, first: 0 };
      market.waiting.set(shape, waiting);
    }
    waiting.pods.push(pod);
    waiting.left++;
    for (let r = 0; r < request.length; r++) {
      if (!Number.isFinite(request[r])) continue;
      market.demand[r]! += request[r]!;
      market.left[r]! += request[r]!;
    }
  }

  /** Counts a pod that found its place. */
  placed(view: View, request: Float64Array, shape: number): void {
    const market = this.#markets.get(view);
    if (!market) return;
    market.waiting.get(shape)!.left--;
    for (let r = 0; r < request.length; r++) market.left[r]! -= request[r]!;
  }

  /** The mask for a node opened for a pod of `market`: the best buy among `view`, and whatever is nearly as good for less. */
  mask(market: View, view: View, open: number, request: Float64Array): number {
    const known = this.#markets.get(market);
    if (!known) return open;
    const { catalog, left } = known;
    const worth = this.#worth(known);
    const { rows, prices } = catalog.byPrice(view);
    const planned = this.#planned(known, view, request);
    if (planned) return catalog.bothMasks(open, this.#meantFor(known, planned.row, planned.price));
    const rates = new Float64Array(rows.length).fill(Number.POSITIVE_INFINITY);
    let least = Number.POSITIVE_INFINITY;
    for (let i = 0; i < rows.length; i++) {
      if (!catalog.fitsRow(rows[i]!, request)) continue;
      rates[i] = prices[i]! / usefulWorth(catalog, rows[i]!, worth, left, request);
      least = Math.min(least, rates[i]!);
    }
    // What could be put on a machine is only a hope: the promising ones are filled to see.
    let chosen = -1;
    let best = Number.POSITIVE_INFINITY;
    for (let i = 0; i < rows.length; i++) {
      if (rates[i]! > least * promising) continue;
      const rate = prices[i]! / this.#filled(known, rows[i]!, request);
      if (rate < best * (1 - 1e-9)) [best, chosen] = [rate, i];
    }
    if (chosen < 0) return open;
    return catalog.bothMasks(open, this.#meantFor(known, rows[chosen]!, prices[chosen]!));
  }

  /** The mask for nodes that are meant to become a row at this price. */
  #meantFor(market: Market, row: number, price: number): number {
    const { catalog, bought } = market;
    const worth = this.#worth(market);
    bought.set(row, Math.max(price, bought.get(row) ?? 0));
    return catalog.priceMask(`${market.id}:${row}:${price}`, row, () => {
      const most = this.#tolerance * Math.max(1, price / rowWorth(catalog, row, worth));
      return Float64Array.from(catalog.typeOf, (_, other) =>
        other === row ? price : Math.min(price, most * rowWorth(catalog, other, worth)),
      );
    });
  }

  /** A planned purchase that holds a pod like this one, and leaves in `filling` what else it holds. */
  #planned(market: Market, view: View, request: Float64Array): Planned | undefined {
    market.purchases ??= this.#plan(market);
    market.filling = new Map();
    market.planned = false;
    for (const planned of market.purchases) {
      if (planned.times === 0 || (view !== market.view && !isSold(market.catalog, view, planned))) continue;
      for (const [waiting, count] of planned.contents) {
        if (waiting.request !== request) continue;
        planned.times--;
        market.planned = true;
        market.filling = new Map(planned.contents).set(waiting, count - 1);
        return planned;
      }
    }
    return undefined;
  }

  #plan(market: Market): Planned[] {
    const shapes = this.#sorted(market).filter(({ left }) => left > 0);
    if (shapes.length > maxShapes) return [];
    const { rows, prices } = market.catalog.byPrice(market.view);
    const purchases = this.#purchases(market, shapes);
    return purchases.map(({ machine, counts, times }) => ({
      row: rows[machine]!,
      price: prices[machine]!,
      contents: new Map(shapes.flatMap((shape, i) => (counts[i]! > 0 ? [[shape, counts[i]!] as const] : []))),
      times,
    }));
  }

  #purchases(market: Market, shapes: readonly Waiting[]): readonly Purchase[] {
    let known = this.#memo.purchases.get(market.view);
    if (!known) {
      known = new Map();
      this.#memo.purchases.set(market.view, known);
    }
    const machines = machinesOf(market.catalog, market.view);
    const charge = chargeOf(machines, worthOf(market.left, this.#worth(market)));
    const text = shapes.reduce((list, { shape, left }) => `${list};${shape}:${left}`, `${charge}`);
    let purchases = known.get(text);
    if (!purchases) {
      purchases = planPurchases(
        { ...machines, prices: machines.prices.map((price) => price + charge) },
        shapes.map(({ request, left }) => ({ request, count: left })),
      );
      known.set(text, purchases);
    }
    return purchases;
  }

  /** The most valuable shape that fits what room a node has left; undefined when nothing fits. */
  next(market: View, room: Float64Array, banned: ReadonlySet<Waiting>): Waiting | undefined {
    const known = this.#markets.get(market);
    if (!known) return undefined;
    for (const [waiting, count] of known.filling) {
      if (count <= 0 || waiting.left <= 0 || banned.has(waiting) || !fitsIn(waiting.request, room)) continue;
      known.filling.set(waiting, count - 1);
      return waiting;
    }
    if (known.planned) return undefined;
    return firstFit(this.#sorted(known), room, (waiting) => (banned.has(waiting) ? 0 : waiting.left));
  }

  #sorted(market: Market): readonly Waiting[] {
    if (market.sorted) return market.sorted;
    const worth = this.#worth(market);
    market.sorted = [...market.waiting.values()].sort(
      (a, b) => worthOf(b.request, worth) - worthOf(a.request, worth) || a.shape - b.shape,
    );
    return market.sorted;
  }

  /** The worth of what a machine holds once it is filled with this pod and then with the largest that fit. */
  #filled(market: Market, row: number, request: Float64Array): number {
    const { catalog } = market;
    const worth = this.#worth(market);
    const { width } = catalog;
    const room = catalog.free.slice(row * width, (row + 1) * width);
    let held = worthOf(request, worth);
    for (let r = 0; r < width; r++) room[r]! -= request[r]!;
    for (const { request: shape, left } of this.#sorted(market)) {
      let count = left - (shape === request ? 1 : 0);
      for (let r = 0; r < width && count > 0; r++)
        if (shape[r]! > 0) count = Math.min(count, Math.floor(room[r]! / shape[r]!));
      if (count <= 0) continue;
      held += count * worthOf(shape, worth);
      for (let r = 0; r < width; r++) room[r]! -= count * shape[r]!;
    }
    return held;
  }

  #worth(market: Market): Float64Array {
    if (!market.worth) {
      let known = this.#memo.worth.get(market.view);
      if (!known) this.#memo.worth.set(market.view, (known = new Map()));
      const text = market.demand.join();
      market.worth = known.get(text);
      if (!market.worth) {
        market.worth = resourcePrices(machinesOf(market.catalog, market.view), market.demand);
        known.set(text, market.worth);
      }
    }
    return market.worth;
  }

  /** Whether nodes under a mask, launched at `price`, are a good buy for the pods of a market. */
  isWorthIt(market: View, { catalog }: Template, mask: number, price: number): boolean {
    const row = catalog.rowOf(mask);
    const known = this.#markets.get(market);
    if (row === noRow || !known || known.catalog !== catalog) return true;
    // What its own pods had to pay where they had to go is no reason to stay away: they would have to pay it again.
    return price <= Math.max(known.bought.get(row) ?? 0, this.#tolerance * rowWorth(catalog, row, this.#worth(known)));
  }
}

/** What a view sells, cheapest first. */
export function machinesOf(catalog: Catalog, view: View): Machines {
  const { rows, prices } = catalog.byPrice(view);
  const { width, free } = catalog;
  const units = new Float64Array(rows.length * width);
  for (let i = 0; i < rows.length; i++) units.set(free.subarray(rows[i]! * width, (rows[i]! + 1) * width), i * width);
  return { width, units, prices };
}

/** What a node counts besides its price: as a part of the price of the middle machine, and of everything that is wanted. */
const [ofMiddle, ofAll] = [0.001, 0.01];

/** Where machines of many sizes cost the same by what they hold, few are better than many: what each costs besides. */
function chargeOf({ prices }: Machines, worth: number): number {
  // The cheapest come first.
  return Math.min(ofMiddle * (prices[prices.length >> 1] ?? 0), ofAll * worth);
}

/** Whether a view has a planned machine for what it was planned to cost. */
function isSold(catalog: Catalog, view: View, { row, price }: Planned): boolean {
  if (view.has[row] !== 1) return false;
  const { rows, prices } = catalog.byPrice(view);
  return prices[rows.indexOf(row)]! <= price;
}

/** The first of some shapes that fits and of which any are left. */
function firstFit(
  shapes: readonly Waiting[],
  room: Float64Array,
  left: (waiting: Waiting) => number,
): Waiting | undefined {
  return shapes.find((waiting) => fitsIn(waiting.request, room) && left(waiting) > 0);
}

function fitsIn(request: Float64Array, room: Float64Array): boolean {
  for (let r = 0; r < room.length; r++) if (request[r]! > room[r]!) return false;
  return true;
}

function worthOf(request: Float64Array, worth: Float64Array): number {
  let sum = 1e-12;
  for (let r = 0; r < request.length; r++) sum += request[r]! * worth[r]!;
  return sum;
}

/** The worth of everything a row has. */
function rowWorth({ free, width }: Catalog, row: number, worth: Float64Array): number {
  let sum = 1e-12;
  for (let r = 0; r < width; r++) sum += free[row * width + r]! * worth[r]!;
  return sum;
}

/** The worth of what a row has, as far as that much is still wanted. */
function usefulWorth(
  { free, width }: Catalog,
  row: number,
  worth: Float64Array,
  left: Float64Array,
  request: Float64Array,
): number {
  let sum = 1e-12;
  for (let r = 0; r < width; r++) sum += worth[r]! * Math.min(free[row * width + r]!, Math.max(left[r]!, request[r]!));
  return sum;
}
