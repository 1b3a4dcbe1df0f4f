// SPDX-License-Identifier: Apache-2.0
// Ways to pack, and the choice between them. The first keeps as many machines possible for each node as it can, as upstream
// does. Where that bought badly, a second one packs with an eye on the price. Small problems are packed in more ways, as far
// as the work that takes stays small. More pods win, then the lower price,
// then fewer nodes.
import { SeededRandom } from '../base/random.ts';
import { addDemand, bestSizePrice, noDemand } from './best-size.ts';
import { allTypes, type Catalog, type View } from './catalog.ts';
import type { Ties } from './domains.ts';
import { exchange } from './exchange.ts';
import { Finalizer } from './finalize.ts';
import { type Joins, type Packed, Packer } from './pack.ts';
import type { SolveOptions } from './problem.ts';
import type { Pools } from './reach.ts';
import { regroup } from './regroup.ts';
import { Thrift, ThriftMemo } from './thrift.ts';
import { remember, type World } from './world.ts';

export interface Plan {
  readonly packed: Packed;
  readonly finalizer: Finalizer;
  readonly price: number;
  readonly way: Way;
}

/** How to pack. */
interface Way {
  /** How dear a node may be that a pod joins; undefined when prices are not looked at. */
  readonly tolerance?: number;
  /** The queue; the usual one when undefined. */
  readonly order?: Int32Array;
  readonly ties?: Ties;
  readonly joins?: Joins;
  readonly pools?: Pools;
  /** Whether pods go where an earlier pass planned them; they do unless told. */
  readonly keeps?: boolean;
}

/** The usual thrifty packing. */
const thrifty: Way = { tolerance: 1.1 };
/** Problems up to this size are always packed both ways. */
const alwaysBoth = 400;
/** Sharing nodes should save at least this much against a node for each pod, or the thrifty way is tried. */
const extravagant = 0.9;
/** Nodes should cost at most this much more than their pods would on machines of the best size, or it is tried as well. */
const oversized = 1.1;
/** Nodes that are likely to last may cost so many times the cheapest. */
const sturdy = 1.05;
/** The same where there are few pods: less averages out among them. */
const sturdyIfSmall = 1.08;
/** How often nodes exchange their pods, for each of them. */
const exchangesPerNode = 5;
/** In large problems only where nodes cost so many times what their pods would on machines that suit them. */
const dear = 1.03;
/** How many groups of nodes are bought anew at most. */
const maxRegrouped = 16;
/** How many nodes are looked at to find out. */
const maxSample = 64;
/** How much work may go into further ways, in pods times machines they choose from. */
const maxWork = 40_000;
/** How often the queue of a way is changed at most. */
const maxQueues = 3;
/** How many orders of workloads are tried by chance. */
const maxShuffles = 8;
/** How many plans have their workloads rearranged, and up to how many workloads. */
const maxRearranged = 3;
const maxWorkloads = 12;

/** Packs a world. Leaves the world's counts as the chosen packing made them. */
export function makePlan(world: World, options: SolveOptions): Plan {
  const search = new Search(world, options);
  const { first } = search;
  const isServed = first.packed.nodes.length === 0 && first.packed.failed.length === 0;
  if (world.promises.size > 0 && !isServed) search.attempt({ keeps: false }, true);
  if (first.packed.timedOut || (first.packed.nodes.length === 0 && search.isFirstBest)) return first;
  const pods = world.batch.pods.length;
  const small = pods <= alwaysBoth;
  if (pods > 1 && (small || isExtravagant(world, search.packer, first) || isOversized(world, first)))
    search.attempt(thrifty, true);
  if (pods > 1 && small) search.explore();
  return regrouped(world, exchanged(world, search.finish(), small), first, small);
}

/** The plan with nodes that exchanged their pods, where that is cheaper. */
function exchanged(world: World, chosen: Plan, small: boolean): Plan {
  if (chosen.packed.timedOut) return chosen;
  const packed = exchange(world, chosen.packed, chosen.finalizer, exchangesPerNode, small ? 0 : dear);
  if (!packed) return chosen;
  const next = plan(world, packed, chosen.way);
  return next.price < chosen.price ? next : chosen;
}

/**
 * The plan with its nodes bought anew where other sizes are cheaper, or fewer of them do. Nodes that are likely to last may
 * cost a little more, as long as they cost no more than the first way.
 */
function regrouped(world: World, chosen: Plan, first: Plan, thorough: boolean): Plan {
  if (chosen.packed.timedOut) return chosen;
  for (const allowance of [thorough ? sturdyIfSmall : sturdy, 1]) {
    const packed = regroup(world, chosen.packed, chosen.finalizer, { most: maxRegrouped, allowance, thorough });
    if (!packed) break;
    const next = plan(world, packed, chosen.way);
    if (allowance === 1 || next.price <= Math.max(chosen.price, first.price)) return next;
  }
  return chosen;
}

/** The ways that were tried on a world, and the best of them. */
class Search {
  readonly first: Plan;
  /** Of the first way. */
  readonly packer: Packer;
  readonly #world: World;
  readonly #options: SolveOptions;
  readonly #restore: () => void;
  readonly #start: number;
  readonly #memo = new ThriftMemo();
  /** Which of equally heavy pools comes first, unless a way says otherwise. */
  readonly #pools: Pools;
  readonly #tried = new Set<string>();
  /** What one more way costs. */
  readonly #cost: number;
  #best: Plan;
  #last: Plan;
  #attempts: number;
  #work = 0;

  constructor(world: World, options: SolveOptions) {
    this.#world = world;
    this.#options = options;
    this.#start = options.clock?.() ?? 0;
    this.#restore = remember(world);
    // Small problems are packed in many ways, and some look at prices pod by pod; others have to get it right at once.
    const pods = world.batch.pods.length;
    this.#pools = pods > 1 && pods <= alwaysBoth ? 'last' : 'cheapest';
    this.packer = this.#packer(options, {});
    this.first = plan(world, this.packer.run(), {});
    this.#best = this.first;
    this.#last = this.first;
    this.#attempts = this.first.packed.attempts;
    this.#cost = world.batch.pods.length * world.templates.reduce((n, { catalog }) => n + catalog.typeOf.length, 1);
  }

  #packer(options: SolveOptions, { tolerance, order, ties, joins, pools, keeps }: Way): Packer {
    const thrift = tolerance === undefined ? undefined : new Thrift(tolerance, this.#memo);
    return new Packer(this.#world, options, thrift, order, ties, joins, pools ?? this.#pools, keeps);
  }

  /** Packs in another way, unless it was tried before or time or work (`always`: time) is used up; undefined then. */
  attempt(way: Way, always = false): Plan | undefined {
    const queue = way.order ?? this.#world.batch.order;
    const text = `${way.tolerance}:${way.ties}:${way.joins}:${way.pools}:${way.keeps}:${queue.join()}`;
    if (this.#tried.has(text)) return undefined;
    this.#tried.add(text);
    const time = remaining(this.#options, this.#start, this.#attempts);
    if (!time || (!always && this.#work + this.#cost > maxWork)) return undefined;
    if (!always) this.#work += this.#cost;
    this.#restore();
    const next = plan(this.#world, this.#packer(time, way).run(), way);
    this.#last = next;
    this.#attempts += next.packed.attempts;
    if (isBetter(next, this.#best)) this.#best = next;
    return next;
  }

  /** Other ways for small problems: each with several queues, then with what their own results suggest. */
  explore(): void {
    const dear = dearFirst(this.#world, this.packer);
    const ways: Way[] = [{ joins: 'cheapest' }, { joins: 'cheapest', order: dear }, { ...thrifty, order: dear }];
    ways.push({ order: dear }, { tolerance: 1.01 }, { tolerance: 2 });
    if (this.#world.keys.length > 0)
      for (const ties of ['first', 'last'] as const)
        for (const way of [{}, thrifty, { joins: 'cheapest' } as const]) ways.push({ ...way, ties });
    const plans = [this.first];
    for (const way of ways) {
      const next = this.attempt(way);
      if (next) plans.push(next);
    }
    const { templates } = this.#world;
    if (new Set(templates.map(({ weight }) => weight)).size < templates.length)
      for (const way of [{}, thrifty]) {
        const next = this.attempt({ ...way, pools: 'cheapest' }, true);
        if (next) plans.push(next);
      }
    // One node for everybody leaves little to rearrange.
    if (this.#best.packed.nodes.length < 2 && this.#best.packed.failed.length === 0) return;
    plans.sort((a, b) => (isBetter(a, b) ? -1 : isBetter(b, a) ? 1 : 0));
    const seen = new Set<string>();
    for (const base of plans) {
      // The best of each kind: what suits one kind of packing need not suit another.
      const kind = `${base.way.joins}:${base.way.tolerance !== undefined}`;
      if (seen.has(kind)) continue;
      seen.add(kind);
      this.#improve(base);
    }
    for (const base of plans.slice(0, maxRearranged)) this.#rearrange(base);
    this.#shuffle(plans.slice(0, maxRearranged));
  }

  /** Moves each workload to the front of a plan's queue, and to its end, as long as that helps. */
  #rearrange(base: Plan): void {
    let best = base;
    for (let round = 0; round < maxQueues; round++) {
      const before = best;
      const workloads = workloadsOf(this.#world, before.way.order ?? this.#world.batch.order);
      if (workloads.length > maxWorkloads) return;
      for (let i = 0; i < workloads.length; i++) {
        const others = workloads.filter((_, j) => j !== i).flat();
        for (const order of [
          [...workloads[i]!, ...others],
          [...others, ...workloads[i]!],
        ]) {
          const next = this.attempt({ ...before.way, order: Int32Array.from(order) });
          if (next && isBetter(next, best)) best = next;
        }
      }
      if (best === before) return;
    }
  }

  /** Workloads in other orders, by chance but always the same. */
  #shuffle(bases: readonly Plan[]): void {
    const random = new SeededRandom(1);
    const workloads = workloadsOf(this.#world, this.#world.batch.order);
    for (let round = 0; round < maxShuffles; round++) {
      for (let i = workloads.length - 1; i > 0; i--) {
        const j = random.int(i + 1);
        [workloads[i], workloads[j]] = [workloads[j]!, workloads[i]!];
      }
      for (const { way } of bases) this.attempt({ ...way, order: Int32Array.from(workloads.flat()) });
    }
  }

  /** Changes the queue of a plan as long as that helps: pods that ended up alone on a node, or nowhere, go last, or first. */
  #improve(base: Plan): void {
    let best = base;
    for (let round = 0; round < maxQueues; round++) {
      const before = best;
      for (const order of otherQueues(this.#world, before)) {
        const next = this.attempt({ ...before.way, order });
        if (next && isBetter(next, best)) best = next;
      }
      if (best === before) return;
    }
  }

  get isFirstBest(): boolean {
    return this.#best === this.first;
  }

  /** The best plan, with the counts that it made. */
  finish(): Plan {
    // The reasons of pods without a place are read off the counts, so the chosen packing must have made them.
    if (this.#best !== this.#last && this.#best.packed.failed.length > 0) {
      this.#restore();
      this.#packer(this.#options, this.#best.way).run();
    }
    return this.#best;
  }
}

/** Queues that a result suggests: those who got no place, or a node of their own, at the other end. */
function otherQueues(world: World, { packed, way }: Plan): Int32Array[] {
  const odd = new Uint8Array(world.batch.pods.length);
  for (const { pods } of packed.nodes) if (pods.length === 1) odd[pods[0]!] = 1;
  const lonely = odd.slice();
  for (const { pod } of packed.failed) odd[pod] = 1;
  const queue = Array.from(way.order ?? world.batch.order);
  const placed = packed.steps.map(({ pod }) => pod);
  const part = (of: Uint8Array, bit: number): number[] => queue.filter((pod) => of[pod] === bit);
  return [
    [...part(lonely, 0), ...part(lonely, 1)],
    [...part(odd, 1), ...part(odd, 0)],
    [...packed.failed.map(({ pod }) => pod), ...placed.toReversed()],
  ].map((order) => Int32Array.from(order));
}

/** A queue by workload: pods of one class and shape. */
function workloadsOf(world: World, queue: Int32Array): number[][] {
  const { batch, classOf, requests } = world;
  const workloads = new Map<number, number[]>();
  for (const pod of queue) {
    const key = classOf[pod]!.id * requests.length + batch.shapeOf[pod]!;
    const pods = workloads.get(key);
    if (pods) pods.push(pod);
    else workloads.set(key, [pod]);
  }
  return [...workloads.values()];
}

/** The queue with those first that the dearest machine is the cheapest for: others may share what they force us to buy. */
function dearFirst(world: World, packer: Packer): Int32Array {
  const { batch, requests, classOf } = world;
  const prices = new Float64Array(batch.pods.length);
  for (let pod = 0; pod < prices.length; pod++) {
    const { templates, market } = packer.reachOf(classOf[pod]!);
    const price = market && templates[0]!.template.catalog.priceOf(market, requests[batch.shapeOf[pod]!]!);
    prices[pod] = price ?? Number.MAX_VALUE;
  }
  const place = new Int32Array(prices.length);
  for (let i = 0; i < place.length; i++) place[batch.order[i]!] = i;
  return batch.order.toSorted((a, b) => prices[b]! - prices[a]! || place[a]! - place[b]!);
}

function plan(world: World, packed: Packed, way: Way): Plan {
  const finalizer = new Finalizer(world);
  let price = 0;
  for (const node of packed.nodes) price += finalizer.priceOf(node);
  return { packed, finalizer, price, way };
}

function isBetter(a: Plan, b: Plan): boolean {
  if (a.packed.timedOut) return false;
  const more = a.packed.steps.length - b.packed.steps.length;
  if (more !== 0) return more > 0;
  if (Math.abs(a.price - b.price) > b.price * 1e-9) return a.price < b.price;
  return a.packed.nodes.length < b.packed.nodes.length;
}

/** What is left of the deadline for another pass; undefined when it is not worth starting. */
function remaining(options: SolveOptions, start: number, attempts: number): SolveOptions | undefined {
  const { clock, timeoutMs, maxSteps } = options;
  const rest: { clock?: () => number; timeoutMs?: number; maxSteps?: number } = {};
  if (clock) rest.clock = clock;
  if (clock && timeoutMs !== undefined) {
    const used = clock() - start;
    if (used * 4 > timeoutMs) return undefined;
    rest.timeoutMs = timeoutMs - used;
  }
  if (maxSteps !== undefined) {
    if (attempts * 3 > maxSteps) return undefined;
    rest.maxSteps = maxSteps - attempts;
  }
  return rest;
}

/** Whether nodes that pods share cost hardly less than a node for each of their pods would. */
function isExtravagant(world: World, packer: Packer, { packed, finalizer }: Plan): boolean {
  const { batch, classOf, requests } = world;
  // By market and shape: many classes buy on one market.
  const known = new Map<View, Float64Array>();
  let shared = 0;
  let separate = 0;
  for (const node of packed.nodes) {
    const { pods } = node;
    if (pods.length < 2) continue;
    shared += finalizer.priceOf(node);
    for (let i = 0; i < pods.length; i++) {
      const shape = batch.shapeOf[pods[i]!]!;
      const { market, templates } = packer.reachOf(classOf[pods[i]!]!);
      // It shares a node that was labelled by others; alone it would have none.
      if (!market) return false;
      let prices = known.get(market);
      if (!prices) {
        prices = new Float64Array(requests.length).fill(-1);
        known.set(market, prices);
      }
      if (prices[shape]! < 0) prices[shape] = templates[0]!.template.catalog.priceOf(market, requests[shape]!);
      separate += prices[shape]!;
    }
  }
  return shared > extravagant * separate;
}

/** Whether what is on nodes would cost less on machines of another size: large ones may be dearer for what they hold. */
function isOversized(world: World, { packed, finalizer }: Plan): boolean {
  const shared = packed.nodes.filter(({ pods }) => pods.length > 1);
  const step = Math.max(1, Math.floor(shared.length / maxSample));
  let paid = 0;
  let needed = 0;
  for (let i = 0; i < shared.length; i += step) {
    const price = finalizer.priceOf(shared[i]!);
    paid += price;
    const { template, group, pods } = shared[i]!;
    const view = template.catalog.view(group.set, allTypes);
    needed += Math.min(price, priceInBestSize(world, template.catalog, view, pods));
  }
  return paid > oversized * needed;
}

/** What pods would cost on as many machines of one size as they need, where that is cheapest. */
function priceInBestSize({ batch, requests }: World, catalog: Catalog, view: View, pods: readonly number[]): number {
  const demand = noDemand(catalog.width);
  for (const pod of pods) addDemand(demand, requests[batch.shapeOf[pod]!]!);
  return bestSizePrice(catalog, view, demand);
}
