// SPDX-License-Identifier: Apache-2.0
// Which machines may replace others: only such as are cheaper whatever the launch turns into, and for spot machines only
// where there is enough to choose from.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { RequirementSpec } from '../../scheduling/objects.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { conflict, type Requirements, requirementsOf } from '../../scheduling/requirements.ts';
import { cloudOf, isPriced } from '../../scheduling/templates.ts';
import type { PoolCatalog } from '../../state/pool-catalog.ts';
import type { Candidate } from './candidates.ts';

/** A lone spot machine is replaced by one of at least so many cheaper types: with fewer it would soon be reclaimed. */
const spotFlexibility = 15;

export const cannotBeCheaper = "Can't replace with a cheaper node";

const spotToSpotDisabled = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node";

export const notComparable = 'Its price and that of its replacement in another cloud are not both known';

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
  if (!areComparable(candidates, claims, catalog)) return notComparable;
  const allSpot = areAllSpot(candidates);
  const replaced = pricesByType(candidates);
  const filtered: NewNodeClaim[] = [];
  for (const claim of claims) {
    // What is saved may be spent on choice, each in its share: together they stay below what goes.
    const ceiling = claim.price + ((price - bought) * claim.price) / bought;
    const sold = catalog.instanceTypes[claim.nodePool] ?? [];
    const priced = new PricedTypes(claim, workedFor(claim.requirements, sold), sold);
    const isSpot = allSpot && priced.allows(capacityTypes.spot);
    if (isSpot && !spotToSpot) return spotToSpotDisabled;
    const narrowed = isSpot ? priced.only(capacityTypes.spot) : priced.forced();
    const kept = narrowed
      .below(ceiling)
      .withoutSameTypes(claims.length === 1 && candidates.length > 1 ? replaced : nothing);
    const result = isSpot && candidates.length === 1 ? kept.flexible(spotFlexibility) : kept;
    if (typeof result === 'string') return result;
    if (result.types.length === 0) return cannotBeCheaper;
    const problem = result.minValuesProblem();
    if (problem !== undefined) return problem;
    filtered.push(result.claim());
  }
  return filtered;
}

/** Why these candidates do not go for machines that are paid so, whatever they cost. */
export function whyNotPaidSo(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  { spotToSpot, catalog }: ReplacementRules,
): string | undefined {
  if (spotToSpot || !areAllSpot(candidates)) return undefined;
  const maySpot = claims.some(({ nodePool, requirements }) => {
    const paid = workedFor(requirements, catalog.instanceTypes[nodePool] ?? []).requirements.get(labels.capacityType);
    return paid?.has(capacityTypes.spot) ?? true;
  });
  return maySpot ? spotToSpotDisabled : undefined;
}

function areAllSpot(candidates: readonly Candidate[]): boolean {
  return candidates.every(({ machine }) => machine.labels[labels.capacityType] === capacityTypes.spot);
}

/** Between machines of several clouds a guessed price decides nothing. */
function areComparable(
  candidates: readonly Candidate[],
  claims: readonly NewNodeClaim[],
  { pools, instanceTypes }: PoolCatalog,
): boolean {
  const poolOf = new Map(pools.map((pool) => [pool.metadata.name ?? '', pool]));
  const bought = claims.flatMap(({ nodePool }) => poolOf.get(nodePool) ?? []);
  const clouds = new Set([...candidates.map(({ nodePool }) => nodePool), ...bought].map(cloudOf));
  if (clouds.size < 2) return true;
  const sold = claims.flatMap(({ nodePool, instanceTypes: names }) => {
    const listed = new Set(names);
    return (instanceTypes[nodePool] ?? []).filter(({ name }) => listed.has(name));
  });
  const going = candidates.flatMap(({ instanceType }) => instanceType ?? []);
  return [...going, ...sold].every(({ offerings }) => offerings.every(isPriced));
}

const nothing: ReadonlyMap<string, number> = new Map();

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

interface PricedParts {
  readonly capacityType?: string;
  readonly types?: readonly Priced[];
}

/** The types of a plan with what each costs at worst. */
class PricedTypes {
  readonly #plan: NewNodeClaim;
  readonly #worked: Worked;
  readonly #capacityType: string | undefined;
  readonly types: readonly Priced[];

  constructor(plan: NewNodeClaim, known: Worked, sold: readonly InstanceType[] | undefined, rest: PricedParts = {}) {
    this.#plan = plan;
    this.#worked = known;
    this.#capacityType = rest.capacityType;
    this.types = rest.types ?? this.#price(sold ?? []);
  }

  #price(sold: readonly InstanceType[]): Priced[] {
    const named = typesByName(sold);
    return this.#plan.instanceTypes.flatMap((name) => {
      const type = named.get(name);
      const worst = type && this.#worst(type, preferred);
      return type && worst !== undefined ? [{ type, worst }] : [];
    });
  }

  /** Whether the plan leaves this way to pay open. */
  allows(capacityType: string): boolean {
    return this.#worked.requirements.get(labels.capacityType)?.has(capacityType) ?? true;
  }

  /** With one way to pay and no other. */
  only(capacityType: string): PricedTypes {
    const types = this.types.flatMap(({ type }) => {
      const worst = this.#worst(type, [capacityType]);
      return worst === undefined ? [] : [{ type, worst }];
    });
    return new PricedTypes(this.#plan, this.#worked, undefined, { capacityType, types });
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

  /** What one is bought in place of several must be cheaper than one of its type among them: else that one could stay. */
  withoutSameTypes(replaced: ReadonlyMap<string, number>): PricedTypes {
    if (replaced.size === 0) return this;
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
    for (const { key, minValues } of this.#worked.requirements.values()) {
      if (minValues === undefined) continue;
      const values = new Set<string>();
      for (const { type } of this.types)
        for (const spec of type.requirements)
          if (spec.key === key) for (const value of spec.values ?? []) values.add(value);
      if (values.size < minValues) return `minValues requirement is not met for label ${key}`;
    }
    return undefined;
  }

  /** With the price of the cheapest that is left. */
  claim(): NewNodeClaim {
    const { requirements, price } = this.#plan;
    const paid = this.#capacityType;
    const least = this.types.reduce((min, { type }) => Math.min(min, this.#best(type)), Number.POSITIVE_INFINITY);
    return {
      ...this.#plan,
      price: Number.isFinite(least) ? Math.max(least, price) : price,
      instanceTypes: this.types.map(({ type }) => type.name),
      requirements: paid === undefined ? requirements : withCapacityType(requirements, paid),
    };
  }

  #with(types: readonly Priced[]): PricedTypes {
    const paid = this.#capacityType;
    return new PricedTypes(
      this.#plan,
      this.#worked,
      undefined,
      paid === undefined ? { types } : { capacityType: paid, types },
    );
  }

  /** What a type costs in the cheapest of the zones that are left to it, by the ways to pay that are left. */
  #best(type: InstanceType): number {
    const { requirements } = this.#worked;
    let best = Number.POSITIVE_INFINITY;
    for (const offering of type.offerings) {
      if (offering.available === false || !(offering.price < best) || !(offering.price > 0)) continue;
      const own = offeringRequirements(offering);
      if (this.#capacityType !== undefined && !own.get(labels.capacityType)?.has(this.#capacityType)) continue;
      if (conflict(own, requirements) === undefined) best = offering.price;
    }
    return best;
  }

  /** Of the first way to pay that can be had. */
  #worst(type: InstanceType, ways: readonly string[]): number | undefined {
    for (const way of ways) {
      const worst = this.#worstBy(type, way);
      if (worst !== undefined) return worst;
    }
    return undefined;
  }

  #worstBy(type: InstanceType, way: string): number | undefined {
    let known = this.#worked.prices.get(way);
    if (!known) this.#worked.prices.set(way, (known = new Map()));
    let worst = known.get(type);
    if (worst === undefined) {
      worst = this.allows(way) ? worstPrice(type, way, this.#worked.requirements) : none;
      known.set(type, worst);
    }
    return worst === none ? undefined : worst;
  }
}

/** No offering at all. */
const none = -1;

function worstPrice(type: InstanceType, way: string, requirements: Requirements): number {
  let worst = none;
  for (const offering of type.offerings) {
    // A price that is not known is no reason to move anything.
    if (offering.available === false || !(offering.price > worst) || !(offering.price > 0)) continue;
    if (!Number.isFinite(offering.price)) continue;
    const own = offeringRequirements(offering);
    if (!own.get(labels.capacityType)?.has(way) || conflict(own, requirements) !== undefined) continue;
    worst = offering.price;
  }
  return worst;
}

interface Worked {
  readonly requirements: Requirements;
  /** By way to pay and type. */
  readonly prices: Map<string, Map<InstanceType, number>>;
}

/** What was worked out about types on sale, by the requirements of plans: plans that are alike share it. */
const worked = new WeakMap<readonly InstanceType[], Map<string, Worked>>();
/** Beyond this many it starts over: a plan with 600 types takes 77 kB. */
const mostPlans = 500;

function workedFor(specs: readonly RequirementSpec[], sold: readonly InstanceType[]): Worked {
  let byText = worked.get(sold);
  if (!byText || byText.size > mostPlans) worked.set(sold, (byText = new Map()));
  const text = JSON.stringify(specs);
  let known = byText.get(text);
  if (!known) byText.set(text, (known = { requirements: requirementsOf(specs), prices: new Map() }));
  return known;
}

const byName = new WeakMap<readonly InstanceType[], Map<string, InstanceType>>();

function typesByName(sold: readonly InstanceType[]): Map<string, InstanceType> {
  let known = byName.get(sold);
  if (!known) byName.set(sold, (known = new Map(sold.map((type) => [type.name, type]))));
  return known;
}

/** In the order a launch prefers them. */
const preferred = [capacityTypes.reserved, capacityTypes.spot, capacityTypes.onDemand];

const parsed = new WeakMap<InstanceType['offerings'][number], Requirements>();

function offeringRequirements(offering: InstanceType['offerings'][number]): Requirements {
  let known = parsed.get(offering);
  if (!known) parsed.set(offering, (known = requirementsOf(offering.requirements)));
  return known;
}

const narrowed = new WeakMap<readonly RequirementSpec[], Map<string, readonly RequirementSpec[]>>();

function withCapacityType(specs: readonly RequirementSpec[], value: string): readonly RequirementSpec[] {
  let known = narrowed.get(specs);
  if (!known) narrowed.set(specs, (known = new Map()));
  let made = known.get(value);
  if (!made) known.set(value, (made = narrow(specs, value)));
  return made;
}

function narrow(specs: readonly RequirementSpec[], value: string): readonly RequirementSpec[] {
  const given = specs.filter(({ key }) => key === labels.capacityType);
  if (given.length === 1 && given[0]!.operator === 'In' && given[0]!.values?.join() === value) return specs;
  const minValues = given.find((spec) => spec.minValues !== undefined)?.minValues;
  const own: RequirementSpec = {
    key: labels.capacityType,
    operator: 'In',
    values: [value],
    ...(minValues === undefined ? {} : { minValues }),
  };
  return [...specs.filter(({ key }) => key !== labels.capacityType), own];
}
