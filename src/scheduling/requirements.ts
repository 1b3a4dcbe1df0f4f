// SPDX-License-Identifier: Apache-2.0
// The algebra of requirements: which values of a label a node may have. Eight operators become one form, a set or the
// complement of a set within bounds, so that intersecting them is exact.
import { type LabelSet, normalizeLabelKey, normalizeLabelValue } from '../api/labels.ts';
import { compareStrings } from '../base/order.ts';
import type { RequirementSpec } from './objects.ts';

export type Operator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist';

const nothing: ReadonlySet<string> = new Set();
/** Go's largest int: nothing is greater. */
const maxInt = 2 ** 63;

/** What is asked of one label. Immutable. */
export class Requirement {
  readonly key: string;
  /** True: every value but `values`. */
  readonly complement: boolean;
  readonly values: ReadonlySet<string>;
  readonly gte: number | undefined;
  readonly lte: number | undefined;
  readonly minValues: number | undefined;
  /** True when the label must be there: `NotIn` alone is content without it. */
  readonly mustExist: boolean;
  #signature: string | undefined;

  constructor(
    key: string,
    complement: boolean,
    values: ReadonlySet<string>,
    gte?: number,
    lte?: number,
    minValues?: number,
    mustExist = complement ? values.size === 0 || gte !== undefined || lte !== undefined : values.size > 0,
  ) {
    this.key = key;
    this.complement = complement;
    this.values = values;
    this.gte = gte;
    this.lte = lte;
    this.minValues = minValues;
    this.mustExist = mustExist;
  }

  static in(key: string, values: Iterable<string>): Requirement {
    return new Requirement(key, false, new Set(values));
  }

  static exists(key: string): Requirement {
    return new Requirement(key, true, nothing);
  }

  static doesNotExist(key: string): Requirement {
    return new Requirement(key, false, nothing);
  }

  /** From the wire form; undefined when the operator is unknown or a bound is no integer (`requirementProblem` says which). */
  static parse(spec: RequirementSpec, labels?: LabelSet): Requirement | undefined {
    const key = labels ? normalizeLabelKey(labels, spec.key) : spec.key;
    const raw = spec.values ?? [];
    const known = labels?.normalizedValues.get(key);
    const values = known && labels ? raw.map((value) => normalizeLabelValue(labels, key, value)) : raw;
    const min = spec.minValues;
    switch (spec.operator) {
      case 'In':
        return new Requirement(key, false, new Set(values), undefined, undefined, min);
      case 'NotIn':
        return new Requirement(key, true, new Set(values), undefined, undefined, min);
      case 'Exists':
        return new Requirement(key, true, nothing, undefined, undefined, min);
      case 'DoesNotExist':
        return new Requirement(key, false, nothing, undefined, undefined, min);
      default:
        return bounded(key, spec.operator, integer(values[0] ?? ''), min);
    }
  }

  get operator(): Operator {
    if (this.complement) return this.values.size > 0 ? 'NotIn' : 'Exists';
    return this.values.size > 0 ? 'In' : 'DoesNotExist';
  }

  /** No node can satisfy it: the label must be there, and no value is allowed. */
  get isImpossible(): boolean {
    return this.mustExist && !this.complement && this.values.size === 0;
  }

  /** Whether a node whose label has this value satisfies the requirement. */
  has(value: string): boolean {
    if (this.values.has(value) === this.complement) return false;
    return this.#within(value);
  }

  #within(value: string): boolean {
    if (this.gte === undefined && this.lte === undefined) return true;
    const number = integer(value);
    if (number === undefined) return false;
    return (this.gte === undefined || number >= this.gte) && (this.lte === undefined || number <= this.lte);
  }

  /** The values that both allow. The result asks for the larger minValues. */
  intersection(other: Requirement): Requirement {
    const gte = larger(this.gte, other.gte);
    const lte = smaller(this.lte, other.lte);
    const min = larger(this.minValues, other.minValues);
    const mustExist = this.mustExist || other.mustExist;
    if (gte !== undefined && lte !== undefined && gte > lte)
      return new Requirement(this.key, false, nothing, undefined, undefined, min, mustExist);
    if (this.complement && other.complement) {
      const excluded = new Requirement(this.key, true, nothing, gte, lte);
      const values = [...this.values, ...other.values].filter((value) => excluded.#within(value));
      return new Requirement(this.key, true, new Set(values), gte, lte, min, mustExist);
    }
    const [concrete, filter] = this.complement ? [other, this] : [this, other];
    const values = new Set<string>();
    for (const value of concrete.values) if (filter.has(value) && concrete.#within(value)) values.add(value);
    return new Requirement(this.key, false, values, undefined, undefined, min, mustExist);
  }

  /** Whether any value satisfies both, without building the intersection. */
  intersects(other: Requirement): boolean {
    if (this.complement && other.complement) {
      const gte = larger(this.gte, other.gte);
      const lte = smaller(this.lte, other.lte);
      return gte === undefined || lte === undefined || gte <= lte;
    }
    const [concrete, filter] = this.complement ? [other, this] : [this, other];
    for (const value of concrete.values) if (filter.has(value) && concrete.#within(value)) return true;
    return false;
  }

  withMinValues(minValues: number | undefined): Requirement {
    return new Requirement(this.key, this.complement, this.values, this.gte, this.lte, minValues, this.mustExist);
  }

  /** A text that is equal exactly when two requirements are. */
  get signature(): string {
    this.#signature ??=
      `${this.key}${this.complement ? '!' : '='}${[...this.values].sort(compareStrings).join(',')}` +
      `[${this.gte ?? ''}:${this.lte ?? ''}]${this.minValues ?? ''}${this.mustExist ? '' : '?'}`;
    return this.#signature;
  }

  /** Wire form: bounds first, then the set; values sorted. */
  toSpecs(): RequirementSpec[] {
    const { key } = this;
    const min = this.minValues === undefined ? {} : { minValues: this.minValues };
    const specs: RequirementSpec[] = [];
    if (this.gte !== undefined) specs.push({ key, operator: 'Gte', values: [String(this.gte)], ...min });
    if (this.lte !== undefined) specs.push({ key, operator: 'Lte', values: [String(this.lte)], ...min });
    const { operator } = this;
    if (operator === 'Exists' && specs.length > 0) return specs;
    const values = this.values.size > 0 ? { values: [...this.values].sort(compareStrings) } : {};
    specs.push({ key, operator, ...values, ...min });
    if (operator === 'NotIn' && this.mustExist && specs.length === 1) specs.push({ key, operator: 'Exists', ...min });
    return specs;
  }

  toString(): string {
    return this.toSpecs()
      .map(({ key, operator, values }) => (values ? `${key} ${operator} [${values.join(', ')}]` : `${key} ${operator}`))
      .join(', ');
  }
}

function bounded(key: string, operator: string, bound: number | undefined, min?: number): Requirement | undefined {
  if (bound === undefined) return undefined;
  switch (operator) {
    case 'Gt':
      return bound + 1 >= maxInt
        ? new Requirement(key, false, nothing, undefined, undefined, min)
        : new Requirement(key, true, nothing, bound + 1, undefined, min);
    case 'Lt':
      return new Requirement(key, true, nothing, undefined, bound - 1, min);
    case 'Gte':
      return new Requirement(key, true, nothing, bound, undefined, min);
    case 'Lte':
      return new Requirement(key, true, nothing, undefined, bound, min);
    default:
      return undefined;
  }
}

function integer(text: string): number | undefined {
  return /^[+-]?[0-9]{1,19}$/.test(text) ? Number(text) : undefined;
}

function larger(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.max(a, b);
}

function smaller(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.min(a, b);
}

/** Requirements by key: all must hold. */
export type Requirements = ReadonlyMap<string, Requirement>;

/** Both: intersects per key. */
export function mergeRequirements(a: Requirements, b: Requirements): Map<string, Requirement> {
  const merged = new Map(a);
  for (const [key, requirement] of b) {
    const present = merged.get(key);
    merged.set(key, present ? present.intersection(requirement) : requirement);
  }
  return merged;
}

/** From wire forms. Unparsable ones are left out: validation has named them before. */
export function requirementsOf(specs: readonly RequirementSpec[], labels?: LabelSet): Map<string, Requirement> {
  const all = new Map<string, Requirement>();
  for (const spec of specs) {
    const requirement = Requirement.parse(spec, labels);
    if (!requirement) continue;
    const present = all.get(requirement.key);
    all.set(requirement.key, present ? present.intersection(requirement) : requirement);
  }
  return all;
}

/** Labels as requirements: each has its one value. */
export function requirementsOfLabels(
  given: Readonly<Record<string, string>> | undefined,
  labels?: LabelSet,
): Map<string, Requirement> {
  const all = new Map<string, Requirement>();
  if (!given) return all;
  // Not by for-in: V8 learns nothing of what is read by its keys here, and gave the compiled function up every time.
  for (const [key, own] of Object.entries(given)) {
    const at = labels ? normalizeLabelKey(labels, key) : key;
    const value = labels ? normalizeLabelValue(labels, at, own) : own;
    const requirement = Requirement.in(at, [value]);
    const present = all.get(at);
    all.set(at, present ? present.intersection(requirement) : requirement);
  }
  return all;
}

/** Whether a node without the label is fine. */
export function contentWithout(requirement: Requirement): boolean {
  return !requirement.mustExist;
}

/** The key at which two sets exclude each other; undefined when none. Absence satisfies both of two negative demands. */
export function conflict(a: Requirements, b: Requirements): string | undefined {
  const [small, large] = a.size <= b.size ? [a, b] : [b, a];
  for (const [key, requirement] of small) {
    const other = large.get(key);
    if (!other || requirement.intersects(other)) continue;
    if (contentWithout(requirement) && contentWithout(other)) continue;
    return key;
  }
  return undefined;
}

/**
 * A key that `asked` needs and `given` neither has for sure nor may leave undefined. That another pod forbids some of its
 * values does not give a node the label.
 */
export function undefinedKey(
  given: Requirements,
  asked: Requirements,
  mayBeUndefined: ReadonlySet<string>,
): string | undefined {
  for (const [key, requirement] of asked) {
    if (contentWithout(requirement) || mayBeUndefined.has(key) || given.get(key)?.mustExist) continue;
    return key;
  }
  return undefined;
}

/** A key that no node can satisfy; undefined when there is none. */
export function impossibleKey(requirements: Requirements): string | undefined {
  for (const [key, requirement] of requirements) if (requirement.isImpossible) return key;
  return undefined;
}

const none: ReadonlySet<string> = new Set();

/** Whether a node with `given` can serve a pod with `asked`. `mayBeUndefined`: labels that need not be decided yet. */
export function compatible(
  given: Requirements,
  asked: Requirements,
  mayBeUndefined: ReadonlySet<string> = none,
): boolean {
  if (impossibleKey(asked) !== undefined) return false;
  return undefinedKey(given, asked, mayBeUndefined) === undefined && conflict(given, asked) === undefined;
}
