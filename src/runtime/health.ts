// SPDX-License-Identifier: Apache-2.0
// The small HTTP servers of an operator: probes for the kubelet, metrics for Prometheus, and profiles on request.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { settle } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import type { Logger } from './logging.ts';
import type { Metrics } from './metrics.ts';

/** Resolves when all is well, throws with the reason when not. */
export type HealthCheck = (signal: AbortSignal) => void | Promise<void>;

/** Named checks behind one path. A check may be added while the server runs. */
export class HealthChecks {
  readonly #checks = new Map<string, HealthCheck>([['ping', () => undefined]]);

  add(name: string, check: HealthCheck): this {
    this.#checks.set(name, check);
    return this;
  }

  /** Runs the checks (all, or one by its name); undefined when there is no such check. */
  async run(signal: AbortSignal, only?: string): Promise<readonly CheckResult[] | undefined> {
    if (only !== undefined && !this.#checks.has(only)) return undefined;
    const chosen = [...this.#checks].filter(([name]) => only === undefined || name === only);
    return Promise.all(chosen.map(([name, check]) => runCheck(name, check, signal)));
  }
}

export interface CheckResult {
  readonly name: string;
  /** Why it failed; undefined when it did not. */
  readonly failure: string | undefined;
}

async function runCheck(name: string, check: HealthCheck, signal: AbortSignal): Promise<CheckResult> {
  try {
    await check(signal);
    return { name, failure: undefined };
  } catch (error) {
    return { name, failure: messageOf(error) };
  }
}

/** Answers a request below a path of its own; says whether it did. */
export type Route = (request: IncomingMessage, url: URL, response: ServerResponse) => boolean | Promise<boolean>;

/** A server with a few routes. Port 0 takes a free one. */
export class SmallServer {
  readonly #server: Server;
  readonly #log: Logger;
  readonly #name: string;

  constructor(options: { readonly name: string; readonly routes: readonly Route[]; readonly log: Logger }) {
    this.#log = options.log;
    this.#name = options.name;
    this.#server = createServer((request, response) => {
      void this.#answer(options.routes, request, response);
    });
    // A client that stays silent must not hold a socket for good.
    this.#server.headersTimeout = 10_000;
    this.#server.requestTimeout = 30_000;
  }

  /** Listens and gives the port. Throws when the port is taken. */
  async listen(port: number, host?: string): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', (error) => reject(new PortError(this.#name, port, error)));
      this.#server.listen({ port, ...(host === undefined ? {} : { host }) }, resolve);
    });
    this.#server.on('error', (error) => this.#log.error('server error', { server: this.#name, error }));
    const bound = (this.#server.address() as AddressInfo).port;
    this.#log.debug('serving', { server: this.#name, port: bound });
    return bound;
  }

  /** Stops listening and ends what is open. Safe to call twice. */
  async close(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #answer(routes: readonly Route[], request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const url = URL.canParse(request.url ?? '', 'http://localhost')
        ? new URL(request.url ?? '', 'http://localhost')
        : undefined;
      if (!url) return sendText(response, 400, 'bad request\n');
      if (request.method !== 'GET' && request.method !== 'HEAD') {
        response.setHeader('allow', 'GET, HEAD');
        return sendText(response, 405, 'method not allowed\n');
      }
      for (const route of routes) if (await route(request, url, response)) return;
      sendText(response, 404, 'not found\n');
    } catch (error) {
      this.#log.error('answering a request failed', { server: this.#name, path: request.url, error });
      if (!response.headersSent) sendText(response, 500, 'internal error\n');
      else response.destroy();
    }
  }
}

/** A port cannot be listened on. */
export class PortError extends KarpenterError {
  constructor(server: string, port: number, cause: Error) {
    super('KRP_PORT', `the ${server} server cannot listen on port ${port}: ${cause.message}`, { cause });
  }
}

const plainHeaders = { 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' } as const;

export function sendText(response: ServerResponse, status: number, body: string, type = 'text/plain'): void {
  response.writeHead(status, {
    'content-type': type.includes('charset') ? type : `${type}; charset=utf-8`,
    'content-length': Buffer.byteLength(body),
    ...plainHeaders,
  });
  response.end(body);
}

/**
 * `/path` answers 200 `ok` or 500 with the checks that failed; `?verbose` lists all, `?exclude=name` leaves some out,
 * `/path/name` asks one.
 */
export function healthRoute(path: string, checks: HealthChecks): Route {
  return async (_request, url, response) => {
    const below = url.pathname.startsWith(`${path}/`) ? url.pathname.slice(path.length + 1) : undefined;
    if (url.pathname !== path && !below) return false;
    const abort = new AbortController();
    response.once('close', () => abort.abort());
    const results = await checks.run(abort.signal, below);
    if (!results) {
      sendText(response, 404, 'no such check\n');
      return true;
    }
    const excluded = new Set(url.searchParams.getAll('exclude'));
    const counted = results.filter((result) => !excluded.has(result.name));
    const healthy = counted.every((result) => result.failure === undefined);
    if (healthy && !url.searchParams.has('verbose')) sendText(response, 200, 'ok');
    else sendText(response, healthy ? 200 : 500, renderChecks(path, results, excluded, healthy));
    return true;
  };
}

function renderChecks(
  path: string,
  results: readonly CheckResult[],
  excluded: ReadonlySet<string>,
  healthy: boolean,
): string {
  const lines = results.map(({ name, failure }) => {
    if (excluded.has(name)) return `[+]${name} excluded: ok`;
    return failure === undefined ? `[+]${name} ok` : `[-]${name} failed: ${failure}`;
  });
  return `${lines.join('\n')}\n${path.replace(/^\//, '')} check ${healthy ? 'passed' : 'failed'}\n`;
}

/** `/metrics` in Prometheus' text format. */
export function metricsRoute(metrics: Metrics): Route {
  return async (request, url, response) => {
    if (url.pathname !== '/metrics') return false;
    const packed = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/.test(String(request.headers['accept-encoding'] ?? ''));
    response.writeHead(200, {
      ...plainHeaders,
      'content-type': metrics.contentType,
      vary: 'accept-encoding',
      ...(packed ? { 'content-encoding': 'gzip' } : {}),
    });
    try {
      // A scrape may be larger than what should be in memory at once, and others want their turn meanwhile.
      const chunks = withBreaks(metrics.chunks());
      await (packed ? pipeline(chunks, createGzip({ level: 1 }), response) : pipeline(chunks, response));
    } catch (error) {
      if ((error as { code?: unknown }).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
    }
    return true;
  };
}

async function* withBreaks(chunks: AsyncIterable<string>): AsyncGenerator<string, void, undefined> {
  for await (const chunk of chunks) {
    yield chunk;
    await settle();
  }
}
