// SPDX-License-Identifier: Apache-2.0
// From one type of CEL to another, with cel-go's words for what cannot be converted.

import {
  CelDouble,
  CelDuration,
  CelError,
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
} from './cel-values.ts';
import { goFloat } from './schema/go-format.ts';
import { formatTimeNanos, parseDurationNanos, parseTimeNanos, TimeError } from './time.ts';

/** `size(value)`: characters, items, entries or bytes. */
export function size(value: unknown): number {
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

export function toBool(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  if (typeof value !== 'string') throw noSuchOverload();
  if (['1', 't', 'T', 'true', 'TRUE', 'True'].includes(value)) return true;
  if (['0', 'f', 'F', 'false', 'FALSE', 'False'].includes(value)) return false;
  throw notConvertible('bool');
}

export function toInt(value: unknown): number | bigint {
  if (isInt(value)) return value;
  if (value instanceof CelUint) return int(value.value);
  if (isDouble(value)) return int(truncated(toDouble(value), 'integer overflow'));
  if (value instanceof CelTimestamp) return int(floorDivide(value.nanos, 1_000_000_000n));
  if (value instanceof CelDuration) return int(value.nanos);
  if (typeof value === 'string') return int(parseInteger(value, true));
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

function parseInteger(text: string, signed: boolean): bigint {
  const wanted = signed ? 'int' : 'uint';
  if (!(signed ? /^[+-]?[0-9]{1,40}$/ : /^[0-9]{1,40}$/).test(text)) throw notConvertible(wanted);
  const value = BigInt(text.replace('+', ''));
  if ((signed ? BigInt.asIntN(64, value) : BigInt.asUintN(64, value)) !== value) throw notConvertible(wanted);
  return value;
}

function notConvertible(to: string): CelError {
  return new CelError(`type conversion error from 'string' to '${to}'`);
}

export function toUint(value: unknown): CelUint {
  if (value instanceof CelUint) return value;
  if (isInt(value)) return new CelUint(BigInt(value));
  if (isDouble(value)) return new CelUint(truncated(toDouble(value), 'unsigned integer overflow'));
  if (typeof value === 'string') return new CelUint(parseInteger(value, false));
  throw noSuchOverload();
}

export function toDoubleValue(value: unknown): CelDouble {
  if (isNumeric(value)) return new CelDouble(toDouble(value));
  if (typeof value !== 'string') throw noSuchOverload();
  if (/^[+-]?inf(inity)?$/i.test(value)) return new CelDouble(value.startsWith('-') ? -Infinity : Infinity);
  if (/^nan$/i.test(value)) return new CelDouble(Number.NaN);
  if (!/^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$/.test(value)) {
    throw notConvertible('double');
  }
  return new CelDouble(Number(value));
}

/** `string(value)`. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean' || isInt(value)) return String(value);
  if (value instanceof CelUint) return String(value.value);
  if (isDouble(value)) return goFloat(toDouble(value));
  if (value instanceof CelType) return value.name;
  if (value instanceof CelTimestamp) return formatTimeNanos(value.nanos);
  if (value instanceof CelDuration) return secondsText(value.nanos);
  if (value instanceof Uint8Array) return bytesText(value);
  throw noSuchOverload();
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

export function toBytes(value: unknown): Uint8Array {
  if (value instanceof Uint8Array) return value;
  if (typeof value === 'string') return new Uint8Array(Buffer.from(value));
  throw noSuchOverload();
}

export function toTimestamp(value: unknown): CelTimestamp {
  if (value instanceof CelTimestamp) return value;
  if (isInt(value)) return new CelTimestamp(BigInt(value) * 1_000_000_000n);
  return fromText(value, 'google.protobuf.Timestamp', (text) => new CelTimestamp(parseTimeNanos(text)));
}

export function toDuration(value: unknown): CelDuration {
  if (value instanceof CelDuration) return value;
  if (isInt(value)) return new CelDuration(BigInt(value));
  return fromText(value, 'google.protobuf.Duration', (text) => new CelDuration(parseDurationNanos(text)));
}

function fromText<T>(value: unknown, to: string, parse: (text: string) => T): T {
  if (typeof value !== 'string') throw noSuchOverload();
  try {
    return parse(value);
  } catch (error) {
    if (error instanceof TimeError) throw notConvertible(to);
    throw error;
  }
}
