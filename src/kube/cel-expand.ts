// SPDX-License-Identifier: Apache-2.0
// The tree of an expression with its macros written out, as cel-go's parser does it: types and costs are told from this.

import type { CelNode } from './cel-parser.ts';
import { CelError } from './cel-values.ts';

/** An expression without macros. Operators are calls (`_+_`), loops are what macros become. */
export type CelCore = { readonly at: number } & (
  | { readonly kind: 'literal'; readonly value: unknown }
  | { readonly kind: 'identifier'; readonly name: string }
  | { readonly kind: 'select'; readonly operand: CelCore; readonly field: string; readonly test: boolean }
  | CelCoreCall
  | { readonly kind: 'list'; readonly items: readonly { readonly value: CelCore; readonly optional: boolean }[] }
  | {
      readonly kind: 'map';
      readonly entries: readonly { readonly key: CelCore; readonly value: CelCore; readonly optional: boolean }[];
    }
  | CelCoreLoop
);

interface CelCoreCall {
  readonly kind: 'call';
  readonly name: string;
  readonly target?: CelCore;
  readonly args: readonly CelCore[];
}

interface CelCoreLoop {
  readonly kind: 'loop';
  readonly range: CelCore;
  readonly variable: string;
  /** Of loops over pairs. */
  readonly second?: string;
  readonly accumulator: string;
  readonly start: CelCore;
  readonly condition: CelCore;
  readonly step: CelCore;
  readonly result: CelCore;
  /** It only gives a name to a value. */
  readonly binds: boolean;
}

const accumulator = '@result';

/** Writes out the macros. Throws CelError for macros that are used wrongly. */
export function expandCel(node: CelNode): CelCore {
  switch (node.kind) {
    case 'literal':
      return { kind: 'literal', at: node.at, value: node.value };
    case 'identifier':
      return { kind: 'identifier', at: node.at, name: node.name };
    case 'select':
      return node.optional
        ? call(node.at, '_?._', [expandCel(node.operand), literal(node.at, node.field)])
        : { kind: 'select', at: node.at, operand: expandCel(node.operand), field: node.field, test: false };
    case 'index':
      return call(node.at, node.optional ? '_[?_]' : '_[_]', [expandCel(node.operand), expandCel(node.key)]);
    case 'call':
      return expandCall(node);
    case 'list':
      return {
        kind: 'list',
        at: node.at,
        items: node.items.map((item) => ({ ...item, value: expandCel(item.value) })),
      };
    case 'map':
      return {
        kind: 'map',
        at: node.at,
        entries: node.entries.map((entry) => ({
          ...entry,
          key: expandCel(entry.key),
          value: expandCel(entry.value),
        })),
      };
    case 'unary':
      return call(node.at, `${node.operator}_`, [expandCel(node.operand)]);
    case 'binary':
      return call(node.at, node.operator === 'in' ? '@in' : `_${node.operator}_`, [
        expandCel(node.left),
        expandCel(node.right),
      ]);
    case 'conditional':
      return call(node.at, '_?_:_', [expandCel(node.test), expandCel(node.yes), expandCel(node.no)]);
  }
}

function call(at: number, name: string, args: readonly CelCore[], target?: CelCore): CelCore {
  return target === undefined ? { kind: 'call', at, name, args } : { kind: 'call', at, name, args, target };
}

function literal(at: number, value: unknown): CelCore {
  return { kind: 'literal', at, value };
}

type Call = Extract<CelNode, { kind: 'call' }>;

function expandCall(node: Call): CelCore {
  const { at, name, receiver, args } = node;
  if (receiver === undefined) {
    return name === 'has' && args.length === 1
      ? presence(at, args[0]!)
      : call(
          at,
          name,
          args.map((arg) => expandCel(arg)),
        );
  }
  const macro = macros.get(`${name}/${args.length}`);
  return (
    macro?.(node, receiver, args) ??
    call(
      at,
      name,
      args.map((arg) => expandCel(arg)),
      expandCel(receiver),
    )
  );
}

function presence(at: number, field: CelNode): CelCore {
  if (field.kind !== 'select' || field.optional) throw new CelError('invalid argument to has() macro', field.at);
  return { kind: 'select', at, operand: expandCel(field.operand), field: field.field, test: true };
}

type Macro = (node: Call, receiver: CelNode, args: readonly CelNode[]) => CelCore | undefined;

/** The loop in the words of its macro: `item` and `seen` are what its step is made of. */
interface LoopParts {
  readonly start: CelCore;
  readonly condition: CelCore;
  readonly step: CelCore;
  readonly result: CelCore;
}

/** The parts that all macros are put together from. */
class Parts {
  readonly #at: number;

  constructor(at: number) {
    this.#at = at;
  }
  get seen(): CelCore {
    return { kind: 'identifier', at: this.#at, name: accumulator };
  }
  literal(value: unknown): CelCore {
    return literal(this.#at, value);
  }
  call(name: string, ...args: CelCore[]): CelCore {
    return call(this.#at, name, args);
  }
  list(...values: CelCore[]): CelCore {
    return { kind: 'list', at: this.#at, items: values.map((value) => ({ value, optional: false })) };
  }
  map(): CelCore {
    return { kind: 'map', at: this.#at, entries: [] };
  }
  quantified(every: boolean, predicate: CelCore): LoopParts {
    return {
      start: this.literal(every),
      condition: this.call('@not_strictly_false', every ? this.seen : this.call('!_', this.seen)),
      step: this.call(every ? '_&&_' : '_||_', this.seen, predicate),
      result: this.seen,
    };
  }
  one(predicate: CelCore): LoopParts {
    return {
      start: this.literal(0),
      condition: this.literal(true),
      step: this.call('_?_:_', predicate, this.call('_+_', this.seen, this.literal(1)), this.seen),
      result: this.call('_==_', this.seen, this.literal(1)),
    };
  }
  collected(start: CelCore, step: CelCore, filter: CelCore | undefined): LoopParts {
    return {
      start,
      condition: this.literal(true),
      step: filter === undefined ? step : this.call('_?_:_', filter, step, this.seen),
      result: this.seen,
    };
  }
  listed(item: CelCore, filter: CelCore | undefined): LoopParts {
    return this.collected(this.list(), this.call('_+_', this.seen, this.list(item)), filter);
  }
}

const plainName = (node: CelNode | undefined, message = 'argument must be a simple name'): string => {
  if (node?.kind !== 'identifier') throw new CelError(message, node?.at ?? 0);
  if (node.name === '__result__') throw new CelError('iteration variable overwrites accumulator variable', node.at);
  return node.name;
};

/** A macro whose last arguments are looked at for each item. */
function looping(variables: 1 | 2, make: (parts: Parts, inner: readonly CelCore[], item: CelCore) => LoopParts): Macro {
  return ({ at }, receiver, args) => {
    const variable = plainName(args[0]);
    const second = variables === 2 ? plainName(args[1]) : undefined;
    if (second === variable) throw new CelError(`duplicate variable name: ${variable}`, args[1]!.at);
    const inner = args.slice(variables).map((arg) => expandCel(arg));
    const parts = make(new Parts(at), inner, expandCel(args[0]!));
    return {
      kind: 'loop',
      at,
      range: expandCel(receiver),
      variable,
      ...(second === undefined ? {} : { second }),
      accumulator,
      binds: false,
      ...parts,
    };
  };
}

/** Gives a name to a value: a loop that never turns. */
function binding(at: number, name: string, value: CelCore, result: CelCore): CelCore {
  return {
    kind: 'loop',
    at,
    range: { kind: 'list', at, items: [] },
    variable: '#unused',
    accumulator: name,
    start: value,
    condition: literal(at, false),
    step: { kind: 'identifier', at, name },
    result,
    binds: true,
  };
}

const optionalMap =
  (flat: boolean): Macro =>
  ({ at, name }, receiver, args) => {
    const variable = plainName(args[0], `${name}() variable name must be a simple identifier`);
    const value = call(at, 'value', [], expandCel(receiver));
    const mapped = binding(at, variable, value, expandCel(args[1]!));
    return call(at, '_?_:_', [
      call(at, 'hasValue', [], expandCel(receiver)),
      flat ? mapped : call(at, 'optional.of', [mapped]),
      call(at, 'optional.none', []),
    ]);
  };

const sortBy: Macro = (node, receiver, args) => {
  const { at } = node;
  const input = '@__sortBy_input__';
  const name: CelNode = { kind: 'identifier', at, name: input };
  const keys = macros.get('map/2')!(node, name, args)!;
  return binding(
    at,
    input,
    expandCel(receiver),
    call(at, '@sortByAssociatedKeys', [keys], { kind: 'identifier', at, name: input }),
  );
};

const every = (variables: 1 | 2): Macro =>
  looping(variables, (parts, [predicate]) => parts.quantified(true, predicate!));
const some = (variables: 1 | 2): Macro =>
  looping(variables, (parts, [predicate]) => parts.quantified(false, predicate!));
const one = (variables: 1 | 2): Macro => looping(variables, (parts, [predicate]) => parts.one(predicate!));

/** With a filter, it comes before what is made of each item. */
const split = (inner: readonly CelCore[]): [made: CelCore, filter: CelCore | undefined] =>
  inner.length === 2 ? [inner[1]!, inner[0]] : [inner[0]!, undefined];

const toList = (variables: 1 | 2): Macro => looping(variables, (parts, inner) => parts.listed(...split(inner)));
const toMap: Macro = looping(2, (parts, inner, key) => {
  const [made, filter] = split(inner);
  return parts.collected(parts.map(), parts.call('cel.@mapInsert', parts.seen, key, made), filter);
});
const toEntries: Macro = looping(2, (parts, inner) => {
  const [made, filter] = split(inner);
  return parts.collected(parts.map(), parts.call('cel.@mapInsert', parts.seen, made), filter);
});

const macros: ReadonlyMap<string, Macro> = new Map([
  ['all/2', every(1)],
  ['all/3', every(2)],
  ['exists/2', some(1)],
  ['exists/3', some(2)],
  ['exists_one/2', one(1)],
  ['existsOne/2', one(1)],
  ['existsOne/3', one(2)],
  ['map/2', toList(1)],
  ['map/3', toList(1)],
  ['filter/2', looping(1, (parts, [predicate], item) => parts.listed(item, predicate))],
  ['transformList/3', toList(2)],
  ['transformList/4', toList(2)],
  ['transformMap/3', toMap],
  ['transformMap/4', toMap],
  ['transformMapEntry/3', toEntries],
  ['transformMapEntry/4', toEntries],
  ['optMap/2', optionalMap(false)],
  ['optFlatMap/2', optionalMap(true)],
  ['sortBy/2', sortBy],
]);
