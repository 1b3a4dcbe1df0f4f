// SPDX-License-Identifier: Apache-2.0
// Pods that kube-scheduler has not looked at yet. While some come in, a batch is not complete: on a busy control plane the
// pods of one Deployment are refused over many seconds, with pauses, and each pause would buy machines for a handful of them.
import type { Clock } from '../../base/clock.ts';
import type { Pod } from '../../kube/kinds.ts';
import { isOwnedByDaemonSet, isScheduled, isTerminal, isTerminating, podId } from '../../state/pod-predicates.ts';

interface PodSource {
  addHandler(handler: { added(pod: Pod): void; updated(pod: Pod): void; deleted(pod: Pod): void }): unknown;
}

export class PodArrivals {
  readonly #clock: Clock;
  readonly #countMs: number;
  /** When each was first seen, by UID. By our own clock: the API server's may differ. */
  readonly #seen = new Map<string, number>();

  /** A pod counts for so long: one that no scheduler looks at must not delay the others for ever. */
  constructor(options: { readonly clock: Clock; readonly pods: PodSource; readonly countMs: number }) {
    this.#clock = options.clock;
    this.#countMs = options.countMs;
    options.pods.addHandler({
      added: (pod) => {
        if (isUndecided(pod)) this.#seen.set(podId(pod), this.#clock.monotonic());
      },
      updated: (pod) => {
        if (!isUndecided(pod)) this.#seen.delete(podId(pod));
      },
      deleted: (pod) => this.#seen.delete(podId(pod)),
    });
  }

  /** Whether a pod came lately that nobody has placed or refused. */
  get areUnderWay(): boolean {
    const oldest = this.#clock.monotonic() - this.#countMs;
    for (const [id, seenAt] of this.#seen) {
      if (seenAt > oldest) return true;
      this.#seen.delete(id);
    }
    return false;
  }
}

/** Pods of DaemonSets have their node already, in all but name. */
function isUndecided(pod: Pod): boolean {
  if (isScheduled(pod) || isTerminal(pod) || isTerminating(pod) || isOwnedByDaemonSet(pod)) return false;
  return !pod.status?.conditions?.some(({ type }) => type === 'PodScheduled');
}
