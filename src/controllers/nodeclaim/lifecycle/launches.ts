// SPDX-License-Identifier: Apache-2.0
// What this process knows about launches whose outcome is not in their NodeClaim yet. A memory only: after a restart the
// cloud is asked again, by the NodeClaim's UID.
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { Instance } from '../../../cloud/provider.ts';

/** A machine, or the certainty that there is none. */
export type LaunchOutcome = Instance | 'nothing';

export class Launches {
  readonly #outcomes = new Map<string, LaunchOutcome>();

  of(claim: NodeClaim): LaunchOutcome | undefined {
    return this.#outcomes.get(claim.metadata.uid ?? '');
  }

  record(claim: NodeClaim, outcome: LaunchOutcome): void {
    this.#outcomes.set(claim.metadata.uid ?? '', outcome);
  }

  forget(claim: NodeClaim): void {
    this.#outcomes.delete(claim.metadata.uid ?? '');
  }

  get size(): number {
    return this.#outcomes.size;
  }
}
