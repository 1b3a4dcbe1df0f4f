// SPDX-License-Identifier: Apache-2.0
// The client of one API server: throttles, retries what is safe to retry, turns refusals into errors, and reports
// every request to whoever counts them. Typed access to a kind is `resource(kinds.Pod)`.
import { type Clock, RealClock } from '../base/clock.ts';
import { findCause } from '../base/errors.ts';
import { ApiError, isStatus, retryAfterOf } from './api-error.ts';
import type { KubeObject, ResourceType, WatchEvent } from './object.ts';
import { groupPath } from './paths.ts';
import { ResourceClient } from './resource-client.ts';
import {
  isWatchStream,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type WatchStream,
} from './transport.ts';
import { TransportError } from './transport-error.ts';

/** What a limiter must do: `TokenBucket` is one. */
export interface Limiter {
  take(signal?: AbortSignal): Promise<void>;
}

/** What the request is about, for metrics. Empty for requests outside of resources. */
export interface RequestSubject {
  readonly verb: string;
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly subresource: string;
}

/** One request as it went over the wire; retries count one by one. `code` is the HTTP code or `<error>`. */
export interface RequestReport extends RequestSubject {
  readonly method: TransportRequest['method'];
  readonly code: string;
  readonly durationMs: number;
  /** How long it waited for the client's own limiter. */
  readonly throttledMs: number;
}

export interface KubeClientOptions {
  readonly transport: Transport;
  /** Shared by all requests of this client, watches included. None: no client-side throttling. */
  readonly limiter?: Limiter | undefined;
  readonly clock?: Clock;
  /** Who owns the fields that this client writes; needed for `apply` unless given there. */
  readonly fieldManager?: string | undefined;
  readonly onRequest?: ((report: RequestReport) => void) | undefined;
  /** What the server says beside a successful answer: a deprecated version, an unknown field. */
  readonly onWarning?: ((warning: string) => void) | undefined;
  /** How often one request is sent again at most, when the server asks for it. */
  readonly maxRetries?: number;
}

/** A watch of one kind. Iteration ends when the server ends it, throws `ApiError` on an ERROR event. */
export interface Watch<T extends KubeObject> extends AsyncIterable<WatchEvent<T>> {
  close(): void;
}

// Beyond this, the caller knows better what to do with the time.
const longestRetryAfterMs = 30_000;
const connectionRetryMs = [100, 300, 1000] as const;
const noSubject: RequestSubject = { verb: '', group: '', version: '', kind: '', subresource: '' };

/**
 * Sends requests to one API server. Safe to share. What it sends again by itself: anything the server answered with
 * 429 and Retry-After; anything but POST that it answered with 5xx and Retry-After; GETs that met no or a broken
 * connection. Everything else is the caller's decision.
 */
export class KubeClient {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly fieldManager: string | undefined;
  readonly #limiter: Limiter | undefined;
  readonly #onRequest: ((report: RequestReport) => void) | undefined;
  readonly #onWarning: ((warning: string) => void) | undefined;
  readonly #maxRetries: number;

  constructor(options: KubeClientOptions) {
    this.transport = options.transport;
    this.clock = options.clock ?? new RealClock();
    this.fieldManager = options.fieldManager;
    this.#limiter = options.limiter;
    this.#onRequest = options.onRequest;
    this.#onWarning = options.onWarning;
    this.#maxRetries = options.maxRetries ?? 10;
  }

  /** A typed handle for one kind. Cheap: no request is made. */
  resource<T extends KubeObject>(type: ResourceType<T>): ResourceClient<T> {
    return new ResourceClient(this, type);
  }

  /** Whether the server serves this kind now: false while its CRD is missing. */
  async serves(type: ResourceType, signal?: AbortSignal): Promise<boolean> {
    const request: TransportRequest = { method: 'GET', path: groupPath(type), ...(signal ? { signal } : {}) };
    const response = await this.#retried(request, noSubject, this.#maxRetries);
    if (response.status === 404) return false;
    const { resources = [] } = succeeded(response, request) as { resources?: { name: string }[] };
    return resources.some((resource) => resource.name === type.plural);
  }

  /**
   * Sends one request and gives the body of its successful answer. Throws `ApiError` on a refusal, `TransportError`
   * when no answer came, and the signal's reason when it aborted.
   */
  async request(
    request: TransportRequest,
    subject: RequestSubject = noSubject,
    options: { maxRetries?: number } = {},
  ): Promise<unknown> {
    return succeeded(await this.#retried(request, subject, options.maxRetries ?? this.#maxRetries), request);
  }

  /** Opens a watch. Throws as `request` does; it is not retried, that is the reflector's part. */
  async watch<T extends KubeObject>(request: TransportRequest, subject: RequestSubject = noSubject): Promise<Watch<T>> {
    const statusOf = (answer: WatchStream | TransportResponse): number => (isWatchStream(answer) ? 200 : answer.status);
    const answer = await this.#reported(request, subject, () => this.transport.watch(request), statusOf);
    if (!isWatchStream(answer)) throw ApiError.fromResponse(answer, request);
    return typedWatch(answer, request);
  }

  close(): Promise<void> {
    return this.transport.close();
  }

  async #retried(request: TransportRequest, subject: RequestSubject, maxRetries: number): Promise<TransportResponse> {
    for (let retries = 0; ; retries++) {
      const isLast = retries >= maxRetries;
      const send = (): Promise<TransportResponse> => this.transport.request(request);
      let waitMs: number | undefined;
      try {
        const response = await this.#reported(request, subject, send, ({ status }) => status);
        waitMs = waitBeforeRetry(request, response);
        if (isLast || waitMs === undefined) {
          if (this.#onWarning) for (const warning of warningsOf(response)) this.#onWarning(warning);
          return response;
        }
      } catch (error) {
        waitMs = mayResend(request, error) ? connectionRetryMs[retries] : undefined;
        if (isLast || waitMs === undefined) throw error;
      }
      await this.clock.sleep(waitMs, request.signal);
    }
  }

  /** Waits for the limiter, sends, and reports how it went. */
  async #reported<R>(
    request: TransportRequest,
    subject: RequestSubject,
    send: () => Promise<R>,
    statusOf: (answer: R) => number,
  ): Promise<R> {
    const asked = this.clock.monotonic();
    await this.#limiter?.take(request.signal);
    const started = this.clock.monotonic();
    let code = '<error>';
    try {
      const answer = await send();
      code = String(statusOf(answer));
      return answer;
    } finally {
      this.#onRequest?.({
        ...subject,
        method: request.method,
        code,
        durationMs: this.clock.monotonic() - started,
        throttledMs: started - asked,
      });
    }
  }
}

function succeeded(response: TransportResponse, request: TransportRequest): unknown {
  if (response.status >= 200 && response.status < 300) return response.body;
  throw ApiError.fromResponse(response, request);
}

/** The texts of Warning headers, which look like `299 - "spec.x is deprecated"`. */
function warningsOf({ headers }: TransportResponse): string[] {
  const quoted = headers?.['warning']?.matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g) ?? [];
  return Array.from(quoted, ([, text = '']) => text.replace(/\\(.)/g, '$1'));
}

function waitBeforeRetry(request: TransportRequest, response: TransportResponse): number | undefined {
  const asked = response.status === 429 || (response.status >= 500 && request.method !== 'POST');
  const waitMs = asked ? retryAfterOf(response) : undefined;
  return waitMs !== undefined && waitMs <= longestRetryAfterMs ? waitMs : undefined;
}

function mayResend(request: TransportRequest, error: unknown): boolean {
  if (request.method !== 'GET' || request.signal?.aborted) return false;
  const failure = findCause(error, TransportError)?.failure;
  return failure === 'refused' || failure === 'broken';
}

function typedWatch<T extends KubeObject>(stream: WatchStream, request: TransportRequest): Watch<T> {
  const close = (): void => stream.close();
  return {
    close,
    // By hand: a generator around another iterator takes three turns more for each event.
    [Symbol.asyncIterator]() {
      const events = stream[Symbol.asyncIterator]() as AsyncIterator<WatchEvent<T>>;
      const checked = (next: IteratorResult<WatchEvent<T>>): IteratorResult<WatchEvent<T>> => {
        if (next.done) close();
        else if (next.value?.type === 'ERROR') {
          close();
          throw errorOfEvent(next.value, request);
        } else if (!isEvent(next.value)) {
          close();
          throw new TransportError('malformed', 'the watch sent something that is no event');
        }
        return next;
      };
      const failed = (error: unknown): never => {
        close();
        throw error;
      };
      return {
        next: () => events.next().then(checked, failed),
        return: async () => {
          close();
          await events.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

const eventTypes: ReadonlySet<unknown> = new Set(['ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK']);

/** A gateway in between may send anything: what is no event of an object must not get into a cache. */
function isEvent(value: unknown): boolean {
  const { type, object } = (value ?? {}) as { type?: unknown; object?: { metadata?: unknown } | null };
  return eventTypes.has(type) && typeof object?.metadata === 'object' && object.metadata !== null;
}

function errorOfEvent(event: WatchEvent, request: TransportRequest): ApiError {
  const body: unknown = event.object;
  const status = isStatus(body) && typeof body.code === 'number' ? body.code : 500;
  return ApiError.fromResponse({ status, body }, request);
}
