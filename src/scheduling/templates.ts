// SPDX-License-Identifier: Apache-2.0
// NodePools as the solver uses them: what every node of a pool has before a pod is on it, and what can be bought for it.
import {
  capacityTypes,
  commonLabelSet,
  extendLabelSet,
  type LabelSet,
  labels,
  nodeClassLabel,
  restrictedLabelProblem,
} from '../api/labels.ts';
import { compareStrings } from '../base/order.ts';
import type { Axis } from './axis.ts';
import { Catalog, type CatalogOffering, type CatalogType, type CatalogVariant } from './catalog.ts';
import { requirementProblem } from './constraints.ts';
import { type Daemon, DaemonLoad } from './daemons.ts';
import type { NodePool, RequirementSpec, Taint } from './objects.ts';
import { type Amounts, addTo, amountsOf, amountsProblem, quantityProblem, subtractFrom } from './pod-resources.ts';
import type { InstanceTypeSpec, LabelRules, ObjectError, OfferingSpec, Problem } from './problem.ts';
import type { RequirementSpace, SetId } from './requirement-space.ts';
import {
  conflict,
  impossibleKey,
  mergeRequirements,
  Requirement,
  type Requirements,
  requirementsOf,
  requirementsOfLabels,
} from './requirements.ts';

/** The labels of one cloud. Pools of the same cloud share it. */
export interface Dialect {
  readonly index: number;
  readonly labels: LabelSet;
}

export interface Template {
  readonly index: number;
  readonly nodePool: string;
  readonly weight: number;
  readonly dialect: Dialect;
  readonly taints: readonly Taint[];
  /** Labels that a pod may ask for although nothing has decided them yet: the cloud's own, and the pool's. */
  readonly mayBeUndefined: ReadonlySet<string>;
  /** What every node of the pool has; with a hostname that no pod can ask for. */
  readonly requirements: SetId;
  readonly catalog: Catalog;
  /** Keys with minValues. */
  readonly minValueKeys: readonly string[];
  /** Whether minValues or reservations have a say on every pod. */
  readonly isPicky: boolean;
  /** Nano units left of each limited resource; undefined without limits. */
  readonly limits: Map<string, bigint> | undefined;
}

/** The hostname of a node that does not exist yet. */
const unnamed = '\0new';

/** Labels every node has once it is ready: daemons may select them. Not written to NodeClaims. */
export const lifecycleKeys: ReadonlySet<string> = new Set([labels.registered, labels.initialized, labels.hostname]);

/** The dialects of a problem: pools whose label rules are equal share one. The first is the common one. */
export class Dialects {
  readonly all: Dialect[] = [{ index: 0, labels: commonLabelSet }];
  readonly #byRules = new Map<string, Dialect>();
  readonly #rules: Readonly<Record<string, LabelRules>>;

  constructor(problem: Problem) {
    this.#rules = problem.labels ?? {};
  }

  of(nodePool: string | undefined): Dialect {
    const rules = nodePool === undefined ? undefined : this.#rules[nodePool];
    if (!rules) return this.all[0]!;
    const text = JSON.stringify(rules);
    let dialect = this.#byRules.get(text);
    if (!dialect) {
      dialect = { index: this.all.length, labels: labelSetOf(rules) };
      this.all.push(dialect);
      this.#byRules.set(text, dialect);
    }
    return dialect;
  }
}

function labelSetOf(rules: LabelRules): LabelSet {
  return extendLabelSet(commonLabelSet, {
    wellKnown: [...(rules.wellKnown ?? []), ...(rules.reservationId ? [rules.reservationId] : [])],
    restrictedDomains: rules.restrictedDomains ?? [],
    normalized: Object.entries(rules.normalized ?? {}),
    normalizedValues: Object.entries(rules.normalizedValues ?? {}).map(
      ([key, values]) => [key, new Map(Object.entries(values))] as const,
    ),
  });
}

/** Highest weight first, then by name, descending: the order in which pools are tried. */
export function comparePools(a: NodePool, b: NodePool): number {
  return (b.spec.weight ?? 0) - (a.spec.weight ?? 0) || compareStrings(b.metadata.name ?? '', a.metadata.name ?? '');
}

/** Whether a pool takes part in scheduling at all. */
function takesPart(pool: NodePool): boolean {
  if (pool.metadata.deletionTimestamp || pool.spec.replicas !== undefined) return false;
  const ready = pool.status?.conditions?.find(({ type }) => type === 'Ready');
  return ready === undefined || ready.status === 'True';
}

export interface TemplateInputs {
  readonly problem: Problem;
  readonly space: RequirementSpace;
  readonly axis: Axis;
  readonly dialects: Dialects;
  readonly daemons: readonly Daemon[];
  readonly errors: ObjectError[];
}

/** The pools of a problem that can be used. Broken pools and types become errors of their own. */
export function readTemplates(inputs: TemplateInputs): Template[] {
  const templates: Template[] = [];
  for (const pool of [...inputs.problem.nodePools].sort(comparePools)) {
    const name = pool.metadata.name ?? '';
    try {
      if (!takesPart(pool)) continue;
      const template = readTemplate(pool, templates.length, inputs);
      if (typeof template === 'string') inputs.errors.push({ object: `NodePool/${name}`, reason: template });
      else templates.push(template);
    } catch (error) {
      inputs.errors.push({ object: `NodePool/${name}`, reason: quantityProblem(error) });
    }
  }
  return templates;
}

/** What a pool asks of every node: its requirements and labels; or why that cannot be, as a sentence. */
export function poolRequirements(pool: NodePool, labelSet: LabelSet): Map<string, Requirement> | string {
  const { spec, metadata } = pool.spec.template;
  const specs = spec?.requirements ?? [];
  for (const requirement of specs) {
    const problem = requirementProblem(requirement, labelSet);
    if (problem !== undefined) return problem;
    if (requirement.key === labels.nodePool) return `requirements may not name ${labels.nodePool}`;
  }
  for (const key in metadata?.labels) {
    const problem = restrictedLabelProblem(labelSet, key);
    if (problem !== undefined) return problem;
  }
  const own: Record<string, string> = { [labels.nodePool]: pool.metadata.name ?? '' };
  const ref = spec?.nodeClassRef;
  if (ref?.group && ref.kind && ref.name) own[nodeClassLabel({ group: ref.group, kind: ref.kind })] = ref.name;
  const given = [
    requirementsOf(specs, labelSet),
    requirementsOfLabels(metadata?.labels, labelSet),
    requirementsOfLabels(own),
  ];
  const all = given.reduce((a, b) => mergeRequirements(a, b), new Map<string, Requirement>());
  const contradiction = impossibleKey(all);
  return contradiction === undefined
    ? all
    : `its requirements contradict each other: no value of ${contradiction} satisfies all of them`;
}

function readTemplate(pool: NodePool, index: number, inputs: TemplateInputs): Template | string {
  const { problem, space, axis, dialects } = inputs;
  const name = pool.metadata.name ?? '';
  const dialect = dialects.of(name);
  const requirements = poolRequirements(pool, dialect.labels);
  if (typeof requirements === 'string') return requirements;
  const limits = pool.spec.limits ? amountsOf(pool.spec.limits) : undefined;
  const minValueKeys = [...requirements.values()].filter((r) => r.minValues !== undefined).map(({ key }) => key);
  const mayBeUndefined = new Set([...dialect.labels.wellKnown, ...requirements.keys()]);
  requirements.set(labels.registered, Requirement.in(labels.registered, ['true']));
  requirements.set(labels.initialized, Requirement.in(labels.initialized, ['true']));
  requirements.set(labels.hostname, Requirement.in(labels.hostname, [unnamed]));
  const taints = pool.spec.template.spec?.taints ?? [];
  const place = { taints, requirements, mayBeUndefined, labels: dialect.labels };
  const load = new DaemonLoad(inputs.daemons, place);
  const reader = new TypeReader(requirements, dialect.labels, problem.labels?.[name]?.reservationId);
  const types: CatalogType[] = [];
  const variants: CatalogVariant[] = [];
  const sold = problem.instanceTypes[name] ?? [];
  for (const type of sold) {
    const read = reader.read(type);
    if (read === undefined) continue;
    if (typeof read === 'string') {
      inputs.errors.push({ object: `InstanceType/${name}/${type?.name ?? '?'}`, reason: read });
      continue;
    }
    const { overhead, ports } = load.on(read.requirements);
    const at = types.length;
    types.push({
      name: type.name,
      requirements: read.requirements,
      capacity: read.capacity,
      daemonOverhead: overhead,
      daemonPorts: ports,
    });
    for (const { allocatable, offerings } of read.groups) {
      if (overhead.size > 0) subtractFrom(allocatable, overhead);
      variants.push({ type: at, free: allocatable, offerings });
    }
  }
  if (types.length === 0) {
    return sold.length === 0 ? 'it has no instance types' : 'its requirements leave no instance type';
  }
  const given = new Set([...requirements.values()].filter((r) => r.mustExist).map(({ key }) => key));
  const catalog = new Catalog(space, axis, types, variants, given);
  return {
    index,
    nodePool: name,
    weight: pool.spec.weight ?? 0,
    dialect,
    taints,
    mayBeUndefined,
    requirements: space.intern(requirements),
    catalog,
    minValueKeys,
    isPicky: minValueKeys.length > 0 || catalog.hasReserved,
    limits,
  };
}

interface ReadType {
  readonly requirements: Requirements;
  readonly capacity: ReadonlyMap<string, bigint>;
  readonly groups: readonly { readonly allocatable: Amounts; readonly offerings: readonly CatalogOffering[] }[];
}

/** Sets of requirements by the requirements they consist of, in order. */
interface Shared {
  readonly next: Map<Requirement, Shared>;
  set: Requirements | undefined;
}

/** Reads the instance types of a pool. Requirements that are written alike are parsed once. */
class TypeReader {
  readonly #pool: Requirements;
  readonly #labels: LabelSet;
  readonly #reservationKey: string | undefined;
  /** By key and values. */
  readonly #known = new Map<string, Map<string, Requirement>>();
  readonly #shared: Shared = { next: new Map(), set: undefined };

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
      const requirements = this.#parse(type.requirements ?? []);
      if (typeof requirements === 'string') return requirements;
      if (conflict(requirements, this.#pool) !== undefined) return undefined;
      const capacity = amountsOf(type.capacity);
      const problem = amountsProblem(capacity);
      if (problem !== undefined) return `its capacity cannot be used: ${problem}`;
      const overhead: Amounts = new Map();
      for (const part of [type.overhead?.kubeReserved, type.overhead?.systemReserved, type.overhead?.evictionThreshold])
        if (part) addTo(overhead, amountsOf(part));
      const groups = this.#group(offerings, capacity, overhead);
      return typeof groups === 'string' ? groups : { requirements, capacity, groups };
    } catch (error) {
      return quantityProblem(error);
    }
  }

  /** Requirements by key; a sentence when one cannot be read. */
  #parse(specs: readonly RequirementSpec[]): Map<string, Requirement> | string {
    const all = new Map<string, Requirement>();
    for (const spec of specs) {
      const requirement = this.#requirement(spec);
      if (!requirement) return `requirement ${JSON.stringify(spec.key)} ${spec.operator} cannot be read`;
      const present = all.get(requirement.key);
      all.set(requirement.key, present ? present.intersection(requirement) : requirement);
    }
    return all;
  }

  #requirement(spec: RequirementSpec): Requirement | undefined {
    if (spec.operator !== 'In' || !spec.values || spec.minValues !== undefined)
      return Requirement.parse(spec, this.#labels);
    let known = this.#known.get(spec.key);
    if (!known) {
      known = new Map();
      this.#known.set(spec.key, known);
    }
    const text = spec.values.length === 1 ? spec.values[0]! : spec.values.join();
    let requirement = known.get(text);
    if (!requirement) {
      requirement = Requirement.parse(spec, this.#labels)!;
      known.set(text, requirement);
    }
    return requirement;
  }

  /** Like `#parse`; offerings that are written alike get the same object. */
  #parseShared(specs: readonly RequirementSpec[]): Requirements | string {
    let at: Shared = this.#shared;
    for (const spec of specs) {
      const requirement = this.#requirement(spec);
      if (!requirement) return `requirement ${JSON.stringify(spec.key)} ${spec.operator} cannot be read`;
      let next = at.next.get(requirement);
      if (!next) {
        next = { next: new Map(), set: undefined };
        at.next.set(requirement, next);
      }
      at = next;
    }
    at.set ??= this.#parse(specs) as Map<string, Requirement>;
    return at.set;
  }

  #group(
    offerings: readonly OfferingSpec[],
    capacity: ReadonlyMap<string, bigint>,
    overhead: ReadonlyMap<string, bigint>,
  ): ReadType['groups'] | string {
    const groups = new Map<string, { allocatable: Amounts; offerings: CatalogOffering[] }>();
    for (const offering of offerings) {
      const requirements = this.#parseShared(offering.requirements ?? []);
      if (typeof requirements === 'string') return requirements;
      if (offering.available === false) continue;
      const { capacityOverride, overheadOverride } = offering;
      const text = capacityOverride || overheadOverride ? JSON.stringify([capacityOverride, overheadOverride]) : '';
      let group = groups.get(text);
      if (!group) {
        const own = capacityOverride ? new Map([...capacity, ...amountsOf(capacityOverride)]) : capacity;
        const taken = overheadOverride ? new Map([...overhead, ...amountsOf(overheadOverride)]) : overhead;
        group = { allocatable: allocatableOf(own, taken), offerings: [] };
        groups.set(text, group);
      }
      const reservation = reservationOf(requirements, this.#reservationKey);
      const price = Number.isFinite(offering.price) ? offering.price : Number.MAX_VALUE;
      group.offerings.push(reservation === undefined ? { requirements, price } : { requirements, price, reservation });
    }
    return [...groups.values()];
  }
}

/** Capacity minus overhead; huge pages are carved out of memory. */
function allocatableOf(capacity: ReadonlyMap<string, bigint>, overhead: ReadonlyMap<string, bigint>): Amounts {
  const allocatable: Amounts = new Map(capacity);
  for (const [name, nano] of overhead) if (allocatable.has(name)) allocatable.set(name, allocatable.get(name)! - nano);
  for (const [name, nano] of capacity) {
    if (!name.startsWith('hugepages-')) continue;
    const memory = (allocatable.get('memory') ?? 0n) - nano;
    allocatable.set('memory', memory > 0n ? memory : 0n);
  }
  return allocatable;
}

/** The reservation id of a reserved offering: under the label the cloud names, else under the one label that is not common. */
function reservationOf(requirements: Requirements, key: string | undefined): string | undefined {
  if (!requirements.get(labels.capacityType)?.has(capacityTypes.reserved)) return undefined;
  const named = key ?? [...requirements.keys()].find((k) => !commonLabelSet.wellKnown.has(k));
  const values = named === undefined ? undefined : requirements.get(named)?.values;
  return values?.values().next().value ?? '';
}

/** The label that carries reservation ids in a pool. */
export function reservationKeyOf(template: Template, problem: Problem): string | undefined {
  const named = problem.labels?.[template.nodePool]?.reservationId;
  if (named !== undefined) return named;
  for (const type of problem.instanceTypes[template.nodePool] ?? []) {
    for (const offering of type.offerings ?? []) {
      const reserved = offering.requirements?.some(
        ({ key, values }) => key === labels.capacityType && values?.includes(capacityTypes.reserved),
      );
      const other = reserved ? offering.requirements.find(({ key }) => !commonLabelSet.wellKnown.has(key)) : undefined;
      if (other) return other.key;
    }
  }
  return undefined;
}
