// SPDX-License-Identifier: Apache-2.0
// Which machines may replace others: only such as are cheaper whatever the launch turns into, and for spot machines only
// where there is enough to choose from.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { RequirementSpec } from '../../scheduling/objects.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { conflict, type Requirements, requirementsOf } from '../../scheduling/requirements.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import type { Candidate } from './candidates.ts';

/** A lone spot machine is replaced by one of at least so many cheaper types: with fewer it would soon be reclaimed. */
const spotFlexibility = 15;

export const cannotBeCheaper = "Can't replace with a cheaper node";

export interface ReplacementRules {
  readonly catalog: PoolCatalog;
  /** The feature gate SpotToSpotConsolidation. */
  readonly spotToSpot: boolean;
}

/** The replacements with only the types that are sure to save, or why there are none. */
export function cheaperReplacements(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  { catalog, spotToSpot }: ReplacementRules,
): readonly NewNodeClaim[] | string {
  const price = candidates.reduce((sum, candidate) => sum + candidate.price, 0);
  const bought = claims.reduce((sum, claim) => sum + claim.price, 0);
  if (!(bought < price)) return cannotBeCheaper;
  const allSpot = candidates.every(({ machine }) => machine.labels[labels.capacityType] === capacityTypes.spot);
  const replaced = pricesByType(candidates);
  const filtered: NewNodeClaim[] = [];
  for (const claim of claims) {
    // What is saved may be spent on choice, each in its share: together they stay below what goes.
    const ceiling = claim.price + ((price - bought) * claim.price) / bought;
    const priced = new PricedTypes(claim, catalog.instanceTypes[claim.nodePool] ?? []);
    const isSpot = allSpot && priced.allows(capacityTypes.spot);
    if (isSpot && !spotToSpot) return "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node";
    const narrowed = isSpot ? priced.only(capacityTypes.spot) : priced.forced();
    const kept = narrowed.below(ceiling).withoutSameTypes(replaced, candidates.length);
    const result = isSpot && candidates.length === 1 ? kept.flexible(spotFlexibility) : kept;
    if (typeof result === 'string') return result;
    if (result.types.length === 0) return cannotBeCheaper;
    const problem = result.minValuesProblem();
    if (problem !== undefined) return problem;
    filtered.push(result.claim());
  }
  return filtered;
}

/** The lowest price of the candidates of each type. */
function pricesByType(candidates: readonly Candidate[]): Map<string, number> {
  const prices = new Map<string, number>();
  for (const { instanceType, price } of candidates)
    if (instanceType) prices.set(instanceType.name, Math.min(price, prices.get(instanceType.name) ?? price));
  return prices;
}

interface Priced {
  readonly type: InstanceType;
  /** The worst price of a launch, whichever zone it ends up in. */
  readonly worst: number;
}

/** The types of a plan with what each costs at worst. */
class PricedTypes {
  readonly #plan: NewNodeClaim;
  readonly #requirements: Requirements;
  readonly #capacityType: string | undefined;
  readonly types: readonly Priced[];

  constructor(plan: NewNodeClaim, sold: readonly InstanceType[], capacityType?: string, types?: readonly Priced[]) {
    this.#plan = plan;
    this.#requirements = requirementsOf(plan.requirements);
    this.#capacityType = capacityType;
    this.types = types ?? this.#price(sold);
  }

  #price(sold: readonly InstanceType[]): Priced[] {
    const byName = new Map(sold.map((type) => [type.name, type]));
    return this.#plan.instanceTypes.flatMap((name) => {
      const type = byName.get(name);
      const worst = type && this.#worst(type, preferred);
      return type && worst !== undefined ? [{ type, worst }] : [];
    });
  }

  /** Whether the plan leaves this way to pay open. */
  allows(capacityType: string): boolean {
    return this.#requirements.get(labels.capacityType)?.has(capacityType) ?? true;
  }

  /** With one way to pay and no other. */
  only(capacityType: string): PricedTypes {
    const types = this.types.flatMap(({ type }) => {
      const worst = this.#worst(type, [capacityType]);
      return worst === undefined ? [] : [{ type, worst }];
    });
    return new PricedTypes(this.#plan, [], capacityType, types);
  }

  /** A plan that may be spot or on demand must not fall back to what is dearer: it becomes the one that is counted on. */
  forced(): PricedTypes {
    if (!this.allows(capacityTypes.spot) || !this.allows(capacityTypes.onDemand)) return this;
    const spot = this.only(capacityTypes.spot);
    return spot.types.length > 0 ? spot : this.only(capacityTypes.onDemand);
  }

  below(ceiling: number): PricedTypes {
    return this.#with(this.types.filter(({ worst }) => worst < ceiling * (1 - 1e-9)));
  }

  /** What is bought in place of several must be cheaper than one of the same type among them: else that one could stay. */
  withoutSameTypes(replaced: ReadonlyMap<string, number>, count: number): PricedTypes {
    if (count < 2) return this;
    let most = Number.POSITIVE_INFINITY;
    for (const { type } of this.types) most = Math.min(most, replaced.get(type.name) ?? Number.POSITIVE_INFINITY);
    return this.#with(this.types.filter(({ worst }) => worst < most));
  }

  /** The cheapest so many, or why there are too few. More where minValues asks for more. */
  flexible(count: number): PricedTypes | string {
    if (this.types.length < count)
      return `SpotToSpotConsolidation requires ${count} cheaper instance type options than the current candidate to consolidate, got ${this.types.length}`;
    const sorted = this.types.toSorted((a, b) => a.worst - b.worst);
    for (let most = count; most < sorted.length; most++) {
      const some = this.#with(sorted.slice(0, most));
      if (some.minValuesProblem() === undefined) return some;
    }
    return this;
  }

  minValuesProblem(): string | undefined {
    for (const { key, minValues } of this.#requirements.values()) {
      if (minValues === undefined) continue;
      const values = new Set<string>();
      for (const { type } of this.types)
        for (const spec of type.requirements)
          if (spec.key === key) for (const value of spec.values ?? []) values.add(value);
      if (values.size < minValues) return `minValues requirement is not met for label ${key}`;
    }
    return undefined;
  }

  claim(): NewNodeClaim {
    const { requirements } = this.#plan;
    const paid = this.#capacityType;
    return {
      ...this.#plan,
      instanceTypes: this.types.map(({ type }) => type.name),
      requirements: paid === undefined ? requirements : withCapacityType(requirements, paid),
    };
  }

  #with(types: readonly Priced[]): PricedTypes {
    return new PricedTypes(this.#plan, [], this.#capacityType, types);
  }

  /** Of the first way to pay that can be had. */
  #worst(type: InstanceType, ways: readonly string[]): number | undefined {
    for (const way of ways) {
      if (!this.allows(way)) continue;
      let worst: number | undefined;
      for (const offering of type.offerings) {
        // A price that is not known is no reason to move anything.
        if (offering.available === false || !(offering.price > 0) || !Number.isFinite(offering.price)) continue;
        const own = offeringRequirements(offering);
        if (!own.get(labels.capacityType)?.has(way) || conflict(own, this.#requirements) !== undefined) continue;
        worst = Math.max(worst ?? 0, offering.price);
      }
      if (worst !== undefined) return worst;
    }
    return undefined;
  }
}

/** In the order a launch prefers them. */
const preferred = [capacityTypes.reserved, capacityTypes.spot, capacityTypes.onDemand];

const parsed = new WeakMap<InstanceType['offerings'][number], Requirements>();

function offeringRequirements(offering: InstanceType['offerings'][number]): Requirements {
  let known = parsed.get(offering);
  if (!known) parsed.set(offering, (known = requirementsOf(offering.requirements)));
  return known;
}

function withCapacityType(specs: readonly RequirementSpec[], value: string): RequirementSpec[] {
  const minValues = specs.find(({ key }) => key === labels.capacityType)?.minValues;
  const own: RequirementSpec = {
    key: labels.capacityType,
    operator: 'In',
    values: [value],
    ...(minValues === undefined ? {} : { minValues }),
  };
  return [...specs.filter(({ key }) => key !== labels.capacityType), own];
}
