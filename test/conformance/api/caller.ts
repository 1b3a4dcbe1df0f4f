// SPDX-License-Identifier: Apache-2.0
// A client that says exactly what it is told and hides nothing of the answer: over HTTPS, or in the server's process.
import { Agent } from 'undici';
import { splitLines } from '../../../src/kube/line-splitter.ts';
import { isWatchStream, type PatchType, type Transport, type TransportRequest } from '../../../src/kube/transport.ts';

/** Whatever an API server answers, with names for what cases look at; a field may be absent. */
export interface Thing {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly generation: number;
    readonly creationTimestamp: string;
    readonly deletionTimestamp: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
    readonly finalizers: readonly string[];
    readonly managedFields: readonly Readonly<Record<string, unknown>>[];
    readonly continue: string;
    readonly remainingItemCount: number;
  };
  readonly spec: Readonly<Record<string, unknown>>;
  readonly status: Readonly<Record<string, unknown>>;
  readonly data: Readonly<Record<string, string>>;
  readonly items: readonly Thing[];
  readonly resources: readonly Readonly<Record<string, unknown>>[];
  readonly rows: readonly { readonly cells: readonly unknown[]; readonly object: Thing }[];
  readonly columnDefinitions: readonly { readonly name: string; readonly priority: number }[];
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export interface Reply {
  readonly status: number;
  readonly body: Thing;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query?: Query | undefined;
  /** A JSON value. */
  readonly body?: unknown;
  /** Bytes as they are, instead of a body; only over a wire. */
  readonly raw?: string;
  readonly contentType?: string;
  readonly accept?: string;
  /** Only over a wire. */
  readonly headers?: Readonly<Record<string, string>>;
}

export type Query = Readonly<Record<string, string>>;

export interface SeenEvent {
  readonly type: string;
  readonly object: Thing;
}

/** Counts what a case did, for the report. */
export interface Tally {
  requests: number;
  readonly clients: Set<Caller>;
}

/** A client. Never retries, never throws on a refusal. */
export class Caller {
  readonly #send: (call: Call) => Promise<Reply>;
  readonly #open: (call: Call) => Promise<AsyncIterable<SeenEvent> & { close(): void }>;
  readonly #tally: Tally;

  constructor(
    tally: Tally,
    send: (call: Call) => Promise<Reply>,
    open: (call: Call) => Promise<AsyncIterable<SeenEvent> & { close(): void }>,
  ) {
    this.#tally = tally;
    this.#send = send;
    this.#open = open;
  }

  call(call: Call): Promise<Reply> {
    this.#count();
    return this.#send(call);
  }
  get(path: string, query?: Query): Promise<Reply> {
    return this.call({ method: 'GET', path, query });
  }
  post(path: string, body: unknown, query?: Query): Promise<Reply> {
    return this.call({ method: 'POST', path, body, query });
  }
  put(path: string, body: unknown, query?: Query): Promise<Reply> {
    return this.call({ method: 'PUT', path, body, query });
  }
  delete(path: string, body?: unknown, query?: Query): Promise<Reply> {
    return this.call({ method: 'DELETE', path, body, query });
  }
  patch(type: 'json' | 'merge' | 'strategic', path: string, body: unknown, query?: Query): Promise<Reply> {
    const name = type === 'strategic' ? 'strategic-merge-patch' : `${type}-patch`;
    return this.call({ method: 'PATCH', path, body, query, contentType: `application/${name}+json` });
  }
  merge(path: string, body: unknown, query?: Query): Promise<Reply> {
    return this.patch('merge', path, body, query);
  }
  /** Server-side apply. */
  apply(path: string, body: unknown, fieldManager: string, query?: Query): Promise<Reply> {
    const contentType = 'application/apply-patch+yaml';
    return this.call({ method: 'PATCH', path, body, query: { fieldManager, ...query }, contentType });
  }
  /** As a Table or as metadata only. */
  as(
    form: 'Table' | 'PartialObjectMetadata' | 'PartialObjectMetadataList',
    path: string,
    query?: Query,
  ): Promise<Reply> {
    return this.call({ method: 'GET', path, query, accept: `application/json;as=${form};g=meta.k8s.io;v=v1` });
  }
  /** Opens a watch. Throws when it is refused. */
  async watch(path: string, query?: Query, accept?: string): Promise<Watching> {
    this.#count();
    const call = { method: 'GET', path, query: { ...query, watch: 'true' }, ...(accept ? { accept } : {}) };
    return new Watching(await this.#open(call));
  }

  #count(): void {
    this.#tally.requests++;
    this.#tally.clients.add(this);
  }
}

/** A watch under way. */
export class Watching {
  readonly #stream: AsyncIterable<SeenEvent> & { close(): void };
  readonly #events: AsyncIterator<SeenEvent>;

  constructor(stream: AsyncIterable<SeenEvent> & { close(): void }) {
    this.#stream = stream;
    this.#events = stream[Symbol.asyncIterator]();
  }

  /** The next event; undefined when the watch has ended. Throws when nothing comes for long. */
  async next(timeoutMs = 15_000): Promise<SeenEvent | undefined> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no event within ${timeoutMs} ms`)), timeoutMs);
    });
    try {
      const { done, value } = await Promise.race([this.#events.next(), late]);
      return done ? undefined : (value as SeenEvent);
    } finally {
      clearTimeout(timer);
    }
  }

  /** The next events, bookmarks left out. */
  async take(count: number): Promise<SeenEvent[]> {
    const events: SeenEvent[] = [];
    while (events.length < count) {
      const event = await this.next();
      if (!event) throw new Error(`the watch ended after ${events.length} of ${count} events`);
      if (event.type !== 'BOOKMARK') events.push(event);
    }
    return events;
  }

  /** All events until the server ends the watch. */
  async rest(): Promise<SeenEvent[]> {
    const events: SeenEvent[] = [];
    for (let event = await this.next(); event; event = await this.next()) events.push(event);
    return events;
  }

  close(): void {
    this.#stream.close();
  }
}

export interface HttpOptions {
  readonly url: string;
  readonly ca?: string;
  readonly token?: string;
}

/** A client over HTTPS, on connections of `agent`. */
export function httpCaller(tally: Tally, options: HttpOptions, agent: Agent): Caller {
  const request = (call: Call, signal?: AbortSignal) => {
    const query = new URLSearchParams(call.query).toString();
    const body = call.raw ?? (call.body === undefined ? undefined : JSON.stringify(call.body));
    return agent.request({
      origin: options.url,
      path: query === '' ? call.path : `${call.path}?${query}`,
      method: call.method as 'GET',
      headers: {
        accept: call.accept ?? 'application/json',
        'user-agent': 'conformance/1.0',
        ...(options.token === undefined ? {} : { authorization: `Bearer ${options.token}` }),
        ...(body === undefined ? {} : { 'content-type': call.contentType ?? 'application/json' }),
        ...call.headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal, bodyTimeout: 0 } : { bodyTimeout: 10_000 }),
    });
  };
  return new Caller(
    tally,
    async (call) => {
      const answer = await request(call);
      const text = await answer.body.text();
      return { status: answer.statusCode, headers: flat(answer.headers), body: parsed(text) as Thing };
    },
    async (call) => {
      const stop = new AbortController();
      const answer = await request(call, stop.signal);
      if (answer.statusCode !== 200) throw new Error(`watch refused: ${answer.statusCode} ${await answer.body.text()}`);
      answer.body.on('error', () => {});
      return {
        close: () => stop.abort(),
        async *[Symbol.asyncIterator]() {
          for await (const line of splitLines(answer.body as AsyncIterable<Uint8Array>))
            yield JSON.parse(line) as SeenEvent;
        },
      };
    },
  );
}

/** A client in the server's own process. */
export function inProcessCaller(tally: Tally, transport: Transport): Caller {
  const requestOf = (call: Call): TransportRequest => ({
    method: call.method as TransportRequest['method'],
    path: call.path,
    ...(call.query ? { query: call.query } : {}),
    ...(call.body === undefined ? {} : { body: structuredClone(call.body) }),
    ...(call.contentType === undefined ? {} : { contentType: call.contentType as PatchType }),
    ...(call.accept === undefined ? {} : { accept: call.accept }),
  });
  return new Caller(
    tally,
    async (call) => {
      const { status, body, headers } = await transport.request(requestOf(call));
      return { status, body: body as Thing, headers: headers ?? {} };
    },
    async (call) => {
      const answer = await transport.watch(requestOf(call));
      if (!isWatchStream(answer)) throw new Error(`watch refused: ${answer.status} ${JSON.stringify(answer.body)}`);
      return answer as unknown as AsyncIterable<SeenEvent> & { close(): void };
    },
  );
}

function flat(headers: Readonly<Record<string, string | string[] | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value ?? []].flat().join(', ')]));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Connections that do not ask who the server is when its authority is unknown: everything is on loopback. */
export function agentFor(ca: string | undefined): Agent {
  const connect = ca === undefined ? { rejectUnauthorized: false } : { ca };
  // Over HTTP/2 all cases share a line, and a server that hangs up on one hostile body breaks those beside it.
  return new Agent({ connect, connections: 128, allowH2: false });
}
