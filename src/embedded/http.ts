// SPDX-License-Identifier: Apache-2.0
// The API server on the wire: HTTPS on loopback, bearer tokens, JSON (and YAML) in, JSON out.

import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Clock } from '../base/clock.ts';
import { messageOf } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import type { Logger } from '../runtime/logging.ts';
import type { Authenticator } from './authentication.ts';
import { makeCertificate } from './certificates.ts';
import { type ParsedBody, parseBody } from './http-body.ts';
import type { ApiRequest, ApiResponse, LineStream, UserInfo } from './rest/request.ts';
import { badRequest, StatusError, tooLarge, unauthorized, unsupportedMediaType } from './status.ts';

export interface ListenOptions {
  /** 0 or none: any free port. */
  readonly port?: number;
  /** Loopback by default; anything else is the caller's decision. */
  readonly host?: string;
}

/** An open port. */
export interface HttpListener {
  readonly url: string;
  readonly port: number;
  /** The authority clients must trust, PEM. */
  readonly certificateAuthority: string;
  close(): Promise<void>;
}

interface Served {
  readonly clock: Clock;
  readonly random: Random;
  readonly authenticator: Authenticator;
  handle(request: ApiRequest): ApiResponse;
  /** The user somebody asks to be. Throws StatusError to refuse. */
  impersonate(user: UserInfo, asked: UserInfo): UserInfo;
}

const bodyLimit = 3 * 1024 * 1024;
const mostDiscarded = 64 * 1024 * 1024;
/** Answers below this are not worth compressing. */
const compressFrom = 128 * 1024;
/** To what is no HTTP, as Go's server says it. */
const notHttp =
  'HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n400 Bad Request';
const anonymous: UserInfo = Object.freeze({ username: 'system:anonymous', groups: ['system:unauthenticated'] });
const compress = promisify(gzip);

export async function listenHttps(server: Served, options: ListenOptions, log: Logger): Promise<HttpListener> {
  const host = options.host ?? '127.0.0.1';
  const addresses = [...new Set(['127.0.0.1', '::1', ...(/^[\d.]+$|:/.test(host) ? [host] : [])])].filter(
    (address) => address !== '0.0.0.0' && address !== '::',
  );
  const names = [
    ...new Set([
      'localhost',
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      ...(addresses.includes(host) || /[:\d]$/.test(host) ? [] : [host]),
    ]),
  ];
  const made = makeCertificate(server.clock, server.random, names, addresses);
  const https = createServer(
    { cert: made.certificate, key: made.key, keepAlive: true, minVersion: 'TLSv1.2' },
    (request, response) => {
      void serve(server, request, response, log);
    },
  );
  https.keepAliveTimeout = 120_000;
  https.requestTimeout = 0;
  https.on('tlsClientError', () => {
    // A client that does not trust us, or speaks no TLS: its affair.
  });
  https.on('clientError', (_error, socket) => {
    if (socket.writable) socket.end(notHttp);
    else socket.destroy();
  });
  await new Promise<void>((resolve, reject) => {
    https.once('error', reject);
    https.listen(options.port ?? 0, host, resolve);
  });
  const address = https.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    port,
    certificateAuthority: made.authority,
    close: () => closeServer(https),
  };
}

function closeServer(https: Server): Promise<void> {
  return new Promise((resolve) => {
    https.close(() => resolve());
    https.closeIdleConnections();
    https.closeAllConnections();
  });
}

async function serve(server: Served, request: IncomingMessage, response: ServerResponse, log: Logger): Promise<void> {
  try {
    const answer = await answerTo(server, request);
    const stream = answer.stream ?? answer.follow;
    if (stream) await sendLines(stream, response, answer);
    else await send(request, response, answer);
  } catch (error) {
    if (response.headersSent || response.destroyed) {
      response.destroy();
      return;
    }
    const refusal = error instanceof StatusError ? error : new StatusError(500, 'InternalError', messageOf(error));
    if (!request.complete) {
      response.setHeader('Connection', 'close');
      discardRest(request);
    }
    if (!(error instanceof StatusError)) log.error('connection failed', { path: request.url, error });
    await send(request, response, { status: refusal.status.code!, body: refusal.status }).catch(() =>
      response.destroy(),
    );
  }
}

async function answerTo(server: Served, request: IncomingMessage): Promise<ApiResponse> {
  const [path, search] = splitUrl(request.url ?? '/');
  const user = actingUser(server, request, userOf(server.authenticator, request));
  const query: Record<string, string> = {};
  for (const [key, value] of new URLSearchParams(search)) if (!(key in query)) query[key] = value;
  const contentType = request.headers['content-type'];
  const method = request.method ?? 'GET';
  // Those that lead into a container are refused by their own words, further in.
  if (request.headers.upgrade !== undefined && !/\/(?:exec|attach|portforward|proxy)(?:\/|$)/.test(path))
    throw badRequest('upgrade requests are not served by the embedded cluster');
  const text = await readBody(request);
  const parsed = readable(() => parseBody(text, method, contentType));
  return server.handle({
    method,
    path,
    query,
    ...parsed,
    ownsBody: true,
    onWire: true,
    user,
    ...(contentType === undefined ? {} : { contentType }),
    ...(request.headers.accept === undefined ? {} : { accept: request.headers.accept }),
    ...(request.headers['user-agent'] === undefined ? {} : { userAgent: request.headers['user-agent'] }),
  });
}

/** Whoever a request acts as: its sender, or the user that it asks to be. */
function actingUser(server: Served, request: IncomingMessage, user: UserInfo): UserInfo {
  const [username] = [request.headers['impersonate-user'] ?? []].flat();
  if (username === undefined || username === '') return user;
  const groups = request.headersDistinct['impersonate-group'] ?? [];
  return server.impersonate(user, { username, groups });
}

/** What a body comes to; whether anybody looks at it is decided later. */
function readable(parse: () => ParsedBody): ParsedBody | { readonly bodyRefusal: StatusError } {
  try {
    return parse();
  } catch (error) {
    if (error instanceof StatusError) return { bodyRefusal: error };
    throw error;
  }
}

/** Path and query as they were sent: dots in a path are names like others. */
function splitUrl(text: string): [path: string, search: string] {
  const url = text.startsWith('/') ? text : text.replace(/^[a-z]+:\/\/[^/?]*/i, '');
  const at = url.indexOf('?');
  return at < 0 ? [url, ''] : [url.slice(0, at), url.slice(at + 1)];
}

/** Who sends no token is nobody; who sends a wrong one is refused. */
function userOf(authenticator: Authenticator, request: IncomingMessage): UserInfo {
  const [scheme = '', token = ''] = (request.headers.authorization ?? '').trim().split(' ');
  if (scheme.toLowerCase() !== 'bearer' || token === '') return anonymous;
  const user = authenticator.userOf(token);
  if (!user) throw unauthorized();
  return user;
}

/** Reads a body up to the limit. What is beyond it is left unread, so that the refusal can still be sent. */
function readBody(request: IncomingMessage): Promise<Buffer> {
  const encoding = request.headers['content-encoding'];
  if (encoding !== undefined && encoding !== 'identity') return Promise.reject(unsupportedMediaType());
  if (Number(request.headers['content-length'] ?? 0) > bodyLimit) return Promise.reject(tooLarge(bodyLimit));
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const onData = (chunk: Buffer): void => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= bodyLimit) return;
      request.off('data', onData);
      reject(tooLarge(bodyLimit));
    };
    request.on('data', onData);
    request.once('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)));
    request.once('error', reject);
    request.once('close', () => reject(badRequest('the connection was closed before the body was complete')));
  });
}

/** Lets the rest of an unread body pass by, within reason: a client that is still writing could not read our answer. */
function discardRest(request: IncomingMessage): void {
  let passed = 0;
  request.on('data', (chunk: Buffer) => {
    passed += chunk.length;
    if (passed > mostDiscarded) request.destroy();
  });
  request.resume();
}

async function send(request: IncomingMessage, response: ServerResponse, answer: ApiResponse): Promise<void> {
  const isText = answer.text !== undefined;
  let payload = Buffer.from(isText ? answer.text! : `${JSON.stringify(answer.body ?? {})}\n`);
  response.statusCode = answer.status;
  response.setHeader(
    'Content-Type',
    answer.headers?.['content-type'] ?? (isText ? 'text/plain; charset=utf-8' : 'application/json'),
  );
  response.setHeader('Cache-Control', 'no-cache, private');
  setHeaders(response, answer);
  if (payload.length >= compressFrom && /\bgzip\b/.test(String(request.headers['accept-encoding'] ?? ''))) {
    payload = await compress(payload, { level: 1 });
    response.setHeader('Content-Encoding', 'gzip');
    response.setHeader('Vary', 'Accept-Encoding');
  }
  response.setHeader('Content-Length', payload.length);
  response.end(request.method === 'HEAD' ? undefined : payload);
}

function setHeaders(response: ServerResponse, answer: ApiResponse): void {
  for (const [name, value] of Object.entries(answer.headers ?? {})) response.setHeader(name, value);
  const warnings = (answer.warnings ?? []).map(
    // Headers are bytes: what is beyond ASCII goes as UTF-8, as Go sends it.
    (warning) =>
      Buffer.from(`299 - ${JSON.stringify(warning.replaceAll(/[\r\n\x7f]/g, ' '))}`, 'utf8').toString('latin1'),
  );
  if (warnings.length > 0) response.setHeader('Warning', warnings);
}

/** Sends lines as they come. A client that does not read makes the stream wait, until it lags too far behind. */
async function sendLines(stream: LineStream, response: ServerResponse, answer: ApiResponse): Promise<void> {
  const close = (): void => stream.close();
  response.once('close', close);
  response.statusCode = 200;
  response.setHeader('Content-Type', answer.headers?.['content-type'] ?? 'application/json');
  response.setHeader('Cache-Control', 'no-cache, private');
  setHeaders(response, answer);
  response.flushHeaders();
  for await (const line of stream.lines()) {
    if (response.destroyed) break;
    if (!response.write(line)) await drained(response);
  }
  response.off('close', close);
  response.end();
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      response.off('drain', done);
      response.off('close', done);
      resolve();
    };
    response.on('drain', done);
    response.on('close', done);
  });
}
