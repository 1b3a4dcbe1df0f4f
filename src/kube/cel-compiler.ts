// SPDX-License-Identifier: Apache-2.0
// Turns a CEL tree into closures over a frame of variables: names are resolved once, evaluation only runs.

import { functions, methods, typeConstants } from './cel-library.ts';
import { type Collect, collectMapped, collectors, skipped } from './cel-macros.ts';
import type { CelNode } from './cel-parser.ts';
import {
  bool,
  CelError,
  CelOptional,
  celAdd,
  celCompare,
  celDivide,
  celEquals,
  celLookup,
  celModulo,
  celMultiply,
  celNegate,
  celSubtract,
  isMap,
  mapGet,
  mapKey,
  mapKeys,
  noSuchOverload,
  typeName,
} from './cel-values.ts';

/** What one evaluation works on: variables by slot, and how many steps of loops it has left. */
interface Frame {
  readonly slots: unknown[];
  budget: number;
}

export type Evaluate = (frame: Frame) => unknown;

type Call = Extract<CelNode, { kind: 'call' }>;

const operators: Readonly<Record<string, (a: unknown, b: unknown) => unknown>> = {
  '+': celAdd,
  '-': celSubtract,
  '*': celMultiply,
  '/': celDivide,
  '%': celModulo,
  '==': celEquals,
  '!=': (a, b) => !celEquals(a, b),
  '<': (a, b) => celCompare(a, b) < 0,
  '<=': (a, b) => celCompare(a, b) <= 0,
  '>': (a, b) => celCompare(a, b) > 0,
  '>=': (a, b) => celCompare(a, b) >= 0,
  in: (item, container) => {
    if (Array.isArray(container)) return container.some((member) => celEquals(member, item));
    if (isMap(container)) return mapGet(container, item) !== undefined;
    throw noSuchOverload();
  },
};

/** Compiles one expression. Names that are neither variables nor types are refused here, as are unknown functions. */
export class CelCompiler {
  /** The variables that the expression mentions. */
  readonly used: Set<string> = new Set<string>();
  readonly #scope: Map<string, number>;
  readonly #variables: number;
  #slots: number;

  constructor(variables: readonly string[]) {
    this.#scope = new Map(variables.map((name, slot) => [name, slot]));
    this.#variables = variables.length;
    this.#slots = variables.length;
  }

  compile(node: CelNode): Evaluate {
    switch (node.kind) {
      case 'literal': {
        const { value } = node;
        return () => value;
      }
      case 'identifier':
        return this.#identifier(node.name);
      case 'select':
        return this.#select(node.operand, node.field, node.optional);
      case 'index':
        return this.#index(node.operand, node.key, node.optional);
      case 'call':
        return this.#macro(node) ?? this.#call(node);
      case 'list':
        return this.#list(node.items);
      case 'map':
        return this.#map(node.entries);
      case 'unary':
        return this.#unary(node.operator, this.compile(node.operand));
      case 'binary':
        return this.#binary(node.operator, this.compile(node.left), this.compile(node.right));
      case 'conditional': {
        const [test, yes, no] = [this.compile(node.test), this.compile(node.yes), this.compile(node.no)];
        return (frame) => (bool(test(frame)) ? yes(frame) : no(frame));
      }
    }
  }

  #identifier(name: string): Evaluate {
    const slot = this.#scope.get(name);
    if (slot !== undefined) {
      if (slot < this.#variables) this.used.add(name);
      return ({ slots }) => {
        const value = slots[slot];
        if (value === undefined) throw new CelError(`no such attribute(s): ${name}`);
        return value;
      };
    }
    const type = typeConstants.get(name);
    if (type === undefined) throw new CelError(`undeclared reference to '${name}' (in container '')`);
    return () => type;
  }

  #select(operandNode: CelNode, field: string, optional: boolean): Evaluate {
    const qualified = qualifiedName(operandNode, field);
    const type = qualified === undefined ? undefined : typeConstants.get(qualified);
    if (type !== undefined && !this.#isVariable(operandNode)) return () => type;
    const operand = this.compile(operandNode);
    return (frame) => {
      const container = operand(frame);
      if (container instanceof CelOptional) return lookupOptional(container, field);
      const value = isMap(container) ? mapGet(container, field) : undefined;
      if (optional) return isMap(container) ? new CelOptional(value) : fail(noSuchOverload());
      if (value === undefined) throw new CelError(`no such key: ${field}`);
      return value;
    };
  }

  #index(operandNode: CelNode, keyNode: CelNode, optional: boolean): Evaluate {
    const [operand, index] = [this.compile(operandNode), this.compile(keyNode)];
    return (frame) => {
      const container = operand(frame);
      const key = index(frame);
      if (container instanceof CelOptional) return lookupOptional(container, key);
      const value = celLookup(container, key);
      if (optional) return new CelOptional(value);
      if (value !== undefined) return value;
      throw new CelError(
        Array.isArray(container) ? `index out of bounds: ${String(key)}` : `no such key: ${String(key)}`,
      );
    };
  }

  #unary(operator: '!' | '-', operand: Evaluate): Evaluate {
    return operator === '!' ? (frame) => !bool(operand(frame)) : (frame) => celNegate(operand(frame));
  }

  #binary(operator: string, left: Evaluate, right: Evaluate): Evaluate {
    // `x || true` is true even if x fails: the sides of logic commute.
    if (operator === '||') return (frame) => either(frame, left, right, true);
    if (operator === '&&') return (frame) => either(frame, left, right, false);
    const apply = operators[operator];
    if (apply === undefined) throw new CelError(`undeclared operator '${operator}'`);
    return (frame) => apply(left(frame), right(frame));
  }

  #list(items: readonly { value: CelNode; optional: boolean }[]): Evaluate {
    const compiled = items.map(({ value, optional }) => ({ value: this.compile(value), optional }));
    return (frame) => {
      const list: unknown[] = [];
      for (const { value, optional } of compiled) {
        const item = value(frame);
        if (!optional) list.push(item);
        else if (!(item instanceof CelOptional)) throw noSuchOverload();
        else if (item.hasValue) list.push(item.value);
      }
      return list;
    };
  }

  #map(entries: readonly { key: CelNode; value: CelNode; optional: boolean }[]): Evaluate {
    const compiled = entries.map((entry) => ({
      ...entry,
      key: this.compile(entry.key),
      value: this.compile(entry.value),
    }));
    return (frame) => {
      const map = new Map<unknown, unknown>();
      for (const { key, value, optional } of compiled) {
        const name = mapKey(key(frame));
        const item = value(frame);
        if (!optional) map.set(name, item);
        else if (!(item instanceof CelOptional)) throw noSuchOverload();
        else if (item.hasValue) map.set(name, item.value);
      }
      return map;
    };
  }

  #call(node: Call): Evaluate {
    const namespaced = node.receiver === undefined ? node.name : this.#namespaced(node.receiver, node.name);
    const args = node.args.map((arg) => this.compile(arg));
    if (namespaced !== undefined) {
      const apply = functions.get(namespaced);
      if (apply === undefined) throw new CelError(`undeclared reference to '${namespaced}' (in container '')`);
      checkLiterals(namespaced, node.args);
      return invoke(apply, args);
    }
    const apply = methods.get(node.name);
    if (apply === undefined || node.receiver === undefined) {
      throw new CelError(`undeclared reference to '${node.name}' (in container '')`);
    }
    checkLiterals(node.name, [node.receiver, ...node.args]);
    return invoke(apply, [this.compile(node.receiver), ...args]);
  }

  /** `sets.contains(a, b)` is a function, unless `sets` is a variable. */
  #namespaced(receiver: CelNode, name: string): string | undefined {
    if (receiver.kind !== 'identifier' || this.#scope.has(receiver.name)) return undefined;
    const full = `${receiver.name}.${name}`;
    return functions.has(full) ? full : undefined;
  }

  #isVariable(node: CelNode): boolean {
    if (node.kind === 'select') return this.#isVariable(node.operand);
    return node.kind === 'identifier' && this.#scope.has(node.name);
  }

  #macro(node: Call): Evaluate | undefined {
    const { name, receiver, args } = node;
    if (receiver === undefined) return name === 'has' ? this.#has(args) : undefined;
    if (name === 'bind' && receiver.kind === 'identifier' && receiver.name === 'cel') return this.#bind(args);
    const [first, second] = args;
    const body = args.at(-1);
    if (body === undefined || first?.kind !== 'identifier') return undefined;
    const shape = `${name}/${args.length}`;
    if (shape === 'optMap/2' || shape === 'optFlatMap/2') return this.#optMap(receiver, first.name, body, name);
    if (shape === 'map/3') return this.#loop(receiver, [first.name], body, collectMapped, second);
    const collect = collectors.get(shape);
    if (collect === undefined) return undefined;
    if (args.length === 2) return this.#loop(receiver, [first.name], body, collect);
    if (second?.kind !== 'identifier') throw new CelError('argument must be a simple name');
    return this.#loop(receiver, [first.name, second.name], body, collect, args.length === 4 ? args[2] : undefined);
  }

  #has(args: readonly CelNode[]): Evaluate {
    const [field] = args;
    if (args.length !== 1 || field?.kind !== 'select') throw new CelError('invalid argument to has() macro');
    const operand = this.compile(field.operand);
    return (frame) => {
      let container = operand(frame);
      if (container instanceof CelOptional) {
        if (!container.hasValue) return false;
        container = container.value;
      }
      if (!isMap(container)) throw noSuchOverload();
      return mapGet(container, field.field) !== undefined;
    };
  }

  #bind(args: readonly CelNode[]): Evaluate {
    const [variable, value, body] = args;
    if (args.length !== 3 || variable?.kind !== 'identifier' || value === undefined || body === undefined) {
      throw new CelError('cel.bind() variable names must be simple identifiers');
    }
    const bound = this.compile(value);
    const [slot, evaluate] = this.#within(variable.name, () => this.compile(body));
    return (frame) => {
      frame.slots[slot] = bound(frame);
      return evaluate(frame);
    };
  }

  #optMap(receiverNode: CelNode, variable: string, body: CelNode, name: string): Evaluate {
    const receiver = this.compile(receiverNode);
    const [slot, evaluate] = this.#within(variable, () => this.compile(body));
    return (frame) => {
      const optional = receiver(frame);
      if (!(optional instanceof CelOptional)) throw noSuchOverload();
      if (!optional.hasValue) return optional;
      frame.slots[slot] = optional.value;
      const result = evaluate(frame);
      return name === 'optMap' ? new CelOptional(result) : result;
    };
  }

  #loop(rangeNode: CelNode, names: readonly string[], body: CelNode, collect: Collect, filterNode?: CelNode): Evaluate {
    const range = this.compile(rangeNode);
    const [first = '', second] = names;
    const compileInside = (): [Evaluate, Evaluate | undefined] => [
      this.compile(body),
      filterNode === undefined ? undefined : this.compile(filterNode),
    ];
    let secondSlot = -1;
    const [slot, [evaluate, filter]] = this.#within(first, () => {
      if (second === undefined) return compileInside();
      const [inner, compiled] = this.#within(second, compileInside);
      secondSlot = inner;
      return compiled;
    });
    return (frame) => {
      const container = range(frame);
      const isList = Array.isArray(container);
      if (!isList && !isMap(container)) throw new CelError(`got '${typeName(container)}', expected iterable type`);
      const items = isList ? (container as unknown[]) : mapKeys(container);
      return collect(items.length, (i) => {
        if (--frame.budget < 0) throw new CelError('operation cancelled: actual cost limit exceeded');
        const item = items[i];
        // One variable is the item of a list or the key of a map; two are index and item, or key and value.
        frame.slots[slot] = second !== undefined && isList ? i : item;
        if (secondSlot >= 0) frame.slots[secondSlot] = isList ? item : mapGet(container, item);
        if (filter !== undefined && !bool(filter(frame))) return skipped;
        return { item, value: evaluate(frame), key: isList ? i : item };
      });
    };
  }

  /** Compiles with a name bound to a slot of its own. */
  #within<T>(name: string, compile: () => T): [slot: number, compiled: T] {
    const outer = this.#scope.get(name);
    const slot = this.#slots++;
    this.#scope.set(name, slot);
    const compiled = compile();
    if (outer === undefined) this.#scope.delete(name);
    else this.#scope.set(name, outer);
    return [slot, compiled];
  }
}

/** Patterns, durations and times that are written out are wrong when compiling already. */
function checkLiterals(name: string, args: readonly CelNode[]): void {
  const literal = name === 'matches' || name === 'find' || name === 'findAll' ? args[1] : args[0];
  if (literal?.kind !== 'literal' || typeof literal.value !== 'string') return;
  if (literal === args[1]) methods.get('matches')?.('', literal.value);
  else if (name === 'duration' || name === 'timestamp') functions.get(name)?.(literal.value);
}

function invoke(apply: (...args: unknown[]) => unknown, args: readonly Evaluate[]): Evaluate {
  const [first, second] = args;
  if (first !== undefined && args.length === 1) return (frame) => apply(first(frame));
  if (first !== undefined && second !== undefined && args.length === 2)
    return (frame) => apply(first(frame), second(frame));
  return (frame) => apply(...args.map((arg) => arg(frame)));
}

function either(frame: Frame, left: Evaluate, right: Evaluate, deciding: boolean): boolean {
  let failure: CelError | undefined;
  try {
    if (bool(left(frame)) === deciding) return deciding;
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    failure = error;
  }
  if (bool(right(frame)) === deciding) return deciding;
  if (failure !== undefined) throw failure;
  return !deciding;
}

function lookupOptional(container: CelOptional, key: unknown): CelOptional {
  return container.hasValue ? new CelOptional(celLookup(container.value, key)) : container;
}

function fail(error: Error): never {
  throw error;
}

function qualifiedName(node: CelNode, field: string): string | undefined {
  if (node.kind === 'identifier') return `${node.name}.${field}`;
  if (node.kind !== 'select') return undefined;
  const prefix = qualifiedName(node.operand, node.field);
  return prefix === undefined ? undefined : `${prefix}.${field}`;
}
