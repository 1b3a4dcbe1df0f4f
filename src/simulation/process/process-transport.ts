// SPDX-License-Identifier: Apache-2.0
// The way of one controller process to an API server: it takes time, it may break, and it ends with the process.
import type { WatchEvent } from '../../kube/object.ts';
import {
  isWatchStream,
  type Transport,
  type TransportRequest,
  type TransportResponse,
  type WatchStream,
} from '../../kube/transport.ts';
import { TransportError } from '../../kube/transport-error.ts';

/** What the world does to requests: faults of the API server, and the life of the process itself. */
export interface Passage {
  /** Carries out a request, or lets it fail, or never answers. */
  pass(request: TransportRequest, send: () => Promise<TransportResponse>): Promise<TransportResponse>;
  /** Before a watch is opened: an answer instead of the watch, or undefined. */
  open(request: TransportRequest): Promise<TransportResponse | undefined>;
  /** Before an event of a watch is handed over. */
  deliver(): Promise<void> | undefined;
}

export class ProcessTransport implements Transport {
  readonly #inner: Transport;
  readonly #passage: Passage;
  readonly #watches = new Set<BreakableWatch>();

  constructor(inner: Transport, passage: Passage) {
    this.#inner = inner;
    this.#passage = passage;
  }

  request(request: TransportRequest): Promise<TransportResponse> {
    return this.#passage.pass(request, () => this.#inner.request(request));
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    const refusal = await this.#passage.open(request);
    if (refusal) return refusal;
    const answer = await this.#inner.watch(request);
    if (!isWatchStream(answer)) return answer;
    const watch = new BreakableWatch(answer, this.#passage, () => this.#watches.delete(watch));
    this.#watches.add(watch);
    return watch;
  }

  /** Every open watch breaks: the connection is reset. Gives how many there were. */
  breakWatches(): number {
    const { size } = this.#watches;
    for (const watch of this.#watches) watch.break();
    return size;
  }

  /** The other side sees the connection end; this side sees nothing any more. */
  async cut(): Promise<void> {
    await this.#inner.close();
    this.#watches.clear();
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

class BreakableWatch implements WatchStream {
  readonly #inner: WatchStream;
  readonly #passage: Passage;
  readonly #ended: () => void;
  #broken = false;

  constructor(inner: WatchStream, passage: Passage, ended: () => void) {
    this.#inner = inner;
    this.#passage = passage;
    this.#ended = ended;
  }

  break(): void {
    this.#broken = true;
    this.#ended();
    this.#inner.close();
  }

  close(): void {
    this.#ended();
    this.#inner.close();
  }

  [Symbol.asyncIterator](): AsyncIterator<WatchEvent> {
    const events = this.#inner[Symbol.asyncIterator]();
    const checked = (given: IteratorResult<WatchEvent>): IteratorResult<WatchEvent> => {
      // What was on its way when the connection broke is lost with it.
      if (this.#broken) throw new TransportError('broken', 'connection reset');
      return given;
    };
    // By hand: an async function takes two turns more for each event.
    const handOver = (
      given: IteratorResult<WatchEvent>,
    ): IteratorResult<WatchEvent> | Promise<IteratorResult<WatchEvent>> => {
      const wait = this.#passage.deliver();
      return wait ? wait.then(() => checked(given)) : checked(given);
    };
    return {
      next: () => events.next().then(handOver),
      return: async () => {
        this.close();
        await events.return?.();
        return { done: true, value: undefined };
      },
    };
  }
}
