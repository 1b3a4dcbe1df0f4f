// SPDX-License-Identifier: Apache-2.0
// Whoever sets a budget that lets only some nodes go at a time asks for calm. There, machines that were just bought go only if that is
// worth the pods it moves: what comes of little waits until they are older, and is often gone by then.

import { parseTime } from '../../kube/time.ts';
import { isReschedulable } from '../../state/pod-predicates.ts';
import { type Candidate, priceOf, TypesByName } from './candidates.ts';
import type { MethodView } from './method.ts';

/** A machine is young for so long. */
const youngMs = 10 * 60_000;

/**
 * What each pod that moves has to save, as a share of what a pod costs on average. Measured on the guarded race, on a real control plane:
 * at two thirds 51 pods move and it ends at 6.0 $/h, at nine tenths 4 and 13.1 $/h, since nodes that are alike keep each other.
 */
const worthMoving = 2 / 3;

export const tooLittleForNow =
  'It was bought less than ten minutes ago, and would save too little for the pods it moves';

export function isYoung({ nodeClaim }: Candidate, now: number): boolean {
  const { creationTimestamp } = nodeClaim.metadata;
  return typeof creationTimestamp === 'string' && now - parseTime(creationTimestamp) < youngMs;
}

/** Judges what machines save by what a pod costs on average. */
export class Calm {
  readonly #view: MethodView;
  #average: number | undefined;

  constructor(view: MethodView) {
    this.#view = view;
  }

  /** Whether a machine had better stay for now: even if nothing were bought for its pods, little would be saved for each. */
  holds(candidate: Candidate): boolean {
    return this.isPoor([candidate], candidate.price, candidate.reschedulablePods.length);
  }

  /** Whether so much is too little for so many pods. */
  isPoor(candidates: readonly Candidate[], savings: number, pods: number): boolean {
    const { budgets, snapshot } = this.#view;
    const isCalm = candidates.some(
      (candidate) => budgets.isTight(candidate.nodePool) && isYoung(candidate, snapshot.now),
    );
    return isCalm && savings < pods * this.#costOfPod() * worthMoving;
  }

  /** By the hour, over all machines of ours. */
  #costOfPod(): number {
    if (this.#average !== undefined) return this.#average;
    const { machines, catalog } = this.#view.snapshot;
    const types = new TypesByName(catalog);
    let [cost, pods] = [0, 0];
    for (const machine of machines.nodes()) {
      if (!machine.nodeClaim || machine.markedForDeletion) continue;
      cost += priceOf(types.ofMachine(machine), machine.labels);
      for (const pod of machine.pods()) if (isReschedulable(pod)) pods++;
    }
    this.#average = pods > 0 ? cost / pods : 0;
    return this.#average;
  }
}
