// SPDX-License-Identifier: Apache-2.0
// Instance types as a pool reads them: requirements, amounts, and groups of offerings that provide the same room. Thousands of
// types repeat a few hundred requirements, so each is parsed and judged once.
import { capacityTypes, commonLabelSet, type LabelSet, labels } from '../api/labels.ts';
import { Quantity } from '../kube/quantity.ts';
import type { CatalogOffering } from './catalog.ts';
import type { RequirementSpec, ResourceList } from './objects.ts';
import { type Amounts, addTo, amountsOf, amountsProblem, quantityProblem } from './pod-resources.ts';
import type { InstanceTypeSpec, OfferingSpec } from './problem.ts';
import { contentWithout, Requirement, type Requirements } from './requirements.ts';

export interface ReadType {
  readonly requirements: Requirements;
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly groups: readonly { readonly allocatable: Amounts; readonly offerings: readonly CatalogOffering[] }[];
}

/** A requirement that types repeat, and whether the pool excludes it. */
interface Known {
  readonly requirement: Requirement;
  readonly excluded: boolean;
}

/** What offerings ask for, by what they ask for first. */
interface Path {
  readonly next: Map<string, Map<string, Path>>;
  /** Set where an offering ends. */
  end: { readonly requirements: Requirements; readonly reservation: string | undefined } | undefined;
}

/** Reads the instance types of a pool. */
export class TypeReader {
  readonly #pool: Requirements;
  readonly #labels: LabelSet;
  readonly #reservationKey: string | undefined;
  /** By key and the only value. */
  readonly #single = new Map<string, Map<string, Known>>();
  /** By the text of what was written, for all others. */
  readonly #other = new Map<string, Known | undefined>();
  readonly #offerings: Path = { next: new Map(), end: undefined };

  constructor(pool: Requirements, labelSet: LabelSet, reservationKey: string | undefined) {
    this.#pool = pool;
    this.#labels = labelSet;
    this.#reservationKey = reservationKey;
  }

  /** One instance type; undefined when the pool excludes it, a sentence when it cannot be read. */
  read(type: InstanceTypeSpec): ReadType | string | undefined {
    try {
      const offerings = type.offerings ?? [];
      if (offerings.length === 0) return 'it has no offerings';
      const requirements = new Map<string, Requirement>();
      let excluded = false;
      const specs = type.requirements ?? [];
      for (let i = 0; i < specs.length; i++) {
        const spec = specs[i]!;
        const known = this.#known(spec);
        if (!known) return unreadable(spec);
        const { requirement } = known;
        const present = requirements.get(requirement.key);
        if (present) {
          const both = present.intersection(requirement);
          requirements.set(requirement.key, both);
          excluded ||= this.#excludes(both);
        } else {
          requirements.set(requirement.key, requirement);
          excluded ||= known.excluded;
        }
      }
      if (excluded) return undefined;
      const capacity = amountsOf(type.capacity);
      const problem = amountsProblem(capacity);
      if (problem !== undefined) return `its capacity cannot be used: ${problem}`;
      const groups = this.#group(offerings, type.overhead, capacity);
      return typeof groups === 'string' ? groups : { requirements, capacity, groups };
    } catch (error) {
      return quantityProblem(error);
    }
  }

  #known(spec: RequirementSpec): Known | undefined {
    const { key, operator, values, minValues } = spec;
    if (operator === 'In' && minValues === undefined && values?.length === 1) {
      let byValue = this.#single.get(key);
      if (!byValue) {
        byValue = new Map();
        this.#single.set(key, byValue);
      }
      let known = byValue.get(values[0]!);
      if (!known) {
        known = this.#judge(Requirement.parse(spec, this.#labels)!);
        byValue.set(values[0]!, known);
      }
      return known;
    }
    const text = `${key}\n${operator}\n${minValues}\n${values?.join('\n')}`;
    let known = this.#other.get(text);
    if (known === undefined) {
      const requirement = Requirement.parse(spec, this.#labels);
      known = requirement && this.#judge(requirement);
      this.#other.set(text, known);
    }
    return known;
  }

  #judge(requirement: Requirement): Known {
    return { requirement, excluded: this.#excludes(requirement) };
  }

  #excludes(requirement: Requirement): boolean {
    const own = this.#pool.get(requirement.key);
    if (!own || own.intersects(requirement)) return false;
    return !(contentWithout(own) && contentWithout(requirement));
  }

  /** Where an offering with these requirements ends: the same object for all that are written alike. */
  #path(specs: readonly RequirementSpec[]): NonNullable<Path['end']> | string {
    let at = this.#offerings;
    for (let i = 0; i < specs.length; i++) {
      const { key, operator, values, minValues } = specs[i]!;
      const text = operator === 'In' && minValues === undefined && values?.length === 1 ? values[0]! : '\0';
      // What is not one plain value is kept apart by its whole text.
      const under = text === '\0' ? `${key}\n${operator}\n${minValues}\n${values?.join('\n')}` : key;
      let byValue = at.next.get(under);
      if (!byValue) {
        byValue = new Map();
        at.next.set(under, byValue);
      }
      let next = byValue.get(text);
      if (!next) {
        next = { next: new Map(), end: undefined };
        byValue.set(text, next);
      }
      at = next;
    }
    if (!at.end) {
      const all = new Map<string, Requirement>();
      for (const spec of specs) {
        const known = this.#known(spec);
        if (!known) return unreadable(spec);
        const present = all.get(known.requirement.key);
        all.set(known.requirement.key, present ? present.intersection(known.requirement) : known.requirement);
      }
      at.end = { requirements: all, reservation: reservationOf(all, this.#reservationKey) };
    }
    return at.end;
  }

  #group(
    offerings: readonly OfferingSpec[],
    overhead: InstanceTypeSpec['overhead'],
    capacity: ReadonlyMap<string, bigint>,
  ): ReadType['groups'] | string {
    // Nearly every type has one group, whatever is overridden where.
    let plain: { allocatable: Amounts; offerings: CatalogOffering[] } | undefined;
    let others: Map<string, { allocatable: Amounts; offerings: CatalogOffering[] }> | undefined;
    for (let i = 0; i < offerings.length; i++) {
      const offering = offerings[i]!;
      const path = this.#path(offering.requirements ?? []);
      if (typeof path === 'string') return path;
      if (offering.available === false) continue;
      const { capacityOverride, overheadOverride } = offering;
      let group = plain;
      if (capacityOverride || overheadOverride) {
        others ??= new Map();
        const text = JSON.stringify([capacityOverride, overheadOverride]);
        group = others.get(text);
        if (!group) {
          group = { allocatable: overridden(capacity, overhead, capacityOverride, overheadOverride), offerings: [] };
          others.set(text, group);
        }
      } else if (!group) {
        group = { allocatable: allocatableOf(capacity, overhead), offerings: [] };
        plain = group;
      }
      group.offerings.push({
        requirements: path.requirements,
        price: Number.isFinite(offering.price) ? offering.price : Number.MAX_VALUE,
        reservation: path.reservation,
      });
    }
    const groups = plain ? [plain] : [];
    if (others) groups.push(...others.values());
    return groups;
  }
}

function unreadable(spec: RequirementSpec): string {
  return `requirement ${JSON.stringify(spec.key)} ${spec.operator} cannot be read`;
}

/** Capacity minus overhead; huge pages are carved out of memory. */
function allocatableOf(capacity: ReadonlyMap<string, bigint>, overhead: InstanceTypeSpec['overhead']): Amounts {
  const allocatable: Amounts = new Map(capacity);
  if (overhead) {
    take(allocatable, overhead.kubeReserved);
    take(allocatable, overhead.systemReserved);
    take(allocatable, overhead.evictionThreshold);
  }
  carveHugePages(allocatable, capacity);
  return allocatable;
}

function take(from: Amounts, part: ResourceList | undefined): void {
  for (const name in part) {
    const nano = Quantity.parse(part[name]!).nano;
    const left = from.get(name);
    if (left !== undefined && nano !== 0n) from.set(name, left - nano);
  }
}

/** The same where an offering has other capacity, or other overhead. */
function overridden(
  capacity: ReadonlyMap<string, bigint>,
  overhead: InstanceTypeSpec['overhead'],
  capacityOverride: ResourceList | undefined,
  overheadOverride: ResourceList | undefined,
): Amounts {
  const own = new Map([...capacity, ...amountsOf(capacityOverride)]);
  const taken: Amounts = new Map();
  for (const part of [overhead?.kubeReserved, overhead?.systemReserved, overhead?.evictionThreshold])
    if (part) addTo(taken, amountsOf(part));
  for (const [name, nano] of amountsOf(overheadOverride)) taken.set(name, nano);
  const allocatable: Amounts = new Map(own);
  for (const [name, nano] of taken) {
    const left = allocatable.get(name);
    if (left !== undefined) allocatable.set(name, left - nano);
  }
  carveHugePages(allocatable, own);
  return allocatable;
}

function carveHugePages(allocatable: Amounts, capacity: ReadonlyMap<string, bigint>): void {
  for (const name of capacity.keys()) {
    if (!name.startsWith('hugepages-')) continue;
    const nano = capacity.get(name)!;
    const memory = (allocatable.get('memory') ?? 0n) - nano;
    allocatable.set('memory', memory > 0n ? memory : 0n);
  }
}

/** The reservation id of a reserved offering: under the label the cloud names, else under the one label that is not common. */
function reservationOf(requirements: Requirements, key: string | undefined): string | undefined {
  if (!requirements.get(labels.capacityType)?.has(capacityTypes.reserved)) return undefined;
  const named = key ?? [...requirements.keys()].find((k) => !commonLabelSet.wellKnown.has(k));
  const values = named === undefined ? undefined : requirements.get(named)?.values;
  return values?.values().next().value ?? '';
}
