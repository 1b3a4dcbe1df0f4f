// SPDX-License-Identifier: Apache-2.0
// A door to an API server through which nothing is ever written: for dry runs.
import { KarpenterError } from '../base/errors.ts';
import type { Transport, TransportRequest, TransportResponse, WatchStream } from './transport.ts';

/** Something that may only read tried to write. A bug of the program. */
export class ReadOnlyError extends KarpenterError {
  constructor({ method, path }: TransportRequest) {
    super('KRP_READ_ONLY', `a dry run must not write: ${method} ${path}`);
  }
}

/** Passes on what reads; anything else rejects with ReadOnlyError, and is never sent. */
export class ReadOnlyTransport implements Transport {
  readonly #inner: Transport;

  constructor(inner: Transport) {
    this.#inner = inner;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    if (request.method !== 'GET') throw new ReadOnlyError(request);
    return this.#inner.request(request);
  }

  watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    return this.#inner.watch(request);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
