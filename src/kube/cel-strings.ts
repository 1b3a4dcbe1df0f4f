// SPDX-License-Identifier: Apache-2.0
// Strings in CEL: positions count code points, patterns are RE2.

import { compareStrings } from '../base/order.ts';
import { toText } from './cel-conversions.ts';
import {
  CelDuration,
  CelError,
  type CelFunction,
  CelTimestamp,
  CelUint,
  isInt,
  isMap,
  isNumeric,
  mapGet,
  mapKeys,
  noSuchOverload,
  toDouble,
} from './cel-values.ts';
import { compileRegexp, RegexpError } from './regexp.ts';
import { goQuote } from './schema/go-format.ts';

export const stringMethods: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['startsWith', (text, part) => string(text).startsWith(string(part))],
  ['endsWith', (text, part) => string(text).endsWith(string(part))],
  ['contains', (text, part) => string(text).includes(string(part))],
  ['matches', (text, pattern) => regexp(pattern).test(string(text))],
  ['find', (text, pattern) => findAll(string(text), pattern, 1)[0] ?? ''],
  ['findAll', (text, pattern, limit) => findAll(string(text), pattern, limit === undefined ? -1 : index(limit))],
  ['charAt', charAt],
  ['indexOf', (text, part, from) => indexOf(string(text), string(part), from)],
  ['lastIndexOf', (text, part, from) => lastIndexOf(string(text), string(part), from)],
  ['lowerAscii', (text) => string(text).replace(/[A-Z]+/g, (letters) => letters.toLowerCase())],
  ['upperAscii', (text) => string(text).replace(/[a-z]+/g, (letters) => letters.toUpperCase())],
  ['replace', replace],
  ['split', split],
  ['substring', substring],
  ['trim', (text) => string(text).trim()],
  ['join', join],
  ['format', (template, args) => format(string(template), args)],
]);

export const stringFunctions: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['strings.quote', (text) => goQuote(string(text))],
]);

function string(value: unknown): string {
  if (typeof value === 'string') return value;
  throw noSuchOverload();
}

function index(value: unknown): number {
  if (isInt(value)) return Number(value);
  throw noSuchOverload();
}

function regexp(pattern: unknown): ReturnType<typeof compileRegexp> {
  try {
    return compileRegexp(string(pattern));
  } catch (error) {
    if (error instanceof RegexpError) throw new CelError(error.message);
    throw error;
  }
}

function findAll(text: string, pattern: unknown, limit: number): string[] {
  const matcher = regexp(pattern).matcher(text);
  const found: string[] = [];
  while ((limit < 0 || found.length < limit) && matcher.find()) found.push(matcher.group() ?? '');
  return found;
}

/** The characters of a text: itself when it has no surrogates, which is nearly always. */
function characters(text: string): string | string[] {
  return /[\ud800-\udfff]/.test(text) ? Array.from(text) : text;
}

function outOfRange(position: number): CelError {
  return new CelError(`index out of range: ${position}`);
}

function charAt(text: unknown, position: unknown): string {
  const chars = characters(string(text));
  const at = index(position);
  if (at < 0 || at > chars.length) throw outOfRange(at);
  return chars[at] ?? '';
}

/** Where a UTF-16 position is in code points. */
function toPoints(text: string, position: number): number {
  return position < 0 ? -1 : characters(text.slice(0, position)).length;
}

function fromPoints(text: string, position: number): number {
  const chars = characters(text);
  return typeof chars === 'string' ? position : chars.slice(0, position).join('').length;
}

function indexOf(text: string, part: string, from: unknown): number {
  const start = from === undefined ? 0 : index(from);
  if (start < 0) throw outOfRange(start);
  if (part !== '' && start >= characters(text).length) return -1;
  return toPoints(text, text.indexOf(part, fromPoints(text, start)));
}

function lastIndexOf(text: string, part: string, from: unknown): number {
  if (from === undefined) return toPoints(text, text.lastIndexOf(part));
  const start = index(from);
  if (start < 0) throw outOfRange(start);
  if (part !== '' && start >= characters(text).length) return -1;
  return toPoints(text, text.lastIndexOf(part, fromPoints(text, start)));
}

function substring(text: unknown, from: unknown, to: unknown): string {
  const chars = characters(string(text));
  const start = index(from);
  const end = to === undefined ? chars.length : index(to);
  if (start < 0 || start > chars.length) throw outOfRange(start);
  if (end < 0 || end > chars.length) throw outOfRange(end);
  if (start > end) throw new CelError(`invalid substring range. start: ${start}, end: ${end}`);
  return typeof chars === 'string' ? chars.slice(start, end) : chars.slice(start, end).join('');
}

function replace(text: unknown, old: unknown, fresh: unknown, limit: unknown): string {
  const [source, wanted, replacement] = [string(text), string(old), string(fresh)];
  const count = limit === undefined ? -1 : index(limit);
  if (count === 0) return source;
  // Nothing stands before and after every character.
  const parts = wanted === '' ? ['', ...Array.from(source), ''] : source.split(wanted);
  if (count < 0 || parts.length <= count + 1) return parts.join(replacement);
  return [...parts.slice(0, count), parts.slice(count).join(wanted)].join(replacement);
}

function split(text: unknown, separator: unknown, limit: unknown): string[] {
  return splitAt(string(text), string(separator), limit === undefined ? -1 : index(limit));
}

function splitAt(text: string, separator: string, limit: number): string[] {
  if (limit === 0) return [];
  const parts = separator === '' ? Array.from(text) : text.split(separator);
  if (limit < 0 || parts.length <= limit) return parts;
  return [...parts.slice(0, limit - 1), parts.slice(limit - 1).join(separator)];
}

function join(list: unknown, separator: unknown): string {
  if (!Array.isArray(list)) throw noSuchOverload();
  return list.map(string).join(separator === undefined ? '' : string(separator));
}

function format(template: string, args: unknown): string {
  if (!Array.isArray(args)) throw noSuchOverload();
  let next = 0;
  return template.replace(/%(?:%|(?:\.(\d+))?([a-zA-Z]))|%/g, (clause, precision?: string, verb?: string) => {
    if (clause === '%%') return '%';
    if (verb === undefined) throw new CelError('unexpected end of string');
    if (next >= args.length) throw new CelError(`index ${next} out of range`);
    return formatClause(verb, args[next++] as unknown, precision === undefined ? 6 : Number(precision));
  });
}

function formatClause(verb: string, value: unknown, precision: number): string {
  switch (verb) {
    case 's':
      return display(value);
    case 'd':
      if (isInt(value)) return String(value);
      if (value instanceof CelUint) return String(value.value);
      break;
    case 'f':
      if (isNumeric(value)) return toDouble(value).toFixed(precision);
      break;
    case 'e':
      if (isNumeric(value))
        return toDouble(value)
          .toExponential(precision)
          .replace(/e([+-])(\d)$/, 'e$10$2');
      break;
    case 'b':
      if (typeof value === 'boolean') return value ? '1' : '0';
      return inBase(value, 2);
    case 'o':
      return inBase(value, 8);
    case 'x':
    case 'X': {
      const text =
        typeof value === 'string' || value instanceof Uint8Array
          ? Buffer.from(value).toString('hex')
          : inBase(value, 16);
      return verb === 'X' ? text.toUpperCase() : text;
    }
    default:
      throw new CelError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
  }
  throw new CelError(`error during formatting: clause "${verb}" does not take the value`);
}

function inBase(value: unknown, base: number): string {
  if (isInt(value)) return value.toString(base);
  if (value instanceof CelUint) return value.value.toString(base);
  throw noSuchOverload();
}

function display(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `[${value.map(quoted).join(', ')}]`;
  if (!isMap(value)) return toText(value);
  const entries = mapKeys(value).map((key) => `${quoted(key)}:${quoted(mapGet(value, key))}`);
  return `{${entries.sort(compareStrings).join(', ')}}`;
}

/** A value inside a list or a map: as it would be written in an expression. */
function quoted(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  if (value instanceof CelTimestamp) return `timestamp("${display(value)}")`;
  if (value instanceof CelDuration) return `duration("${display(value)}")`;
  return display(value);
}
