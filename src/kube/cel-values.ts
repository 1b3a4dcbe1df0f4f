// SPDX-License-Identifier: Apache-2.0
// The values of CEL and what its operators do with them. JSON is taken as it is: an integral number is an int, lists are arrays,
// maps are objects. What JSON has no name for gets a class.
//
//   int        number while it is safe, bigint beyond          double     CelDouble, or a number with a fraction
//   string     string (counted in code points)                 map        object, or Map when its keys are not strings

import { KarpenterError } from '../base/errors.ts';
import { Quantity } from './quantity.ts';

/** An expression that does not compile, or an evaluation that failed. The message is cel-go's. */
export class CelError extends KarpenterError {
  /** The place in the expression, when it is known and not yet part of the message. */
  readonly at: number | undefined;
  constructor(message: string, at?: number) {
    super('KRP_CEL', message);
    this.at = at;
  }
}

export class CelDouble {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class CelUint {
  readonly value: bigint;
  constructor(value: bigint) {
    if (value < 0n || value >= 1n << 64n) throw new CelError('unsigned integer overflow');
    this.value = value;
  }
}

const maxDuration = 1n << 63n;

export class CelDuration {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    if (nanos >= maxDuration || nanos < -maxDuration) throw new CelError('duration overflow');
    this.nanos = nanos;
  }
}

// 0001-01-01T00:00:00Z to 9999-12-31T23:59:59.999999999Z
const minTimestamp = -62_135_596_800n * 1_000_000_000n;
const maxTimestamp = 253_402_300_800n * 1_000_000_000n;

export class CelTimestamp {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    if (nanos < minTimestamp || nanos >= maxTimestamp) throw new CelError('timestamp overflow');
    this.nanos = nanos;
  }
}

export class CelType {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A value that may be missing. */
export class CelOptional {
  static readonly none: CelOptional = new CelOptional(undefined);
  readonly value: unknown;
  constructor(value: unknown) {
    this.value = value;
  }
  get hasValue(): boolean {
    return this.value !== undefined;
  }
}

/** Values of libraries (URLs, versions): compared through `key`. */
export abstract class CelOpaque {
  abstract readonly typeName: string;
  abstract readonly key: string;
}

/** A function of a library; methods get their receiver first. */
export type CelFunction = (...args: unknown[]) => unknown;

export type CelMap = Readonly<Record<string, unknown>> | ReadonlyMap<unknown, unknown>;

const minInt = -(1n << 63n);
const maxInt = (1n << 63n) - 1n;

export function noSuchOverload(): CelError {
  return new CelError('no such overload');
}

/** A condition must be a bool: CEL has no truthiness. */
export function bool(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw noSuchOverload();
}

export function isInt(value: unknown): value is number | bigint {
  return (
    typeof value === 'bigint' || (typeof value === 'number' && Number.isInteger(value) && Math.abs(value) < 2 ** 63)
  );
}

export function isDouble(value: unknown): value is number | CelDouble {
  return value instanceof CelDouble || (typeof value === 'number' && !isInt(value));
}

export function isNumeric(value: unknown): value is number | bigint | CelDouble | CelUint {
  return (
    typeof value === 'number' || typeof value === 'bigint' || value instanceof CelDouble || value instanceof CelUint
  );
}

/** The int as the number that holds it, or as a bigint beyond; checks the range of int64. */
export function int(value: bigint | number): number | bigint {
  if (typeof value === 'number') return value;
  if (value >= -9_007_199_254_740_991n && value <= 9_007_199_254_740_991n) return Number(value);
  if (value < minInt || value > maxInt) throw new CelError('integer overflow');
  return value;
}

/** The number behind an int or a double, as close as a double gets. */
export function toDouble(value: number | bigint | CelDouble | CelUint): number {
  return value instanceof CelDouble ? value.value : Number(value instanceof CelUint ? value.value : value);
}

export function isMap(value: unknown): value is CelMap {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  if (value instanceof Map) return true;
  const prototype = Object.getPrototypeOf(value) as unknown;
  return prototype === Object.prototype || prototype === null;
}

export function mapGet(map: CelMap, key: unknown): unknown {
  if (map instanceof Map) return map.get(mapKey(key));
  if (typeof key !== 'string') return undefined;
  return Object.hasOwn(map, key) ? (map as Readonly<Record<string, unknown>>)[key] : undefined;
}

export function mapKeys(map: CelMap): unknown[] {
  return map instanceof Map ? [...map.keys()] : Object.keys(map).filter((key) => mapGet(map, key) !== undefined);
}

/** The form in which a Map holds a key: 1, 1u and 1.0 are the same key. */
export function mapKey(key: unknown): unknown {
  if (typeof key === 'string' || typeof key === 'boolean' || isInt(key)) return key;
  if (key instanceof CelUint) return key.value <= 9_007_199_254_740_991n ? Number(key.value) : key.value;
  if (isDouble(key) && Number.isInteger(toDouble(key))) return toDouble(key);
  throw new CelError(`unsupported key type: ${typeName(key)}`);
}

export function typeName(value: unknown): string {
  if (value === null) return 'null_type';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'string') return 'string';
  if (isInt(value)) return 'int';
  if (isDouble(value)) return 'double';
  if (Array.isArray(value)) return 'list';
  if (value instanceof CelUint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof CelTimestamp) return 'google.protobuf.Timestamp';
  if (value instanceof CelDuration) return 'google.protobuf.Duration';
  if (value instanceof CelOptional) return 'optional_type';
  if (value instanceof CelType) return 'type';
  if (value instanceof Quantity) return 'kubernetes.Quantity';
  if (value instanceof CelOpaque) return value.typeName;
  return 'map';
}

export function celEquals(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isNumeric(a)) return isNumeric(b) && compareNumbers(a, b) === 0;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a)) return Array.isArray(b) && a.length === b.length && a.every((item, i) => celEquals(item, b[i]));
  if (isMap(a)) return isMap(b) && mapsEqual(a, b);
  if (a instanceof CelOptional) return b instanceof CelOptional && celEquals(a.value, b.value);
  return typeName(a) === typeName(b) && identityOf(a) === identityOf(b);
}

/** What tells two values of one type apart. */
function identityOf(value: object): unknown {
  if (value instanceof CelTimestamp || value instanceof CelDuration) return value.nanos;
  if (value instanceof Quantity) return value.nano;
  if (value instanceof CelType) return value.name;
  if (value instanceof CelOpaque) return value.key;
  return value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value;
}

function mapsEqual(a: CelMap, b: CelMap): boolean {
  const keys = mapKeys(a);
  if (keys.length !== mapKeys(b).length) return false;
  return keys.every((key) => {
    const other = mapGet(b, key);
    return other !== undefined && celEquals(mapGet(a, key), other);
  });
}

/** NaN when one of them is. */
function compareNumbers(a: number | bigint | CelDouble | CelUint, b: number | bigint | CelDouble | CelUint): number {
  const left = a instanceof CelDouble || a instanceof CelUint ? a.value : a;
  const right = b instanceof CelDouble || b instanceof CelUint ? b.value : b;
  // JavaScript compares numbers and bigints exactly.
  return left < right ? -1 : left > right ? 1 : left == right ? 0 : Number.NaN; // oxlint-disable-line eqeqeq -- 1n == 1
}

/** Less, equal, greater; NaN compares as NaN. Throws `no such overload` for what has no order. */
export function celCompare(a: unknown, b: unknown): number {
  if (typeof a === 'number' && typeof b === 'number') return a < b ? -1 : a > b ? 1 : 0;
  if (isNumeric(a) && isNumeric(b)) return compareNumbers(a, b);
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (typeof a === 'boolean' && typeof b === 'boolean') return Number(a) - Number(b);
  if (a instanceof CelTimestamp && b instanceof CelTimestamp)
    return Number(a.nanos > b.nanos) - Number(a.nanos < b.nanos);
  if (a instanceof CelDuration && b instanceof CelDuration)
    return Number(a.nanos > b.nanos) - Number(a.nanos < b.nanos);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b);
  throw noSuchOverload();
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  // UTF-16 order differs from the order of code points only beyond the basic plane.
  if (/[\ud800-\udfff]/.test(a) || /[\ud800-\udfff]/.test(b)) return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}

export function celAdd(a: unknown, b: unknown): unknown {
  if (typeof a === 'string' && typeof b === 'string') return a + b;
  if (Array.isArray(a) && Array.isArray(b)) return [...(a as unknown[]), ...(b as unknown[])];
  if (a instanceof CelDuration && b instanceof CelDuration) return new CelDuration(a.nanos + b.nanos);
  if (a instanceof CelTimestamp && b instanceof CelDuration) return new CelTimestamp(a.nanos + b.nanos);
  if (a instanceof CelDuration && b instanceof CelTimestamp) return new CelTimestamp(a.nanos + b.nanos);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Uint8Array.from([...a, ...b]);
  return arithmetic(
    a,
    b,
    (x, y) => x + y,
    (x, y) => x + y,
  );
}

export function celSubtract(a: unknown, b: unknown): unknown {
  if (a instanceof CelTimestamp && b instanceof CelTimestamp) return new CelDuration(a.nanos - b.nanos);
  if (a instanceof CelTimestamp && b instanceof CelDuration) return new CelTimestamp(a.nanos - b.nanos);
  if (a instanceof CelDuration && b instanceof CelDuration) return new CelDuration(a.nanos - b.nanos);
  return arithmetic(
    a,
    b,
    (x, y) => x - y,
    (x, y) => x - y,
  );
}

export function celMultiply(a: unknown, b: unknown): unknown {
  return arithmetic(
    a,
    b,
    (x, y) => x * y,
    (x, y) => x * y,
  );
}

export function celDivide(a: unknown, b: unknown): unknown {
  return arithmetic(
    a,
    b,
    (x, y) => x / y,
    (x, y) => {
      if (y === 0n) throw new CelError('division by zero');
      return x / y;
    },
  );
}

export function celModulo(a: unknown, b: unknown): unknown {
  if (isDouble(a) || isDouble(b)) throw noSuchOverload();
  return arithmetic(
    a,
    b,
    () => Number.NaN,
    (x, y) => {
      if (y === 0n) throw new CelError('modulus by zero');
      return x % y;
    },
  );
}

export function celNegate(a: unknown): unknown {
  if (isInt(a)) return int(-BigInt(a));
  if (isDouble(a)) return new CelDouble(-toDouble(a));
  if (a instanceof CelDuration) return new CelDuration(-a.nanos);
  throw noSuchOverload();
}

/** Both operands must be of one kind: CEL does not convert. */
function arithmetic(
  a: unknown,
  b: unknown,
  onDoubles: (x: number, y: number) => number,
  onInts: (x: bigint, y: bigint) => bigint,
): unknown {
  if (isInt(a) && isInt(b)) return int(onInts(BigInt(a), BigInt(b)));
  if (isDouble(a) && isDouble(b)) return new CelDouble(onDoubles(toDouble(a), toDouble(b)));
  if (a instanceof CelUint && b instanceof CelUint) return new CelUint(onInts(a.value, b.value));
  throw noSuchOverload();
}

/** `container[key]`; `undefined` when it is not there. */
export function celLookup(container: unknown, key: unknown): unknown {
  if (Array.isArray(container)) {
    const index = isNumeric(key) ? toDouble(key) : Number.NaN;
    if (Number.isNaN(index)) throw noSuchOverload();
    return Number.isInteger(index) && index >= 0 ? (container[index] as unknown) : undefined;
  }
  if (isMap(container)) return mapGet(container, key);
  throw noSuchOverload();
}
