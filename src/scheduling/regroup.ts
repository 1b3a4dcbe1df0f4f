// SPDX-License-Identifier: Apache-2.0
// Pods that must be in one zone share as few nodes as they can, and no size may fit them well; or they are on many small
// nodes that a large one would hold for the same money. Their nodes are bought anew, as a plan for all pods of the zone
// says. Nothing but the host changes for a pod, so only pods are moved that nobody's rules tie to a host.
import { annotations } from '../api/labels.ts';
import { memoised } from '../base/memoised.ts';
import { addDemand, bestSizePrice, noDemand } from './best-size.ts';
import type { View } from './catalog.ts';
import type { Finalizer } from './finalize.ts';
import { NewNode, type NodeGroup } from './in-flight.ts';
import type { Pod } from './objects.ts';
import type { Packed, Step } from './pack.ts';
import { maxShapes, planPurchases } from './patterns.ts';
import type { PodClass } from './pod-class.ts';
import { alike, cheapestFor, lastingPrice, totalOf, type Wanted } from './sturdy.ts';
import type { Settled } from './tally.ts';
import type { Template } from './templates.ts';
import { machinesOf } from './thrift.ts';
import type { World } from './world.ts';

/** What a node more or less counts, as a part of what one costs on average, if there are no more than so many. */
const nodeCharge = 0.03;
const fewNodes = 4;
/** Nodes that cost this much more in the end than their pods would on machines of the best size are bought anew, if that helps. */
const ill = 1.02;
/** Fewer nodes may cost so much more. */
const mostMore = 1.005;

/** Of pods that must not be disrupted so many may be left when others have gone: each keeps the node it is on, whatever that costs. */
const leftOfProtected = 0.1;

/** Nodes that may exchange their pods. */
interface Pool {
  readonly group: NodeGroup;
  readonly nodes: NewNode[];
}

/** Pods of one shape, and what is still to be put somewhere. */
interface Shape {
  readonly shape: number;
  readonly request: Float64Array;
  left: number;
}

/** A machine to buy, and how many pods of each shape it holds. */
interface Bin {
  readonly row: number;
  readonly room: Float64Array;
  readonly counts: Int32Array;
}

interface RegroupOptions {
  /** Whether other nodes are looked for even where those there are seem good. */
  readonly thorough: boolean;
  /** How many pools are looked at. */
  readonly most: number;
  /** How many times what they cost now nodes may cost that are likely to last. */
  readonly allowance: number;
}

/** The same pods on other nodes for less money, or on fewer for about the same; undefined when nothing is gained. */
export function regroup(
  world: World,
  packed: Packed,
  finalizer: Finalizer,
  options: RegroupOptions,
): Packed | undefined {
  const nodes = [...packed.nodes];
  /** By pod: the node it is on now. */
  const moved = new Map<number, NewNode>();
  let looked = 0;
  for (const pool of poolsOf(world, packed)) {
    const pods = pool.nodes.flatMap((node) => node.pods);
    const price = pool.nodes.reduce((sum, node) => sum + finalizer.priceOf(node), 0);
    if (pods.length < 2) continue;
    const offer = offerOf(world, pool, pods, price);
    if (!options.thorough && offer.lasting <= ill * offer.least && offer.protectedShare === 0) continue;
    if (++looked > options.most) break;
    const bins = binsFor(offer, options.allowance);
    if (bins) place(world, pool, bins, nodes, moved);
  }
  return moved.size === 0 ? undefined : renumbered(world, packed, nodes, moved);
}

/** A packing on these nodes, without those that are empty; `moved` says where pods are now that have another. */
export function renumbered(
  world: World,
  packed: Packed,
  nodes: readonly NewNode[],
  moved: ReadonlyMap<number, NewNode>,
): Packed {
  // Nodes are numbered by their place.
  const kept = nodes.filter(({ pods }) => pods.length > 0);
  const renamed = new Map(kept.map((node, index) => [node, copyOf(node, index, world)]));
  return { ...packed, nodes: [...renamed.values()], steps: stepsOn(packed.steps, moved, renamed) };
}

/** Nodes by what they can become, as far as all their pods may change hosts and their domains were known from the start. */
function poolsOf(world: World, packed: Packed): Iterable<Pool> {
  // Whoever may buy nothing anew need not be asked more.
  if (!packed.nodes.some(({ template }) => isUnbound(template))) return [];
  const isFree = memoised((podClass: PodClass) => isTiedToNoHost(world, podClass));
  const begun = new Set<NewNode>();
  const late = new Set<NewNode>();
  for (const { node, settled } of packed.steps) {
    for (const { node: decided } of settled) if (decided !== node || begun.has(decided)) late.add(decided);
    if (node) begun.add(node);
  }
  const pools = new Map<string, Pool>();
  for (const node of packed.nodes) {
    const { template, group, pods } = node;
    if (!isUnbound(template)) continue;
    if (node.pending.length > 0 || node.possible.length > 0 || node.ports.length > 0 || late.has(node)) continue;
    if (!pods.every((pod) => isFree(world.classOf[pod]!))) continue;
    // What a node was meant to become does not matter here, only what it may become.
    const key = `${template.index}:${group.set}:${template.catalog.plainMask(group.mask)}`;
    const pool = pools.get(key);
    if (pool) pool.nodes.push(node);
    else pools.set(key, { group, nodes: [node] });
  }
  return pools.values();
}

function isProtected({ metadata }: Pod): boolean {
  const asked = metadata.annotations?.[annotations.doNotDisrupt];
  return asked !== undefined && asked !== 'false';
}

/** Whether a pool leaves it to us what is bought for it. */
export function isUnbound({ limits, minValueKeys, catalog }: Template): boolean {
  return !limits && minValueKeys.length === 0 && !catalog.hasReserved;
}

function isTiedToNoHost({ counted }: World, { labels, owns, hostRules, hostAffinities }: PodClass): boolean {
  return (
    counted[labels]!.hosted.length === 0 &&
    hostRules.length === 0 &&
    hostAffinities.length === 0 &&
    owns.every(({ key }) => key !== undefined)
  );
}

/** The nodes of a pool, what they are bought for, and where. */
interface Offer {
  readonly group: NodeGroup;
  readonly view: View;
  readonly nodes: number;
  readonly price: number;
  readonly shapes: readonly Shape[];
  readonly wanted: readonly Wanted[];
  /** What the nodes cost in the end. */
  readonly lasting: number;
  /** What the pods would cost on machines of one size, at best. */
  readonly least: number;
  /** Which part of the pods must not be disrupted. */
  readonly protectedShare: number;
  /** What the nodes count that such pods may keep. */
  readonly kept: number;
}

function offerOf(world: World, { group, nodes }: Pool, pods: readonly number[], price: number): Offer {
  const { catalog } = group.template;
  const view = catalog.view(group.set, catalog.plainMask(group.mask));
  const shapes = shapesOf(world, pods);
  const wanted = shapes.map(({ request, left }) => ({ request, count: left }));
  const demand = noDemand(catalog.width);
  for (const { request, count } of wanted) addDemand(demand, request, count);
  const places = new Map(shapes.map(({ shape }, i) => [shape, i]));
  const rows = nodes.flatMap((node) => {
    const counts = new Int32Array(shapes.length);
    for (const pod of node.pods) counts[places.get(world.batch.shapeOf[pod]!)!]!++;
    return cheapestFor(catalog, view, wanted, counts) ?? [];
  });
  const lasting = lastingPrice(catalog, view, rows, wanted, price);
  const protectedShare = pods.filter((pod) => isProtected(world.batch.pods[pod]!)).length / pods.length;
  return {
    group,
    view,
    nodes: nodes.length,
    price,
    shapes,
    wanted,
    lasting,
    least: bestSizePrice(catalog, view, demand),
    protectedShare,
    kept: nodes.reduce(
      (sum, node) => sum + keptFor(protectedShare, node.pods.length, catalog.priceOf(view, node.total)),
      0,
    ),
  };
}

/** What a node counts because it may be kept by pods that must not be disrupted: the large ones rather than the small. */
function keptFor(protectedShare: number, pods: number, price: number): number {
  return protectedShare === 0 ? 0 : price * (1 - (1 - leftOfProtected * protectedShare) ** pods);
}

/** What to buy instead of the nodes of a pool; undefined when that is no better. */
function binsFor(offer: Offer, allowance: number): Bin[] | undefined {
  const { group, view, nodes, price, wanted, lasting, kept, protectedShare } = offer;
  const { catalog } = group.template;
  const charge = (nodeCharge * price) / Math.min(fewNodes, nodes);
  const ways = [...waysToBuy(offer, charge)].flatMap((bins) => {
    let [paid, mayStay] = [0, 0];
    for (const { counts } of bins) {
      const own = catalog.priceOf(view, totalOf(catalog, wanted, counts));
      paid += own;
      mayStay += keptFor(
        protectedShare,
        counts.reduce((sum, count) => sum + count, 0),
        own,
      );
    }
    const most = Math.max(allowance, bins.length < nodes ? mostMore : 1);
    return paid > price * most ? [] : [{ bins, paid, mayStay }];
  });
  const least = Math.min(price, ...ways.map(({ paid }) => paid)) * Math.max(allowance, mostMore);
  let best: Bin[] | undefined;
  let lowest = price > least ? Number.POSITIVE_INFINITY : (lasting + charge * nodes + kept) * (1 - 1e-9);
  for (const { bins, paid, mayStay } of ways) {
    if (paid > least) continue;
    const rows = bins.flatMap(({ counts }) => cheapestFor(catalog, view, wanted, counts) ?? []);
    const next = lastingPrice(catalog, view, rows, wanted, paid) + charge * bins.length + mayStay;
    if (next < lowest) [best, lowest] = [bins, next];
  }
  return best;
}

/** A plan for all pods as tight as can be, and machines that are alike. */
function* waysToBuy({ group, view, shapes, wanted }: Offer, charge: number): Generator<Bin[]> {
  const { catalog } = group.template;
  const { rows } = catalog.byPrice(view);
  if (shapes.length <= maxShapes) {
    const machines = machinesOf(catalog, view);
    const charged = { ...machines, prices: machines.prices.map((one) => one + charge) };
    const waiting = shapes.map((shape) => ({ ...shape }));
    const bins: Bin[] = [];
    for (const { machine, counts, times } of planPurchases(charged, wanted)) {
      for (let i = 0; i < times; i++) bins.push(binOf(group, rows[machine]!, waiting, counts));
    }
    if (addRest(group, view, bins, waiting)) yield bins;
  }
  for (const machines of alike(catalog, view, wanted)) {
    const waiting = shapes.map((shape) => ({ ...shape }));
    yield machines.map(({ row, counts }) => binOf(group, row, waiting, counts));
  }
}

function shapesOf({ batch, requests }: World, pods: readonly number[]): Shape[] {
  const shapes = new Map<number, Shape>();
  for (const pod of pods) {
    const shape = batch.shapeOf[pod]!;
    const known = shapes.get(shape);
    if (known) known.left++;
    else shapes.set(shape, { shape, request: requests[shape]!, left: 1 });
  }
  return [...shapes.values()];
}

function binOf({ template: { catalog } }: NodeGroup, row: number, shapes: readonly Shape[], counts: Int32Array): Bin {
  const room = catalog.free.slice(row * catalog.width, (row + 1) * catalog.width);
  const bin = { row, room, counts: new Int32Array(shapes.length) };
  for (const [i, shape] of shapes.entries()) put(bin, i, shape, counts[i]!);
  return bin;
}

function put({ room, counts }: Bin, i: number, shape: Shape, count: number): void {
  for (let r = 0; r < room.length; r++) room[r]! -= count * shape.request[r]!;
  counts[i]! += count;
  shape.left -= count;
}

/** Pods that the plan left over go where there is room, and then together onto one machine more. */
function addRest(group: NodeGroup, view: View, bins: Bin[], shapes: readonly Shape[]): boolean {
  for (const [i, shape] of shapes.entries()) {
    for (const bin of bins) {
      let fits = shape.left;
      for (let r = 0; r < bin.room.length && fits > 0; r++)
        if (shape.request[r]! > 0) fits = Math.min(fits, Math.floor(bin.room[r]! / shape.request[r]!));
      if (fits > 0) put(bin, i, shape, fits);
    }
  }
  if (shapes.every(({ left }) => left === 0)) return true;
  const { catalog } = group.template;
  const total = new Float64Array(catalog.width);
  for (const { request, left } of shapes) for (let r = 0; r < total.length; r++) total[r]! += left * request[r]!;
  const row = catalog.byPrice(view).rows.find((one) => catalog.fitsRow(one, total));
  if (row === undefined) return false;
  bins.push(
    binOf(
      group,
      row,
      shapes,
      Int32Array.from(shapes, ({ left }) => left),
    ),
  );
  return true;
}

/** Empties the nodes of a pool and gives their pods, in the order they came, to nodes as planned. */
function place(
  world: World,
  { group, nodes: old }: Pool,
  bins: readonly Bin[],
  nodes: NewNode[],
  moved: Map<number, NewNode>,
): void {
  const { batch, requests, axis } = world;
  const pods = old.flatMap((node) => node.pods);
  const places = new Map(shapesOf(world, pods).map(({ shape }, i) => [shape, i]));
  const gone = new Set(old);
  for (const [i, node] of nodes.entries()) if (gone.has(node)) nodes[i] = new NewNode(0, i, group, axis.size);
  for (const { counts } of bins) {
    const node = new NewNode(0, nodes.length, group, axis.size);
    nodes.push(node);
    const left = counts.slice();
    for (const pod of pods) {
      const shape = batch.shapeOf[pod]!;
      const at = places.get(shape)!;
      if (left[at] === 0 || moved.has(pod)) continue;
      left[at]!--;
      node.pods.push(pod);
      for (let r = 0; r < axis.size; r++) node.total[r]! += requests[shape]![r]!;
      moved.set(pod, node);
    }
  }
}

function copyOf(node: NewNode, index: number, { targets, axis }: World): NewNode {
  const copy = new NewNode(targets.length + index, index, node.group, axis.size);
  copy.total.set(node.total);
  copy.pods.push(...node.pods);
  copy.row = node.row;
  copy.reservations = node.reservations;
  copy.minValuesRelaxed = node.minValuesRelaxed;
  return copy;
}

/** The same story with other nodes: each is decided with its first pod, as those were that it stands for. */
function stepsOn(
  steps: readonly Step[],
  moved: ReadonlyMap<number, NewNode>,
  renamed: ReadonlyMap<NewNode, NewNode>,
): Step[] {
  const decided = new Map<NewNode, readonly Settled[]>();
  const begun = new Set<NewNode>();
  return steps.map((step) => {
    const { pod, node, settled } = step;
    if (!node) return { ...step, settled: others(settled, renamed) };
    if (!decided.has(node))
      decided.set(
        node,
        settled.filter((one) => one.node === node),
      );
    const now = renamed.get(moved.get(pod) ?? node)!;
    if (!moved.has(pod)) return { ...step, node: now, settled: others(settled, renamed) };
    const first = !begun.has(now);
    begun.add(now);
    const own = first ? decided.get(node)!.map((one) => ({ ...one, node: now })) : [];
    return { ...step, node: now, settled: [...others(settled, renamed), ...own] };
  });
}

/** What was decided of nodes that are still there. */
function others(settled: readonly Settled[], renamed: ReadonlyMap<NewNode, NewNode>): Settled[] {
  return settled.flatMap((one) => {
    const node = renamed.get(one.node);
    return node ? [{ ...one, node }] : [];
  });
}
