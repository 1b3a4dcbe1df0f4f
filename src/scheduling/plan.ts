// SPDX-License-Identifier: Apache-2.0
// Two ways to pack, and the choice between them. The first keeps as many machines possible for each node as it can, as
// upstream does; where that bought badly, the second packs with an eye on the price. More pods win, then the lower price.
import type { Catalog, View } from './catalog.ts';
import { Finalizer } from './finalize.ts';
import { type Packed, Packer } from './pack.ts';
import type { SolveOptions } from './problem.ts';
import { Thrift } from './thrift.ts';
import { remember, type World } from './world.ts';

export interface Plan {
  readonly packed: Packed;
  readonly finalizer: Finalizer;
  readonly price: number;
  /** How dear a node may be that a pod joins; undefined when prices were not looked at. */
  readonly tolerance?: number;
}

/** What thrifty packings are tried, the first always, the others on small problems. */
const tolerances = [1.1, 1.01, 2];
/** Problems up to this size are always packed both ways. */
const alwaysBoth = 400;
/** Sharing nodes should save at least this much against a node for each pod, or the thrifty way is tried. */
const extravagant = 0.9;

/** Packs a world. Leaves the world's counts as the chosen packing made them. */
export function makePlan(world: World, options: SolveOptions): Plan {
  const start = options.clock?.() ?? 0;
  const restore = remember(world);
  const packer = new Packer(world, options);
  const first = plan(world, packer.run());
  const left = remaining(options, start, first.packed.attempts);
  if (!left || first.packed.timedOut || first.packed.nodes.length === 0) return first;
  if (world.batch.pods.length > alwaysBoth && !isExtravagant(world, packer, first)) return first;
  let best = first;
  const small = world.batch.pods.length <= alwaysBoth;
  for (const tolerance of small ? tolerances : tolerances.slice(0, 1)) {
    restore();
    const next = plan(world, new Packer(world, left, new Thrift(tolerance)).run());
    if (isBetter(next, best)) best = { ...next, tolerance };
  }
  // The reasons of pods without a place are read off the counts, so the chosen packing must have made them.
  if (best.packed.failed.length > 0) {
    restore();
    const thrift = best.tolerance === undefined ? undefined : new Thrift(best.tolerance);
    new Packer(world, options, thrift).run();
  }
  return best;
}

function plan(world: World, packed: Packed): Plan {
  const finalizer = new Finalizer(world);
  let price = 0;
  for (const node of packed.nodes) price += finalizer.factsOf(node).claim.price;
  return { packed, finalizer, price };
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
