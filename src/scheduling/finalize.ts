// SPDX-License-Identifier: Apache-2.0
// From packed nodes to NodeClaims: which types are left, cheapest first, at what price, and what each requests.
import { capacityTypes, labels } from '../api/labels.ts';
import { compareStrings } from '../base/order.ts';
import { Quantity } from '../kube/quantity.ts';
import type { PricedRows, View } from './catalog.ts';
import { type Fitting, FittingRows } from './fitting.ts';
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
}

/** The types that fit a node as its claim lists them, and the least that daemons take on any of them. */
interface TypeList {
  readonly names: readonly string[];
  readonly overhead: ReadonlyMap<string, bigint> | undefined;
}

/** Turns packed nodes into NodeClaims; nodes that are alike share what was worked out. */
export class Finalizer {
  readonly #world: World;
  /** By the index of the node. */
  readonly #facts: (Facts | undefined)[] = [];
  readonly #requirements = new Map<number, readonly RequirementSpec[]>();
  /** By what fits and the requirement set. */
  readonly #lists = new Map<Fitting, Map<number, TypeList>>();
  /** By resource and units: the text. */
  readonly #texts: Map<number, string>[] = [];

  constructor(world: World) {
    this.#world = world;
  }

  claimOf(node: NewNode): NewNodeClaim {
    const { keys } = this.#world.batch;
    const { requirements, instanceTypes, price, requests } = this.#factsOf(node).claim;
    const pods: string[] = [];
    for (let i = 0; i < node.pods.length; i++) pods.push(keys[node.pods[i]!]!);
    const claim = { nodePool: node.template.nodePool, requirements, instanceTypes, price, requests, pods };
    if (!node.minValuesRelaxed && node.reservations.length === 0) return claim;
    return {
      ...claim,
      ...(node.minValuesRelaxed ? { minValuesRelaxed: true } : {}),
      ...(node.reservations.length > 0 ? { reservations: node.reservations } : {}),
    };
  }

  #factsOf(node: NewNode): Facts {
    return (this.#facts[node.index] ??= this.#work(node));
  }

  /** What a node costs; takes less than all that is to be known about it. */
  priceOf(node: NewNode): number {
    const known = this.#facts[node.index];
    if (known) return known.claim.price;
    const { priced, fitting } = this.#fitting(node);
    return fitting.first < 0 ? Number.POSITIVE_INFINITY : priced.prices[fitting.first]!;
  }

  #fitting(node: NewNode): { priced: PricedRows; fitting: Fitting } {
    const { catalog } = node.template;
    // What a thrifty pass would not have bought for this node may still be the cheapest that fits what it got.
    const view = catalog.view(node.group.set, catalog.plainMask(node.group.mask));
    const held = node.reservations.length > 0;
    const priced = held ? this.#held(node, view) : catalog.byPrice(view);
    return { priced, fitting: (held ? new FittingRows(catalog, priced) : catalog.fittingRows(view)).of(node.total) };
  }

  #work(node: NewNode): Facts {
    const { catalog } = node.template;
    const { set } = node.group;
    const { priced, fitting } = this.#fitting(node);
    const types = this.#typesFor(node, fitting);
    const claim = {
      requirements: catalog.hasReserved
        ? this.#reservedRequirements(node, this.#world.space.get(set))
        : this.#specs(set),
      instanceTypes: types.names,
      price: fitting.first < 0 ? Number.POSITIVE_INFINITY : priced.prices[fitting.first]!,
      requests: this.#requests(node, types.overhead),
    };
    return { claim };
  }

  /** The types that fit as a claim lists them. Claims with the same types share the list. */
  #typesFor(node: NewNode, fitting: Fitting): TypeList {
    const { set } = node.group;
    let lists = this.#lists.get(fitting);
    if (!lists) {
      lists = new Map();
      this.#lists.set(fitting, lists);
    }
    let list = lists.get(set);
    if (!list) {
      const { catalog } = node.template;
      const special = node.reservations.length > 0 && node.template.minValueKeys.length > 0;
      const all = special ? this.#addOthers(node, fitting.types) : fitting.types;
      const most = this.#world.problem.settings?.maxInstanceTypes ?? defaultMaxTypes;
      const kept = all.length > most ? truncate(catalog, Array.from(all), most, this.#world.space.get(set)) : all;
      const names = kept === fitting.types ? fitting.names : Array.from(kept, (type) => catalog.types[type]!.name);
      let overhead: ReadonlyMap<string, bigint> | undefined;
      for (const own of catalog.overheadsOf(all)) overhead = overhead ? lesser(overhead, own) : own;
      list = { names, overhead };
      lists.set(set, list);
    }
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

  /** The rows with an offering of the reservations that a node holds. */
  #held({ template, reservations }: NewNode, view: View): PricedRows {
    return template.catalog.priceRows(
      view,
      ({ reservation }) => reservation !== undefined && reservations.includes(reservation),
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
  #requests(node: NewNode, least: ReadonlyMap<string, bigint> | undefined): Record<string, string> {
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
