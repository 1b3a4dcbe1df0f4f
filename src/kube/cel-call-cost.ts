// SPDX-License-Identifier: Apache-2.0
// What calls of functions cost at most, and how large their results can be: the figures of kube-apiserver.

import type { CelCore } from './cel-expand.ts';
import { type CelRange, exactly, most, plus, scaled, span, times, unknownSize } from './cel-size.ts';
import type { CelStaticType } from './cel-types.ts';
import { isInt } from './cel-values.ts';

/** An argument or receiver, as far as its cost goes. */
export interface CostedValue {
  readonly type: CelStaticType;
  readonly node: CelCore;
  /** Its size when the expression or the schema tells; else undefined. */
  readonly size: CelRange | undefined;
  /** The size of an item, when it is a list of the schema. */
  itemSize(): CelRange | undefined;
}

export interface CallCost {
  /** Without the cost of the arguments. */
  readonly cost: CelRange;
  readonly size?: CelRange;
}

/** Reading a text costs a tenth of its characters, a pattern a quarter of its own. */
const perCharacter = 0.1;
const perPatternCharacter = 0.25;
const newList = 10;
const one: CelRange = exactly(1);

export function sizeOf(value: CostedValue | undefined): CelRange {
  return value?.size ?? unknownSize;
}

function read(size: CelRange, factor = 1): CelRange {
  return scaled(size, factor * perCharacter);
}

type Estimate = (target: CostedValue | undefined, args: readonly CostedValue[]) => CallCost | undefined;

const constant: Estimate = () => ({ cost: one });

/** Reads its argument or receiver once; the result is as long. */
const readsArgument: Estimate = (_, [argument]) => argument && { cost: read(sizeOf(argument)) };
const rewrites = (value: CostedValue | undefined): CallCost | undefined =>
  value && { cost: read(sizeOf(value)), size: sizeOf(value) };

const matching = (text: CelRange, pattern: CelRange): CelRange =>
  times(read(plus(text, one)), scaled(pattern, perPatternCharacter));

/** Walks a list once, comparing its items; or a text. */
const walks: Estimate = (target) => {
  if (target === undefined) return undefined;
  const [item] = target.type.params;
  if (item === undefined) return { cost: read(sizeOf(target)) };
  const compared = item.kind === 'string' || item.kind === 'bytes';
  const each = compared ? plus(one, read(target.itemSize() ?? unknownSize)) : one;
  return { cost: times(sizeOf(target), each) };
};

const replace: Estimate = (target, [from, to]) => {
  if (target === undefined || from === undefined || to === undefined) return undefined;
  const size = sizeOf(target);
  const [old, young] = [sizeOf(from), sizeOf(to)];
  const more = (value: number): number => (value < most ? value + 1 : value);
  const kept = { min: 0, max: 0 };
  const count = { min: 0, max: 0 };
  if (old.min === 0) {
    count.max = more(size.max);
    kept.max = size.max;
  } else if (young.max <= old.min) kept.max = size.max;
  else count.max = Math.ceil(size.max / old.min);
  if (old.max === 0) {
    count.min = more(size.min);
    kept.min = size.min;
  } else if (old.max <= young.min) kept.min = size.min;
  else count.min = Math.ceil(size.min / old.max);
  return { cost: read(size, 2), size: plus(times(count, young), kept) };
};

/** The number that is written out, if one is. Negative ones count as huge: cel-go has no sign here. */
function wholeNumber(value: CostedValue | undefined, otherwise: number): number {
  const node = value?.node;
  return node?.kind === 'literal' && isInt(node.value) ? unsigned(Number(node.value)) : otherwise;
}

function unsigned(value: number): number {
  return value < 0 ? value + most : value;
}

const join: Estimate = (target, [separator]) => {
  if (target === undefined) return undefined;
  const count = sizeOf(target);
  let size: CelRange = times(count, target.itemSize() ?? unknownSize);
  if (separator !== undefined) {
    const between = { min: Math.max(count.min - 1, 0), max: Math.max(count.max - 1, 0) };
    size = plus(size, times(sizeOf(separator), between));
  }
  return { cost: read(size), size };
};

const find: Estimate = (target, [pattern]) =>
  target && pattern && { cost: matching(sizeOf(target), sizeOf(pattern)), size: { min: 0, max: sizeOf(target).max } };

const address: CelRange = { min: 4, max: 16 };

/** Makes a list of that size. */
function allocates(size: CelRange, factor = 1): CallCost {
  return { cost: plus(scaled(size, factor), plus(one, exactly(newList))), size };
}

const sorts = (list: CostedValue | undefined, item: CelStaticType | undefined): CallCost | undefined => {
  if (list === undefined) return undefined;
  const factor = item?.kind === 'string' || item?.kind === 'bytes' ? 2 + perCharacter : 2;
  return allocates(times(sizeOf(list), sizeOf(list)), factor);
};

const compares =
  (factor: number): Estimate =>
  (_, [a, b]) => ({ cost: plus(scaled(times(sizeOf(a), sizeOf(b)), factor), one) });

/** By name of the function. */
const library: ReadonlyMap<string, Estimate> = new Map<string, Estimate>([
  ...'isSorted sum max min indexOf lastIndexOf'.split(' ').map((name) => [name, walks] as const),
  ...'cidr isIP isCIDR quantity isQuantity semver isSemver'.split(' ').map((name) => [name, readsArgument] as const),
  ...(
    'serviceAccount path group resource subresource namespace name allowed reason error errored masked prefixLength family ' +
    'isUnspecified isLoopback isLinkLocalMulticast isLinkLocalUnicast isGlobalUnicast format.named sign asInteger isInteger ' +
    'asApproximateFloat isGreaterThan isLessThan compareTo add sub major minor patch getScheme getHostname getHost getPort ' +
    'getEscapedPath getQuery'
  )
    .split(' ')
    .map((name) => [name, constant] as const),
  ['url', (_, [argument]) => rewrites(argument)],
  ...'lowerAscii upperAscii substring trim'
    .split(' ')
    .map((name): [string, Estimate] => [name, (target) => rewrites(target)]),
  ['replace', replace],
  [
    'split',
    (target, [, limit]) =>
      target && {
        cost: read(sizeOf(target), 2),
        size: { min: 0, max: wholeNumber(limit, sizeOf(target).max) },
      },
  ],
  ['join', join],
  ['find', find],
  ['findAll', find],
  ['ip', (target, [argument]) => (target === undefined ? argument && { cost: read(sizeOf(argument)) } : { cost: one })],
  ['ip.isCanonical', (_, [argument]) => argument && { cost: read(sizeOf(argument), 2) }],
  [
    'containsIP',
    (_, [other]) => ({
      cost: plus(read(plus(address, address)), other?.type.kind === 'string' ? read(sizeOf(other)) : exactly(0)),
    }),
  ],
  [
    'containsCIDR',
    (_, [other]) => ({
      cost: plus(
        plus(read(plus(address, address)), plus(read(address), one)),
        other?.type.kind === 'string' ? read(sizeOf(other)) : exactly(0),
      ),
    }),
  ],
  ['validate', (_, [argument]) => argument && { cost: scaled(read(sizeOf(argument)), 128 * perPatternCharacter) }],
  ['sets.contains', compares(1)],
  ['sets.intersects', compares(1)],
  ['sets.equivalent', compares(2)],
  [
    'slice',
    (target, [start, end]) =>
      allocates(exactly(unsigned(wholeNumber(end, sizeOf(target).max) - wholeNumber(start, 0)))),
  ],
  ['lists.range', (_, [count]) => allocates(exactly(wholeNumber(count, most)))],
  ['reverse', (target) => target && allocates(sizeOf(target))],
  ['flatten', (target, [depth]) => target && allocates(sizeOf(target), depth ? wholeNumber(depth, most) : 1)],
  ['distinct', (target) => target && allocates(times(sizeOf(target), sizeOf(target)), 2)],
  ['sort', (target) => sorts(target, target?.type.params[0])],
  ['@sortByAssociatedKeys', (_, [keys]) => sorts(keys, keys?.type.params[0])],
]);

const structsOfOneCost = new Set(['kubernetes.Quantity', 'kubernetes.Semver', 'net.IP', 'net.CIDR']);

/** Equality of the API server's own types; undefined for all others. */
function equality(a: CostedValue, b: CostedValue): CallCost | undefined {
  if (a.type.name !== b.type.name || a.type.kind !== b.type.kind) return undefined;
  if (structsOfOneCost.has(a.type.name)) return { cost: one };
  if (a.type.name === 'kubernetes.NamedFormat') return { cost: read({ min: 1, max: 64 }) };
  if (a.type.name === 'kubernetes.URL') return { cost: read({ min: 1, max: b.size?.max ?? 1 }) };
  return undefined;
}

/** What a function of the libraries costs; undefined for those of the language itself. */
export function libraryCost(
  name: string,
  target: CostedValue | undefined,
  args: readonly CostedValue[],
): CallCost | undefined {
  if (name === '_==_') return args.length === 2 ? equality(args[0]!, args[1]!) : undefined;
  return library.get(name)?.(target, args);
}

const comparisons = /^(?:less|less_equals|greater|greater_equals)_(?:string|bytes)$|^equals$|^not_equals$/;

/** What an overload of the language itself costs. */
export function builtinCost(id: string, target: CostedValue | undefined, args: readonly CostedValue[]): CallCost {
  const [first, second] = args;
  switch (id) {
    case 'string_format':
      return { cost: read(sizeOf(target)) };
    case 'string_to_bytes':
      return { cost: read(sizeOf(first)), size: { min: sizeOf(first).min, max: sizeOf(first).max * 4 } };
    case 'bytes_to_string':
      return { cost: read(sizeOf(first)), size: { min: Math.floor(sizeOf(first).min / 4), max: sizeOf(first).max } };
    case 'strings_quote':
      return { cost: read(sizeOf(first)), size: { min: sizeOf(first).min + 2, max: sizeOf(first).max * 2 + 2 } };
    case 'starts_with_string':
    case 'ends_with_string':
      return { cost: read(sizeOf(first)) };
    case 'in_list':
      return { cost: sizeOf(second) };
    case 'matches_string':
      return { cost: matching(sizeOf(target), sizeOf(first)) };
    case 'contains_string':
      return { cost: times(read(sizeOf(target)), read(sizeOf(first))) };
    case 'add_list':
      return { cost: one, size: plus(sizeOf(first), sizeOf(second)) };
    case 'add_string':
    case 'add_bytes': {
      const size = plus(sizeOf(first), sizeOf(second));
      return { cost: read(size), size };
    }
    default: {
      if (!comparisons.test(id)) return { cost: one };
      const max = Math.min(sizeOf(first).max, sizeOf(second).max);
      return { cost: read({ min: max > 0 ? 1 : 0, max }) };
    }
  }
}

/** The sizes of two values together. */
export function either(a: CostedValue | undefined, b: CostedValue | undefined): CelRange {
  return span(sizeOf(a), sizeOf(b));
}
