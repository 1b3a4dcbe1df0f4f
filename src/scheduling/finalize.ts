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

/** Turns packed nodes into NodeClaims; nodes that are alike share what was worked out. */
export class Finalizer {
  readonly #world: World;
  readonly #facts = new Map<string, Facts>();
  readonly #requirements = new Map<number, readonly RequirementSpec[]>();

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
    const seen = new Uint8Array(catalog.types.length);
    const types: number[] = [];
    let price = Number.POSITIVE_INFINITY;
    let cheapest = -1;
    for (let i = 0; i < rows.length; i++) {
      const row = rows[i]!;
      const type = catalog.typeOf[row]!;
      if (seen[type] === 1 || !catalog.fitsRow(row, total)) continue;
      seen[type] = 1;
      if (types.length === 0) [price, cheapest] = [prices[i]!, row];
      types.push(type);
    }
    const set = this.#world.space.get(group.set);
    if (node.reservations.length > 0 && node.template.minValueKeys.length > 0) this.#addOthers(node, seen, types);
    const most = this.#world.problem.settings?.maxInstanceTypes ?? defaultMaxTypes;
    const kept = types.length > most ? truncate(catalog, types, most, set) : types;
    const claim = {
      requirements: catalog.hasReserved ? this.#reservedRequirements(node, set) : this.#specs(group.set),
      instanceTypes: kept.map((type) => catalog.types[type]!.name),
      price,
      requests: this.#requests(node, types),
    };
    return { claim, row: cheapest };
  }

  /** A node that holds a reservation keeps the other types that fit where minValues asks for a choice. */
  #addOthers(node: NewNode, seen: Uint8Array, types: number[]): void {
    const { catalog } = node.template;
    const view = catalog.view(node.group.set, catalog.plainMask(node.group.mask));
    const { rows } = catalog.priceRows(view, () => true);
    for (const row of rows) {
      const type = catalog.typeOf[row]!;
      if (seen[type] === 1 || !catalog.fitsRow(row, node.total)) continue;
      seen[type] = 1;
      types.push(type);
    }
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
  #requests(node: NewNode, types: readonly number[]): Record<string, string> {
    const { catalog } = node.template;
    const amounts = this.#world.axis.amounts(node.total);
    let least: Map<string, bigint> | undefined;
    for (const overhead of catalog.overheadsOf(types)) {
      if (!least) least = new Map(overhead);
      else
        for (const [name, nano] of least) {
          const other = overhead.get(name);
          if (other === undefined) least.delete(name);
          else if (other < nano) least.set(name, other);
        }
    }
    if (least) addTo(amounts, least);
    const requests: Record<string, string> = {};
    for (const [name, nano] of [...amounts].sort(([a], [b]) => compareStrings(a, b)))
      requests[name] = render(name, nano);
    return requests;
  }
}

function specsOf(set: Requirements): RequirementSpec[] {
  return [...set.values()]
    .filter(({ key }) => !lifecycleKeys.has(key))
    .sort((a, b) => compareStrings(a.key, b.key))
    .flatMap((requirement) => requirement.toSpecs());
}

function render(name: string, nano: bigint): string {
  const binary = name === 'memory' || name === 'ephemeral-storage' || name.startsWith('hugepages-');
  return Quantity.fromNano(nano, binary ? 'BinarySI' : 'DecimalSI').toString();
}
