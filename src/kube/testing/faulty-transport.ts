// SPDX-License-Identifier: Apache-2.0
// A door to an API server that refuses, fails or drops what a test tells it to.
import type { Status, WatchEvent } from '../object.ts';
import {
  isWatchStream,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type WatchStream,
} from '../transport.ts';
import { TransportError } from '../transport-error.ts';

/** What happens to a request instead of its usual fate. */
export type Fault =
  /** The server says no. */
  | {
      readonly status: number;
      readonly reason: string;
      readonly message?: string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** The server did it, and the answer was lost. */
  | 'answer lost'
  /** The request never arrived. */
  | 'unreachable';

interface Plan {
  readonly matches: (request: TransportRequest) => boolean;
  readonly fault: Fault;
  left: number;
}

/** Sees each request that writes, except events, and decides what becomes of it. */
export type WriteHandler = (
  send: () => Promise<TransportResponse>,
  request: TransportRequest,
) => Promise<TransportResponse>;

/** Passes requests on, except those that a plan is for. */
export class FaultyTransport implements Transport {
  readonly #inner: Transport;
  readonly #plans: Plan[] = [];
  readonly #onWrite: Set<(request: TransportRequest) => void> = new Set();
  readonly #watches = new Set<BreakableWatch>();
  #handler: WriteHandler = (send) => send();
  #fault: Fault | undefined;
  #dead = false;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  /**
   * The next `times` requests of this kind end so: `'POST /nodeclaims'` is a method and a part of the path; the method
   * `WATCH` means the opening of a watch.
   */
  fail(what: string, fault: Fault, times = 1): void {
    const [method, part = ''] = what.split(' ');
    this.#plans.push({
      matches: (request) => request.method === method && request.path.includes(part),
      fault,
      left: times,
    });
  }

  /** Every request ends so until it is called without a fault; a lost answer is only ever that to a write. */
  failAll(fault: Fault | undefined): void {
    this.#fault = fault;
  }

  /** Calls back before each request that writes, which does not happen if the callback cuts the line. Returns the undo. */
  beforeWrite(callback: (request: TransportRequest) => void): () => void {
    this.#onWrite.add(callback);
    return () => void this.#onWrite.delete(callback);
  }

  /** Lets a handler carry out the writes. */
  handleWrites(handler: WriteHandler): void {
    this.#handler = handler;
  }

  /** Every open watch breaks: its connection is reset or, with `expired`, its version is too old. */
  breakWatches(how: 'reset' | 'expired' = 'reset'): void {
    for (const watch of this.#watches) watch.break(how);
  }

  /** How many watches are open. */
  get openWatches(): number {
    return this.#watches.size;
  }

  /** The process on this side died: nothing goes through any more, and nobody hears why. */
  cut(): void {
    this.#dead = true;
    void this.#inner.close();
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    const isWrite = request.method !== 'GET';
    if (isWrite) for (const callback of this.#onWrite) callback(request);
    if (this.#dead) return new Promise(() => undefined);
    const fault = this.#take(request.method, request) ?? this.#fault;
    const send = (): Promise<TransportResponse> => this.#inner.request(request);
    if (fault === undefined || (fault === 'answer lost' && !isWrite)) {
      return isWrite && !request.path.includes('/events') ? this.#handler(send, request) : send();
    }
    if (fault === 'unreachable') throw new TransportError('refused', 'connection refused');
    if (fault === 'answer lost') {
      await send();
      throw new TransportError('broken', 'connection reset');
    }
    return answerOf(fault);
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    if (this.#dead) return new Promise(() => undefined);
    const fault = this.#take('WATCH', request) ?? this.#fault;
    if (fault === 'unreachable') throw new TransportError('refused', 'connection refused');
    if (typeof fault === 'object') return answerOf(fault);
    const answer = await this.#inner.watch(request);
    if (!isWatchStream(answer)) return answer;
    const watch = new BreakableWatch(answer, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    return watch;
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #take(method: string, { path }: TransportRequest): Fault | undefined {
    const request = { method, path } as TransportRequest;
    const plan = this.#plans.find(({ matches, left }) => left > 0 && matches(request));
    if (!plan) return undefined;
    plan.left--;
    return plan.fault;
  }
}

/** A watch that a test can break from outside. */
class BreakableWatch implements WatchStream {
  readonly #inner: WatchStream;
  readonly #ended: () => void;
  readonly #broken = Promise.withResolvers<'reset' | 'expired'>();

  constructor(inner: WatchStream, ended: () => void) {
    this.#inner = inner;
    this.#ended = ended;
  }

  break(how: 'reset' | 'expired'): void {
    this.#broken.resolve(how);
  }

  close(): void {
    this.#ended();
    this.#inner.close();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    const events = this.#inner[Symbol.asyncIterator]();
    try {
      for (;;) {
        const next = await Promise.race([this.#broken.promise, events.next()]);
        if (next === 'reset') throw new TransportError('broken', 'connection reset');
        if (next === 'expired') {
          yield {
            type: 'ERROR',
            object: statusOf({ status: 410, reason: 'Expired', message: 'too old resource version' }),
          } as never;
          return;
        }
        if (next.done) return;
        yield next.value;
      }
    } finally {
      this.close();
    }
  }
}

function answerOf(fault: Exclude<Fault, string>): TransportResponse {
  return { status: fault.status, body: statusOf(fault), ...(fault.headers ? { headers: fault.headers } : {}) };
}

function statusOf({ status, reason, message = 'refused by the test' }: Exclude<Fault, string>): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: status, reason, message };
}
