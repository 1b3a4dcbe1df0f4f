// SPDX-License-Identifier: Apache-2.0
// Sets of label values, for the validator only: written apart from the solver's algebra, so that one cannot hide the
// other's mistakes. Plain and slow on purpose.

/** One node-selector expression, in any of the shapes Kubernetes and Karpenter write it. */
export interface Expression {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[] | undefined;
  readonly minValues?: number | undefined;
}

/** A finite set of values, or everything but a finite set, within optional integer bounds. Immutable. */
export class Values {
  readonly complement: boolean;
  readonly listed: ReadonlySet<string>;
  readonly gte: number | undefined;
  readonly lte: number | undefined;
  #members: readonly string[] | undefined;

  constructor(complement: boolean, listed: Iterable<string>, gte?: number, lte?: number) {
    this.complement = complement;
    this.listed = new Set(listed);
    this.gte = gte;
    this.lte = lte;
  }

  static readonly all = new Values(true, []);
  static readonly none = new Values(false, []);

  static only(...values: string[]): Values {
    return new Values(false, values);
  }

  /** The values an expression allows; DoesNotExist allows none. */
  static of({ operator, values = [] }: Pick<Expression, 'operator' | 'values'>): Values {
    const bound = Number(values[0]);
    switch (operator) {
      case 'In':
        return new Values(false, values);
      case 'NotIn':
        return new Values(true, values);
      case 'Exists':
        return Values.all;
      case 'DoesNotExist':
        return Values.none;
      case 'Gt':
        return new Values(true, [], bound + 1);
      case 'Gte':
        return new Values(true, [], bound);
      case 'Lt':
        return new Values(true, [], undefined, bound - 1);
      case 'Lte':
        return new Values(true, [], undefined, bound);
      default:
        throw new Error(`no such operator: ${operator}`);
    }
  }

  #inBounds(value: string): boolean {
    if (this.gte === undefined && this.lte === undefined) return true;
    if (!/^[+-]?\d+$/.test(value)) return false;
    const n = Number(value);
    return (this.gte === undefined || n >= this.gte) && (this.lte === undefined || n <= this.lte);
  }

  has(value: string): boolean {
    return this.listed.has(value) !== this.complement && this.#inBounds(value);
  }

  /** The members of a finite set, sorted; undefined when the set is not finite. */
  members(): readonly string[] | undefined {
    if (this.complement) return undefined;
    this.#members ??= [...this.listed].filter((v) => this.#inBounds(v)).sort();
    return this.#members;
  }

  isEmpty(): boolean {
    if (this.complement) return this.gte !== undefined && this.lte !== undefined && this.gte > this.lte;
    return this.members()!.length === 0;
  }

  and(other: Values): Values {
    const finite = this.complement ? other : this;
    const rest = finite === this ? other : this;
    if (!finite.complement) return Values.only(...finite.members()!.filter((v) => rest.has(v)));
    return new Values(
      true,
      [...this.listed, ...other.listed],
      larger(this.gte, other.gte, Math.max),
      larger(this.lte, other.lte, Math.min),
    );
  }

  or(other: Values): Values {
    const mine = this.members();
    const theirs = other.members();
    // Unions with an infinite set are only needed as "could be anything".
    return mine && theirs ? Values.only(...mine, ...theirs) : Values.all;
  }

  meets(other: Values): boolean {
    return !this.and(other).isEmpty();
  }

  /** Whether every member of this set is a member of `other`. For infinite sets, errs on the side of no. */
  isWithin(other: Values): boolean {
    const mine = this.members();
    if (mine) return mine.every((v) => other.has(v));
    if (!other.complement) return this.isEmpty();
    return (
      [...other.listed].every((v) => !this.has(v)) &&
      (other.gte === undefined || (this.gte !== undefined && this.gte >= other.gte)) &&
      (other.lte === undefined || (this.lte !== undefined && this.lte <= other.lte))
    );
  }

  toString(): string {
    const text = [...this.listed].sort().join(' ');
    const bounds = `${this.gte === undefined ? '' : `>=${this.gte}`}${this.lte === undefined ? '' : `<=${this.lte}`}`;
    return `${this.complement ? 'not ' : ''}[${text}]${bounds}`;
  }
}

function larger(a: number | undefined, b: number | undefined, pick: (a: number, b: number) => number) {
  return a === undefined ? b : b === undefined ? a : pick(a, b);
}

/**
 * What is known of one label of a node: the values it may have, and whether it may be missing.
 * A label nobody mentions is `missing`.
 */
export interface LabelState {
  readonly values: Values;
  readonly maybeAbsent: boolean;
}

export const missing: LabelState = Object.freeze({ values: Values.none, maybeAbsent: true });

/** A node label that certainly has this value. */
export function exactly(value: string): LabelState {
  return { values: Values.only(value), maybeAbsent: false };
}

/** Whether a node whose label is in this state satisfies the expression, whatever the label turns out to be. */
export function surely(state: LabelState, expression: Expression): boolean {
  const allowed = Values.of(expression);
  switch (expression.operator) {
    case 'DoesNotExist':
      return state.values.isEmpty();
    case 'NotIn':
      return state.values.isEmpty() || state.values.isWithin(allowed);
    default:
      return !state.maybeAbsent && !state.values.isEmpty() && state.values.isWithin(allowed);
  }
}

/** Whether a node whose label is in this state could still satisfy the expression. */
export function possibly(state: LabelState, expression: Expression): boolean {
  switch (expression.operator) {
    case 'DoesNotExist':
      return state.maybeAbsent;
    case 'NotIn':
      return state.maybeAbsent || state.values.meets(Values.of(expression));
    default:
      return state.values.meets(Values.of(expression));
  }
}
