// SPDX-License-Identifier: Apache-2.0
// What goes wrong, by a plan: answers that fail, are lost, cut, malformed or late.
import { KarpenterError } from '../../../base/errors.ts';
import type { Random } from '../../../base/random.ts';

/**
 * `lost-request`: the connection breaks before anything was done; `lost-response`: after. `truncated` and `malformed`
 * spoil the body of an answer that was otherwise given. A status with `applied` says failure although the work is done.
 */
export type FaultKind =
  | 'lost-request'
  | 'lost-response'
  | 'truncated'
  | 'malformed'
  | { readonly slowMs: number }
  | Failure;

export interface Failure {
  readonly status: number;
  readonly reason?: string;
  readonly field?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly applied?: boolean;
}

export interface Fault {
  readonly kind: FaultKind;
  readonly method?: string;
  /** Matched against the path without version and query: `/lke/clusters/12/pools`. */
  readonly path?: RegExp;
  /** How many calls it hits; one unless told. */
  readonly times?: number;
  /** How many matching calls it lets pass first. */
  readonly skip?: number;
  /** Hits a matching call with this probability; always unless told. */
  readonly chance?: number;
}

/** The connection broke: nobody can tell whether the work was done. */
export class ConnectionLost extends KarpenterError {
  constructor() {
    super('ECONNRESET', 'the connection was reset');
  }
}

interface Planned {
  readonly fault: Fault;
  left: number;
  skip: number;
}

/** The faults to come. Each call takes the first that fits. */
export class FaultPlan {
  readonly #random: Random;
  #planned: Planned[] = [];

  constructor(random: Random) {
    this.#random = random;
  }

  add(fault: Fault): void {
    this.#planned.push({ fault, left: fault.times ?? 1, skip: fault.skip ?? 0 });
  }

  clear(): void {
    this.#planned = [];
  }

  /** The fault that hits this call; it is used up by it. */
  take(method: string, path: string): FaultKind | undefined {
    for (const planned of this.#planned) {
      const { fault } = planned;
      if (planned.left <= 0 || (fault.method !== undefined && fault.method !== method)) continue;
      if (fault.path && !fault.path.test(path)) continue;
      if (planned.skip > 0) {
        planned.skip--;
        continue;
      }
      if (fault.chance !== undefined && this.#random.next() >= fault.chance) continue;
      planned.left--;
      return fault.kind;
    }
    return undefined;
  }
}
