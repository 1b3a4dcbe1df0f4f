// SPDX-License-Identifier: Apache-2.0
// A door to an API server that refuses, fails or drops what a test tells it to.
import type { Status } from '../../kube/object.ts';
import type { Transport, TransportRequest, TransportResponse, WatchStream } from '../../kube/transport.ts';
import { TransportError } from '../../kube/transport-error.ts';

/** What happens to a request instead of its usual fate. */
export type Fault =
  /** The server says no. */
  | { readonly status: number; readonly reason: string; readonly message?: string }
  /** The server did it, and the answer was lost. */
  | 'answer lost'
  /** The request never arrived. */
  | 'unreachable';

interface Plan {
  readonly matches: (request: TransportRequest) => boolean;
  readonly fault: Fault;
  left: number;
}

/** Passes requests on, except those that a plan is for. Remembers every write. */
export class FaultyTransport implements Transport {
  readonly #inner: Transport;
  readonly #plans: Plan[] = [];
  #dead = false;
  readonly #onWrite: Set<(request: TransportRequest) => void> = new Set();

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  /** The next `times` requests of this kind end so: `'POST /nodeclaims'` is a method and a part of the path. */
  fail(what: string, fault: Fault, times = 1): void {
    const [method, part = ''] = what.split(' ');
    this.#plans.push({
      matches: (request) => request.method === method && request.path.includes(part),
      fault,
      left: times,
    });
  }

  /** Calls back before each request that writes, which does not happen if the callback cuts the line. Returns the undo. */
  beforeWrite(callback: (request: TransportRequest) => void): () => void {
    this.#onWrite.add(callback);
    return () => void this.#onWrite.delete(callback);
  }

  /** The process on this side died: nothing goes through any more, and nobody hears why. */
  cut(): void {
    this.#dead = true;
    void this.#inner.close();
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.method !== 'GET') for (const callback of this.#onWrite) callback(request);
    if (this.#dead) return new Promise(() => undefined);
    const fault = this.#take(request);
    if (fault === undefined) return this.#inner.request(request);
    if (fault === 'unreachable') throw new TransportError('refused', 'connection refused');
    if (fault === 'answer lost') {
      await this.#inner.request(request);
      throw new TransportError('broken', 'connection reset');
    }
    return { status: fault.status, body: statusOf(fault) };
  }

  watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    if (this.#dead) return new Promise(() => undefined);
    return this.#inner.watch(request);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #take(request: TransportRequest): Fault | undefined {
    const plan = this.#plans.find(({ matches, left }) => left > 0 && matches(request));
    if (!plan) return undefined;
    plan.left--;
    return plan.fault;
  }
}

function statusOf({ status, reason, message = 'refused by the test' }: Exclude<Fault, string>): Status {
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Failure', code: status, reason, message };
}
