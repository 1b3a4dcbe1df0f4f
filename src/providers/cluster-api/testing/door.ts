// SPDX-License-Identifier: Apache-2.0
// The way to an API server that can be shut: what is under way breaks, what comes is refused.

import {
  isWatchStream,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type WatchStream,
} from '../../../kube/transport.ts';
import { TransportError } from '../../../kube/transport-error.ts';

export class Door implements Transport {
  readonly #transport: Transport;
  readonly #streams = new Set<WatchStream>();
  #isShut = false;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  shut(): void {
    this.#isShut = true;
    for (const stream of this.#streams) stream.close();
    this.#streams.clear();
  }

  open(): void {
    this.#isShut = false;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    this.#pass();
    const answer = await this.#transport.request(request);
    // It acted, and nobody heard.
    if (this.#isShut) throw new TransportError('broken', 'the connection broke');
    return answer;
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    this.#pass();
    const answer = await this.#transport.watch(request);
    if (isWatchStream(answer)) this.#streams.add(answer);
    return answer;
  }

  close(): Promise<void> {
    return this.#transport.close();
  }

  #pass(): void {
    if (this.#isShut) throw new TransportError('refused', 'connect ECONNREFUSED');
  }
}
