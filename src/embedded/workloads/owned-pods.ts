// SPDX-License-Identifier: Apache-2.0
// The pods of the owners of one kind, as the cache has them, together with what was written for them and is not in it yet.
import type { Clock } from '../../base/clock.ts';
import type { Pod } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { ChangeSource } from '../../runtime/controller.ts';
import { Expectations } from './expectations.ts';
import { type OwnerIndex, ownerIndex } from './owner-index.ts';
import { controllerOf } from './ownership.ts';

export class OwnedPods {
  readonly #index: OwnerIndex<Pod>;
  readonly #expectations: Expectations;

  constructor(source: ChangeSource<Pod>, clock: Clock) {
    this.#index = ownerIndex(source);
    this.#expectations = new Expectations(clock);
    const seen = (pod: Pod): void => {
      const owner = controllerOf(pod);
      if (owner) this.#expectations.seen(owner.uid, pod.metadata.uid!);
    };
    source.addHandler({ added: seen, updated: seen, deleted: seen });
  }

  /** What the owner controls. */
  ownedBy(uid: string): Pod[] {
    return this.#index.ownedBy(uid);
  }

  /** What the owner could claim: its own and the orphans of its namespace. */
  candidates(owner: KubeObject): Pod[] {
    return this.#index.candidates(owner);
  }

  /** Whether the cache shows everything written for this owner: only then may its pods be counted. */
  settled(uid: string): boolean {
    return this.#expectations.satisfied(uid, (podUid) => {
      const pod = this.#index.get(uid, podUid);
      return pod && { deleting: pod.metadata.deletionTimestamp !== undefined };
    });
  }

  /** A pod was made for the owner. */
  created(uid: string, pod: Pod): void {
    if (!this.#index.get(uid, pod.metadata.uid!)) this.#expectations.expectCreated(uid, pod.metadata.uid!);
  }

  /** A pod of the owner was told to go. */
  deleted(uid: string, pod: Pod): void {
    this.#expectations.expectDeleted(uid, pod.metadata.uid!);
  }
}
