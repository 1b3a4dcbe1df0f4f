// SPDX-License-Identifier: Apache-2.0
// The one door to an API server. Two implementations: HTTP (`http-transport.ts`) and in process (`embedded`).
import type { WatchEvent } from './object.ts';

export type PatchType =
  | 'application/json-patch+json'
  | 'application/merge-patch+json'
  | 'application/strategic-merge-patch+json'
  | 'application/apply-patch+yaml';

/** One request. Bodies are plain JSON values; a transport that crosses a wire serialises them. */
export interface TransportRequest {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Absolute path, each segment percent-encoded: `/api/v1/namespaces/default/pods/web-1/eviction`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** Only for PATCH. */
  readonly contentType?: PatchType;
  /** For Tables and partial metadata: `application/json;as=Table;g=meta.k8s.io;v=v1`. */
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** An answer of any status code; turning a failure into an `ApiError` is the client's part. */
export interface TransportResponse {
  readonly status: number;
  /** Plain JSON. From the in-process transport objects are deep-frozen: clone before changing. */
  readonly body: unknown;
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>;
}

/**
 * A watch in progress. Iteration ends when the server ends it or `close` is called, and throws when the connection
 * breaks. Events are delivered in order, one object each.
 */
export interface WatchStream extends AsyncIterable<WatchEvent> {
  close(): void;
}

/** What a client needs of an API server. Implementations are safe to share and never retry by themselves. */
export interface Transport {
  request(request: TransportRequest): Promise<TransportResponse>;
  /** Opens a watch (`watch=true` is added). Resolves once the server accepted it; a refusal resolves to the response. */
  watch(request: TransportRequest): Promise<WatchStream | TransportResponse>;
  close(): Promise<void>;
}

export function isWatchStream(answer: WatchStream | TransportResponse): answer is WatchStream {
  return Symbol.asyncIterator in answer;
}
