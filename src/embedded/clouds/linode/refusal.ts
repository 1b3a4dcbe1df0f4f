// SPDX-License-Identifier: Apache-2.0
// How the API says no.
import { KarpenterError } from '../../../base/errors.ts';

/** One reason of a refusal; `field` names what was wrong with the request. */
export interface Problem {
  readonly reason: string;
  readonly field?: string;
}

/** An answer that is not 200. */
export class Refusal extends KarpenterError {
  readonly status: number;
  readonly problems: readonly Problem[];
  readonly headers: Readonly<Record<string, string>>;

  constructor(status: number, problems: readonly Problem[], headers: Readonly<Record<string, string>> = {}) {
    super('KRP_LINODE_REFUSAL', `${status}: ${problems.map(({ reason }) => reason).join('; ')}`);
    this.status = status;
    this.problems = problems;
    this.headers = headers;
  }
}

export function notFound(): Refusal {
  return new Refusal(404, [{ reason: 'Not found' }]);
}

export function badRequest(reason: string, field?: string): Refusal {
  return new Refusal(400, [field === undefined ? { reason } : { reason, field }]);
}
