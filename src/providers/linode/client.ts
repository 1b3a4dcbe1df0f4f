// SPDX-License-Identifier: Apache-2.0
// The Linode API as calls: within its limits, with time-outs, retries of what is safe to repeat, pages put together and
// failures typed. The token goes into one header and nowhere else.
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { isBusy, isTemporary, LinodeApiError, type LinodeProblem, LinodeUnreachableError } from './api-errors.ts';
import { shapeProblem } from './api-shapes.ts';
import type { Page } from './api-types.ts';
import type { LinodeDoor, LinodeResponse } from './door.ts';
import { linodeMetrics } from './metrics.ts';
import { type LimitName, linodeLimits, type RateLimit, SlidingWindow } from './rate-limits.ts';

export interface LinodeClientOptions {
  readonly door: LinodeDoor;
  readonly token: string;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly apiVersion?: string;
  readonly userAgent?: string;
  readonly timeoutMs?: number;
  readonly limits?: Readonly<Record<LimitName, RateLimit>>;
  /** Told of every call. */
  readonly log?: Logger;
}

type Method = 'GET' | 'POST' | 'PUT' | 'DELETE';

interface Call {
  readonly method: Method;
  /** Below the version: `lke/clusters/1/pools`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly filter?: object | undefined;
  readonly body?: object | undefined;
  readonly signal: AbortSignal;
}

/** How long a call may go on repeating itself; a longer wait is the caller's to make. */
const patienceMs = 8000;
const pauseMs = [500, 1000, 2000, 4000] as const;
/** What the API takes at most. */
const pageSize = 500;
/** Half a million things: an answer that speaks of more pages is not to be followed for hours. */
const mostPages = 1000;
/** Nobody reads more of why something was refused, and a NodeClaim's conditions have room for no more. */
const mostProblems = 10;
const longestReason = 1000;

/** Safe to share; calls may be made at the same time. */
export class LinodeClient {
  readonly #options: LinodeClientOptions;
  readonly #limits: Readonly<Record<LimitName, SlidingWindow>>;

  constructor(options: LinodeClientOptions) {
    this.#options = options;
    const { clock, limits = linodeLimits } = options;
    const window = (name: LimitName): SlidingWindow => new SlidingWindow(limits[name], clock);
    this.#limits = { list: window('list'), launch: window('launch'), other: window('other') };
  }

  /** One thing. An answer of another shape than it has counts as none. */
  get<T>(path: string, signal: AbortSignal): Promise<T> {
    return this.#call<T>({ method: 'GET', path, signal });
  }

  post<T>(path: string, body: object | undefined, signal: AbortSignal): Promise<T> {
    return this.#call<T>({ method: 'POST', path, body, signal });
  }

  put<T>(path: string, body: object, signal: AbortSignal): Promise<T> {
    return this.#call<T>({ method: 'PUT', path, body, signal });
  }

  async delete(path: string, signal: AbortSignal): Promise<void> {
    await this.#call({ method: 'DELETE', path, signal });
  }

  /** Every item of a collection. Fails as a whole: a list with a hole in it would be taken for the truth. */
  async list<T extends { readonly id: unknown }>(
    path: string,
    options: { readonly filter?: object; readonly signal: AbortSignal },
  ): Promise<T[]> {
    const { filter, signal } = options;
    const items = new Map<unknown, T>();
    for (let page = 1, pages = 1; page <= pages; page++) {
      const query = { page: String(page), page_size: String(pageSize) };
      const answer = await this.#call<Partial<Page<T>>>({ method: 'GET', path, query, filter, signal });
      if (!Array.isArray(answer.data) || !Number.isSafeInteger(answer.pages) || answer.pages! > mostPages) {
        throw new LinodeUnreachableError(`GET ${path}`, 'the answer is not a page of a list');
      }
      // What moves to another page while we read is seen twice; what is seen twice is kept once.
      for (const item of answer.data) {
        const problem = shapeProblem(path, item);
        if (problem !== undefined) throw new LinodeUnreachableError(`GET ${path}`, problem);
        items.set(item.id, item);
      }
      pages = answer.pages!;
    }
    return [...items.values()];
  }

  /** Sends a call, and again for as long as that is safe, useful and soon. */
  async #call<T>(call: Call): Promise<T> {
    const { clock } = this.#options;
    const started = clock.monotonic();
    for (let attempt = 0; ; attempt++) {
      try {
        return await this.#once<T>(call);
      } catch (error) {
        const waitMs = waitBefore(call, error, attempt);
        if (waitMs === undefined || clock.monotonic() - started + waitMs > patienceMs) throw error;
        await clock.sleep(waitMs, call.signal);
      }
    }
  }

  async #once<T>(call: Call): Promise<T> {
    const { clock, metrics, door } = this.#options;
    const { method, path, signal } = call;
    const name = `${method} ${path}`;
    const limit = limitOf(call);
    const asked = clock.monotonic();
    await this.#limits[limit].pass(signal);
    metrics.histogram(linodeMetrics.limited).observe({ limit }, (clock.monotonic() - asked) / 1000);
    const labels = { method, route: routeOf(path) };
    const started = clock.monotonic();
    const count = (code: string): void => {
      const seconds = (clock.monotonic() - started) / 1000;
      this.#options.log?.info('called the Linode API', { method, path, code, seconds });
      metrics.histogram(linodeMetrics.duration).observe(labels, seconds);
      metrics.counter(linodeMetrics.requests).inc({ ...labels, code });
    };
    let response: LinodeResponse;
    try {
      response = await this.#inTime(signal, (inner) => door.handle(this.#message(call), inner));
    } catch (error) {
      count('0');
      signal.throwIfAborted();
      throw new LinodeUnreachableError(name, this.#withoutToken(messageOf(error)));
    }
    count(String(response.status));
    if (response.status >= 200 && response.status < 300) return parse(call, response) as T;
    const failure = this.#failure(name, response);
    if (failure.status === 429) this.#limits[limit].pause(Math.min(failure.retryAfterMs ?? 1000, 60_000));
    throw failure;
  }

  /** Ends a call that takes too long; it may have been carried out. */
  async #inTime<R>(signal: AbortSignal, call: (signal: AbortSignal) => Promise<R>): Promise<R> {
    const { clock, timeoutMs = 10_000 } = this.#options;
    signal.throwIfAborted();
    const inner = new AbortController();
    const onAbort = (): void => inner.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const timer = clock.after(timeoutMs, () => inner.abort(new Error(`no answer within ${timeoutMs / 1000} s`)));
    const ended = new Promise<never>((_, reject) => {
      inner.signal.addEventListener('abort', () => reject(inner.signal.reason as Error), { once: true });
    });
    try {
      return await Promise.race([call(inner.signal), ended]);
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
    }
  }

  #message({ method, path, query, filter, body }: Call) {
    const { token, apiVersion = 'v4beta', userAgent = 'karpenter' } = this.#options;
    const search = query ? `?${new URLSearchParams(query).toString()}` : '';
    return {
      method,
      path: `/${apiVersion}/${path}${search}`,
      headers: {
        authorization: `Bearer ${token}`,
        accept: 'application/json',
        'user-agent': userAgent,
        ...(filter ? { 'x-filter': JSON.stringify(filter) } : {}),
        ...(body ? { 'content-type': 'application/json' } : {}),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    };
  }

  #failure(name: string, { status, headers, body }: LinodeResponse): LinodeApiError {
    return new LinodeApiError(name, {
      status,
      problems: this.#problemsOf(body),
      retryAfterMs: retryAfterOf(headers['retry-after'], this.#options.clock.now()),
      maintenance: status === 503 && headers['x-maintenance-mode'] !== undefined,
    });
  }

  #problemsOf(body: string): LinodeProblem[] {
    let errors: unknown;
    try {
      errors = (JSON.parse(body) as { errors?: unknown } | null)?.errors;
    } catch {
      // A gateway in between answers in its own words: they are of no use to anybody here.
    }
    if (!Array.isArray(errors)) return [];
    return errors.slice(0, mostProblems).flatMap((error: { reason?: unknown; field?: unknown } | null) =>
      typeof error?.reason === 'string'
        ? [
            {
              reason: this.#withoutToken(error.reason).slice(0, longestReason),
              ...(typeof error.field === 'string' ? { field: error.field.slice(0, longestReason) } : {}),
            },
          ]
        : [],
    );
  }

  #withoutToken(text: string): string {
    const { token } = this.#options;
    return token === '' ? text : text.replaceAll(token, '[token]');
  }
}

function parse({ method, path, query }: Call, { body }: LinodeResponse): unknown {
  const name = `${method} ${path}`;
  let value: unknown;
  try {
    value = JSON.parse(body);
  } catch {
    // Told below, without the text: it may hold anything.
  }
  if (typeof value !== 'object' || value === null) {
    throw new LinodeUnreachableError(name, 'the answer is not a JSON object');
  }
  // Of pages each item is looked at; what is removed is described no more.
  const problem = query || method === 'DELETE' ? undefined : shapeProblem(path, value);
  if (problem !== undefined) throw new LinodeUnreachableError(name, problem);
  return value;
}

/** How long to wait before the same call is made again; undefined when it must not be. */
function waitBefore({ method, signal }: Call, error: unknown, attempt: number): number | undefined {
  if (signal.aborted) return undefined;
  const pause = pauseMs[attempt];
  if (pause === undefined) return undefined;
  if (error instanceof LinodeApiError) {
    // Neither was carried out, so anything may be repeated.
    if (error.status === 429) return error.retryAfterMs ?? pause;
    if (isBusy(error)) return pause;
    if (error.maintenance) return undefined;
  }
  return method === 'GET' && isTemporary(error) ? pause : undefined;
}

/** Seconds, or a date. */
function retryAfterOf(text: string | undefined, now: number): number | undefined {
  if (text === undefined) return undefined;
  if (/^\d+$/.test(text.trim())) return Number(text) * 1000;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, date - now);
}

function limitOf({ method, path, query }: Call): LimitName {
  if (method === 'POST' && path === 'linode/instances') return 'launch';
  return method === 'GET' && query ? 'list' : 'other';
}

/** The path with `{id}` for what differs: a metric label must not be one of endless many. */
function routeOf(path: string): string {
  return path
    .split('/')
    .map((part, i, all) =>
      /\d/.test(part) || all[i - 1] === 'regions' || all[i - 1] === 'images' || all[i - 1] === 'types' ? '{id}' : part,
    )
    .join('/');
}
