// SPDX-License-Identifier: Apache-2.0
// Instance types as pools read them: requirements, amounts, and groups of offerings that provide the same room. Thousands of
// types repeat a few hundred requirements, so each is parsed once; a list that many pools or passes use is read once.
import { capacityTypes, commonLabelSet, type LabelSet, labels } from '../api/labels.ts';
import { Quantity } from '../kube/quantity.ts';
import type { CatalogOffering } from './catalog.ts';
import type { RequirementSpec, ResourceList } from './objects.ts';
import { type Amounts, addTo, amountProblem, amountsOf, amountsProblem, quantityProblem } from './pod-resources.ts';
import type { InstanceTypeSpec, OfferingSpec } from './problem.ts';
import { contentWithout, Requirement, type Requirements } from './requirements.ts';
import { instanceTypeShape } from './shapes.ts';

export interface ReadType {
  readonly requirements: Requirements;
  /** The labels that they name: the same list for types in a row that name the same. */
  readonly keys: readonly string[];
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly groups: readonly {
    readonly allocatable: ReadonlyMap<string, bigint>;
    readonly offerings: readonly CatalogOffering[];
  }[];
  /** Why it is of no use to pools that it suits. */
  readonly problem?: string;
}

/** A list of instance types as it was read in the words of one cloud. */
export interface Shelf {
  /** By place in the list; a sentence where a type cannot be read at all. */
  readonly types: readonly (ReadType | string)[];
  /** The labels that some type names. */
  readonly keys: ReadonlySet<string>;
  /** What the list held. */
  readonly sources: readonly InstanceTypeSpec[];
  /** What the market said of it. */
  readonly market: readonly unknown[];
}

/** Clouds hand out the same list as long as nothing changes: pools and passes that use it share the reading. */
const shelves = new WeakMap<readonly InstanceTypeSpec[], Map<string, Shelf>>();

/** Reads a list of instance types. `words` are the same for equal labels. */
export function readTypes(
  list: readonly InstanceTypeSpec[],
  labelSet: LabelSet,
  words: string,
  reservationKey: string | undefined,
): Shelf {
  let known = shelves.get(list);
  if (!known) {
    known = new Map();
    shelves.set(list, known);
  }
  const text = `${reservationKey ?? ''}\n${words}`;
  let shelf = known.get(text);
  if (!shelf || !isSame(shelf, list)) {
    const reader = new TypeReader(labelSet, reservationKey);
    const types: (ReadType | string)[] = [];
    for (let i = 0; i < list.length; i++) types.push(reader.read(list[i]!));
    shelf = { types, keys: reader.keys, sources: [...list], market: marketOf(list) };
    known.set(text, shelf);
  }
  return shelf;
}

/** Lists are not meant to change. Where one does all the same, in the ways that markets change, it is read again. */
function isSame({ sources, market }: Shelf, list: readonly InstanceTypeSpec[]): boolean {
  if (sources.length !== list.length) return false;
  for (let i = 0; i < list.length; i++) if (sources[i] !== list[i]) return false;
  const now = marketOf(list);
  if (market.length !== now.length) return false;
  for (let i = 0; i < now.length; i++) if (market[i] !== now[i]) return false;
  return true;
}

/** What each offering costs, if it can be had at all, one type after the other. */
function marketOf(list: readonly InstanceTypeSpec[]): unknown[] {
  const market: unknown[] = [];
  let at = 0;
  for (let i = 0; i < list.length; i++) {
    const offerings = list[i]?.offerings;
    if (!offerings) continue;
    for (let j = 0; j < offerings.length; j++) {
      const offering = offerings[j];
      market[at++] = offering?.available === false ? null : offering?.price;
    }
  }
  return market;
}

/** A requirement as it was written, and as it was read. */
interface Asked {
  readonly spec: RequirementSpec;
  readonly requirement: Requirement;
}

/** What offerings ask for, by what they ask for first. */
interface Path {
  readonly next: Map<string, Map<string, Path>>;
  /** Set where an offering ends. */
  end: PathEnd | undefined;
}

interface PathEnd {
  readonly requirements: Requirements;
  readonly reservation: string | undefined;
}

/** Reads instance types. */
class TypeReader {
  readonly #labels: LabelSet;
  readonly #reservationKey: string | undefined;
  /** By key and the only value. */
  readonly #single = new Map<string, Map<string, Requirement>>();
  /** By the text of what was written, for all others. */
  readonly #other = new Map<string, Requirement | undefined>();
  readonly #offerings: Path = { next: new Map(), end: undefined };
  /** The labels that were named so far. */
  readonly keys = new Set<string>();
  /** By place: what the type before this one asked for there. Types mostly differ in two or three labels. */
  readonly #before: (Asked | undefined)[] = [];
  /** The labels that it named. */
  #named: readonly string[] = [];
  /** By place: what its offerings asked for. */
  readonly #pathBefore: ({ specs: readonly RequirementSpec[]; end: PathEnd } | undefined)[] = [];

  constructor(labelSet: LabelSet, reservationKey: string | undefined) {
    this.#labels = labelSet;
    this.#reservationKey = reservationKey;
  }

  /** One instance type; a sentence when it cannot be read. */
  read(type: InstanceTypeSpec): ReadType | string {
    try {
      const offerings = type.offerings ?? [];
      if (offerings.length === 0) return 'it has no offerings';
      if (typeof type.name !== 'string' || !type.capacity || !Array.isArray(offerings))
        throw new TypeError('it has no name, no capacity or no list of offerings');
      const requirements = new Map<string, Requirement>();
      const named = this.#named;
      let isNamedAlike = true;
      const specs = type.requirements ?? [];
      for (let i = 0; i < specs.length; i++) {
        const spec = specs[i]!;
        const before = this.#before[i];
        let requirement: Requirement | undefined;
        if (before && isWrittenAlike(before.spec, spec)) requirement = before.requirement;
        else {
          requirement = this.#known(spec);
          if (!requirement) return unreadable(spec);
          this.#before[i] = { spec, requirement };
        }
        if (requirement.key !== named[i]) isNamedAlike = false;
        const present = requirements.get(requirement.key);
        requirements.set(requirement.key, present ? present.intersection(requirement) : requirement);
      }
      if (!isNamedAlike || requirements.size !== named.length) this.#named = [...requirements.keys()];
      return this.#withRoom(type, requirements, offerings);
    } catch (error) {
      const problem = quantityProblem(error);
      return instanceTypeShape(type) ?? problem;
    }
  }

  #withRoom(type: InstanceTypeSpec, requirements: Requirements, offerings: readonly OfferingSpec[]): ReadType {
    try {
      const capacity = amountsOf(type.capacity);
      // Names are taken from what was written: going through a Map costs an object for each.
      for (const name in type.capacity) {
        const problem = amountProblem(name, capacity.get(name)!);
        if (problem !== undefined) return broken(requirements, `its capacity cannot be used: ${problem}`);
      }
      const groups = this.#group(type, offerings, capacity);
      if (typeof groups === 'string') return broken(requirements, groups);
      return { requirements, keys: this.#named, capacity, groups };
    } catch (error) {
      const problem = quantityProblem(error);
      return broken(requirements, instanceTypeShape(type) ?? problem);
    }
  }

  #known(spec: RequirementSpec): Requirement | undefined {
    const { key, operator, values, minValues } = spec;
    if (operator === 'In' && minValues === undefined && values?.length === 1) {
      let byValue = this.#single.get(key);
      if (!byValue) {
        byValue = new Map();
        this.#single.set(key, byValue);
      }
      let known = byValue.get(values[0]!);
      if (!known) {
        known = Requirement.parse(spec, this.#labels)!;
        byValue.set(values[0]!, known);
        this.keys.add(known.key);
      }
      return known;
    }
    const text = `${key}\n${operator}\n${minValues}\n${values?.join('\n')}`;
    let known = this.#other.get(text);
    if (known === undefined) {
      known = Requirement.parse(spec, this.#labels);
      this.#other.set(text, known);
      if (known) this.keys.add(known.key);
    }
    return known;
  }

  /** Where an offering with these requirements ends: the same object for all that are written alike. */
  #path(specs: readonly RequirementSpec[]): PathEnd | string {
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
        const present = all.get(known.key);
        all.set(known.key, present ? present.intersection(known) : known);
      }
      at.end = { requirements: all, reservation: reservationOf(all, this.#reservationKey) };
    }
    return at.end;
  }

  #group(
    type: InstanceTypeSpec,
    offerings: readonly OfferingSpec[],
    capacity: ReadonlyMap<string, bigint>,
  ): ReadType['groups'] | string {
    // Nearly every type has one group, whatever is overridden where.
    let plain: { allocatable: Amounts; offerings: CatalogOffering[] } | undefined;
    let others: Map<string, { allocatable: Amounts; offerings: CatalogOffering[] }> | undefined;
    for (let i = 0; i < offerings.length; i++) {
      const offering = offerings[i]!;
      const specs = offering.requirements ?? [];
      const before = this.#pathBefore[i];
      let path: PathEnd | string;
      if (before && areWrittenAlike(before.specs, specs)) path = before.end;
      else {
        path = this.#path(specs);
        if (typeof path === 'string') return path;
        this.#pathBefore[i] = { specs, end: path };
      }
      if (offering.available === false) continue;
      // What is said to cost less than nothing would always be bought.
      if (offering.price < 0) return `offerings[${i}].price must not be negative`;
      const { capacityOverride, overheadOverride } = offering;
      let group = plain;
      if (capacityOverride || overheadOverride) {
        others ??= new Map();
        const text = JSON.stringify([capacityOverride, overheadOverride]);
        group = others.get(text);
        if (!group) {
          group = {
            allocatable: overridden(capacity, type.overhead, capacityOverride, overheadOverride),
            offerings: [],
          };
          others.set(text, group);
        }
      } else if (!group) {
        group = { allocatable: allocatableOf(type, capacity), offerings: [] };
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

/** Whether requirements of a pool leave out a type: the keys that both name. */
export function isExcluded(pool: Requirements, keys: readonly string[], type: Requirements): boolean {
  for (let i = 0; i < keys.length; i++) {
    const asked = type.get(keys[i]!);
    if (!asked) continue;
    const own = pool.get(keys[i]!)!;
    if (!own.intersects(asked) && !(contentWithout(own) && contentWithout(asked))) return true;
  }
  return false;
}

function isWrittenAlike(a: RequirementSpec, b: RequirementSpec): boolean {
  if (a.key !== b.key || a.operator !== b.operator || a.minValues !== b.minValues) return false;
  const left = a.values;
  const right = b.values;
  if (left === right) return true;
  if (!left || !right || left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

function areWrittenAlike(a: readonly RequirementSpec[], b: readonly RequirementSpec[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (!isWrittenAlike(a[i]!, b[i]!)) return false;
  return true;
}

function broken(requirements: Requirements, problem: string): ReadType {
  return { requirements, keys: [], capacity: new Map(), groups: [], problem };
}

function unreadable(spec: RequirementSpec): string {
  return `requirement ${JSON.stringify(spec.key)} ${spec.operator} cannot be read`;
}

/** Capacity minus overhead; huge pages are carved out of memory. */
function allocatableOf({ capacity: list, overhead }: InstanceTypeSpec, capacity: ReadonlyMap<string, bigint>): Amounts {
  const allocatable: Amounts = new Map();
  let hasHugePages = false;
  for (const name in list) {
    allocatable.set(name, capacity.get(name)!);
    if (name.startsWith(hugePages)) hasHugePages = true;
  }
  if (overhead) {
    take(allocatable, overhead.kubeReserved);
    take(allocatable, overhead.systemReserved);
    take(allocatable, overhead.evictionThreshold);
  }
  if (hasHugePages) carveHugePages(allocatable, capacity);
  return allocatable;
}

const hugePages = 'hugepages-';

function take(from: Amounts, part: ResourceList | undefined): void {
  for (const name in part) {
    const nano = Quantity.parse(part[name]!).nano;
    if (nano < 0n) throw new TypeError('overhead is negative');
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
  if ((amountsProblem(own) ?? amountsProblem(taken)) !== undefined) throw new TypeError('an override is negative');
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
    if (!name.startsWith(hugePages)) continue;
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
