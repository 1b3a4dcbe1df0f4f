// SPDX-License-Identifier: Apache-2.0
// The functions of CEL: the standard ones and how the tables are put together from the libraries.

import {
  size,
  toBool,
  toBytes,
  toDoubleValue,
  toDuration,
  toInt,
  toText,
  toTimestamp,
  toUint,
} from './cel-conversions.ts';
import { kubernetesFunctions, kubernetesMethods } from './cel-kubernetes.ts';
import { networkFunctions, networkMethods, networkText } from './cel-network.ts';
import { stringFunctions, stringMethods } from './cel-strings.ts';
import { timeMethods } from './cel-time.ts';
import {
  CelDuration,
  CelError,
  type CelFunction,
  CelOptional,
  CelType,
  isMap,
  isNumeric,
  noSuchOverload,
  toDouble,
  typeName,
} from './cel-values.ts';

/** The names that stand for types. */
export const typeConstants: ReadonlyMap<string, CelType> = new Map(
  (
    'bool int uint double string bytes list map null_type type optional_type google.protobuf.Timestamp google.protobuf.Duration ' +
    'kubernetes.Quantity kubernetes.URL kubernetes.Semver net.IP net.CIDR'
  )
    .split(' ')
    .map((name) => [name, new CelType(name)]),
);

/** Functions that are called by their name; the namespace is part of it. */
export const functions: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['dyn', (value) => value],
  ['type', (value) => new CelType(typeName(value))],
  ['size', size],
  ['bool', toBool],
  ['int', toInt],
  ['uint', toUint],
  ['double', toDoubleValue],
  ['string', (value) => networkText(value) ?? toText(value)],
  ['bytes', toBytes],
  ['timestamp', toTimestamp],
  ['duration', toDuration],
  ['optional.of', (value) => new CelOptional(value)],
  ['optional.ofNonZeroValue', (value) => (isZero(value) ? CelOptional.none : new CelOptional(value))],
  ['optional.none', () => CelOptional.none],
  ['matches', (text, pattern) => (stringMethods.get('matches') ?? noFunction)(text, pattern)],
  ...stringFunctions,
  ...kubernetesFunctions,
  ...networkFunctions,
]);

/** Functions that are called on a value, which is their first argument. */
export const methods: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['size', size],
  ['hasValue', (optional) => optionalOf(optional).hasValue],
  ['value', optionalValue],
  ['or', (optional, other) => (optionalOf(optional).hasValue ? optional : optionalOf(other))],
  ['orValue', orValue],
  ...timeMethods,
  ...networkMethods,
  ...joined(stringMethods, kubernetesMethods),
]);

/** One table of methods: where a name is in both, the receiver decides (`'abc'.indexOf`, `[1].indexOf`). */
function joined(
  onText: ReadonlyMap<string, CelFunction>,
  others: ReadonlyMap<string, CelFunction>,
): Map<string, CelFunction> {
  const both = new Map(onText);
  for (const [name, apply] of others) {
    const text = onText.get(name);
    both.set(
      name,
      text === undefined ? apply : (...args) => (typeof args[0] === 'string' ? text(...args) : apply(...args)),
    );
  }
  return both;
}

function noFunction(): never {
  throw noSuchOverload();
}

function optionalOf(value: unknown): CelOptional {
  if (value instanceof CelOptional) return value;
  throw noSuchOverload();
}

function orValue(value: unknown, other: unknown): unknown {
  // Of a value that is not optional, cel-go takes the value.
  if (!(value instanceof CelOptional)) return value;
  return value.hasValue ? value.value : other;
}

function optionalValue(value: unknown): unknown {
  const optional = optionalOf(value);
  if (!optional.hasValue) throw new CelError('optional.none() dereference');
  return optional.value;
}

function isZero(value: unknown): boolean {
  if (value === null || value === false || value === '') return true;
  if (isNumeric(value)) return toDouble(value) === 0;
  if (value instanceof CelDuration) return value.nanos === 0n;
  return (Array.isArray(value) || value instanceof Uint8Array || isMap(value)) && size(value) === 0;
}
