// SPDX-License-Identifier: Apache-2.0
// NodeClaims that have no machine yet. What they will hold is not known, so nobody may plan again for the pods they were
// made for, and nobody buys more of their cloud meanwhile. Other pods and other clouds do not wait for them, and nothing waits
// for those of static pools: they are made for no pods, and one that cannot be launched is made again and again.
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { Pod } from '../kube/kinds.ts';
import { keyOf } from '../kube/object.ts';

interface Launching {
  readonly claim: NodeClaim;
  /** The name of its provider. */
  readonly cloud: string;
}

/** What NodeClaims on their way keep from being planned, as of one moment. */
export interface LaunchHold {
  /** Clouds by name that have a NodeClaim without a machine. */
  readonly clouds: ReadonlySet<string>;
  /** Whether a NodeClaim without a machine may have been made for the pod. */
  holds(pod: Pod): boolean;
}

/** NodeClaims without a machine, by name, and the pods they were made for. */
export class LaunchingClaims {
  readonly #claims = new Map<string, Launching>();
  readonly #plans = new Map<string, ReadonlySet<string>>();
  readonly #names = new Set<string>();

  get names(): ReadonlySet<string> {
    return this.#names;
  }

  put(claim: NodeClaim, cloud: string): void {
    const name = claim.metadata.name ?? '';
    this.#claims.set(name, { claim, cloud });
    this.#names.add(name);
  }

  /** Pods, as `namespace/name`, that a claim was made for. */
  plan(name: string, pods: Iterable<string>): void {
    if (this.#claims.has(name)) this.#plans.set(name, new Set(pods));
  }

  /** The claim has its machine, or is gone. */
  remove(name: string): void {
    this.#claims.delete(name);
    this.#plans.delete(name);
    this.#names.delete(name);
  }

  /** Undefined when every NodeClaim that anything has to wait for has its machine. */
  hold(isOfStaticPool: (claim: NodeClaim) => boolean = () => false): LaunchHold | undefined {
    if (this.#claims.size === 0) return undefined;
    const clouds = new Set<string>();
    const planned = new Set<string>();
    let newest = '';
    for (const [name, { claim, cloud }] of this.#claims) {
      if (isOfStaticPool(claim)) continue;
      clouds.add(cloud);
      const pods = this.#plans.get(name);
      if (pods) for (const pod of pods) planned.add(pod);
      // One that a process before us made: for pods that were there before it. One that a person wrote is for none.
      else if (claim.metadata.labels?.[labels.nodePool] !== undefined)
        newest = later(newest, claim.metadata.creationTimestamp ?? '');
    }
    if (clouds.size === 0) return undefined;
    const holds = (pod: Pod): boolean =>
      planned.has(keyOf(pod)) || (newest !== '' && (pod.metadata.creationTimestamp ?? '') <= newest);
    return { clouds, holds };
  }
}

/** Times of the API server, which are all of one form: as text they are in order. */
function later(a: string, b: string): string {
  return a > b ? a : b;
}
