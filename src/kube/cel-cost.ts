// SPDX-License-Identifier: Apache-2.0
// What an expression costs at most, told before it runs: cel-go's estimate with kube-apiserver's figures.

import { builtinCost, type CallCost, type CostedValue, either, libraryCost } from './cel-call-cost.ts';
import type { CheckedCel } from './cel-check.ts';
import type { CelCore } from './cel-expand.ts';
import { type CelRange, exactly, most, nothing, plus, span, times, unknownSize } from './cel-size.ts';
import type { CelStaticType } from './cel-types.ts';

/** How many items or characters a value of the schema may have at most. */
export interface SizedType {
  readonly maxElements: number;
  readonly fields?: ReadonlyMap<string, SizedType>;
  readonly items?: SizedType;
  readonly keys?: SizedType;
}

/** The most that one evaluation can cost. `root` is what the variables are. */
export function celCost(checked: CheckedCel, root: SizedType): number {
  return new Coster(checked, root).cost(checked.tree).max;
}

/** The sizes of what is in a list or map. */
interface EntrySizes {
  readonly of: 'list' | 'map';
  readonly key: CelRange;
  readonly value: CelRange;
}

interface Local {
  readonly path: readonly string[];
  readonly size: CelRange | undefined;
  readonly entries: EntrySizes | undefined;
}

const access: CelRange = exactly(1);
const listCost: CelRange = exactly(10);
const mapCost: CelRange = exactly(30);
const accumulators = new Set(['@result', '__result__']);
const impossible: CelRange = { min: most, max: 0 };

class Coster {
  readonly #checked: CheckedCel;
  readonly #root: SizedType;
  readonly #sizes = new Map<CelCore, CelRange>();
  readonly #entries = new Map<CelCore, EntrySizes>();
  readonly #paths = new Map<CelCore, readonly string[]>();
  readonly #locals = new Map<string, Local[]>();

  constructor(checked: CheckedCel, root: SizedType) {
    this.#checked = checked;
    this.#root = root;
  }

  cost(node: CelCore): CelRange {
    switch (node.kind) {
      case 'literal':
        return nothing;
      case 'identifier':
        this.#paths.set(node, this.#local(node.name)?.path ?? [node.name]);
        return access;
      case 'select':
        return this.#select(node);
      case 'call':
        return this.#call(node);
      case 'list':
        return this.#list(node);
      case 'map':
        return this.#map(node);
      case 'loop':
        return node.binds ? this.#bind(node) : this.#loop(node);
    }
  }

  #select(node: Extract<CelCore, { kind: 'select' }>): CelRange {
    if (this.#checked.isConstant(node)) {
      this.#paths.set(node, [nameOf(node)]);
      return access;
    }
    const cost = this.cost(node.operand);
    // Asking whether a field is there is free.
    if (node.test) return cost;
    this.#paths.set(node, [...this.#path(node.operand), node.field]);
    const { kind } = this.#checked.typeOf(node.operand);
    return kind === 'map' || kind === 'struct' || kind === 'param' ? plus(cost, access) : cost;
  }

  #call(node: Extract<CelCore, { kind: 'call' }>): CelRange {
    const { name, target, args } = node;
    if (name === 'dyn') return this.#dyn(node, args[0]!);
    const costs = args.map((arg) => this.cost(arg));
    const values = args.map((arg) => this.#value(arg));
    const ids = this.#checked.overloadIds(node);
    if (ids.length === 0) return nothing;
    // The receiver of a namespaced function is only a part of its name.
    const called = target !== undefined && this.#isValue(target) ? target : undefined;
    const before = called === undefined ? nothing : this.cost(called);
    const receiver = called === undefined ? undefined : this.#value(called);
    const fullName = target !== undefined && called === undefined ? `${nameOf(target)}.${name}` : name;
    let cost = impossible;
    let size: CelRange | undefined;
    for (const id of ids) {
      const estimate = this.#overload(node, fullName, id, receiver, values, costs);
      cost = span(cost, estimate.cost);
      if (estimate.size !== undefined) size = size === undefined ? estimate.size : span(size, estimate.size);
      if (id === 'index_list' || id === 'index_map') {
        size = this.#entrySizes(args[0]!)?.value;
        this.#paths.set(node, [...this.#path(args[0]!), id === 'index_list' ? '@items' : '@values']);
      }
      size ??= this.#size(node);
    }
    if (size !== undefined) this.#sizes.set(node, size);
    return plus(before, cost);
  }

  #isValue(target: CelCore): boolean {
    return this.#checked.hasType(target);
  }

  #dyn(node: CelCore, argument: CelCore): CelRange {
    const cost = plus(access, this.cost(argument));
    this.#copySizes(node, argument);
    return cost;
  }

  #overload(
    node: CelCore,
    name: string,
    id: string,
    target: CostedValue | undefined,
    args: readonly CostedValue[],
    costs: readonly CelRange[],
  ): CallCost {
    const all = costs.reduce(plus, nothing);
    const known = libraryCost(name, target, args);
    if (known !== undefined) return { ...known, cost: plus(known.cost, all) };
    if (id === 'logical_or' || id === 'logical_and') {
      return { cost: { min: costs[0]!.min, max: all.max } };
    }
    if (id === 'conditional') {
      const [, yes, no] = args;
      this.#setEntries(node, united(this.#entrySizes(yes!.node), this.#entrySizes(no!.node)));
      return { cost: plus(costs[0]!, span(costs[1]!, costs[2]!)), size: either(yes, no) };
    }
    if (id === 'add_list' || id === 'add_string' || id === 'add_bytes') {
      this.#setEntries(node, united(this.#entrySizes(args[0]!.node), this.#entrySizes(args[1]!.node)));
    }
    const estimate = builtinCost(id, target, args);
    return { ...estimate, cost: plus(estimate.cost, all) };
  }

  #list(node: Extract<CelCore, { kind: 'list' }>): CelRange {
    const value = this.#common(node.items.map((item) => item.value));
    this.#entries.set(node, { of: 'list', key: exactly(1), value: value.size });
    return plus(value.cost, listCost);
  }

  #map(node: Extract<CelCore, { kind: 'map' }>): CelRange {
    const keys = this.#common(node.entries.map((entry) => entry.key));
    const values = this.#common(node.entries.map((entry) => entry.value));
    this.#entries.set(node, { of: 'map', key: keys.size, value: values.size });
    return plus(plus(keys.cost, values.cost), mapCost);
  }

  #common(nodes: readonly CelCore[]): { cost: CelRange; size: CelRange } {
    let cost = nothing;
    let size: CelRange = nodes.length === 0 ? nothing : impossible;
    for (const node of nodes) {
      cost = plus(cost, this.cost(node));
      size = span(size, this.#size(node) ?? unknownSize);
    }
    return { cost, size };
  }

  #loop(node: Extract<CelCore, { kind: 'loop' }>): CelRange {
    let cost = plus(this.cost(node.range), this.cost(node.start));
    const turn = this.#within(node.accumulator, this.#bound(node.start), () => {
      const inner = (): CelRange => plus(this.cost(node.condition), this.cost(node.step));
      const [first, second] = this.#itemsOf(node.range, node.second !== undefined);
      const each = this.#within(node.variable, first, () =>
        node.second === undefined ? inner() : this.#within(node.second, second, inner),
      );
      cost = plus(cost, this.cost(node.result));
      return each;
    });
    const count = this.#size(node.range) ?? unknownSize;
    if (node.start.kind === 'literal') this.#setSize(node, this.#size(node.start));
    else if (node.start.kind === 'list' || node.start.kind === 'map') {
      this.#sizes.set(node, count);
      this.#setEntries(node, this.#entrySizes(node.step));
    }
    return plus(cost, times(count, turn));
  }

  #bind(node: Extract<CelCore, { kind: 'loop' }>): CelRange {
    const cost = plus(this.cost(node.range), this.cost(node.start));
    return this.#within(node.accumulator, this.#bound(node.start), () => {
      const inner = this.cost(node.result);
      this.#copySizes(node, node.result);
      return plus(cost, inner);
    });
  }

  #bound(node: CelCore): Local {
    return { path: this.#path(node), size: this.#size(node), entries: this.#entrySizes(node) };
  }

  /** What the variables of a loop stand for: key and value, or the item alone. */
  #itemsOf(range: CelCore, pairs: boolean): readonly [Local, Local] {
    const entries = this.#entrySizes(range);
    const path = this.#path(range);
    const isList = (entries?.of ?? this.#checked.typeOf(range).kind) === 'list';
    const local = (step: string, size: CelRange | undefined): Local => ({
      path: [...path, step],
      size,
      entries: undefined,
    });
    const value = local(isList ? '@items' : '@values', entries?.value);
    const key = local(isList ? '@indices' : '@keys', entries?.key);
    return pairs || !isList ? [key, value] : [value, value];
  }

  #within<T>(name: string, local: Local, run: () => T): T {
    const stack = this.#locals.get(name) ?? [];
    this.#locals.set(name, [...stack, local]);
    const result = run();
    this.#locals.set(name, stack);
    return result;
  }

  #local(name: string): Local | undefined {
    return this.#locals.get(name)?.at(-1);
  }

  #path(node: CelCore): readonly string[] {
    const local = node.kind === 'identifier' ? this.#local(node.name) : undefined;
    return local?.path ?? this.#paths.get(node) ?? [];
  }

  #value(node: CelCore): CostedValue {
    const path = this.#path(node);
    const known = accumulators.has(path[0] ?? '') ? [] : path;
    return {
      node,
      type: this.#checked.typeOf(node),
      size: this.#size(node),
      itemSize: () => this.#schemaSize(known.length === 0 ? [] : [...known, '@items']),
    };
  }

  #size(node: CelCore): CelRange | undefined {
    const known = this.#sizes.get(node) ?? ownSize(node);
    if (known !== undefined) return known;
    const declared = this.#schemaSize(this.#path(node));
    if (declared !== undefined) {
      this.#sizes.set(node, declared);
      return declared;
    }
    if (isScalar(this.#checked.typeOf(node))) return exactly(1);
    return node.kind === 'identifier' ? this.#local(node.name)?.size : undefined;
  }

  /** The size of what a path leads to, from the variable on. */
  #schemaSize(path: readonly string[]): CelRange | undefined {
    if (path.length === 0) return undefined;
    let at: SizedType | undefined = this.#root;
    for (const step of path.slice(1)) {
      if (step === '@items' || step === '@values') at = at.items;
      else if (step === '@keys') at = at.keys;
      else at = at.fields?.get(step);
      if (at === undefined) return undefined;
    }
    return { min: 0, max: at.maxElements };
  }

  #entrySizes(node: CelCore): EntrySizes | undefined {
    return this.#entries.get(node) ?? (node.kind === 'identifier' ? this.#local(node.name)?.entries : undefined);
  }

  #setSize(node: CelCore, size: CelRange | undefined): void {
    if (size !== undefined) this.#sizes.set(node, size);
  }

  #setEntries(node: CelCore, entries: EntrySizes | undefined): void {
    if (entries !== undefined) this.#entries.set(node, entries);
  }

  #copySizes(to: CelCore, from: CelCore): void {
    this.#setSize(to, this.#size(from));
    this.#setEntries(to, this.#entrySizes(from));
  }
}

function united(a: EntrySizes | undefined, b: EntrySizes | undefined): EntrySizes | undefined {
  return a && b && { of: a.of, key: span(a.key, b.key), value: span(a.value, b.value) };
}

/** The size of what is written out. */
function ownSize(node: CelCore): CelRange | undefined {
  if (node.kind === 'list') return exactly(node.items.length);
  if (node.kind === 'map') return exactly(node.entries.length);
  if (node.kind !== 'literal') return undefined;
  const { value } = node;
  if (typeof value === 'string') return exactly(Array.from(value).length);
  return exactly(value instanceof Uint8Array ? value.length : 1);
}

const scalars: ReadonlySet<string> = new Set(['bool', 'double', 'duration', 'int', 'timestamp', 'uint']);

function isScalar(type: CelStaticType): boolean {
  if (scalars.has(type.kind)) return true;
  return type.name === 'optional_type' && type.params[0] !== undefined && isScalar(type.params[0]);
}

function nameOf(node: CelCore): string {
  if (node.kind === 'identifier') return node.name;
  return node.kind === 'select' ? `${nameOf(node.operand)}.${node.field}` : '';
}
