// SPDX-License-Identifier: Apache-2.0
// What exists in the account and what was asked of it: for tests and invariants, not for clients.
import type { Account, Change } from './account.ts';
import { hourlyPrice } from './plans.ts';
import type { Cluster, Instance, Pool, PoolNode } from './records.ts';

/** One call that was answered, or lost. */
export interface CallRecord {
  readonly at: number;
  readonly method: string;
  /** Without the version, with the query. */
  readonly path: string;
  /** Such as `/lke/clusters/:cluster/pools`; empty for a path that nobody knows. */
  readonly route: string;
  /** 0: the connection was lost. */
  readonly status: number;
  readonly token: string;
}

/** Live views: read, do not change. */
export class Ledger {
  readonly #account: Account;
  readonly calls: CallRecord[] = [];

  constructor(account: Account) {
    this.#account = account;
  }

  instances(): readonly Readonly<Instance>[] {
    return [...this.#account.instances.values()];
  }

  /** Those that cost money and are not on their way out. */
  living(): readonly Readonly<Instance>[] {
    return this.instances().filter(({ status }) => status !== 'deleting');
  }

  clusters(): readonly Readonly<Cluster>[] {
    return [...this.#account.clusters.values()];
  }

  pools(clusterId?: number): readonly Readonly<Pool>[] {
    return [...this.#account.pools.values()].filter((pool) => clusterId === undefined || pool.clusterId === clusterId);
  }

  nodes(poolId: number): readonly Readonly<PoolNode>[] {
    return this.#account.pools.get(poolId)?.nodes ?? [];
  }

  /** Linodes ever made. */
  get everCreated(): number {
    return this.#account.everCreated;
  }

  /** What all Linodes cost an hour. */
  hourlyPrice(): number {
    return this.living().reduce((sum, { plan, region }) => sum + hourlyPrice(plan, region.id), 0);
  }

  /** Tells of every change, until the returned function is called. */
  subscribe(listener: (change: Change) => void): () => void {
    return this.#account.subscribe(listener);
  }
}
