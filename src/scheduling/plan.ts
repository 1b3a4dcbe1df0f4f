// SPDX-License-Identifier: Apache-2.0
// Two ways to pack, and the choice between them. The first keeps as many machines possible for each node as it can, as
// upstream does; where that bought badly, the second packs with an eye on the price. More pods win, then the lower price.
import type { Catalog, View } from './catalog.ts';
import type { Ties } from './domains.ts';
import { Finalizer } from './finalize.ts';
import { type Packed, Packer } from './pack.ts';
import type { SolveOptions } from './problem.ts';
import { Thrift } from './thrift.ts';
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
}

/** What thrifty packings are tried, the first always, the others on small problems. */
const tolerances = [1.1, 1.01, 2];
/** Problems up to this size are always packed both ways. */
const alwaysBoth = 400;
/** How often the queue of a small problem is changed at most. */
const maxQueues = 3;
/** Sharing nodes should save at least this much against a node for each pod, or the thrifty way is tried. */
const extravagant = 0.9;

/** Packs a world. Leaves the world's counts as the chosen packing made them. */
export function makePlan(world: World, options: SolveOptions): Plan {
  const start = options.clock?.() ?? 0;
  const restore = remember(world);
  const packer = new Packer(world, options);
  const first = plan(world, packer.run(), {});
  if (first.packed.timedOut || first.packed.nodes.length === 0) return first;
  if (world.batch.pods.length > alwaysBoth && !isExtravagant(world, packer, first)) return first;
  let best = first;
  let attempts = first.packed.attempts;
  const attempt = (way: Way): boolean => {
    const time = remaining(options, start, attempts);
    if (!time) return false;
    restore();
    const next = plan(world, packerOf(world, time, way).run(), way);
    attempts += next.packed.attempts;
    if (!isBetter(next, best)) return false;
    best = next;
    return true;
  };
  const small = world.batch.pods.length <= alwaysBoth;
  for (const tolerance of small ? tolerances : tolerances.slice(0, 1)) attempt({ tolerance });
  if (small && world.keys.length > 0)
    for (const ties of ['first', 'last'] as const)
      for (const way of [{}, { tolerance: tolerances[0]! }]) attempt({ ...way, ties });
  if (small) improve(world, () => best, attempt);
  // The reasons of pods without a place are read off the counts, so the chosen packing must have made them.
  if (best.packed.failed.length > 0) {
    restore();
    packerOf(world, options, best.way).run();
  }
  return best;
}

/** Tries other queues: pods that ended up alone on a node, or nowhere, go last, or first. */
function improve(world: World, best: () => Plan, attempt: (way: Way) => boolean): void {
  for (let round = 0; round < maxQueues; round++) {
    const { packed, way } = best();
    const odd = new Uint8Array(world.batch.pods.length);
    for (const { pods } of packed.nodes) if (pods.length === 1) odd[pods[0]!] = 1;
    const lonely = odd.slice();
    for (const { pod } of packed.failed) odd[pod] = 1;
    const queue = way.order ?? world.batch.order;
    const placed = packed.steps.map(({ pod }) => pod);
    const part = (list: Int32Array | readonly number[], of: Uint8Array, bit: number): number[] =>
      Array.from(list).filter((pod) => of[pod] === bit);
    const orders = [
      [...part(queue, lonely, 0), ...part(queue, lonely, 1)],
      [...part(queue, odd, 1), ...part(queue, odd, 0)],
      [...packed.failed.map(({ pod }) => pod), ...placed.toReversed()],
    ];
    let better = false;
    for (const order of orders)
      for (const base of [
        way.ties ? { ties: way.ties } : {},
        way.tolerance === undefined ? { tolerance: tolerances[0]! } : way,
      ])
        better = attempt({ ...base, order: Int32Array.from(order) }) || better;
    if (!better) return;
  }
}

function packerOf(world: World, options: SolveOptions, { tolerance, order, ties }: Way): Packer {
  return new Packer(world, options, tolerance === undefined ? undefined : new Thrift(tolerance), order, ties);
}

function plan(world: World, packed: Packed, way: Way): Plan {
  const finalizer = new Finalizer(world);
  let price = 0;
  for (const node of packed.nodes) price += finalizer.factsOf(node).claim.price;
  return { packed, finalizer, price, way };
}

function isBetter(a: Plan, b: Plan): boolean {
  if (a.packed.timedOut) return false;
  const more = a.packed.steps.length - b.packed.steps.length;
  return more > 0 || (more === 0 && a.price < b.price * (1 - 1e-9));
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
  const known = new Map<number, number>();
  let shared = 0;
  let separate = 0;
  for (const node of packed.nodes) {
    if (node.pods.length < 2) continue;
    shared += finalizer.factsOf(node).claim.price;
    for (const pod of node.pods) {
      const shape = world.batch.shapeOf[pod]!;
      const key = world.classOf[pod]!.id * world.requests.length + shape;
      let price = known.get(key);
      if (price === undefined) {
        price = cheapest(packer.marketOf(pod), node.template.catalog, world.requests[shape]!);
        known.set(key, price);
      }
      separate += price;
    }
  }
  return shared > extravagant * separate;
}

function cheapest(market: View | undefined, catalog: Catalog, request: Float64Array): number {
  if (!market || market.has.length !== catalog.typeOf.length) return Number.POSITIVE_INFINITY;
  const { rows, prices } = catalog.byPrice(market);
  const at = rows.findIndex((row) => catalog.fitsRow(row, request));
  return at < 0 ? Number.POSITIVE_INFINITY : prices[at]!;
}
