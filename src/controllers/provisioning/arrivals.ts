// SPDX-License-Identifier: Apache-2.0
// Pods that kube-scheduler has not looked at yet. While some come in, a batch is not complete: on a busy control plane the
// pods of one Deployment are refused over many seconds, with pauses, and each pause would buy machines for a handful of them.
import type { Clock } from '../../base/clock.ts';
import type { Pod } from '../../kube/kinds.ts';
import {
  controllerOf,
  isOwnedByDaemonSet,
  isScheduled,
  isTerminal,
  isTerminating,
  podId,
} from '../../state/pod-predicates.ts';

interface PodSource {
  addHandler(handler: { added(pod: Pod): void; updated(pod: Pod): void; deleted(pod: Pod): void }): unknown;
}

export class PodArrivals {
  readonly #clock: Clock;
  readonly #countMs: number;
  /** By UID, and when each was first seen. By our own clock: the API server's may differ. */
  readonly #seen = new Map<string, { readonly pod: Pod; readonly at: number }>();

  /** A pod counts for so long: one that no scheduler looks at must not delay the others for ever. */
  constructor(options: { readonly clock: Clock; readonly pods: PodSource; readonly countMs: number }) {
    this.#clock = options.clock;
    this.#countMs = options.countMs;
    options.pods.addHandler({
      added: (pod) => {
        if (isUndecided(pod)) this.#seen.set(podId(pod), { pod, at: this.#clock.monotonic() });
      },
      updated: (pod) => {
        const known = this.#seen.get(podId(pod));
        if (!known) return;
        if (isUndecided(pod)) this.#seen.set(podId(pod), { pod, at: known.at });
        else this.#seen.delete(podId(pod));
      },
      deleted: (pod) => this.#seen.delete(podId(pod)),
    });
  }

  /** Whether a pod came lately that nobody has placed or refused. */
  get areUnderWay(): boolean {
    this.#forget();
    return this.#seen.size > 0;
  }

  /**
   * Those whose siblings were refused: so will they be. When a batch must end before kube-scheduler has looked at all of them,
   * they are planned for with the others; bought one handful after the other, machines are small and do not suit the rest.
   */
  *siblingsOf(refused: Iterable<Pod>): Generator<Pod, void, undefined> {
    this.#forget();
    if (this.#seen.size === 0) return;
    const owners = new Set<string | undefined>();
    for (const pod of refused) owners.add(controllerOf(pod)?.uid);
    owners.delete(undefined);
    for (const { pod } of this.#seen.values()) if (owners.has(controllerOf(pod)?.uid)) yield pod;
  }

  #forget(): void {
    const oldest = this.#clock.monotonic() - this.#countMs;
    for (const [id, { at }] of this.#seen) {
      if (at > oldest) return;
      this.#seen.delete(id);
    }
  }
}

/** Pods of DaemonSets have their node already, in all but name. */
function isUndecided(pod: Pod): boolean {
  if (isScheduled(pod) || isTerminal(pod) || isTerminating(pod) || isOwnedByDaemonSet(pod)) return false;
  return !pod.status?.conditions?.some(({ type }) => type === 'PodScheduled');
}
