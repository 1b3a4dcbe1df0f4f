// SPDX-License-Identifier: Apache-2.0
// Times and durations as the API writes them: RFC 3339 (whole seconds, MicroTime) and Go's durations.

import { KarpenterError } from '../base/errors.ts';
import { goQuote } from './schema/go-format.ts';

/** A text that is no time or no duration. The message is Go's. */
export class TimeError extends KarpenterError {
  constructor(message: string, text: string) {
    super('KRP_TIME_INVALID', message, { details: { text } });
  }
}

/** Most times that are written are now, or one of a few that are written again and again: ends of graces, births of machines. */
const writtenBefore = new Map<number, string>();
const mostWrittenBefore = 1000;

/** `2026-01-01T00:00:00Z`: what metav1.Time writes; parts of a second are cut off. */
export function formatTime(ms: number): string {
  const second = Math.floor(ms / 1000);
  const known = writtenBefore.get(second);
  if (known !== undefined) return known;
  const text = `${isoSeconds(ms)}Z`;
  if (writtenBefore.size >= mostWrittenBefore) writtenBefore.clear();
  writtenBefore.set(second, text);
  return text;
}

/** `2026-01-01T00:00:00.000000Z`: what metav1.MicroTime writes. `micros` (0–999) refines the millisecond. */
export function formatMicroTime(ms: number, micros = 0): string {
  const whole = Math.floor(ms);
  const fraction = (((whole % 1000) + 1000) % 1000) * 1000 + Math.trunc(micros);
  return `${isoSeconds(ms)}.${String(fraction).padStart(6, '0')}Z`;
}

/** Nanoseconds since 1970 as RFC 3339 with as many digits as it takes. */
export function formatTimeNanos(nanos: bigint): string {
  const rest = ((nanos % 1_000_000_000n) + 1_000_000_000n) % 1_000_000_000n;
  const fraction = rest === 0n ? '' : `.${rest.toString().padStart(9, '0').replace(/0+$/, '')}`;
  return `${isoSeconds(Number((nanos - rest) / 1_000_000n))}${fraction}Z`;
}

function isoSeconds(ms: number): string {
  const date = new Date(Math.floor(ms));
  if (Number.isNaN(date.getTime())) throw new TimeError(`time ${ms} is out of range`, String(ms));
  return date.toISOString().slice(0, -5);
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:[.,](\d+))?(?:Z|([+-])(\d\d):(\d\d))$/;

/** The times of a cluster's objects are read again and again: at every pass, of every node and pod. */
const readBefore = new Map<string, number>();
const mostReadBefore = 10_000;
/** No time that a program writes is longer. */
const longestKept = 40;

/** Milliseconds since 1970 of an RFC 3339 text, with any fraction and offset. Throws TimeError with Go's message. */
export function parseTime(text: string): number {
  const known = readBefore.get(text);
  if (known !== undefined) return known;
  const { ms } = readTime(text);
  if (readBefore.size >= mostReadBefore) readBefore.clear();
  if (text.length <= longestKept) readBefore.set(text, ms);
  return ms;
}

/** Nanoseconds since 1970, exact. Throws TimeError with Go's message. */
export function parseTimeNanos(text: string): bigint {
  const { ms, fraction } = readTime(text);
  return BigInt(ms) * 1_000_000n + BigInt(fraction.slice(3, 9).padEnd(6, '0'));
}

function readTime(text: string): { ms: number; fraction: string } {
  const parts = rfc3339.exec(text);
  if (parts === null)
    throw new TimeError(
      `parsing time ${goQuote(text)} as "2006-01-02T15:04:05Z07:00": cannot parse ${goQuote(text)}`,
      text,
    );
  const field = (i: number): number => Number(parts[i] ?? 0);
  const [year, month, day, hour, minute, second] = [field(1), field(2), field(3), field(4), field(5), field(6)];
  const outOfRange = (what: string): TimeError =>
    new TimeError(`parsing time ${goQuote(text)}: ${what} out of range`, text);
  if (month < 1 || month > 12) throw outOfRange('month');
  if (hour > 23) throw outOfRange('hour');
  if (minute > 59) throw outOfRange('minute');
  if (second > 59) throw outOfRange('second');
  if (day < 1 || day > daysIn(year, month)) throw outOfRange('day');
  if (field(9) > 24) throw outOfRange('time zone offset hour');
  if (field(10) > 60) throw outOfRange('time zone offset minute');
  const millis = Number((parts[7] ?? '').slice(0, 3).padEnd(3, '0'));
  const offset = (field(9) * 60 + field(10)) * 60_000;
  const date = new Date(0);
  // setUTCFullYear, because Date.UTC reads the years 0–99 as 1900–1999.
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second, millis);
  return { ms: date.getTime() - (parts[8] === '-' ? -offset : offset), fraction: parts[7] ?? '' };
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return [4, 6, 9, 11].includes(month) ? 30 : 31;
}

const unitNanos: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);
const maxNanos = 2n ** 63n;

/** Nanoseconds of a Go duration (`1h2m3.5s`, `-300ms`, `0`), exact. Throws TimeError with Go's message. */
export function parseDurationNanos(text: string): bigint {
  const invalid = (): TimeError => new TimeError(`time: invalid duration ${quoteBytes(text)}`, text);
  const negative = text.startsWith('-');
  const body = negative || text.startsWith('+') ? text.slice(1) : text;
  if (body === '0') return 0n;
  if (body === '' || body.length > 1000) throw invalid();
  const part = /([0-9]*)(?:\.([0-9]*))?([^0-9.]*)/y;
  let total = 0n;
  while (part.lastIndex < body.length) {
    const [whole, fraction, unit] = durationPart(part.exec(body));
    if ((whole === '' && fraction === '') || BigInt(whole || '0') > maxNanos) throw invalid();
    const nanos = unitOf(unit, text);
    total += BigInt(whole || '0') * nanos + (BigInt(fraction || '0') * nanos) / 10n ** BigInt(fraction.length);
    if (total > maxNanos || (total === maxNanos && !negative)) throw invalid();
  }
  return negative ? -total : total;
}

function durationPart(match: RegExpExecArray | null): [whole: string, fraction: string, unit: string] {
  return [match?.[1] ?? '', match?.[2] ?? '', match?.[3] ?? ''];
}

/** How Go's duration parser quotes: what is not ASCII byte by byte. */
function quoteBytes(text: string): string {
  const escaped = Buffer.from(text)
    .toString('latin1')
    // oxlint-disable-next-line no-control-regex -- control characters are what is escaped
    .replace(/[\u0000-\u001f\u007f-\u00ff]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`);
  return `"${escaped.replace(/["\\](?!x[0-9a-f]{2})/g, '\\$&')}"`;
}

function unitOf(unit: string, text: string): bigint {
  const nanos = unitNanos.get(unit);
  if (nanos !== undefined) return nanos;
  const problem = unit === '' ? 'missing unit' : `unknown unit ${quoteBytes(unit)}`;
  throw new TimeError(`time: ${problem} in duration ${quoteBytes(text)}`, text);
}

/** There are few durations in a cluster, and each is looked at in every pass. */
const durationsReadBefore = new Map<string, number>();

/** Milliseconds of a Go duration; may have a fraction. Throws TimeError with Go's message. */
export function parseDuration(text: string): number {
  const known = durationsReadBefore.get(text);
  if (known !== undefined) return known;
  const nanos = parseDurationNanos(text);
  // Whole milliseconds first: as one number of nanoseconds a long duration would lose its last digits.
  const ms = Number(nanos / 1_000_000n) + Number(nanos % 1_000_000n) / 1e6;
  if (durationsReadBefore.size >= mostReadBefore) durationsReadBefore.clear();
  if (text.length <= longestKept) durationsReadBefore.set(text, ms);
  return ms;
}

/** A duration as Go prints it: `1h2m3.5s`, `300ms`, `1.5µs`, `0s`. */
export function formatDuration(ms: number): string {
  const whole = Math.trunc(ms);
  return formatDurationNanos(BigInt(whole) * 1_000_000n + BigInt(Math.round((ms - whole) * 1e6)));
}

/** A duration in nanoseconds as Go prints it. */
export function formatDurationNanos(nanos: bigint): string {
  const sign = nanos < 0n ? '-' : '';
  const amount = nanos < 0n ? -nanos : nanos;
  if (amount === 0n) return '0s';
  if (amount < 1_000n) return `${sign}${amount}ns`;
  if (amount < 1_000_000n) return `${sign}${decimal(amount, 3)}µs`;
  if (amount < 1_000_000_000n) return `${sign}${decimal(amount, 6)}ms`;
  const minutes = amount / 60_000_000_000n;
  const seconds = `${decimal(amount % 60_000_000_000n, 9)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  if (minutes < 60n) return `${sign}${minutes}m${seconds}`;
  return `${sign}${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** `amount / 10^digits` without trailing zeros. */
function decimal(amount: bigint, digits: number): string {
  const text = amount.toString().padStart(digits + 1, '0');
  const fraction = text.slice(-digits).replace(/0+$/, '');
  return fraction === '' ? text.slice(0, -digits) : `${text.slice(0, -digits)}.${fraction}`;
}
