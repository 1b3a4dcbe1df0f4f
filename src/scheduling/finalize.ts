// SPDX-License-Identifier: Apache-2.0
// From packed nodes to NodeClaims: which types are left, cheapest first, at what price, and what each requests.
import { capacityTypes, labels } from '../api/labels.ts';
import { compareStrings } from '../base/order.ts';
import { Quantity } from '../kube/quantity.ts';
import type { PricedRows } from './catalog.ts';
import type { NewNode } from './in-flight.ts';
import { truncate } from './min-values.ts';
import type { RequirementSpec } from './objects.ts';
import { addTo } from './pod-resources.ts';
import type { NewNodeClaim } from './problem.ts';
import { mergeRequirements, Requirement, type Requirements } from './requirements.ts';
import { lifecycleKeys, reservationKeyOf } from './templates.ts';
import type { World } from './world.ts';

/** How many types a NodeClaim lists at most, unless told otherwise. */
const defaultMaxTypes = 600;

interface Facts {
  readonly claim: Pick<NewNodeClaim, 'requirements' | 'instanceTypes' | 'price' | 'requests'>;
  /** The row of the cheapest launch; -1 when there is none. */
  readonly row: number;
}

/** The types of a claim, cheapest first: all that fit, and the names of those that it lists. */
interface TypeList {
  readonly set: Requirements;
  readonly all: Int32Array;
  readonly names: readonly string[];
}

/** Turns packed nodes into NodeClaims; nodes that are alike share what was worked out. */
export class Finalizer {
  readonly #world: World;
  readonly #facts = new Map<string, Facts>();
  readonly #requirements = new Map<number, readonly RequirementSpec[]>();
  /** By a number made of the types: the lists that were made. */
  readonly #lists = new Map<number, TypeList[]>();
  /** By resource and units: the text. */
  readonly #texts: Map<number, string>[] = [];
  /** The types that fit the node at hand. */
  #found: Int32Array = new Int32Array(0);

  constructor(world: World) {
    this.#world = world;
  }

  claimOf(node: NewNode): NewNodeClaim {
    const { keys } = this.#world.batch;
    return {
      nodePool: node.template.nodePool,
      ...this.factsOf(node).claim,
      pods: node.pods.map((pod) => keys[pod]!),
      ...(node.minValuesRelaxed ? { minValuesRelaxed: true } : {}),
      ...(node.reservations.length > 0 ? { reservations: node.reservations } : {}),
    };
  }

  factsOf(node: NewNode): Facts {
    const memo = `${node.group.id}:${node.total.join()}:${node.reservations.join()}`;
    let facts = this.#facts.get(memo);
    if (!facts) {
      facts = this.#work(node);
      this.#facts.set(memo, facts);
    }
    return facts;
  }

  #work(node: NewNode): Facts {
    const { catalog } = node.template;
    const { group, total } = node;
    const { rows, prices } = this.#priced(node);
    const { typeOf } = catalog;
    const found = this.#found.length < rows.length ? new Int32Array(rows.length) : this.#found;
    this.#found = found;
    let count = 0;
    let first = -1;
    let last = -1;
    const { free, width } = catalog;
    next: for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      // Thousands of nodes times hundreds of rows: no call for each.
      for (let r = 0, at = row * width; r < width; r++, at++) if (free[at]! < total[r]!) continue next;
      if (first < 0) first = i;
      const type = typeOf[row]!;
      // Variants of a type mostly follow each other; others are sorted out below.
      if (type !== last) found[count++] = type;
      last = type;
    }
    if (catalog.hasVariants) count = dropRepeated(found, count, catalog.types.length);
    const set = this.#world.space.get(group.set);
    const types = this.#typesFor(node, set, count);
    const claim = {
      requirements: catalog.hasReserved ? this.#reservedRequirements(node, set) : this.#specs(group.set),
      instanceTypes: types.names,
      price: first < 0 ? Number.POSITIVE_INFINITY : prices[first]!,
      requests: this.#requests(node, types.all),
    };
    return { claim, row: first < 0 ? -1 : rows[first]! };
  }

  /** The types in `#found` as a claim lists them. Claims with the same types share the list. */
  #typesFor(node: NewNode, set: Requirements, count: number): TypeList {
    const { catalog } = node.template;
    const special = node.reservations.length > 0 && node.template.minValueKeys.length > 0;
    const found = this.#found;
    let hash = node.template.index;
    for (let i = 0; i < count; i++) hash = (Math.imul(hash, 31) + found[i]!) | 0;
    let same = this.#lists.get(hash);
    if (!same) {
      same = [];
      this.#lists.set(hash, same);
    }
    for (const list of same) if (list.set === set && !special && isSame(list.all, found, count)) return list;
    let all: Int32Array = found.slice(0, count);
    if (special) all = this.#addOthers(node, all);
    const most = this.#world.problem.settings?.maxInstanceTypes ?? defaultMaxTypes;
    const kept = all.length > most ? truncate(catalog, Array.from(all), most, set) : all;
    const names: string[] = [];
    for (let i = 0; i < kept.length; i++) names.push(catalog.types[kept[i]!]!.name);
    const list = { set, all, names };
    if (!special) same.push(list);
    return list;
  }

  /** A node that holds a reservation keeps the other types that fit where minValues asks for a choice. */
  #addOthers(node: NewNode, held: Int32Array): Int32Array {
    const { catalog } = node.template;
    const types = new Set(held);
    const view = catalog.view(node.group.set, catalog.plainMask(node.group.mask));
    const { rows } = catalog.priceRows(view, undefined);
    for (const row of rows) if (catalog.fitsRow(row, node.total)) types.add(catalog.typeOf[row]!);
    return Int32Array.from(types);
  }

  #priced(node: NewNode): PricedRows {
    const { catalog } = node.template;
    // What a thrifty pass would not have bought for this node may still be the cheapest that fits what it got.
    const view = catalog.view(node.group.set, catalog.plainMask(node.group.mask));
    if (node.reservations.length === 0) return catalog.byPrice(view);
    return catalog.priceRows(
      view,
      ({ reservation }) => reservation !== undefined && node.reservations.includes(reservation),
    );
  }

  #specs(set: number): readonly RequirementSpec[] {
    let specs = this.#requirements.get(set);
    if (!specs) {
      specs = specsOf(this.#world.space.get(set));
      this.#requirements.set(set, specs);
    }
    return specs;
  }

  /** A node is launched into the reservations it holds, and into no others. */
  #reservedRequirements(node: NewNode, set: Requirements): RequirementSpec[] {
    const held = node.reservations.length > 0;
    const paid = held
      ? Requirement.in(labels.capacityType, [capacityTypes.reserved])
      : new Requirement(labels.capacityType, true, new Set([capacityTypes.reserved]));
    const narrowed = mergeRequirements(set, new Map([[labels.capacityType, paid]]));
    const key = held ? reservationKeyOf(node.template, this.#world.problem) : undefined;
    if (key !== undefined) narrowed.set(key, Requirement.in(key, node.reservations));
    return specsOf(narrowed);
  }

  /** Pods plus the least that daemons take on any of the types: a lower bound for every launch. */
  #requests(node: NewNode, types: Int32Array): Record<string, string> {
    let least: ReadonlyMap<string, bigint> | undefined;
    for (const overhead of node.template.catalog.overheadsOf(types)) least = least ? lesser(least, overhead) : overhead;
    if (least && least.size > 0) {
      const amounts = this.#world.axis.amounts(node.total);
      addTo(amounts, least);
      return renderAll(amounts);
    }
    const { axis } = this.#world;
    const requests: Record<string, string> = {};
    for (let r = 0; r < axis.size; r++) {
      const units = node.total[r]!;
      if (units <= 0) continue;
      const known = (this.#texts[r] ??= new Map());
      let text = known.get(units);
      if (text === undefined) {
        text = render(axis.names[r]!, axis.nano(r, units));
        known.set(units, text);
      }
      requests[axis.names[r]!] = text;
    }
    return requests;
  }
}

/** What both take of each resource. */
function lesser(a: ReadonlyMap<string, bigint>, b: ReadonlyMap<string, bigint>): Map<string, bigint> {
  const least = new Map<string, bigint>();
  for (const [name, nano] of a) {
    const other = b.get(name);
    if (other !== undefined) least.set(name, other < nano ? other : nano);
  }
  return least;
}

/** Leaves each type once, at its first place; returns how many are left. */
function dropRepeated(types: Int32Array, count: number, all: number): number {
  const seen = new Uint8Array(all);
  let kept = 0;
  for (let i = 0; i < count; i++) {
    const type = types[i]!;
    if (seen[type] === 1) continue;
    seen[type] = 1;
    types[kept++] = type;
  }
  return kept;
}

function isSame(list: Int32Array, found: Int32Array, count: number): boolean {
  if (list.length !== count) return false;
  for (let i = 0; i < count; i++) if (list[i] !== found[i]) return false;
  return true;
}

function specsOf(set: Requirements): RequirementSpec[] {
  return [...set.values()]
    .filter(({ key }) => !lifecycleKeys.has(key))
    .sort((a, b) => compareStrings(a.key, b.key))
    .flatMap((requirement) => requirement.toSpecs());
}

function renderAll(amounts: ReadonlyMap<string, bigint>): Record<string, string> {
  const requests: Record<string, string> = {};
  for (const [name, nano] of [...amounts].sort(([a], [b]) => compareStrings(a, b))) requests[name] = render(name, nano);
  return requests;
}

function render(name: string, nano: bigint): string {
  const binary = name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-');
  return Quantity.fromNano(nano, binary ? 'BinarySI' : 'DecimalSI').toString();
}
