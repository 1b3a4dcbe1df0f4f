// SPDX-License-Identifier: Apache-2.0
// What can go wrong between us and the Linode API, and what each failure means: gone, sold out, refused, or try again.
import { findCause, KarpenterError } from '../../base/errors.ts';

/** One entry of the API's `errors`. */
export interface LinodeProblem {
  readonly field?: string;
  readonly reason: string;
}

/** The API answered, and said no. */
export class LinodeApiError extends KarpenterError {
  readonly status: number;
  readonly problems: readonly LinodeProblem[];
  /** How long it asked to be left alone. */
  readonly retryAfterMs: number | undefined;
  /** The whole API is down on purpose. */
  readonly maintenance: boolean;

  constructor(
    call: string,
    answer: {
      readonly status: number;
      readonly problems: readonly LinodeProblem[];
      readonly retryAfterMs?: number | undefined;
      readonly maintenance?: boolean;
    },
  ) {
    const { status, problems, maintenance = false } = answer;
    const reasons = problems.map(({ field, reason }) => (field ? `${field}: ${reason}` : reason)).join('; ');
    const why = maintenance ? 'the Linode API is in maintenance' : reasons || 'no reason given';
    super('KRP_LINODE_API', `${call}: HTTP ${status}: ${why}`, { details: { status } });
    this.status = status;
    this.problems = problems;
    this.retryAfterMs = answer.retryAfterMs;
    this.maintenance = maintenance;
  }
}

/** No answer, or one that cannot be read. Whether the request was carried out is not known. */
export class LinodeUnreachableError extends KarpenterError {
  constructor(call: string, why: string, cause?: unknown) {
    super('KRP_LINODE_UNREACHABLE', `${call}: ${why}`, cause === undefined ? {} : { cause });
  }
}

function statusOf(error: unknown): number | undefined {
  return findCause(error, LinodeApiError)?.status;
}

/** The thing does not exist. Nothing else counts as that. */
export function isGone(error: unknown): boolean {
  return statusOf(error) === 404;
}

/** The token is missing, revoked, or may not do this. */
export function isDenied(error: unknown): boolean {
  const status = statusOf(error);
  return status === 401 || status === 403;
}

/** The same request may succeed later without anybody changing anything. */
export function isTemporary(error: unknown): boolean {
  if (findCause(error, LinodeUnreachableError)) return true;
  const status = statusOf(error);
  return status !== undefined && (status === 408 || status === 429 || status >= 500 || isBusy(error));
}

/** Nobody knows whether it was carried out. */
export function isUncertain(error: unknown): boolean {
  if (findCause(error, LinodeUnreachableError)) return true;
  const status = statusOf(error);
  return status !== undefined && (status >= 500 || status === 408) && !findCause(error, LinodeApiError)?.maintenance;
}

/** 400, and yet nothing is wrong with the request: something else is being done with the Linode. */
export function isBusy(error: unknown): boolean {
  return statusOf(error) === 400 && problemsOf(error).some(({ reason }) => /^linode busy\.?$/i.test(reason.trim()));
}

const soldOut =
  /not (?:currently |presently )?available in|(?:no|out of|insufficient|not enough) (?:\w+ )?capacity|sold out|capacity (?:is )?(?:exhausted|unavailable)/i;
const limitReached =
  /limit (?:has been )?(?:reached|exceeded)|(?:reached|exceeded|exceeds) (?:the |your )?(?:\w+ )*limit|maximum (?:number )?of|at most \d+ (?:node )?pools|too many (?:node )?pools/i;

const limitOfMany = /limit|maximum|too many|at most|no more than|exceed/i;

/** The thing would have more tags than it may. */
export function isTagLimit(error: unknown): boolean {
  return (
    statusOf(error) === 400 &&
    problemsOf(error).some(
      ({ field, reason }) => field === 'tags' && limitOfMany.test(reason) && !/character/i.test(reason),
    )
  );
}

/** What a 400 says about machines that cannot be had. Everything else that is refused is the request's own fault. */
export type Shortage =
  /** This plan is not to be had in this region now. */
  | 'plan'
  /** The account may have no more Linodes, or the cluster no more node pools. */
  | 'limit';

export function shortageOf(error: unknown): Shortage | undefined {
  if (statusOf(error) !== 400) return undefined;
  // A limit of tags is not one of machines.
  const reasons = problemsOf(error).flatMap(({ field, reason }) => (field === 'tags' ? [] : [reason]));
  if (reasons.some((reason) => soldOut.test(reason))) return 'plan';
  return reasons.some((reason) => limitReached.test(reason)) ? 'limit' : undefined;
}

/** The label of a Linode is taken: there is one already. */
export function isLabelTaken(error: unknown): boolean {
  const found = findCause(error, LinodeApiError);
  return (
    found?.status === 400 &&
    found.problems.some(
      ({ field, reason }) => (field ?? 'label') === 'label' && /unique|already (?:in use|exists)/i.test(reason),
    )
  );
}

function problemsOf(error: unknown): readonly LinodeProblem[] {
  return findCause(error, LinodeApiError)?.problems ?? [];
}
