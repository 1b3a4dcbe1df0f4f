// SPDX-License-Identifier: Apache-2.0
// An API server over HTTP(S): keep-alive connections, TLS and proxies as a kubeconfig asks for them, watches as streams.
import { createSecureContext } from 'node:tls';
import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import { messageOf } from '../base/errors.ts';
import { splitLines } from './line-splitter.ts';
import type { WatchEvent } from './object.ts';
import { socksConnector } from './socks-connector.ts';
import type { Transport, TransportRequest, TransportResponse, WatchStream } from './transport.ts';
import { TransportError, type TransportFailure } from './transport-error.ts';

/** A client certificate and its key, in PEM. */
export interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

/** Who we are in one request. */
export interface Credential {
  readonly authorization?: string;
  readonly certificate?: ClientCertificate;
}

/** Who we are to the server, as of now: tokens and certificates that are renewed come from here. */
export interface Credentials {
  /** Called before every request, so implementations cache. Throws when no credentials can be had. */
  current(): Promise<Credential>;
  /** The server answered 401 to what `current` gave as `used`; by now it may have been renewed. */
  rejected(used: Credential): void;
}

/** How to reach one API server. */
export interface HttpTransportOptions {
  /** `https://host:port`, with a path when the API is not served at the root. */
  readonly server: string;
  /** The authorities to trust, in PEM. None: those of the runtime. */
  readonly ca?: string | undefined;
  readonly certificate?: ClientCertificate | undefined;
  readonly serverName?: string | undefined;
  readonly insecureSkipTlsVerify?: boolean | undefined;
  readonly credentials?: Credentials | undefined;
  /** Sent with every request, for example impersonation. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>> | undefined;
  /** `http://`, `https://` or `socks5://`. */
  readonly proxyUrl?: string | undefined;
  readonly userAgent?: string | undefined;
  /** Connections for requests; watches have their own. */
  readonly maxConnections?: number;
  readonly connectTimeoutMs?: number;
  /** How long the server may take to begin its answer, and how long it may pause within it. */
  readonly requestTimeoutMs?: number;
  /** How long a watch that asked for bookmarks may be silent before the connection counts as dead. */
  readonly watchIdleTimeoutMs?: number;
}

interface Dispatchers {
  readonly certificate: ClientCertificate | undefined;
  readonly requests: Dispatcher;
  readonly watches: Dispatcher;
}

interface Prepared {
  readonly dispatchers: Dispatchers;
  readonly headers: Record<string, string | string[]>;
  readonly credential: Credential;
}

/** Speaks to one API server. HTTP/1.1: a broken connection then costs one watch and not all of them. */
export class HttpTransport implements Transport {
  readonly #options: HttpTransportOptions;
  readonly #origin: string;
  readonly #prefix: string;
  #dispatchers: Dispatchers;

  /** Throws when `server` or `proxyUrl` is no usable URL, or a certificate is damaged. */
  constructor(options: HttpTransportOptions) {
    const url = parseServer(options.server);
    this.#options = options;
    this.#origin = url.origin;
    this.#prefix = url.pathname.replace(/\/+$/, '');
    this.#dispatchers = this.#dial(options.certificate);
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request;
    try {
      const { dispatchers, headers, credential } = await this.#prepare(request);
      const answer = await dispatchers.requests.request({
        ...this.#message(request, headers),
        signal: signal ?? null,
      });
      return await this.#response(answer, credential);
    } catch (error) {
      throw this.#failure(error, signal);
    }
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    const { signal } = request;
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal?.reason);
    try {
      signal?.throwIfAborted();
      signal?.addEventListener('abort', onAbort, { once: true });
      const { dispatchers, headers, credential } = await this.#prepare(request);
      const answer = await dispatchers.watches.request({
        ...this.#message({ ...request, query: { ...request.query, watch: 'true' } }, headers),
        bodyTimeout: this.#idleLimit(request),
        signal: stop.signal,
      });
      if (answer.statusCode !== 200) {
        signal?.removeEventListener('abort', onAbort);
        return await this.#response(answer, credential);
      }
      return this.#stream(answer.body, stop, () => signal?.removeEventListener('abort', onAbort), signal);
    } catch (error) {
      signal?.removeEventListener('abort', onAbort);
      throw this.#failure(error, signal);
    }
  }

  async close(): Promise<void> {
    const { requests, watches } = this.#dispatchers;
    await Promise.all([requests.destroy(), watches.destroy()]);
  }

  /** The headers and connections for a request: a renewed client certificate needs new connections. */
  async #prepare(request: TransportRequest): Promise<Prepared> {
    const { credentials, userAgent } = this.#options;
    const headers: Record<string, string | string[]> = {
      accept: request.accept ?? 'application/json',
      'user-agent': userAgent ?? 'karpenter',
    };
    for (const [name, value] of Object.entries(this.#options.headers ?? {})) {
      headers[name] = typeof value === 'string' ? value : [...value];
    }
    if (request.body !== undefined) headers['content-type'] = request.contentType ?? 'application/json';
    const credential = credentials ? await abortable(credentials.current(), request.signal) : {};
    const { authorization, certificate } = credential;
    if (authorization) headers['authorization'] = authorization;
    if (certificate && !sameCertificate(certificate, this.#dispatchers.certificate)) this.#redial(certificate);
    return { dispatchers: this.#dispatchers, headers, credential };
  }

  #message(request: TransportRequest, headers: Record<string, string | string[]>): Dispatcher.RequestOptions {
    const query = request.query ? `?${new URLSearchParams(request.query).toString()}` : '';
    return {
      origin: this.#origin,
      method: request.method,
      path: `${this.#prefix}${request.path}${query}`,
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
    };
  }

  async #response(answer: Dispatcher.ResponseData, credential: Credential): Promise<TransportResponse> {
    const { statusCode: status } = answer;
    const headers = flat(answer.headers);
    const text = await answer.body.text();
    if (status === 401) this.#options.credentials?.rejected(credential);
    return { status, headers, body: parseBody(text, status, headers['content-type'] ?? '') };
  }

  #stream(
    body: Dispatcher.ResponseData['body'],
    stop: AbortController,
    finished: () => void,
    signal: AbortSignal | undefined,
  ): WatchStream {
    let closed = false;
    const failure = (error: unknown): Error => this.#failure(error, signal);
    // An error may come before or after somebody listens: without a listener of ours it would end the process.
    body.on('error', () => {});
    return {
      close() {
        closed = true;
        finished();
        stop.abort();
      },
      async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
        try {
          for await (const line of splitLines(body as AsyncIterable<Uint8Array>)) yield parseEvent(line);
        } catch (error) {
          if (!closed) throw failure(error);
        } finally {
          finished();
          // A consumer that stops half-way must not leave the connection open.
          stop.abort();
        }
      },
    };
  }

  #idleLimit({ query }: TransportRequest): number {
    const { watchIdleTimeoutMs = 300_000 } = this.#options;
    if (query?.['allowWatchBookmarks'] === 'true') return watchIdleTimeoutMs;
    // The server ends the watch at its timeout; one that does not is gone. No timeout asked, no limit.
    const seconds = Number(query?.['timeoutSeconds'] ?? 0);
    return seconds > 0 ? seconds * 1000 + 30_000 : 0;
  }

  #redial(certificate: ClientCertificate): void {
    const { requests, watches } = this.#dispatchers;
    this.#dispatchers = this.#dial(certificate);
    // Requests under way finish on the old connections; watches end when the server ends them.
    for (const old of [requests, watches]) void old.close().catch(() => undefined);
  }

  #dial(certificate: ClientCertificate | undefined): Dispatchers {
    const { ca, maxConnections = 64 } = this.#options;
    try {
      // Damaged certificates are found out now, and not by an obscure failure of every request.
      createSecureContext({ ...(ca === undefined ? {} : { ca }), ...certificate });
    } catch (error) {
      const problem = `the certificate authority or the client certificate for ${this.#origin} cannot be used`;
      throw new TransportError('untrusted', `${problem}: ${messageOf(error)}`, error);
    }
    return { certificate, requests: this.#pool(certificate, maxConnections), watches: this.#pool(certificate, null) };
  }

  #pool(certificate: ClientCertificate | undefined, connections: number | null): Dispatcher {
    const { ca, serverName, insecureSkipTlsVerify, proxyUrl, connectTimeoutMs = 10_000 } = this.#options;
    const { requestTimeoutMs = 90_000 } = this.#options;
    const tls = {
      ...(ca === undefined ? {} : { ca }),
      ...certificate,
      ...(serverName === undefined ? {} : { servername: serverName }),
      ...(insecureSkipTlsVerify ? { rejectUnauthorized: false } : {}),
      timeout: connectTimeoutMs,
      // Finds out about dead peers also while nothing is sent.
      keepAliveInitialDelay: 30_000,
    };
    const options = {
      connections,
      allowH2: false,
      pipelining: 1,
      headersTimeout: requestTimeoutMs,
      bodyTimeout: requestTimeoutMs,
      keepAliveTimeout: 30_000,
      keepAliveMaxTimeout: 90_000,
    };
    if (!proxyUrl) return new Pool(this.#origin, { ...options, connect: tls });
    const proxy = parseProxy(proxyUrl);
    if (proxy.protocol.startsWith('socks')) {
      return new Pool(this.#origin, { ...options, connect: socksConnector(proxy, tls, connectTimeoutMs) });
    }
    const { username, password } = proxy;
    const token = username
      ? `Basic ${Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64')}`
      : undefined;
    return new ProxyAgent({ ...options, uri: proxy.origin, requestTls: tls, ...(token ? { token } : {}) });
  }

  #failure(error: unknown, signal: AbortSignal | undefined): Error {
    if (signal?.aborted) return signal.reason as Error;
    if (!isNetworkError(error)) return error as Error;
    const [failure, advice] = classify(codeOf(error));
    return new TransportError(
      failure,
      `talking to ${this.#origin}: ${messageOf(error) || codeOf(error)}${advice}`,
      error,
    );
  }
}

/** `promise`, or the signal's reason when that comes first: a credential plugin may take its time. */
function abortable<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(signal.reason as Error);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

function parseServer(server: string): URL {
  const url = URL.canParse(server) ? new URL(server) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw new TransportError('refused', `"${server}" is not the http(s) URL of an API server`);
  }
  return url;
}

function parseProxy(proxy: string): URL {
  const url = URL.canParse(proxy) ? new URL(proxy) : undefined;
  if (!url || !/^(https?|socks5h?):$/.test(url.protocol)) {
    throw new TransportError('refused', `"${proxy}" is not a proxy URL (http://, https:// or socks5://)`);
  }
  return url;
}

function sameCertificate(a: ClientCertificate, b: ClientCertificate | undefined): boolean {
  return a.cert === b?.cert && a.key === b.key;
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name] = typeof value === 'string' ? value : value.join(', ');
  }
  return result;
}

function parseBody(text: string, status: number, contentType: string): unknown {
  if (!/[/+]json\b/.test(contentType)) return text === '' ? undefined : text;
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // A failing code says enough even when the words after it are damaged.
    if (status >= 400) return text;
    throw new TransportError('malformed', `the answer is not JSON: ${messageOf(error)}`, error);
  }
}

function parseEvent(line: string): WatchEvent {
  try {
    return JSON.parse(line) as WatchEvent;
  } catch (error) {
    throw new TransportError('malformed', `the watch sent a line that is not JSON: ${line.slice(0, 200)}`, error);
  }
}

interface NetworkError extends Error {
  readonly code: string;
}

function isNetworkError(error: unknown): error is NetworkError {
  return error instanceof Error && !(error instanceof TransportError) && codeOf(error) !== '';
}

/** The code of a failure; undici keeps that of the socket in the cause, and of several addresses in the first error. */
function codeOf(error: unknown): string {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    const { code } = at as Partial<NetworkError>;
    if (typeof code === 'string' && code !== 'KRP_WRAPPED') return code;
    if (at instanceof AggregateError) return codeOf(at.errors[0]);
  }
  return error instanceof TypeError && error.message === 'terminated' ? 'UND_ERR_SOCKET' : '';
}

function classify(code: string): [TransportFailure, string] {
  if (
    /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|UND_ERR_CONNECT_TIMEOUT|UND_ERR_PRX_TLS)$/.test(
      code,
    )
  ) {
    return ['refused', ''];
  }
  if (/^(UND_ERR_HEADERS_TIMEOUT|UND_ERR_BODY_TIMEOUT|ETIMEDOUT)$/.test(code)) return ['timeout', ''];
  if (/CERT|ALTNAME|SELF_SIGNED|UNABLE_TO_|ERR_TLS|ERR_SSL|ERR_OSSL/.test(code)) {
    return [
      'untrusted',
      ' (check the certificate authority, the server name and the client certificate of this cluster)',
    ];
  }
  return ['broken', ''];
}
