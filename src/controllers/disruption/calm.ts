// SPDX-License-Identifier: Apache-2.0
// Whoever sets a budget that lets only some nodes go at a time asks for calm. There, machines that were just bought go only if that is
// worth the pods it moves: what comes of little waits until they are older, and is often gone by then.

import { never } from '../../api/duration.ts';
import { parseTime } from '../../kube/time.ts';
import { type Amounts, addTo, type ReadonlyAmounts, subtractFrom } from '../../state/amounts.ts';
import { isReschedulable } from '../../state/pod-predicates.ts';
import type { StateNode } from '../../state/state-node.ts';
import { type Candidate, priceOf, TypesByName } from './candidates.ts';
import type { MethodView } from './method.ts';

/** A machine is young for so long. */
export const youngMs = 10 * 60_000;

/**
 * What each pod that moves has to save, in prices of a pod: what an average one costs on a machine that is full. The race
 * guarded on virtual time, seeds 1 to 4: at two 0.63 $ with 45 evictions, at four 0.68 $ with 35, at nine 0.74 $ with 26, at
 * thirteen 0.90 $ with 14. On a real control plane four moved 63 pods, more than upstream does for twice the price.
 */
const worthMoving = 9;

export const tooLittleForNow =
  'It was bought less than ten minutes ago, and would save too little for the pods it moves';

/** How long its NodeClaim has been there; for ever if nobody knows. */
export function ageOf({ nodeClaim }: Candidate, now: number): number {
  const { creationTimestamp } = nodeClaim.metadata;
  return typeof creationTimestamp === 'string' ? now - parseTime(creationTimestamp) : Number.POSITIVE_INFINITY;
}

export function isYoung(candidate: Candidate, now: number): boolean {
  return ageOf(candidate, now) < youngMs;
}

/** Judges what machines save by what a pod has to cost. */
export class Calm {
  readonly #view: MethodView;
  #price: number | undefined;

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

  /**
   * By the hour, if pods filled the machine of theirs that suits them best. What pods cost where they happen to be is no measure: it falls
   * with every machine that goes, until the last ones seem worth it, and rises with each that nobody can remove.
   */
  #costOfPod(): number {
    if (this.#price !== undefined) return this.#price;
    const { machines, catalog } = this.#view.snapshot;
    const types = new TypesByName(catalog);
    const open = this.#openPools();
    const requests: Amounts = new Map();
    const known: { readonly machine: StateNode; readonly price: number }[] = [];
    let pods = 0;
    for (const machine of machines.nodes()) {
      if (!machine.nodeClaim || machine.markedForDeletion || !open.has(machine.nodePool)) continue;
      addTo(requests, machine.requests);
      subtractFrom(requests, machine.daemonRequests);
      for (const pod of machine.pods()) if (isReschedulable(pod)) pods++;
      const price = priceOf(types.ofMachine(machine), machine.labels);
      if (price > 0) known.push({ machine, price });
    }
    const least = Math.min(...known.map(({ machine, price }) => price * sharesOf(requests, machine.allocatable)));
    this.#price = pods > 0 && Number.isFinite(least) ? least / pods : 0;
    return this.#price;
  }

  /** Names of the pools that consolidation takes machines from. */
  #openPools(): ReadonlySet<string | undefined> {
    const { budgets, snapshot } = this.#view;
    const open = snapshot.catalog.pools.filter((pool) => {
      const { replicas, disruption } = pool.spec;
      if (replicas !== undefined || disruption?.consolidationPolicy === 'WhenEmpty') return false;
      return disruption?.consolidateAfter !== never && budgets.allowed(pool) > 0;
    });
    return new Set(open.map(({ metadata }) => metadata.name));
  }
}

/** How many machines so much would fill. */
function sharesOf(requests: ReadonlyAmounts, allocatable: ReadonlyAmounts): number {
  const shares = ['cpu', 'memory'].map((name) => {
    const has = Number(allocatable.get(name) ?? 0n);
    return has > 0 ? Number(requests.get(name) ?? 0n) / has : 0;
  });
  return Math.max(...shares);
}
