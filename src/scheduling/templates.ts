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
import { Catalog, type CatalogType, type CatalogVariant } from './catalog.ts';
import { requirementProblem } from './constraints.ts';
import { type Daemon, DaemonLoad } from './daemons.ts';
import { isExcluded, readTypes, type Shelf } from './instance-types.ts';
import type { NodePool, Taint } from './objects.ts';
import { amountsOf, amountsProblem, quantityProblem, subtractFrom } from './pod-resources.ts';
import type { InstanceTypeSpec, LabelRules, ObjectError, OfferingSpec, Problem } from './problem.ts';
import type { RequirementSpace, SetId } from './requirement-space.ts';
import {
  impossibleKey,
  mergeRequirements,
  Requirement,
  type Requirements,
  requirementsOf,
  requirementsOfLabels,
} from './requirements.ts';
import { nodePoolShape } from './shapes.ts';

/** The labels of one cloud. Pools of the same cloud share it. */
export interface Dialect {
  readonly index: number;
  /** Equal for equal labels, also in another problem. */
  readonly words: string;
  readonly labels: LabelSet;
}

export interface Template {
  readonly index: number;
  readonly nodePool: string;
  readonly weight: number;
  /** Pools with NodeClasses of one kind belong to one cloud. */
  readonly cloud: string;
  /** Whether all of its prices are known: only then they can be compared with those of another cloud. */
  readonly isPriced: () => boolean;
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
  readonly all: Dialect[] = [{ index: 0, words: '', labels: commonLabelSet }];
  readonly #byRules = new Map<string, Dialect>();
  readonly #byPool = new Map<string, Dialect>();
  readonly #rules: Readonly<Record<string, LabelRules>>;

  constructor(problem: Problem) {
    this.#rules = problem.labels ?? {};
  }

  of(nodePool: string | undefined): Dialect {
    if (nodePool === undefined) return this.all[0]!;
    let dialect = this.#byPool.get(nodePool);
    if (!dialect) this.#byPool.set(nodePool, (dialect = this.#read(nodePool)));
    return dialect;
  }

  #read(nodePool: string): Dialect {
    const rules = this.#rules[nodePool];
    if (!rules) return this.all[0]!;
    const text = JSON.stringify(rules);
    let dialect = this.#byRules.get(text);
    if (!dialect) {
      dialect = { index: this.all.length, words: text, labels: knownLabels(text, rules) };
      this.all.push(dialect);
      this.#byRules.set(text, dialect);
    }
    return dialect;
  }
}

/** By text of the rules, from one problem to the next. There are as many as clouds. */
const labelSets = new Map<string, LabelSet>();
const mostLabelSets = 100;

function knownLabels(text: string, rules: LabelRules): LabelSet {
  let set = labelSets.get(text);
  if (!set) {
    if (labelSets.size >= mostLabelSets) labelSets.clear();
    labelSets.set(text, (set = labelSetOf(rules)));
  }
  return set;
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
  return (b.spec?.weight ?? 0) - (a.spec?.weight ?? 0) || compareStrings(b.metadata.name ?? '', a.metadata.name ?? '');
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
      const problem = quantityProblem(error);
      inputs.errors.push({ object: `NodePool/${name}`, reason: nodePoolShape(pool) ?? problem });
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

/** Of pools that cannot change and have the shape of one: what they ask for in the words of a cloud, or why that cannot be. */
const asked = new WeakMap<NodePool, { readonly labels: LabelSet; readonly read: Requirements | string }>();

function knownRequirements(pool: NodePool, labelSet: LabelSet): Requirements | string {
  const known = asked.get(pool);
  if (known?.labels === labelSet) return known.read;
  const read = poolRequirements(pool, labelSet);
  if (Object.isFrozen(pool)) asked.set(pool, { labels: labelSet, read });
  return read;
}

function readTemplate(pool: NodePool, index: number, inputs: TemplateInputs): Template | string {
  const { problem, space, axis, dialects } = inputs;
  const name = pool.metadata.name ?? '';
  if (!asked.has(pool)) {
    const wrong = nodePoolShape(pool);
    if (wrong !== undefined) return wrong;
  }
  const dialect = dialects.of(name);
  const own = knownRequirements(pool, dialect.labels);
  if (typeof own === 'string') return own;
  const requirements = new Map(own);
  const limits = pool.spec.limits ? amountsOf(pool.spec.limits) : undefined;
  const unusable = limits && amountsProblem(limits);
  if (unusable !== undefined) return `its limits cannot be used: ${unusable}`;
  const minValueKeys = [...requirements.values()].filter((r) => r.minValues !== undefined).map(({ key }) => key);
  const mayBeUndefined = new Set([...dialect.labels.wellKnown, ...requirements.keys()]);
  requirements.set(labels.registered, Requirement.in(labels.registered, ['true']));
  requirements.set(labels.initialized, Requirement.in(labels.initialized, ['true']));
  requirements.set(labels.hostname, Requirement.in(labels.hostname, [unnamed]));
  const taints = pool.spec.template.spec?.taints ?? [];
  const place = { taints, requirements, mayBeUndefined, labels: dialect.labels };
  const load = new DaemonLoad(inputs.daemons, place);
  const sold = problem.instanceTypes[name] ?? [];
  const shelf = readTypes(sold, dialect.labels, dialect.words, problem.labels?.[name]?.reservationId);
  const { types, variants } = stock(name, sold, shelf, requirements, load, inputs.errors);
  if (types.length === 0) {
    if (sold.length === 0) return 'it has no instance types';
    const readable = shelf.types.some((type) => typeof type !== 'string' && type.problem === undefined);
    return readable ? 'its requirements leave no instance type' : 'none of its instance types can be used';
  }
  const given = new Set([...requirements.values()].filter((r) => r.mustExist).map(({ key }) => key));
  const catalog = new Catalog(space, axis, types, variants, given);
  let priced: boolean | undefined;
  return {
    index,
    nodePool: name,
    weight: pool.spec.weight ?? 0,
    cloud: cloudOf(pool),
    isPriced: () => {
      priced ??= sold.every(({ offerings }) => !Array.isArray(offerings) || offerings.every(isPriced));
      return priced;
    },
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

/** What a pool can buy of a list of types, and what daemons leave free of it. */
function stock(
  pool: string,
  sold: readonly InstanceTypeSpec[],
  shelf: Shelf,
  requirements: Requirements,
  load: DaemonLoad,
  errors: ObjectError[],
): { types: CatalogType[]; variants: CatalogVariant[] } {
  const types: CatalogType[] = [];
  const variants: CatalogVariant[] = [];
  const keys = [...requirements.keys()].filter((key) => shelf.keys.has(key));
  for (let i = 0; i < sold.length; i++) {
    const read = shelf.types[i]!;
    if (typeof read !== 'string' && isExcluded(requirements, keys, read.requirements)) continue;
    if (typeof read === 'string' || read.problem !== undefined) {
      const reason = typeof read === 'string' ? read : read.problem!;
      errors.push({ object: `InstanceType/${pool}/${sold[i]?.name ?? '?'}`, reason });
      continue;
    }
    const { requirements: own, keys: named, capacity, groups } = read;
    const { overhead, ports } = load.on(own);
    const at = types.length;
    types.push({
      name: sold[i]!.name,
      requirements: own,
      keys: named,
      capacity,
      daemonOverhead: overhead,
      daemonPorts: ports,
    });
    for (let g = 0; g < groups.length; g++) {
      const { allocatable, offerings } = groups[g]!;
      let free = allocatable;
      if (overhead.size > 0) {
        const left = new Map(allocatable);
        subtractFrom(left, overhead);
        free = left;
      }
      variants.push({ type: at, free, offerings });
    }
  }
  return { types, variants };
}

/** The cloud of a pool, as far as a problem tells: the kind of its NodeClass. */
export function cloudOf({ spec }: NodePool): string {
  const { group = '', kind = '' } = spec.template.spec?.nodeClassRef ?? {};
  return `${group}/${kind}`;
}

/** Whether the price is known: a guess is not, nor is one that nobody told. */
export function isPriced(offering: OfferingSpec): boolean {
  if (!offering) return false;
  const { price, estimated } = offering;
  return estimated !== true && Number.isFinite(price) && price > 0;
}

/** The label that carries reservation ids in a pool. */
export function reservationKeyOf(template: Template, problem: Problem): string | undefined {
  const named = problem.labels?.[template.nodePool]?.reservationId;
  if (named !== undefined) return named;
  for (const type of problem.instanceTypes[template.nodePool] ?? []) {
    for (const offering of type.offerings ?? []) {
      const reserved = offering?.requirements?.some(
        ({ key, values }) => key === labels.capacityType && values?.includes(capacityTypes.reserved),
      );
      const other = reserved ? offering.requirements.find(({ key }) => !commonLabelSet.wellKnown.has(key)) : undefined;
      if (other) return other.key;
    }
  }
  return undefined;
}
