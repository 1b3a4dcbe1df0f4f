// SPDX-License-Identifier: Apache-2.0
// Whose turn it is to leave: pods find their places in the order in which they leave, and small ones fill the gaps that large
// ones left, not the other way round. Where many nodes are drained at once, that holds for the pods of all of them.
import type { Pod } from '../../../kube/kinds.ts';
import { QuantityError } from '../../../kube/quantity.ts';
import { podRequests } from '../../../scheduling/pod-resources.ts';
import { isReschedulable } from '../../../state/pod-predicates.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

/** From the largest pods to the smallest, where several nodes are drained. */
const longestMs = 1000;

export function largestFirst(pods: readonly Pod[]): Pod[] {
  if (pods.length < 2) return [...pods];
  const sizes = new Map(pods.map((pod) => [pod, sizeOf(pod)]));
  return pods.toSorted((a, b) => sizes.get(b)! - sizes.get(a)!);
}

/** What pods request, in CPUs: one comes with about four GiB of memory. */
function sizeOf({ spec, status }: Pod): number {
  try {
    const requests = podRequests(spec, status);
    return Number(requests.get('cpu') ?? 0n) / 1e9 + Number(requests.get('memory') ?? 0n) / 1e9 / 2 ** 32;
  } catch (error) {
    if (error instanceof QuantityError) return 0;
    throw error;
  }
}

export class Turns {
  readonly #context: ControllerContext;
  /** The largest pod of all nodes that are drained now; 0 where there is only one of them. */
  #largest = 0;
  #seenAt = Number.NEGATIVE_INFINITY;

  constructor(context: ControllerContext) {
    this.#context = context;
  }

  /** How long a pod waits for larger ones of other nodes. */
  delayOf(pod: Pod): number {
    const now = this.#context.clock.monotonic();
    if (now - this.#seenAt >= longestMs || now < this.#seenAt) {
      this.#largest = this.#look();
      this.#seenAt = now;
    }
    if (this.#largest === 0) return 0;
    return Math.round(longestMs * (1 - Math.min(1, sizeOf(pod) / this.#largest)));
  }

  #look(): number {
    const drained = [...this.#context.state.nodes()]
      .filter(({ markedForDeletion }) => markedForDeletion)
      .map((machine) => [...machine.pods()].filter(isReschedulable))
      .filter(({ length }) => length > 0);
    return drained.length < 2 ? 0 : Math.max(...drained.flatMap((pods) => pods.map(sizeOf)));
  }
}
