// SPDX-License-Identifier: Apache-2.0
// The types of an expression, told before it runs: what cel-go's checker accepts and refuses, in its words.

import { checkCelLiterals } from './cel-check-literals.ts';
import { type CelOverload, overloadsOf } from './cel-declarations.ts';
import { type CelCore, expandCel } from './cel-expand.ts';
import { typeConstants } from './cel-library.ts';
import { celProblem, parseCel } from './cel-parser.ts';
import {
  boolType,
  type CelStaticType,
  dynType,
  errorType,
  insideOptional,
  intType,
  listOf,
  mapOf,
  optionalOf,
  parseCelType,
  sameCelType,
  showCelType,
  simpleType,
  stringType,
  typeOf,
  Unifier,
} from './cel-types.ts';
import { CelDouble, CelError, CelUint } from './cel-values.ts';

/** An expression whose types agree. */
export interface CheckedCel {
  readonly tree: CelCore;
  readonly type: CelStaticType;
  typeOf(node: CelCore): CelStaticType;
  /** Whether the node is a value at all: `sets` in `sets.contains(a, b)` is none. */
  hasType(node: CelCore): boolean;
  /** Whether a chain of names is the name of a type. */
  isConstant(node: CelCore): boolean;
  /** The ways a call may go: more than one only where types are known at run time alone. */
  overloadIds(node: CelCore): readonly string[];
  /** Whether it mentions a variable. */
  uses(variable: string): boolean;
}

const mostProblems = 100;

/** Checks an expression over variables of known types. Throws CelError with everything that is wrong. */
export function checkCel(expression: string, variables: ReadonlyMap<string, CelStaticType>): CheckedCel {
  let tree: CelCore;
  try {
    tree = expandCel(parseCel(expression));
  } catch (error) {
    if (!(error instanceof CelError) || error.at === undefined) throw error;
    throw new CelError(celProblem(expression, error.at, error.message));
  }
  const checker = new Checker(variables);
  checker.check(tree);
  if (checker.problems.length === 0) {
    checkCelLiterals(
      tree,
      (node) => checker.typeOf(node),
      (at, message) => checker.problems.push({ at, message }),
    );
  }
  if (checker.problems.length > 0) throw new CelError(shown(expression, checker.problems));
  return {
    tree,
    type: checker.typeOf(tree),
    typeOf: (node) => checker.typeOf(node),
    hasType: (node) => checker.hasType(node),
    isConstant: (node) => checker.constants.has(node),
    overloadIds: (node) => checker.overloads.get(node) ?? [],
    uses: (variable) => checker.used.has(variable),
  };
}

interface Problem {
  readonly at: number;
  readonly message: string;
}

function shown(expression: string, problems: readonly Problem[]): string {
  const lines = problems
    .slice(0, mostProblems)
    .toSorted((a, b) => a.at - b.at)
    .map(({ at, message }) => celProblem(expression, at, message));
  const more = problems.length - mostProblems;
  return [...lines, ...(more > 0 ? [`${more} more errors were truncated`] : [])].join('\n');
}

const constantTypes: ReadonlyMap<string, CelStaticType> = new Map(
  [...typeConstants.keys()].map((name) => [name, typeOf(constantType(name))]),
);

function constantType(name: string): CelStaticType {
  const known: Readonly<Record<string, string>> = {
    list: 'list(dyn)',
    map: 'map(dyn, dyn)',
    null_type: 'null',
    optional_type: 'optional_type(dyn)',
    'google.protobuf.Timestamp': 'timestamp',
    'google.protobuf.Duration': 'duration',
  };
  return parseCelType(known[name] ?? name);
}

class Checker {
  readonly problems: Problem[] = [];
  readonly overloads = new Map<CelCore, readonly string[]>();
  readonly used = new Set<string>();
  readonly constants = new Set<CelCore>();
  readonly #variables: ReadonlyMap<string, CelStaticType>;
  readonly #locals = new Map<string, CelStaticType[]>();
  readonly #types = new Map<CelCore, CelStaticType>();
  readonly #unifier = new Unifier();

  constructor(variables: ReadonlyMap<string, CelStaticType>) {
    this.#variables = variables;
  }

  /** The type that a node has in the end. */
  typeOf(node: CelCore): CelStaticType {
    return this.#unifier.resolve(this.#types.get(node) ?? dynType, true);
  }

  hasType(node: CelCore): boolean {
    return this.#types.has(node);
  }

  check(node: CelCore): CelStaticType {
    const type = this.#infer(node);
    this.#types.set(node, type);
    return type;
  }

  #infer(node: CelCore): CelStaticType {
    switch (node.kind) {
      case 'literal':
        return literalType(node.value);
      case 'identifier':
        return this.#lookup(node.name) ?? this.#undeclared(node.at, node.name);
      case 'select': {
        const named = node.test ? undefined : constantTypes.get(qualified(node) ?? '');
        if (named !== undefined) {
          this.constants.add(node);
          return named;
        }
        const type = this.#field(node.at, node.operand, node.field, false);
        return node.test ? boolType : this.#unifier.resolve(type);
      }
      case 'call':
        return this.#call(node);
      case 'list':
        return this.#list(node);
      case 'map':
        return this.#map(node);
      case 'loop':
        return this.#loop(node);
    }
  }

  #report(at: number, message: string): void {
    this.problems.push({ at, message });
  }

  #undeclared(at: number, name: string): CelStaticType {
    this.#report(at, `undeclared reference to '${name}' (in container '')`);
    return errorType;
  }

  #mismatch(at: number, wanted: CelStaticType, found: CelStaticType): void {
    this.#report(at, `expected type '${showCelType(wanted)}' but found '${showCelType(found)}'`);
  }

  #lookup(name: string): CelStaticType | undefined {
    const local = this.#locals.get(name)?.at(-1);
    if (local !== undefined) return local;
    const variable = this.#variables.get(name);
    if (variable !== undefined) this.used.add(name);
    return variable ?? constantTypes.get(name);
  }

  #field(at: number, operand: CelCore, field: string, optional: boolean): CelStaticType {
    const type = this.#unifier.resolve(this.check(operand));
    const inside = insideOptional(type);
    const result = this.#fieldOf(at, inside ?? type, field);
    return inside !== undefined || optional ? optionalOf(result) : result;
  }

  #fieldOf(at: number, type: CelStaticType, field: string): CelStaticType {
    switch (type.kind as string) {
      case 'map':
        return type.params[1] ?? dynType;
      case 'struct': {
        const found = type.fields?.get(field);
        if (found !== undefined) return found;
        this.#report(at, `undefined field '${field}'`);
        return errorType;
      }
      case 'param':
        this.#unifier.agree([dynType], [type]);
        return dynType;
      case 'dyn':
      case 'error':
        return dynType;
      default:
        this.#report(at, `type '${showCelType(type)}' does not support field selection`);
        return dynType;
    }
  }

  #call(node: Extract<CelCore, { kind: 'call' }>): CelStaticType {
    const { name, target, args, at } = node;
    if (name === '_?._') return this.#optionalField(node);
    const given = args.map((arg) => this.check(arg));
    if (target === undefined) {
      const overloads = overloadsOf(name);
      return overloads ? this.#resolve(node, name, overloads, undefined, given) : this.#undeclared(at, name);
    }
    const prefix = qualified(target);
    const spaced = prefix === undefined ? undefined : overloadsOf(`${prefix}.${name}`);
    if (spaced) return this.#resolve(node, `${prefix}.${name}`, spaced, undefined, given);
    const receiver = this.check(target);
    const overloads = overloadsOf(name);
    return overloads ? this.#resolve(node, name, overloads, receiver, given) : this.#undeclared(at, name);
  }

  #optionalField(node: Extract<CelCore, { kind: 'call' }>): CelStaticType {
    const [operand, field] = node.args;
    if (operand === undefined || field?.kind !== 'literal') return errorType;
    this.#types.set(field, stringType);
    this.overloads.set(node, ['select_optional_field']);
    return this.#unifier.resolve(this.#field(node.at, operand, String(field.value), true));
  }

  #resolve(
    node: Extract<CelCore, { kind: 'call' }>,
    name: string,
    overloads: readonly CelOverload[],
    receiver: CelStaticType | undefined,
    args: readonly CelStaticType[],
  ): CelStaticType {
    if (name === '_&&_' || name === '_||_') return this.#logic(node, overloads, args);
    const given = receiver === undefined ? args : [receiver, ...args];
    const chosen: string[] = [];
    let result: CelStaticType | undefined;
    for (const overload of overloads) {
      if (overload.member !== (receiver !== undefined)) continue;
      const { args: wanted, result: gives } = this.#instance(overload);
      if (!this.#unifier.agree(given, wanted)) continue;
      chosen.push(overload.id);
      const type = this.#unifier.resolve(gives);
      if (result === undefined) result = type;
      else if (result.kind !== 'dyn' && !sameCelType(type, result)) result = dynType;
    }
    this.overloads.set(node, chosen);
    if (result !== undefined) return result;
    const types = given.map((type) => showCelType(this.#unifier.resolve(type, true)));
    const on = receiver === undefined ? '' : `${types.shift()}.`;
    this.#report(node.at, `found no matching overload for '${name}' applied to '${on}(${types.join(', ')})'`);
    return errorType;
  }

  /** Each side is judged for itself. */
  #logic(
    node: Extract<CelCore, { kind: 'call' }>,
    overloads: readonly CelOverload[],
    args: readonly CelStaticType[],
  ): CelStaticType {
    let fits = true;
    for (const [i, type] of args.entries()) {
      if (this.#unifier.agree([type], [boolType])) continue;
      this.#mismatch(node.args[i]!.at, boolType, type);
      fits = false;
    }
    this.overloads.set(node, [overloads[0]!.id]);
    return fits ? boolType : errorType;
  }

  /** The overload with parameters of its own. */
  #instance({ args, result }: CelOverload): { args: CelStaticType[]; result: CelStaticType } {
    const fresh = new Map<string, CelStaticType>();
    const renew = (type: CelStaticType): CelStaticType => {
      if (type.kind === 'param') {
        const known = fresh.get(type.name) ?? this.#unifier.fresh();
        fresh.set(type.name, known);
        return known;
      }
      return type.params.length === 0 ? type : { ...type, params: type.params.map(renew) };
    };
    return { args: args.map(renew), result: renew(result) };
  }

  /** The type of what stands behind a `?`. */
  #unwrapped(value: CelCore, type: CelStaticType, optional: boolean): CelStaticType {
    if (!optional) return type;
    const inside = insideOptional(type);
    if (inside === undefined && type.kind !== 'dyn') this.#mismatch(value.at, optionalOf(type), type);
    return inside ?? type;
  }

  #joined(before: CelStaticType | undefined, type: CelStaticType): CelStaticType {
    if (before === undefined) return type;
    return this.#unifier.join(before, type) ?? dynType;
  }

  #list({ items }: Extract<CelCore, { kind: 'list' }>): CelStaticType {
    let common: CelStaticType | undefined;
    for (const { value, optional } of items) {
      common = this.#joined(common, this.#unwrapped(value, this.check(value), optional));
    }
    return listOf(common ?? this.#unifier.fresh());
  }

  #map({ entries }: Extract<CelCore, { kind: 'map' }>): CelStaticType {
    let keys: CelStaticType | undefined;
    let values: CelStaticType | undefined;
    for (const { key, value, optional } of entries) {
      keys = this.#joined(keys, this.check(key));
      values = this.#joined(values, this.#unwrapped(value, this.check(value), optional));
    }
    return mapOf(keys ?? this.#unifier.fresh(), values ?? this.#unifier.fresh());
  }

  #loop(node: Extract<CelCore, { kind: 'loop' }>): CelStaticType {
    this.check(node.range);
    const start = this.check(node.start);
    const range = this.#unifier.resolve(this.#types.get(node.range)!);
    const [first, second] = this.#itemTypes(node, range);
    return this.#within(node.accumulator, start, () => {
      const turn = (): void => {
        this.#expect(node.condition, boolType);
        this.#expect(node.step, start);
      };
      this.#within(node.variable, first, () =>
        node.second === undefined ? turn() : this.#within(node.second, second, turn),
      );
      return this.#unifier.resolve(this.check(node.result));
    });
  }

  #itemTypes(
    { range: node, second }: Extract<CelCore, { kind: 'loop' }>,
    range: CelStaticType,
  ): readonly [CelStaticType, CelStaticType] {
    switch (range.kind as string) {
      case 'list': {
        const item = range.params[0] ?? dynType;
        return second === undefined ? [item, item] : [intType, item];
      }
      case 'map':
        return [range.params[0] ?? dynType, range.params[1] ?? dynType];
      case 'dyn':
      case 'error':
      case 'param':
        this.#unifier.agree([dynType], [range]);
        return [dynType, dynType];
      default:
        this.#report(
          node.at,
          `expression of type '${showCelType(range)}' cannot be range of a comprehension (must be list, map, or dynamic)`,
        );
        return [errorType, errorType];
    }
  }

  #expect(node: CelCore, wanted: CelStaticType): void {
    const type = this.check(node);
    if (!this.#unifier.agree([wanted], [type])) this.#mismatch(node.at, wanted, type);
  }

  #within<T>(name: string, type: CelStaticType, run: () => T): T {
    const stack = this.#locals.get(name) ?? [];
    this.#locals.set(name, [...stack, type]);
    const result = run();
    this.#locals.set(name, stack);
    return result;
  }
}

function literalType(value: unknown): CelStaticType {
  if (value === null) return simpleType('null');
  if (value instanceof CelDouble) return simpleType('double');
  if (value instanceof CelUint) return simpleType('uint');
  if (value instanceof Uint8Array) return simpleType('bytes');
  if (typeof value === 'boolean') return boolType;
  return typeof value === 'string' ? stringType : intType;
}

/** `a.b.c` of nothing but names. */
function qualified(node: CelCore): string | undefined {
  if (node.kind === 'identifier') return node.name;
  if (node.kind !== 'select' || node.test) return undefined;
  const prefix = qualified(node.operand);
  return prefix === undefined ? undefined : `${prefix}.${node.field}`;
}
