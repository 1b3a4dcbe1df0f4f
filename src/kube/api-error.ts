// SPDX-License-Identifier: Apache-2.0
// What an API server answers when it refuses, as an error that says what was asked, and questions to ask of it.
import { findCause, KarpenterError } from '../base/errors.ts';
import type { Status } from './object.ts';
import type { TransportRequest, TransportResponse } from './transport.ts';

/** The reasons of Kubernetes' API conventions by the HTTP code that stands for them when the answer names none. */
const reasonOfCode: Readonly<Record<number, string>> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  406: 'NotAcceptable',
  409: 'Conflict',
  410: 'Gone',
  413: 'RequestEntityTooLarge',
  415: 'UnsupportedMediaType',
  422: 'Invalid',
  429: 'TooManyRequests',
  500: 'InternalError',
  503: 'ServiceUnavailable',
  504: 'Timeout',
};

/**
 * A refusal by an API server. `status` is the HTTP code, `reason` the machine's word for it (`NotFound`, `Conflict`, …),
 * `body` the whole Status object; `code` is `KRP_API_` and the reason in capitals (`KRP_API_NOT_FOUND`).
 */
export class ApiError extends KarpenterError {
  readonly status: number;
  readonly reason: string;
  readonly body: Status;
  /** How long the server asked to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(body: Status, options: { status?: number; retryAfterMs?: number; request?: TransportRequest } = {}) {
    const status = options.status ?? body.code ?? 500;
    const reason = body.reason || (reasonOfCode[status] ?? 'Unknown');
    const { request } = options;
    super(codeOf(reason), body.message || `the API server answered ${status} ${reason}`, {
      details: request ? { status, reason, method: request.method, path: request.path } : { status, reason },
    });
    this.status = status;
    this.reason = reason;
    this.body = body;
    const seconds = body.details?.retryAfterSeconds;
    this.retryAfterMs = options.retryAfterMs ?? (seconds ? seconds * 1000 : undefined);
  }

  /** The error that an answer with a failing code stands for, also when its body is not a Status. */
  static fromResponse(response: TransportResponse, request?: TransportRequest): ApiError {
    const retryAfterMs = retryAfterOf(response);
    const body = statusOf(response);
    // A refusal is an answer and no defect: its stack is never shown, and to walk it through all that waits costs more than the
    // request.
    const { stackTraceLimit } = Error;
    Error.stackTraceLimit = 0;
    try {
      return new ApiError(body, {
        status: response.status,
        ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
        ...(request === undefined ? {} : { request }),
      });
    } finally {
      Error.stackTraceLimit = stackTraceLimit;
    }
  }
}

/** The Retry-After header in milliseconds. Only the form in seconds is used by API servers. */
export function retryAfterOf(response: TransportResponse): number | undefined {
  const text = response.headers?.['retry-after'];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) * 1000 : undefined;
}

function statusOf({ status, body }: TransportResponse): Status {
  if (isStatus(body)) return wellTyped(body);
  // A proxy in between, or a server too young to speak: keep its words, at a bearable length.
  const text = typeof body === 'string' ? body.trim() : body === undefined ? '' : JSON.stringify(body);
  const reason = reasonOfCode[status] ?? 'Unknown';
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `the server answered ${status}${text ? `: ${text.slice(0, 500)}` : ''}`,
    reason,
    code: status,
  };
}

/** A Status whose fields are what they should be: who is asked through may have been asked by somebody else. */
function wellTyped(body: Status): Status {
  const { message, reason, code, details, ...rest } = body as { [field in keyof Status]: unknown };
  return {
    ...(rest as Status),
    ...(typeof message === 'string' ? { message } : {}),
    ...(typeof reason === 'string' ? { reason } : {}),
    ...(typeof code === 'number' ? { code } : {}),
    ...(typeof details === 'object' && details !== null ? { details: details as NonNullable<Status['details']> } : {}),
  };
}

/** Whether a body is a Status object. */
export function isStatus(body: unknown): body is Status {
  return typeof body === 'object' && body !== null && (body as Status).kind === 'Status';
}

function codeOf(reason: string): string {
  return `KRP_API_${reason.replace(/([a-z])([A-Z])/g, '$1_$2').toUpperCase()}`;
}

/** The refusal behind a thrown value, also when it was wrapped on the way. */
export function apiErrorOf(thrown: unknown): ApiError | undefined {
  return findCause(thrown, ApiError);
}

function hasStatus(thrown: unknown, status: number, reason?: string): boolean {
  const error = apiErrorOf(thrown);
  return error !== undefined && error.status === status && (reason === undefined || error.reason === reason);
}

export function isNotFound(thrown: unknown): boolean {
  return hasStatus(thrown, 404);
}

/** A write lost a race: the object changed since it was read. */
export function isConflict(thrown: unknown): boolean {
  return hasStatus(thrown, 409) && !isAlreadyExists(thrown);
}

export function isAlreadyExists(thrown: unknown): boolean {
  return hasStatus(thrown, 409, 'AlreadyExists');
}

/** The asked-for resourceVersion or continue token is too old. */
export function isGone(thrown: unknown): boolean {
  return hasStatus(thrown, 410);
}

export function isInvalid(thrown: unknown): boolean {
  return hasStatus(thrown, 422);
}

/** Throttled by the server, or an eviction that a PodDisruptionBudget does not allow now. */
export function isTooManyRequests(thrown: unknown): boolean {
  return hasStatus(thrown, 429);
}

export function isForbidden(thrown: unknown): boolean {
  return hasStatus(thrown, 403);
}

/** The server failed or timed out: the request may or may not have been carried out. */
export function isServerError(thrown: unknown): boolean {
  const error = apiErrorOf(thrown);
  return error !== undefined && error.status >= 500;
}

/** Awaits a call and gives undefined when its object does not exist; other failures pass. */
export async function ignoreNotFound<T>(call: Promise<T>): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}
