// SPDX-License-Identifier: Apache-2.0
// What goes wrong between controller processes and the API server. Faults add rules; each request meets all of them.
import type { Random } from '../../base/random.ts';
import type { Status } from '../../kube/object.ts';
import type { TransportRequest, TransportResponse } from '../../kube/transport.ts';
import { chance } from '../draw.ts';

/** What becomes of one request. */
export interface Fate {
  /** Until it reaches the server, and from there back. */
  readonly thereMs: number;
  readonly backMs: number;
  /** Answered so, and not carried out. */
  readonly refusal?: TransportResponse;
  /** Never reaches the server. */
  readonly unreachable?: boolean;
  /** Carried out, and the answer is lost. */
  readonly lost?: boolean;
}

export interface Rule {
  /** How likely it is to hit a request it applies to. */
  readonly share: number;
  applies(request: TransportRequest): boolean;
  /** Counts the hit, and says what changes. */
  bite(random: Random): Partial<Fate>;
}

export function isWrite({ method }: TransportRequest): boolean {
  return method !== 'GET';
}

/** The leader's word must not be lost to a lottery: only faults that are about the lease touch it. */
export function isLease({ path }: TransportRequest): boolean {
  return path.includes('/leases/');
}

export class Weather {
  readonly #random: Random;
  readonly #rules = new Set<Rule>();
  /** How much later watches tell than the API server knows. */
  watchLagMs = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** Adds a rule; call what it gives to take it away. */
  add(rule: Rule): () => void {
    this.#rules.add(rule);
    return () => void this.#rules.delete(rule);
  }

  fate(request: TransportRequest): Fate {
    // A write takes a moment, so that what happens meanwhile can get in its way. Reads are answered at once.
    let fate: Fate = { thereMs: isWrite(request) ? 1 + this.#random.int(20) : 0, backMs: 0 };
    if (this.#rules.size === 0) return fate;
    for (const rule of this.#rules) {
      if (rule.applies(request) && chance(this.#random, rule.share)) fate = { ...fate, ...rule.bite(this.#random) };
    }
    return fate;
  }
}

export function refusal(
  status: number,
  reason: string,
  message: string,
  headers?: Readonly<Record<string, string>>,
): TransportResponse {
  const body: Status = {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    code: status,
    reason,
    message,
  };
  return { status, body, ...(headers ? { headers } : {}) };
}
