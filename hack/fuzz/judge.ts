// SPDX-License-Identifier: Apache-2.0
// Whether an answer is one that a real API server could have given.
import { bluntRefusals } from '../../test/conformance/api/cases/blunt-refusals.ts';

const possible = new Set([
  200, 201, 202, 301, 400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 422, 429, 431, 500, 501, 504,
]);

/** What is wrong with an answer; undefined when nothing is. */
export function problemWith(status: number, contentType: string, body: string): string | undefined {
  if (!possible.has(status)) return `the code ${status}`;
  if (status < 400) return undefined;
  if (!contentType.includes('json')) {
    // Paths that lead nowhere get a plain text, and a request that HTTP itself does not allow gets no more.
    return status === 404 || status === 431 || (status === 400 && body === '400 Bad Request')
      ? undefined
      : `a ${status} without a Status: ${body.slice(0, 200)}`;
  }
  let answer: { kind?: unknown; code?: unknown; message?: unknown; status?: unknown; reason?: unknown };
  try {
    answer = JSON.parse(body) as typeof answer;
  } catch {
    return `a ${status} that is no JSON: ${body.slice(0, 200)}`;
  }
  if (answer.kind !== 'Status' || answer.status !== 'Failure') return `a ${status} without a Status`;
  if (answer.code !== status) return `a ${status} whose Status says ${String(answer.code)}`;
  if (typeof answer.message !== 'string' || answer.message === '') return `a ${status} without a message`;
  if (status === 500 && !isBlunt(answer.message, answer.reason)) return `an internal error: ${answer.message}`;
  return undefined;
}

/** Whether a real server words this refusal as a fault of its own: each such is a case of the conformance suite. */
function isBlunt(message: string, reason: unknown): boolean {
  return bluntRefusals.some((known) => known.reason === reason && known.message.test(message));
}
