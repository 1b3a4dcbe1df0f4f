// SPDX-License-Identifier: Apache-2.0
// Whether a NodeClaim's drift was asked about a moment ago, and nothing that could change the answer has changed since. Pods
// come and go on a node all day; a cloud should not be asked each time.
import { nodeClaimConditions } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import type { Clock } from '../../../base/clock.ts';
import { deepEqual } from '../../../base/freeze.ts';
import type { KubeObject } from '../../../kube/object.ts';
import type { Result } from '../../../runtime/controller.ts';

/** How long an answer holds. */
export const driftPeriodMs = 5 * 60_000;
const { launched, drifted } = nodeClaimConditions;

/** What an answer depends on, as far as we can see it. */
export interface DriftQuestion {
  readonly claim: NodeClaim;
  readonly pool: NodePool;
  readonly nodeClass: KubeObject | undefined;
}

export class AskedLately {
  readonly #clock: Clock;
  readonly #asked = new Map<string, DriftQuestion & { readonly at: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** When to ask again what was answered already; undefined when it is to be asked now. */
  rest(question: DriftQuestion): Result | undefined {
    const known = this.#asked.get(question.claim.metadata.uid ?? '');
    if (!known || known.nodeClass !== question.nodeClass) return undefined;
    const requeueAfterMs = known.at + driftPeriodMs - this.#clock.monotonic();
    const isSame =
      requeueAfterMs > 0 && isSamePool(known.pool, question.pool) && isSameClaim(known.claim, question.claim);
    return isSame ? { requeueAfterMs } : undefined;
  }

  remember(question: DriftQuestion): void {
    this.#asked.set(question.claim.metadata.uid ?? '', { ...question, at: this.#clock.monotonic() });
  }

  forget({ metadata }: NodeClaim): void {
    this.#asked.delete(metadata.uid ?? '');
  }
}

function isSamePool(a: NodePool, b: NodePool): boolean {
  return a === b || (deepEqual(a.metadata.annotations, b.metadata.annotations) && deepEqual(a.spec, b.spec));
}

function isSameClaim(a: NodeClaim, b: NodeClaim): boolean {
  return a === b || deepEqual(partsOf(a), partsOf(b));
}

function partsOf({ metadata, spec, status }: NodeClaim): unknown {
  const { conditions, lastPodEventTime: _time, ...rest } = status ?? {};
  const mattering = conditions?.filter(({ type }) => type === launched || type === drifted);
  return [metadata.labels, metadata.annotations, spec, rest, mattering];
}
