// SPDX-License-Identifier: Apache-2.0
// Who writes: the embedded API server carries out requests at once, so whoever sends one is the author of what changes
// meanwhile.
import type { Transport, TransportRequest, TransportResponse, WatchStream } from '../../kube/transport.ts';

export interface Author {
  readonly by: string;
  readonly request: TransportRequest | undefined;
}

const cluster: Author = { by: 'cluster', request: undefined };

export class Authors {
  #current: Author = cluster;

  /** Whose request is being carried out now; the cluster's own if nobody's is known. */
  get current(): Author {
    return this.#current;
  }

  /** Sends a request in somebody's name. */
  send<R>(by: string, request: TransportRequest, send: () => R): R {
    const before = this.#current;
    this.#current = { by, request };
    try {
      return send();
    } finally {
      this.#current = before;
    }
  }

  /** A transport whose requests are all by one author. */
  transport(by: string, inner: Transport): Transport {
    return {
      request: (request): Promise<TransportResponse> => this.send(by, request, () => inner.request(request)),
      watch: (request): Promise<WatchStream | TransportResponse> => inner.watch(request),
      close: () => inner.close(),
    };
  }
}
