// SPDX-License-Identifier: Apache-2.0
// Label selectors: compiled once, matched often. Syntax, checks and messages are those of the API server.

import { KarpenterError } from '../base/errors.ts';
import { labelNamePattern, subdomainPattern } from '../base/names.ts';
import { compareStrings } from '../base/order.ts';
import { parseSelectorText, type SelectorSymbol } from './label-selector-parser.ts';
import { type FieldError, formatFieldErrors } from './schema/field-error.ts';

export type Labels = Readonly<Record<string, string>>;

/** The selector of the API (`matchLabels`, `matchExpressions`). */
export interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[] | null;
  }[];
}

export type SelectorOperator = 'In' | 'NotIn' | 'Exists' | 'DoesNotExist' | 'Gt' | 'Lt';

export interface SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
}

/** A compiled selector. Immutable; all requirements must hold. */
export interface Selector {
  matches(labels: Labels | undefined): boolean;
  readonly requirements: readonly SelectorRequirement[];
  /** The text form that `parseLabelSelector` reads. */
  toString(): string;
}

/** A selector that cannot be compiled. The message is the API server's. */
export class SelectorError extends KarpenterError {
  constructor(message: string) {
    super('KRP_SELECTOR_INVALID', message);
  }
}

const operators: Readonly<Record<SelectorSymbol, SelectorOperator>> = {
  '=': 'In',
  '==': 'In',
  '!=': 'NotIn',
  in: 'In',
  notin: 'NotIn',
  '>': 'Gt',
  '<': 'Lt',
  exists: 'Exists',
  '!': 'DoesNotExist',
};
const symbols: ReadonlyMap<string, SelectorSymbol> = new Map<string, SelectorSymbol>([
  ['In', 'in'],
  ['NotIn', 'notin'],
  ['Exists', 'exists'],
  ['DoesNotExist', '!'],
]);

class Requirement implements SelectorRequirement {
  readonly key: string;
  readonly operator: SelectorOperator;
  readonly values: readonly string[];
  readonly #symbol: SelectorSymbol;
  readonly #accepted: ReadonlySet<string>;
  readonly #bound: bigint | undefined;

  constructor(key: string, symbol: SelectorSymbol, values: readonly string[]) {
    this.key = key;
    this.operator = operators[symbol];
    this.values = Object.freeze([...values]);
    this.#symbol = symbol;
    this.#accepted = new Set(values);
    this.#bound = this.operator === 'Gt' || this.operator === 'Lt' ? parseInt64(values[0] ?? '') : undefined;
  }

  matches(labels: Labels): boolean {
    // What the prototype has under a name (`constructor` is a legal key) is never a string.
    const found: unknown = labels[this.key];
    const value = typeof found === 'string' ? found : undefined;
    switch (this.operator) {
      case 'In':
        return value !== undefined && this.#accepted.has(value);
      case 'NotIn':
        return value === undefined || !this.#accepted.has(value);
      case 'Exists':
        return value !== undefined;
      case 'DoesNotExist':
        return value === undefined;
      case 'Gt':
      case 'Lt':
        return value !== undefined && this.#compares(value);
    }
  }

  #compares(value: string): boolean {
    const number = parseInt64(value);
    if (number === undefined || this.#bound === undefined) return false;
    return this.operator === 'Gt' ? number > this.#bound : number < this.#bound;
  }

  toString(): string {
    const symbol = this.#symbol;
    if (symbol === 'exists') return this.key;
    if (symbol === '!') return `!${this.key}`;
    const values = this.values.toSorted(compareStrings).join(',');
    return symbol === 'in' || symbol === 'notin'
      ? `${this.key} ${symbol} (${values})`
      : `${this.key}${symbol}${values}`;
  }
}

class AllOf implements Selector {
  readonly requirements: readonly Requirement[];

  constructor(requirements: readonly Requirement[]) {
    this.requirements = Object.freeze(requirements.toSorted((a, b) => compareStrings(a.key, b.key)));
  }

  matches(labels: Labels | undefined): boolean {
    const given = labels ?? noLabels;
    // By hand: selectors of budgets and sets are asked about every pod there is.
    const { requirements } = this;
    for (let i = 0; i < requirements.length; i++) if (!requirements[i]!.matches(given)) return false;
    return true;
  }

  toString(): string {
    return this.requirements.join(',');
  }
}

const noLabels: Labels = Object.freeze({});

/** Matches every object. */
export const everything: Selector = new AllOf([]);

/** Matches no object. */
export const nothing: Selector = Object.freeze({
  requirements: Object.freeze([]),
  matches: () => false,
  toString: () => '',
});

/** Compiles the selector of the API. Missing matches nothing, empty matches everything. Throws SelectorError. */
export function compileLabelSelector(selector: LabelSelector | null | undefined): Selector {
  if (selector === null || selector === undefined) return nothing;
  refuseOtherTypes(selector);
  const requirements: Requirement[] = [];
  for (const [key, value] of Object.entries(selector.matchLabels ?? {}).toSorted(([a], [b]) => compareStrings(a, b))) {
    requirements.push(requirement(key, '=', [value]));
  }
  for (const { key, operator, values } of selector.matchExpressions ?? []) {
    const symbol = symbols.get(operator);
    if (symbol === undefined) throw new SelectorError(`"${operator}" is not a valid label selector operator`);
    requirements.push(requirement(key, symbol, values ?? []));
  }
  return requirements.length === 0 ? everything : new AllOf(requirements);
}

/** A selector of a custom object, or of a problem file, was checked by nobody before. */
function refuseOtherTypes({ matchLabels, matchExpressions }: LabelSelector): void {
  const texts = (values: unknown): boolean =>
    Array.isArray(values) && values.every((value) => typeof value === 'string');
  if (matchLabels !== undefined && !texts(Object.values(matchLabels ?? {})))
    throw new SelectorError('matchLabels must map texts to texts');
  if (matchExpressions === undefined || matchExpressions === null) return;
  if (!Array.isArray(matchExpressions)) throw new SelectorError('matchExpressions must be a list');
  for (const expression of matchExpressions as ({ key?: unknown; operator?: unknown; values?: unknown } | null)[]) {
    if (typeof expression?.key !== 'string') throw new SelectorError('matchExpressions must have a key each');
    const { operator = '' } = expression;
    if (typeof operator !== 'string') throw new SelectorError('the operators of matchExpressions must be texts');
    if (!texts(expression.values ?? [])) throw new SelectorError('the values of matchExpressions must be texts');
  }
}

/** Compiles the text form (`a=b,c in (d,e),!f,g>1`). Empty matches everything. Throws SelectorError with the API server's message. */
export function parseLabelSelector(text: string): Selector {
  const requirements = parseSelectorText(text, {
    fail: (message) => new SelectorError(message),
    checkKey: (key) => {
      const problems = isQualifiedName(key);
      if (problems.length > 0)
        throw new SelectorError(`unable to parse requirement: ${invalid('<nil>', key, problems)}`);
    },
    build: (key, symbol, values) => {
      try {
        return requirement(key, symbol, values);
      } catch (error) {
        if (error instanceof SelectorError) throw new SelectorError(`unable to parse requirement: ${error.message}`);
        throw error;
      }
    },
  });
  return requirements.length === 0 ? everything : new AllOf(requirements);
}

function requirement(key: string, symbol: SelectorSymbol, values: readonly string[]): Requirement {
  const errors: FieldError[] = [];
  const problems = isQualifiedName(key);
  if (problems.length > 0) errors.push({ field: 'key', type: 'Invalid', value: key, detail: problems.join('; ') });
  const complaint = checkValueCount(symbol, values);
  if (complaint !== undefined) errors.push({ field: 'values', type: 'Invalid', value: values, detail: complaint });
  for (const [i, value] of values.entries()) {
    if ((symbol === '>' || symbol === '<') && parseInt64(value) === undefined) {
      const detail = "for 'Gt', 'Lt' operators, the value must be an integer";
      errors.push({ field: `values[${i}]`, type: 'Invalid', value, detail });
    }
  }
  for (const [i, value] of values.entries()) {
    const wrong = isValidLabelValue(value);
    if (wrong.length > 0)
      errors.push({ field: `values[${i}][${key}]`, type: 'Invalid', value, detail: wrong.join('; ') });
  }
  if (errors.length > 0) throw new SelectorError(formatFieldErrors(errors));
  return new Requirement(key, symbol, values);
}

function checkValueCount(symbol: SelectorSymbol, values: readonly string[]): string | undefined {
  switch (symbol) {
    case 'in':
    case 'notin':
      return values.length === 0 ? "for 'in', 'notin' operators, values set can't be empty" : undefined;
    case '=':
    case '==':
    case '!=':
      return values.length === 1 ? undefined : 'exact-match compatibility requires one single value';
    case 'exists':
    case '!':
      return values.length === 0 ? undefined : 'values set must be empty for exists and does not exist';
    case '>':
    case '<':
      return values.length === 1 ? undefined : "for 'Gt', 'Lt' operators, exactly one value is required";
  }
}

function invalid(field: string, value: string, problems: readonly string[]): string {
  return formatFieldErrors([{ field, type: 'Invalid', value, detail: problems.join('; ') }]);
}

const nameFormat = '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]';
const nameMessage =
  "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" +
  ` (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '${nameFormat}')`;
const valueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character" +
  ` (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(${nameFormat})?')`;
const subdomainFormat = '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*';
const subdomainMessage =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character" +
  ` (e.g. 'example.com', regex used for validation is '${subdomainFormat}')`;

/** Keys in which nothing was found: the same few come again and again. */
const faultless = new Set<string>();

/** What is wrong with a label key (an annotation key, a resource name); empty when nothing is. */
export function isQualifiedName(key: string): string[] {
  if (faultless.has(key)) return [];
  const problems = keyProblems(key);
  if (problems.length === 0 && faultless.size < 10_000) faultless.add(key);
  return problems;
}

function keyProblems(key: string): string[] {
  const parts = key.split('/');
  if (parts.length > 2) {
    return [
      `a valid label key ${nameMessage} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ];
  }
  const problems: string[] = [];
  const name = parts.at(-1) ?? '';
  if (parts.length === 2) problems.push(...prefixProblems(parts[0] ?? ''));
  if (name === '') problems.push('name part must be non-empty');
  else if (byteLength(name) > 63) problems.push('name part must be no more than 63 bytes');
  if (!labelNamePattern.test(name)) problems.push(`name part ${nameMessage}`);
  return problems;
}

/** What is wrong with a label value; empty when nothing is. */
export function isValidLabelValue(value: string): string[] {
  const problems: string[] = [];
  if (byteLength(value) > 63) problems.push('must be no more than 63 bytes');
  if (value !== '' && !labelNamePattern.test(value)) problems.push(valueMessage);
  return problems;
}

function prefixProblems(prefix: string): string[] {
  if (prefix === '') return ['prefix part must be non-empty'];
  const problems: string[] = [];
  if (prefix.length > 253) problems.push('prefix part must be no more than 253 bytes');
  if (!subdomainPattern.test(prefix)) problems.push(`prefix part ${subdomainMessage}`);
  return problems;
}

function byteLength(text: string): number {
  // A string of at most 21 units cannot be longer than 63 bytes.
  return text.length <= 21 ? text.length : Buffer.byteLength(text);
}

function parseInt64(text: string): bigint | undefined {
  if (!/^[+-]?[0-9]{1,40}$/.test(text)) return undefined;
  const value = BigInt(text.startsWith('+') ? text.slice(1) : text);
  return value === BigInt.asIntN(64, value) ? value : undefined;
}
