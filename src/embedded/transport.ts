// SPDX-License-Identifier: Apache-2.0
// The in-process door: the same requests and answers as over HTTP, as objects. Answers are the stored, deep-frozen
// objects themselves; bodies are copied once unless they are frozen already, so callers keep what is theirs.
import { deepFreeze } from '../base/freeze.ts';
import type { Transport, TransportRequest, TransportResponse, WatchStream } from '../kube/transport.ts';
import type { ApiRequest, ApiResponse, UserInfo } from './rest/request.ts';

interface Handler {
  handle(request: ApiRequest): ApiResponse;
}

const nothing: Readonly<Record<string, string>> = Object.freeze({});

/** Requests run at once and answer in a microtask: no caller is entered again within its own turn. */
export class InProcessTransport implements Transport {
  readonly #server: Handler;
  readonly #user: UserInfo;
  readonly #watches = new Set<WatchStream>();

  constructor(server: Handler, user: UserInfo) {
    this.#server = server;
    this.#user = user;
  }

  request(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal?.aborted) return Promise.reject(request.signal.reason as Error);
    return Promise.resolve(responseOf(this.#server.handle(this.#requestOf(request, request.query))));
  }

  watch(request: TransportRequest): Promise<WatchStream | TransportResponse> {
    const { signal } = request;
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    const response = this.#server.handle(this.#requestOf(request, { ...request.query, watch: 'true' }));
    const stream = response.stream;
    if (!stream) return Promise.resolve(responseOf(response));
    this.#watches.add(stream);
    const close = (): void => stream.close();
    signal?.addEventListener('abort', close, { once: true });
    return Promise.resolve({
      [Symbol.asyncIterator]: () => stream[Symbol.asyncIterator](),
      close: () => {
        signal?.removeEventListener('abort', close);
        this.#watches.delete(stream);
        stream.close();
      },
    });
  }

  close(): Promise<void> {
    for (const stream of this.#watches) stream.close();
    this.#watches.clear();
    return Promise.resolve();
  }

  #requestOf(request: TransportRequest, query: TransportRequest['query']): ApiRequest {
    return {
      method: request.method,
      path: request.path,
      query: query ?? nothing,
      body: request.body,
      ownsBody: false,
      user: this.#user,
      ...(request.contentType === undefined ? {} : { contentType: request.contentType }),
      ...(request.accept === undefined ? {} : { accept: request.accept }),
    };
  }
}

function responseOf(response: ApiResponse): TransportResponse {
  const warnings = response.warnings?.map((warning) => `299 - ${JSON.stringify(warning)}`).join(', ');
  const headers = warnings === undefined ? response.headers : { ...response.headers, warning: warnings };
  return {
    status: response.status,
    body: response.text === undefined ? deepFreeze(response.body) : response.text,
    ...(headers ? { headers } : {}),
  };
}
