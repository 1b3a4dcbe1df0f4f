// SPDX-License-Identifier: Apache-2.0
// The way to a management cluster that can be shut: what is under way breaks, what comes is refused.
import {
  isWatchStream,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type WatchStream,
} from '../../kube/transport.ts';
import { TransportError } from '../../kube/transport-error.ts';

export class HubDoor implements Transport {
  readonly #inner: Transport;
  readonly #isShut: () => boolean;
  readonly #watches = new Set<WatchStream>();

  constructor(inner: Transport, isShut: () => boolean) {
    this.#inner = inner;
    this.#isShut = isShut;
  }

  /** Every open watch ends. Gives how many there were. */
  breakWatches(): number {
    const { size } = this.#watches;
    for (const watch of this.#watches) watch.close();
    this.#watches.clear();
    return size;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    this.#pass();
    const answer = await this.#inner.request(request);
    // It acted, and nobody heard.
    if (this.#isShut()) throw new TransportError('broken', 'connection reset');
    return answer;
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    this.#pass();
    const answer = await this.#inner.watch(request);
    if (isWatchStream(answer)) this.#watches.add(answer);
    return answer;
  }

  close(): Promise<void> {
    this.#watches.clear();
    return this.#inner.close();
  }

  #pass(): void {
    if (this.#isShut()) throw new TransportError('refused', 'connection refused');
  }
}
