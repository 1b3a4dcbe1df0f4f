// SPDX-License-Identifier: Apache-2.0
// The failure to reach an API server, as opposed to its refusal (`ApiError`).
import { KarpenterError } from '../base/errors.ts';

/**
 * `refused`: no connection came about, so nothing was sent. `broken`: it broke under way, so the server may have
 * acted. `timeout`: no answer in time, likewise. `untrusted`: TLS did not agree. `malformed`: the answer was no JSON.
 */
export type TransportFailure = 'refused' | 'broken' | 'timeout' | 'untrusted' | 'malformed';

const codes: Readonly<Record<TransportFailure, string>> = {
  refused: 'KRP_CONNECTION_REFUSED',
  broken: 'KRP_CONNECTION_BROKEN',
  timeout: 'KRP_CONNECTION_TIMEOUT',
  untrusted: 'KRP_CONNECTION_UNTRUSTED',
  malformed: 'KRP_MALFORMED_ANSWER',
};

/** A transport could not bring back an answer. */
export class TransportError extends KarpenterError {
  readonly failure: TransportFailure;

  constructor(failure: TransportFailure, message: string, cause?: unknown) {
    super(codes[failure], message, cause === undefined ? {} : { cause });
    this.failure = failure;
  }
}
