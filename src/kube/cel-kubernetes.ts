// SPDX-License-Identifier: Apache-2.0
// What Kubernetes adds to CEL: lists, sets, URLs, quantities, versions.

import {
  CelDouble,
  CelError,
  type CelFunction,
  CelOpaque,
  CelOptional,
  celAdd,
  celCompare,
  celEquals,
  int,
  isInt,
  noSuchOverload,
  typeName,
} from './cel-values.ts';
import { Quantity, QuantityError } from './quantity.ts';
import { goQuote } from './schema/go-format.ts';

class CelUrl extends CelOpaque {
  readonly typeName = 'kubernetes.URL';
  readonly url: URL;
  readonly text: string;
  constructor(text: string, url: URL) {
    super();
    this.text = text;
    this.url = url;
  }
  get key(): string {
    return this.text;
  }
}

class CelSemver extends CelOpaque {
  readonly typeName = 'kubernetes.Semver';
  readonly numbers: readonly bigint[];
  readonly pre: readonly string[];
  readonly key: string;
  constructor(numbers: readonly bigint[], pre: readonly string[]) {
    super();
    this.numbers = numbers;
    this.pre = pre;
    this.key = `${numbers.join('.')}-${pre.join('.')}`;
  }
}

export const kubernetesFunctions: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['sets.contains', (all, some) => list(some).every((item) => contains(list(all), item))],
  [
    'sets.equivalent',
    (a, b) => list(a).every((x) => contains(list(b), x)) && list(b).every((x) => contains(list(a), x)),
  ],
  ['sets.intersects', (a, b) => list(a).some((item) => contains(list(b), item))],
  ['optional.unwrap', unwrap],
  ['lists.range', (count) => Array.from({ length: number(count) }, (_, i) => i)],
  ['isURL', (value) => parseUrl(text(value)) !== undefined],
  ['url', toUrl],
  ['isQuantity', (value) => Quantity.tryParse(text(value)) !== undefined],
  ['quantity', toQuantity],
  ['sign', (quantity) => asQuantity(quantity).sign()],
  ['isSemver', (value, loose) => parseSemver(text(value), loose === true) !== undefined],
  ['semver', toSemver],
]);

/** What is in the optionals of a list that have something in them. */
function unwrap(items: unknown): unknown[] {
  return list(items).flatMap((item) => {
    if (!(item instanceof CelOptional)) throw noSuchOverload();
    return item.hasValue ? [item.value] : [];
  });
}

export const kubernetesMethods: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['isSorted', (items) => list(items).every((item, i, all) => i === 0 || celCompare(all[i - 1], item) <= 0)],
  ['sum', sum],
  ['min', (items) => extreme(list(items), -1, 'min')],
  ['max', (items) => extreme(list(items), 1, 'max')],
  ['indexOf', (items, wanted) => list(items).findIndex((item) => celEquals(item, wanted))],
  ['lastIndexOf', (items, wanted) => list(items).findLastIndex((item) => celEquals(item, wanted))],
  ['slice', slice],
  ['flatten', (items, depth) => list(items).flat(depth === undefined ? 1 : number(depth))],
  ['distinct', (items) => list(items).filter((item, i, all) => all.findIndex((other) => celEquals(other, item)) === i)],
  ['reverse', (items) => list(items).toReversed()],
  ['sort', (items) => list(items).toSorted(celCompare)],
  ['first', (items) => new CelOptional(list(items)[0])],
  ['last', (items) => new CelOptional(list(items).at(-1))],
  ['unwrapOpt', unwrap],
  ['getScheme', (url) => asUrl(url).protocol.slice(0, -1)],
  ['getHost', (url) => asUrl(url).host],
  ['getHostname', (url) => asUrl(url).hostname.replace(/^\[(.*)\]$/, '$1')],
  ['getPort', (url) => asUrl(url).port],
  ['getEscapedPath', (url) => asUrl(url).pathname],
  ['getQuery', queryOf],
  ['sign', (quantity) => asQuantity(quantity).sign()],
  ['isInteger', (quantity) => wholeUnits(asQuantity(quantity)) !== undefined],
  ['asInteger', asInteger],
  ['asApproximateFloat', (quantity) => new CelDouble(asQuantity(quantity).toNumber())],
  ['add', (quantity, other) => asQuantity(quantity).add(quantityOrInt(other))],
  ['sub', (quantity, other) => asQuantity(quantity).sub(quantityOrInt(other))],
  ['isGreaterThan', (a, b) => compareValues(a, b) > 0],
  ['isLessThan', (a, b) => compareValues(a, b) < 0],
  ['compareTo', compareValues],
  ['major', (version) => int(asSemver(version).numbers[0] ?? 0n)],
  ['minor', (version) => int(asSemver(version).numbers[1] ?? 0n)],
  ['patch', (version) => int(asSemver(version).numbers[2] ?? 0n)],
]);

function list(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  throw noSuchOverload();
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  throw noSuchOverload();
}

function number(value: unknown): number {
  if (!isInt(value)) throw noSuchOverload();
  if (value < 0 || value > 1_000_000) throw new CelError(`index out of range: ${value}`);
  return Number(value);
}

function contains(items: readonly unknown[], wanted: unknown): boolean {
  return items.some((item) => celEquals(item, wanted));
}

function sum(items: unknown): unknown {
  const [first, ...rest] = list(items);
  if (first === undefined) return 0;
  if (!isInt(first) && !['double', 'uint', 'google.protobuf.Duration'].includes(typeName(first)))
    throw noSuchOverload();
  return rest.reduce(celAdd, first);
}

function extreme(items: readonly unknown[], direction: 1 | -1, name: string): unknown {
  if (items.length === 0) throw new CelError(`${name} called on empty list`);
  return items.reduce((best, item) => (celCompare(item, best) * direction > 0 ? item : best));
}

function slice(items: unknown, from: unknown, to: unknown): unknown[] {
  const all = list(items);
  const [start, end] = [number(from), number(to)];
  if (start > end)
    throw new CelError(`cannot slice(${start}, ${end}), start index must be less than or equal to end index`);
  if (end > all.length) throw new CelError(`cannot slice(${start}, ${end}), list is length ${all.length}`);
  return all.slice(start, end);
}

/** Go's ParseRequestURI: an absolute URL, or a path that starts with a slash. */
function parseUrl(source: string): CelUrl | undefined {
  // oxlint-disable-next-line no-control-regex -- Go refuses control characters
  if (/[\u0000-\u001f\u007f]/.test(source)) return undefined;
  if (source.startsWith('/')) {
    const relative = URL.parse(source, 'relative://');
    return relative === null ? undefined : new CelUrl(source, relative);
  }
  if (!/^[a-zA-Z][-+.a-zA-Z0-9]*:/.test(source)) return undefined;
  const url = URL.parse(source);
  return url === null ? undefined : new CelUrl(source, url);
}

function toUrl(value: unknown): CelUrl {
  const source = text(value);
  const url = parseUrl(source);
  if (url === undefined)
    throw new CelError(
      `URL parse error during conversion from string: parse ${goQuote(source)}: invalid URI for request`,
    );
  return url;
}

function asUrl(value: unknown): { protocol: string; host: string; hostname: string; port: string; pathname: string } {
  if (!(value instanceof CelUrl)) throw noSuchOverload();
  const { protocol, host, hostname, port, pathname } = value.url;
  if (protocol === 'relative:') return { protocol: ':', host: '', hostname: '', port: '', pathname };
  // A URL drops the default port and an empty path becomes a slash; Go keeps both as written.
  const written = /^[^/]*\/\/(?:[^/?#]*@)?([^/?#]*)([^?#]*)/.exec(value.text);
  const writtenPort = /:(\d+)$/.exec(written?.[1] ?? '')?.[1] ?? port;
  return { protocol, host: written?.[1] ?? host, hostname, port: writtenPort, pathname: written?.[2] ?? pathname };
}

function queryOf(value: unknown): Map<string, string[]> {
  if (!(value instanceof CelUrl)) throw noSuchOverload();
  const query = new Map<string, string[]>();
  for (const [key, item] of value.url.searchParams) query.set(key, [...(query.get(key) ?? []), item]);
  return query;
}

function toQuantity(value: unknown): Quantity {
  try {
    return Quantity.parse(text(value));
  } catch (error) {
    if (error instanceof QuantityError) throw new CelError(error.message);
    throw error;
  }
}

function asQuantity(value: unknown): Quantity {
  if (value instanceof Quantity) return value;
  throw noSuchOverload();
}

function quantityOrInt(value: unknown): Quantity {
  return isInt(value) ? Quantity.fromNano(BigInt(value) * 1_000_000_000n) : asQuantity(value);
}

/** The amount as an int64 when it is one. */
function wholeUnits(quantity: Quantity): bigint | undefined {
  const units = quantity.nano / 1_000_000_000n;
  return units * 1_000_000_000n === quantity.nano && BigInt.asIntN(64, units) === units ? units : undefined;
}

function asInteger(value: unknown): number | bigint {
  const units = wholeUnits(asQuantity(value));
  if (units === undefined) throw new CelError('cannot convert value to integer');
  return int(units);
}

function compareValues(a: unknown, b: unknown): number {
  if (a instanceof Quantity && b instanceof Quantity) return a.cmp(b);
  if (a instanceof CelSemver && b instanceof CelSemver) return compareSemver(a, b);
  throw noSuchOverload();
}

const strictSemver =
  /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-((?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*))*))?(?:\+[0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*)?$/;

function parseSemver(source: string, loose: boolean): CelSemver | undefined {
  const normal = loose ? normalizeSemver(source) : source;
  const parts = strictSemver.exec(normal);
  if (parts === null) return undefined;
  const numbers = [parts[1], parts[2], parts[3]].map((part) => BigInt(part ?? '0'));
  return new CelSemver(numbers, parts[4]?.split('.') ?? []);
}

/** `v1.2` reads as `1.2.0`, leading zeros go. */
function normalizeSemver(source: string): string {
  const [, numbers = '', rest = ''] = /^v?([0-9.]*)(.*)$/.exec(source.trim()) ?? [];
  const parts = numbers.split('.').map((part) => part.replace(/^0+(?=\d)/, ''));
  while (parts.length < 3) parts.push('0');
  return parts.join('.') + rest;
}

function toSemver(value: unknown, loose: unknown): CelSemver {
  const version = parseSemver(text(value), loose === true);
  if (version === undefined) throw new CelError(`semver parse error during conversion from string: ${text(value)}`);
  return version;
}

function asSemver(value: unknown): CelSemver {
  if (value instanceof CelSemver) return value;
  throw noSuchOverload();
}

function compareSemver(a: CelSemver, b: CelSemver): number {
  for (let i = 0; i < 3; i++) {
    const [x, y] = [a.numbers[i] ?? 0n, b.numbers[i] ?? 0n];
    if (x !== y) return x < y ? -1 : 1;
  }
  if (a.pre.length === 0 || b.pre.length === 0)
    return Math.sign(Number(a.pre.length === 0) - Number(b.pre.length === 0));
  for (let i = 0; i < Math.min(a.pre.length, b.pre.length); i++) {
    const order = compareIdentifiers(a.pre[i] ?? '', b.pre[i] ?? '');
    if (order !== 0) return order;
  }
  return Math.sign(a.pre.length - b.pre.length);
}

function compareIdentifiers(a: string, b: string): number {
  if (a === b) return 0;
  const [x, y] = [/^\d+$/.test(a), /^\d+$/.test(b)];
  if (x && y) return BigInt(a) < BigInt(b) ? -1 : 1;
  if (x !== y) return x ? -1 : 1;
  return a < b ? -1 : 1;
}
