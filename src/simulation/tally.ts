// SPDX-License-Identifier: Apache-2.0
// What a run came to: cost, waiting, disruptions, and how large the world was.
import type { NodeClaim } from '../api/node-claim.ts';
import type { StoreEvent } from '../embedded/store.ts';
import type { Pod } from '../kube/kinds.ts';
import { parseTime } from '../kube/time.ts';
import { collections } from './collections.ts';
import type { Facts } from './contract.ts';

export interface Summary {
  /** Dollars for all machines. */
  readonly cost: number;
  readonly machinesLaunched: number;
  /** How long pods waited for a node, in seconds. */
  readonly pendingSeconds: { readonly median: number; readonly p99: number; readonly max: number };
  readonly podsPlaced: number;
  /** Voluntary ones, by reason. */
  readonly disruptions: Readonly<Record<string, number>>;
  readonly medianNodes: number;
  readonly medianPods: number;
  readonly changes: number;
  readonly writes: number;
}

const hour = 3_600_000;

export class Tally {
  changes = 0;
  #writes = 0;
  readonly #facts: Facts;
  readonly #waits: number[] = [];
  readonly #nodes: number[] = [];
  readonly #pods: number[] = [];
  readonly #disruptions = new Map<string, number>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  changed(collection: string, event: StoreEvent): void {
    this.#writes++;
    if (collection === collections.pods) this.#podChanged(event);
    else if (collection === collections.claims) this.#claimChanged(event);
  }

  minute(): void {
    this.#nodes.push(this.#facts.list(collections.nodes).length);
    this.#pods.push(this.#facts.list(collections.pods).length);
  }

  quiet(): void {
    // Nothing yet: what is at rest is judged by invariants.
  }

  summary(): Summary {
    const now = this.#facts.now;
    let [cost, machinesLaunched] = [0, 0];
    for (const { ledger } of this.#facts.clouds) {
      for (const { price, launchedAt, goneAt } of ledger.all()) {
        machinesLaunched++;
        cost += (price * ((goneAt ?? now) - launchedAt)) / hour;
      }
    }
    const waits = this.#waits.toSorted((a, b) => a - b);
    return {
      cost: Math.round(cost * 100) / 100,
      machinesLaunched,
      pendingSeconds: { median: quantile(waits, 0.5), p99: quantile(waits, 0.99), max: waits.at(-1) ?? 0 },
      podsPlaced: waits.length,
      disruptions: Object.fromEntries([...this.#disruptions].sort(([a], [b]) => (a < b ? -1 : 1))),
      medianNodes: quantile(
        this.#nodes.toSorted((a, b) => a - b),
        0.5,
      ),
      medianPods: quantile(
        this.#pods.toSorted((a, b) => a - b),
        0.5,
      ),
      changes: this.changes,
      writes: this.#writes,
    };
  }

  #podChanged({ object, previous }: StoreEvent): void {
    const pod = object as Pod;
    if (!pod.spec.nodeName || !previous || (previous as Pod).spec.nodeName) return;
    this.#waits.push((this.#facts.now - parseTime(pod.metadata.creationTimestamp ?? '')) / 1000);
  }

  #claimChanged({ object, previous }: StoreEvent): void {
    if (!object.metadata.deletionTimestamp || !previous || previous.metadata.deletionTimestamp) return;
    const why = (object as NodeClaim).status?.conditions?.find(({ type }) => type === 'DisruptionReason');
    const { status, reason = '' } = why ?? {};
    if (status === 'True') this.#disruptions.set(reason, (this.#disruptions.get(reason) ?? 0) + 1);
  }
}

function quantile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
