// SPDX-License-Identifier: Apache-2.0
// How Go prints values in error messages: %q for strings, encoding/json for the rest.

import { compareStrings } from '../../base/order.ts';

const shortEscapes: Readonly<Record<string, string>> = {
  '\u0007': '\\a',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
  '\v': '\\v',
  '"': '\\"',
  '\\': '\\\\',
};

/** A string as Go's `%q` writes it. */
export function goQuote(text: string): string {
  // Nearly every value is plain ASCII.
  if (/^[ !#-[\]-~]*$/.test(text)) return `"${text}"`;
  let quoted = '"';
  for (const char of text) {
    const short = shortEscapes[char];
    const code = char.codePointAt(0) ?? 0;
    if (short !== undefined) quoted += short;
    else if (code < 0x20 || code === 0x7f) quoted += `\\x${hex(code, 2)}`;
    else if (code >= 0xd800 && code <= 0xdfff) quoted += '\ufffd';
    else if (/[\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.test(char)) quoted += char;
    else quoted += code > 0xffff ? `\\U${hex(code, 8)}` : `\\u${hex(code, 4)}`;
  }
  return `${quoted}"`;
}

/** A JSON value as Go's `json.Marshal` writes it: keys sorted, `<`, `>` and `&` escaped. A Map is a struct: its order stays. */
export function goJson(value: unknown): string {
  return JSON.stringify(value, (_, inner: unknown) => {
    if (inner instanceof Map) return new Struct(inner);
    if (inner instanceof Struct) return inner;
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    return Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => compareStrings(a, b)));
  }).replace(/[<>&\u2028\u2029]/g, (char) => `\\u${hex(char.charCodeAt(0), 4)}`);
}

/** The fields of a struct, in its order. */
class Struct {
  constructor(fields: ReadonlyMap<string, unknown>) {
    Object.assign(this, Object.fromEntries(fields));
  }
}

function hex(code: number, width: number): string {
  return code.toString(16).padStart(width, '0');
}

/** A JSON value as Go's `%v` writes it: `map[a:1 b:[x y]]`. */
export function goValue(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goValue).join(' ')}]`;
  if (typeof value !== 'object') return String(value as string | number | boolean);
  const entries = Object.entries(value).toSorted(([a], [b]) => compareStrings(a, b));
  return `map[${entries.map(([key, inner]) => `${key}:${goValue(inner)}`).join(' ')}]`;
}

/** A float as Go's `%v` writes it: an exponent of two digits from 1e6 on and below 1e-4. */
export function goFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  const [digits = '', exponent = '0'] = value.toExponential().split('e');
  const power = Number(exponent);
  if (value === 0 || (power >= -4 && power < 6)) return String(value);
  return `${digits}e${power < 0 ? '-' : '+'}${String(Math.abs(power)).padStart(2, '0')}`;
}
