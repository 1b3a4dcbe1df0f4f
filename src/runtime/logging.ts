// SPDX-License-Identifier: Apache-2.0
// What every part needs to say what it does: the Logger interface, loggers for tests, and helpers against repetition.
// The production logger is in `pino-logger.ts`.
import type { Clock } from '../base/clock.ts';
import { isBug, KarpenterError, messageOf } from '../base/errors.ts';
import { compareStrings } from '../base/order.ts';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Data beside a message. Given as a function, it is only computed when the line is written. */
export type LogFields = object | (() => object);

/**
 * Writes structured lines: a constant lower-case message, data as fields, objects under their Kind (`objectField`).
 * An `Error` in a field is written as its message. Never throws, never blocks on its output.
 */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each of its lines. */
  with(fields: object): Logger;
}

/** A logger that says nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
};

export interface LogLine {
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** Keeps every line for a test to look at; loggers made by `with` share the record. */
export class RecordingLogger implements Logger {
  readonly lines: LogLine[];
  readonly #fields: object;

  constructor(fields: object = {}, lines: LogLine[] = []) {
    this.#fields = fields;
    this.lines = lines;
  }

  debug(message: string, fields?: LogFields): void {
    this.#record('debug', message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#record('info', message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#record('warn', message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#record('error', message, fields);
  }

  with(fields: object): RecordingLogger {
    return new RecordingLogger({ ...this.#fields, ...fields }, this.lines);
  }

  /** The messages at and above a level, in order. */
  messages(atLeast: LogLevel = 'info'): string[] {
    const least = severity[atLeast];
    return this.lines.filter((line) => severity[line.level] >= least).map((line) => line.message);
  }

  #record(level: LogLevel, message: string, fields?: LogFields): void {
    this.lines.push({ level, message, fields: { ...this.#fields, ...computeFields(fields) } });
  }
}

/** Levels as numbers, higher is more urgent. */
const severity: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

/** The fields of a line, computed where they were given as a function. */
export function computeFields(fields: LogFields | undefined): object | undefined {
  return typeof fields === 'function' ? (fields as () => object)() : fields;
}

interface Named {
  readonly kind?: string;
  readonly metadata: { readonly name?: string; readonly namespace?: string };
}

/** An object as a field: `{ NodeClaim: { name } }`, with the namespace where it has one. */
export function objectField(object: Named, kind: string = object.kind ?? 'Object'): Record<string, object> {
  const { name = '', namespace } = object.metadata;
  return { [kind]: namespace ? { name, namespace } : { name } };
}

/** The message of an error with its data behind it: `launching nodeclaim: no capacity (zone=a, tries=3)`. */
export function renderError(thrown: unknown): string {
  const details = thrown instanceof KarpenterError ? Object.entries(thrown.details) : [];
  if (details.length === 0) return messageOf(thrown);
  return `${messageOf(thrown)} (${details.map(([key, value]) => `${key}=${show(value)}`).join(', ')})`;
}

function show(value: unknown): string {
  if (typeof value !== 'object' || value === null) return String(value);
  try {
    return JSON.stringify(value);
  } catch {
    // Circular, or with a bigint in it: a log line must not fail for that.
    return Object.prototype.toString.call(value);
  }
}

/** Fields as they are written: errors become text, and a defect of our own also brings its stack. */
export function renderFields(fields: object): Record<string, unknown> {
  const rendered: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) {
    rendered[key] = value instanceof Error ? renderError(value) : value;
    if (value instanceof Error && isBug(value) && value.stack) rendered['stacktrace'] = value.stack;
  }
  return rendered;
}

/** `a, b and 3 other(s)`: the first `most` items of a list. */
export function formatList(items: readonly unknown[], most: number): string {
  const shown = items.slice(0, most).map(String).join(', ');
  const left = items.length - Math.min(items.length, most);
  return left > 0 ? `${shown} and ${left} other(s)` : shown;
}

/** The first `most` entries by key, as `a: 1, b: 2 and 3 other(s)`. */
export function formatEntries(entries: Readonly<Record<string, unknown>>, most: number): string {
  const keys = Object.keys(entries).toSorted(compareStrings);
  return formatList(
    keys.map((key) => `${key}: ${String(entries[key])}`),
    most,
  );
}

/**
 * Tells news from repetition: a value is news when it differs from the last one seen under its key, or when that one
 * is older than `ttlMs` (a day), so that a log that was rotated still shows it.
 */
export class ChangeMonitor {
  readonly #clock: Clock;
  readonly #ttlMs: number;
  readonly #seen = new Map<string, { readonly value: string; readonly at: number }>();
  #nextSweep: number;

  constructor(clock: Clock, ttlMs = 24 * 3_600_000) {
    this.#clock = clock;
    this.#ttlMs = ttlMs;
    this.#nextSweep = clock.monotonic() + ttlMs;
  }

  /** The order of keys and of list items does not make a change. */
  hasChanged(key: string, value: unknown): boolean {
    const now = this.#clock.monotonic();
    this.#sweep(now);
    const text = canonical(value);
    const last = this.#seen.get(key);
    if (last && last.value === text && now - last.at < this.#ttlMs) return false;
    this.#seen.set(key, { value: text, at: now });
    return true;
  }

  get size(): number {
    return this.#seen.size;
  }

  #sweep(now: number): void {
    if (now < this.#nextSweep) return;
    this.#nextSweep = now + this.#ttlMs / 2;
    for (const [key, { at }] of this.#seen) if (now - at >= this.#ttlMs) this.#seen.delete(key);
  }
}

function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).toSorted(compareStrings).join(',')}]`;
  if (value instanceof Set) return canonical([...value]);
  if (value instanceof Map) return canonical(Object.fromEntries(value));
  if (value instanceof Error) return JSON.stringify(renderError(value));
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'undefined';
  const entries = Object.entries(value).toSorted(([a], [b]) => compareStrings(a, b));
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`).join(',')}}`;
}
