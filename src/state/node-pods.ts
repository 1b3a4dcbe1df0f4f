// SPDX-License-Identifier: Apache-2.0
// The pods of one node and what they take in sum, kept by differences: a pod event costs the same on a full node as on
// an empty one. Kept by node name, whether or not the Node is known yet.
import type { Pod } from '../kube/kinds.ts';
import { type Amounts, addTo, type ReadonlyAmounts, subtractFrom } from './amounts.ts';
import { isOwnedByDaemonSet, isTerminal } from './pod-predicates.ts';
import type { PodUsage } from './pod-usage.ts';

interface Entry {
  pod: Pod;
  /** Undefined once the pod is over: it stays on its node, but takes nothing. */
  usage: PodUsage | undefined;
  readonly daemon: boolean;
}

/** A sum that drops a resource when nothing of it is left. */
class Sum {
  readonly amounts: Amounts = new Map();

  add(more: ReadonlyAmounts): void {
    addTo(this.amounts, more);
  }

  remove(less: ReadonlyAmounts): void {
    subtractFrom(this.amounts, less);
    for (const name of less.keys()) if (this.amounts.get(name) === 0n) this.amounts.delete(name);
  }
}

/** The pods bound to a node name. */
export class NodePods {
  readonly #entries = new Map<string, Entry>();
  readonly #requests = new Sum();
  readonly #limits = new Sum();
  readonly #daemonRequests = new Sum();
  readonly #daemonLimits = new Sum();
  // Lists are read far more often than pods change.
  #all: readonly Pod[] | undefined;
  #running: readonly Pod[] | undefined;

  /** Takes a pod in, or its new state. Gives whether it came, or ended. */
  put(id: string, pod: Pod, usageOf: (pod: Pod) => PodUsage): 'came' | 'ended' | 'changed' {
    this.#all = undefined;
    this.#running = undefined;
    const before = this.#entries.get(id);
    const usage = isTerminal(pod) ? undefined : usageOf(pod);
    if (!before) {
      const entry = { pod, usage, daemon: isOwnedByDaemonSet(pod) };
      this.#entries.set(id, entry);
      this.#count(entry);
      return 'came';
    }
    const ended = before.usage !== undefined && usage === undefined;
    if (before.usage !== usage) {
      this.#discount(before);
      before.usage = usage;
      this.#count(before);
    }
    before.pod = pod;
    return ended ? 'ended' : 'changed';
  }

  /** Takes a pod off the node. */
  remove(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    this.#all = undefined;
    this.#running = undefined;
    this.#entries.delete(id);
    this.#discount(entry);
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Every pod bound to the node, also those that are over. */
  all(): readonly Pod[] {
    this.#all ??= Array.from(this.#entries.values(), ({ pod }) => pod);
    return this.#all;
  }

  /** The pods that take something. */
  running(): readonly Pod[] {
    if (!this.#running) {
      const running: Pod[] = [];
      for (const { pod, usage } of this.#entries.values()) if (usage) running.push(pod);
      this.#running = running;
    }
    return this.#running;
  }

  get requests(): ReadonlyAmounts {
    return this.#requests.amounts;
  }

  get limits(): ReadonlyAmounts {
    return this.#limits.amounts;
  }

  get daemonRequests(): ReadonlyAmounts {
    return this.#daemonRequests.amounts;
  }

  get daemonLimits(): ReadonlyAmounts {
    return this.#daemonLimits.amounts;
  }

  #count({ usage, daemon }: Entry): void {
    if (!usage) return;
    this.#requests.add(usage.requests);
    this.#limits.add(usage.limits);
    if (!daemon) return;
    this.#daemonRequests.add(usage.requests);
    this.#daemonLimits.add(usage.limits);
  }

  #discount({ usage, daemon }: Entry): void {
    if (!usage) return;
    this.#requests.remove(usage.requests);
    this.#limits.remove(usage.limits);
    if (!daemon) return;
    this.#daemonRequests.remove(usage.requests);
    this.#daemonLimits.remove(usage.limits);
  }
}
