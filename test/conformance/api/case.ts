// SPDX-License-Identifier: Apache-2.0
// What a conformance case is, and what it may use: several clients, a namespace of its own, and words to judge answers.
import { AssertionError } from 'node:assert';
import { RealClock } from '../../../src/base/clock.ts';
import type { Caller, Reply, Thing, Watching } from './caller.ts';

/** One promise of an API server. `run` throws when it is broken. */
export interface ConformanceCase {
  /** Stable, `area/what`. */
  readonly id: string;
  /** A sentence. */
  readonly title: string;
  run(context: Context): Promise<void>;
  /** Needs bytes on a wire: cannot be asked in process. */
  readonly wire?: boolean;
  /** Needs controllers beside the API server: garbage collection, namespaces, budgets. */
  readonly controllers?: boolean;
}

export interface Context {
  /** The case's own namespace, fresh. */
  readonly namespace: string;
  /** Three clients that share nothing but the server. */
  readonly a: Caller;
  readonly b: Caller;
  readonly c: Caller;
  /** The path of a collection, object or subresource; namespaced ones in the case's namespace. */
  readonly path: (plural: string, ...rest: string[]) => string;
  /** A name that no other case uses, for objects outside of namespaces. */
  readonly unique: (name: string) => string;
  /** A client that is a service account of the case's namespace and may do nothing yet. */
  readonly serviceAccount: (name: string) => Promise<Caller>;
  /** A client that sends no credentials at all. */
  readonly anonymous: () => Caller;
}

const clock = new RealClock();

/** Asserts that `actual` has all that `expected` names: objects in part, lists as a whole; undefined means absent. */
export function has(actual: unknown, expected: unknown, where = 'the answer'): void {
  const problem = difference(actual, expected, '');
  if (problem === undefined) return;
  throw new AssertionError({
    message: `${where}${problem}\n  got ${JSON.stringify(actual)?.slice(0, 3000)}`,
    actual,
    expected,
  });
}

function difference(actual: unknown, expected: unknown, path: string): string | undefined {
  if (expected instanceof RegExp) {
    return typeof actual === 'string' && expected.test(actual)
      ? undefined
      : `${path}: ${show(actual)} is not ${expected}`;
  }
  if (typeof expected !== 'object' || expected === null || typeof actual !== 'object' || actual === null) {
    return Object.is(actual, expected) ? undefined : `${path}: ${show(actual)} is not ${show(expected)}`;
  }
  if (Array.isArray(expected)) {
    const length = Array.isArray(actual) ? actual.length : -1;
    if (length !== expected.length) return `${path}: ${show(actual)} is not ${show(expected)}`;
  }
  for (const [key, value] of Object.entries(expected)) {
    const found = difference((actual as Record<string, unknown>)[key], value, `${path}.${key}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function show(value: unknown): string {
  return (JSON.stringify(value) ?? 'nothing').slice(0, 1500);
}

/** Asserts that exactly this came. */
export function same(actual: unknown, expected: unknown, what = 'the answer'): void {
  const [left, right] = [JSON.stringify(sorted(actual)), JSON.stringify(sorted(expected))];
  if (left !== right) {
    throw new AssertionError({ message: `${what}: ${left?.slice(0, 3000)} is not ${right}`, actual, expected });
  }
}

function sorted(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.sort(([x], [y]) => (x < y ? -1 : 1)).map(([key, item]) => [key, sorted(item)]));
}

/** Asserts success and, in part, what was answered; gives the object. */
export async function ok(reply: Promise<Reply>, expected: unknown = {}): Promise<Thing> {
  const { status, body } = await reply;
  if (status < 200 || status > 299) throw new AssertionError({ message: `refused: ${status} ${JSON.stringify(body)}` });
  has(body, expected);
  return body;
}

/** Asserts a refusal: its code, reason and words, and in part its details. */
export async function refused(
  reply: Promise<Reply>,
  code: number,
  reason: string | undefined,
  message?: string | RegExp,
  details?: unknown,
): Promise<Thing> {
  const { status, body } = await reply;
  has(
    { status, body },
    {
      status: code,
      body: {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        code,
        reason,
        ...(message === undefined ? {} : { message }),
        ...(details === undefined ? {} : { details }),
      },
    },
  );
  return body;
}

/** Asserts that there is no such object. */
export function missing(reply: Promise<Reply>): Promise<Thing> {
  return refused(reply, 404, 'NotFound');
}

/** Awaits a state that the server reaches in its own time. */
export async function eventually<T>(check: () => Promise<T>, timeoutMs = 15_000): Promise<T> {
  const deadline = clock.monotonic() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (clock.monotonic() > deadline) throw error;
      await clock.sleep(25);
    }
  }
}

export function pause(ms: number): Promise<void> {
  return clock.sleep(ms);
}

/** Asserts the next events of a watch, in order, as `TYPE name`. */
export async function sees(watching: Watching, ...expected: string[]): Promise<Thing[]> {
  const events = await watching.take(expected.length);
  same(
    events.map(({ type, object }) => `${type} ${object.metadata?.name ?? object.reason}`),
    expected,
    'the events',
  );
  return events.map(({ object }) => object);
}

/** The names of a list, in its order. */
export function namesOf(list: Thing): string[] {
  return list.items.map((item) => item.metadata.name);
}
