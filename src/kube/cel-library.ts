// SPDX-License-Identifier: Apache-2.0
// The functions of CEL: the standard ones and how the tables are put together from the libraries.

import { kubernetesFunctions, kubernetesMethods } from './cel-kubernetes.ts';
import { stringFunctions, stringMethods } from './cel-strings.ts';
import { timeMethods } from './cel-time.ts';
import {
  CelDouble,
  CelDuration,
  CelError,
  CelOptional,
  CelTimestamp,
  CelType,
  CelUint,
  int,
  isDouble,
  isInt,
  isMap,
  isNumeric,
  mapKeys,
  noSuchOverload,
  toDouble,
  typeName,
} from './cel-values.ts';
import { formatTimeNanos, parseDurationNanos, parseTimeNanos, TimeError } from './time.ts';

export type CelFunction = (...args: unknown[]) => unknown;

/** The names that stand for types. */
export const typeConstants: ReadonlyMap<string, CelType> = new Map(
  (
    'bool int uint double string bytes list map null_type type optional_type google.protobuf.Timestamp google.protobuf.Duration ' +
    'kubernetes.Quantity kubernetes.URL kubernetes.Semver'
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
  ['string', toText],
  ['bytes', toBytes],
  ['timestamp', toTimestamp],
  ['duration', toDuration],
  ['optional.of', (value) => new CelOptional(value)],
  ['optional.ofNonZeroValue', (value) => (isZero(value) ? CelOptional.none : new CelOptional(value))],
  ['optional.none', () => CelOptional.none],
  ['matches', (text, pattern) => (stringMethods.get('matches') ?? noFunction)(text, pattern)],
  ...stringFunctions,
  ...kubernetesFunctions,
]);

/** Functions that are called on a value, which is their first argument. */
export const methods: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['size', size],
  ['hasValue', (optional) => optionalOf(optional).hasValue],
  ['value', optionalValue],
  ['or', (optional, other) => (optionalOf(optional).hasValue ? optional : optionalOf(other))],
  ['orValue', (optional, other) => (optionalOf(optional).hasValue ? optionalOf(optional).value : other)],
  ...timeMethods,
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

function size(value: unknown): number {
  if (typeof value === 'string') return codePoints(value);
  if (Array.isArray(value) || value instanceof Uint8Array) return value.length;
  if (isMap(value)) return value instanceof Map ? value.size : mapKeys(value).length;
  throw noSuchOverload();
}

function codePoints(text: string): number {
  let count = text.length;
  for (let i = 1; i < text.length; i++) {
    if ((text.charCodeAt(i) & 0xfc00) === 0xdc00 && (text.charCodeAt(i - 1) & 0xfc00) === 0xd800) count--;
  }
  return count;
}

function optionalOf(value: unknown): CelOptional {
  if (value instanceof CelOptional) return value;
  throw noSuchOverload();
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

function toBool(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') throw noSuchOverload();
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value)) return false;
  throw new CelError(`strconv.ParseBool: parsing ${JSON.stringify(value)}: invalid syntax`);
}

function toInt(value: unknown): number | bigint {
  if (isInt(value)) return value;
  if (value instanceof CelUint) return int(value.value);
  if (isDouble(value)) return int(truncated(toDouble(value), 'integer overflow'));
  if (value instanceof CelTimestamp) return int(floorDivide(value.nanos, 1_000_000_000n));
  if (value instanceof CelDuration) return int(value.nanos);
  if (typeof value === 'string') return int(parseInteger(value, 'ParseInt', 64n));
  throw noSuchOverload();
}

function floorDivide(amount: bigint, divisor: bigint): bigint {
  const quotient = amount / divisor;
  return amount < 0n && quotient * divisor !== amount ? quotient - 1n : quotient;
}

function truncated(value: number, message: string): bigint {
  if (!Number.isFinite(value)) throw new CelError(message);
  return BigInt(Math.trunc(value));
}

function parseInteger(text: string, parser: 'ParseInt' | 'ParseUint', bits: bigint): bigint {
  const signed = parser === 'ParseInt';
  if (!(signed ? /^[+-]?[0-9]+$/ : /^[0-9]+$/).test(text)) {
    throw new CelError(`strconv.${parser}: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  const value = BigInt(text.replace('+', ''));
  const fits = signed ? BigInt.asIntN(Number(bits), value) === value : BigInt.asUintN(Number(bits), value) === value;
  if (!fits) throw new CelError(`strconv.${parser}: parsing ${JSON.stringify(text)}: value out of range`);
  return value;
}

function toUint(value: unknown): CelUint {
  if (value instanceof CelUint) return value;
  if (isInt(value)) return new CelUint(BigInt(value));
  if (isDouble(value)) return new CelUint(truncated(toDouble(value), 'unsigned integer overflow'));
  if (typeof value === 'string') return new CelUint(parseInteger(value, 'ParseUint', 64n));
  throw noSuchOverload();
}

function toDoubleValue(value: unknown): CelDouble {
  if (isNumeric(value)) return new CelDouble(toDouble(value));
  if (typeof value !== 'string') throw noSuchOverload();
  if (/^[+-]?inf(inity)?$/i.test(value)) return new CelDouble(value.startsWith('-') ? -Infinity : Infinity);
  if (/^nan$/i.test(value)) return new CelDouble(Number.NaN);
  if (!/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(value)) {
    throw new CelError(`strconv.ParseFloat: parsing ${JSON.stringify(value)}: invalid syntax`);
  }
  return new CelDouble(Number(value));
}

function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || isInt(value)) return String(value);
  if (value instanceof CelUint) return String(value.value);
  if (isDouble(value)) return doubleText(toDouble(value));
  if (value instanceof CelTimestamp) return formatTimeNanos(value.nanos);
  if (value instanceof CelDuration) return secondsText(value.nanos);
  if (value instanceof Uint8Array) return bytesText(value);
  throw noSuchOverload();
}

/** As Go's `%g`: an exponent of at least two digits, from 1e21 on and below 1e-4. */
export function doubleText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const magnitude = Math.abs(value);
  const text = magnitude !== 0 && (magnitude < 1e-4 || magnitude >= 1e21) ? value.toExponential() : String(value);
  return text.replace(/e([+-])(\d)$/, 'e$10$2');
}

/** `90.5s`: durations as text are seconds. */
function secondsText(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : '';
  const digits = (nanos < 0n ? -nanos : nanos).toString().padStart(10, '0');
  const fraction = digits.slice(-9).replace(/0+$/, '');
  return `${sign}${digits.slice(0, -9)}${fraction === '' ? '' : `.${fraction}`}s`;
}

function bytesText(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    // The decoder says only that it failed; CEL has a sentence for it.
    throw new CelError('invalid UTF-8 in bytes, cannot convert to string');
  }
}

function toBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === 'string') return new Uint8Array(Buffer.from(value));
  throw noSuchOverload();
}

function toTimestamp(value: unknown): CelTimestamp {
  if (value instanceof CelTimestamp) return value;
  if (isInt(value)) return new CelTimestamp(BigInt(value) * 1_000_000_000n);
  return fromText(value, (text) => new CelTimestamp(parseTimeNanos(text)));
}

function toDuration(value: unknown): CelDuration {
  if (value instanceof CelDuration) return value;
  if (isInt(value)) return new CelDuration(BigInt(value));
  return fromText(value, (text) => new CelDuration(parseDurationNanos(text)));
}

function fromText<T>(value: unknown, parse: (text: string) => T): T {
  if (typeof value !== 'string') throw noSuchOverload();
  try {
    return parse(value);
  } catch (error) {
    if (error instanceof TimeError) throw new CelError(error.message);
    throw error;
  }
}
