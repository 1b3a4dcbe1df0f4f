// SPDX-License-Identifier: Apache-2.0
// Lists in pages are lists of one moment: what was there when the first page was asked for. A continue token names
// the moment; the moments are kept for a while and then expire.
import type { Clock } from '../../base/clock.ts';
import type { KubeObject } from '../../kube/object.ts';
import { badRequest, StatusError } from '../status.ts';

interface Kept {
  readonly items: readonly KubeObject[];
  usedAt: number;
}

const lifetimeMs = 5 * 60_000;
const mostKept = 64;

export interface ContinueToken {
  readonly revision: number;
  /** The key of the last object that was sent. */
  readonly after: string;
}

/** The moments that continue tokens refer to; the oldest goes first when there are too many. */
export class ListSnapshots {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  keep(scope: string, revision: number, items: readonly KubeObject[]): void {
    const key = `${revision} ${scope}`;
    this.#kept.delete(key);
    this.#kept.set(key, { items, usedAt: this.#clock.monotonic() });
    for (const [oldest, entry] of this.#kept) {
      const stale = this.#clock.monotonic() - entry.usedAt > lifetimeMs;
      if (!stale && this.#kept.size <= mostKept) break;
      this.#kept.delete(oldest);
    }
  }

  find(scope: string, revision: number): readonly KubeObject[] | undefined {
    const entry = this.#kept.get(`${revision} ${scope}`);
    if (!entry || this.#clock.monotonic() - entry.usedAt > lifetimeMs) return undefined;
    return entry.items;
  }
}

/** The token is opaque to clients; the form is the API server's own. */
export function encodeContinue(token: ContinueToken): string {
  const json = JSON.stringify({ v: 'meta.k8s.io/v1', rv: token.revision, start: `${token.after}\u0000` });
  return Buffer.from(json).toString('base64url');
}

export function decodeContinue(text: string): ContinueToken {
  const stray = text.search(/[^A-Za-z0-9_-]/);
  if (stray >= 0) throw badRequest(`continue key is not valid: illegal base64 data at input byte ${stray}`);
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>;
    if (v === 'meta.k8s.io/v1' && typeof rv === 'number' && typeof start === 'string') {
      return { revision: rv, after: start.endsWith('\u0000') ? start.slice(0, -1) : start };
    }
  } catch {
    // Said below, for this and for a token of another shape.
  }
  throw badRequest('continue key is not valid: it was not made by this server');
}

/** The moment is gone; the answer carries a token that goes on from the same key with what is there now. */
export function continueExpired(token: ContinueToken): StatusError {
  const error = new StatusError(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  );
  error.status.metadata['continue'] = encodeContinue({ revision: -1, after: token.after });
  return error;
}
