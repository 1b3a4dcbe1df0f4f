// SPDX-License-Identifier: Apache-2.0
// A transport whose answers a test writes: every request is kept, every watch is fed by hand.
import type { Status, WatchEvent } from '../object.ts';
import type { Transport, TransportRequest, TransportResponse, WatchStream } from '../transport.ts';

type Answer<R> = R | Promise<R>;

/** A failing answer in the API server's words. */
export function failure(code: number, reason: string, message = reason, more: Partial<Status> = {}): TransportResponse {
  const body: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    code,
    ...more,
  };
  return { status: code, body };
}

/** A watch that a test feeds: what is sent waits until it is read. */
export class FakeWatch implements WatchStream {
  readonly request: TransportRequest;
  closed = false;
  readonly #waiting: (WatchEvent | Error)[] = [];
  #ended = false;
  #wake: (() => void) | undefined;

  constructor(request: TransportRequest) {
    this.request = request;
  }

  send(type: WatchEvent['type'], object: unknown): void {
    this.#waiting.push({ type, object } as WatchEvent);
    this.#wake?.();
  }

  /** The server ends the watch as it does after its timeout. */
  end(): void {
    this.#ended = true;
    this.#wake?.();
  }

  /** The connection breaks. */
  fail(error: Error): void {
    this.#waiting.push(error);
    this.#wake?.();
  }

  close(): void {
    this.closed = true;
    this.#ended = true;
    this.#wake?.();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WatchEvent, void, undefined> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next instanceof Error) throw next;
      if (next && !this.closed) yield next;
      else if (this.#ended) return;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

/** Answers by the functions given. An Error that they return is thrown, as a broken connection is. */
export class FakeTransport implements Transport {
  readonly requests: TransportRequest[] = [];
  readonly watches: FakeWatch[] = [];
  answer: (request: TransportRequest) => Answer<TransportResponse | Error>;
  answerWatch: (request: TransportRequest) => Answer<TransportResponse | Error | undefined> = () => undefined;

  constructor(
    answer: (request: TransportRequest) => Answer<TransportResponse | Error> = () => failure(404, 'NotFound'),
  ) {
    this.answer = answer;
  }

  /** The watch opened last. */
  get lastWatch(): FakeWatch {
    return this.watches.at(-1)!;
  }

  async request(request: TransportRequest): Promise<TransportResponse> {
    this.requests.push(request);
    const { signal } = request;
    signal?.throwIfAborted();
    const aborted = new Promise<never>((_, reject) =>
      signal?.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
    );
    const answer = await Promise.race([this.answer(request), aborted]);
    if (answer instanceof Error) throw answer;
    return answer;
  }

  async watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    request.signal?.throwIfAborted();
    const refusal = await this.answerWatch(request);
    if (refusal instanceof Error) throw refusal;
    if (refusal) return refusal;
    const watch = new FakeWatch(request);
    this.watches.push(watch);
    return watch;
  }

  async close(): Promise<void> {
    for (const watch of this.watches) watch.close();
  }
}
