// SPDX-License-Identifier: Apache-2.0
// The books of a Linode account in a world: every Linode that ever was, whose it is, and what the autoscaler asked for that
// it may not. Kept by looking at the account itself; no fault and no list that lags behind touches them.
import type { VirtualClock } from '../../base/clock.ts';
import type { ApiRequest, LinodeApi } from '../../embedded/clouds/linode/api.ts';
import { hourlyPrice } from '../../embedded/clouds/linode/plans.ts';
import type { Ledger, LedgerInstance } from '../contract.ts';

/** As the documents name it: the tag that says for which NodeClaim a Linode or a pool was made. */
const uidTag = /^karpenter\.sh\/uid=([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;
const nameTag = /^karpenter\.sh\/nodeclaim=(.+)$/;

interface BookedLinode extends LedgerInstance {
  readonly id: number;
  /** The node pool it came with, in LKE. */
  readonly pool?: number;
  deletingAt?: number;
  goneAt?: number;
  goneBecause?: string;
}

/** A node pool that was made for a NodeClaim. */
export interface BookedPool {
  readonly id: number;
  readonly claim: { readonly name: string; readonly uid: string };
}

type Claim = { readonly name: string; readonly uid: string };

export class LinodeBooks implements Ledger {
  /** What the autoscaler did that it must not, in words, until somebody reads it. */
  readonly offences: { readonly kind: 'stranger' | 'surplus'; readonly message: string }[] = [];
  readonly #api: LinodeApi;
  readonly #clock: VirtualClock;
  readonly #all: BookedLinode[] = [];
  readonly #alive = new Map<number, BookedLinode>();
  readonly #strangers = { linodes: new Set<number>(), pools: new Set<number>() };
  /** Linodes that the autoscaler asked to be removed. */
  readonly #asked = new Set<number>();
  readonly #stop: () => void;
  #cluster = 0;
  #isByPeople = false;

  constructor(api: LinodeApi, clock: VirtualClock) {
    this.#api = api;
    this.#clock = clock;
    this.#stop = api.ledger.subscribe(({ what, id }) => {
      if (what === 'instance') this.#changed(id);
      if (what !== 'pool') return;
      if (this.#isByPeople) this.#strangers.pools.add(id);
      this.#lookForSurplus();
    });
  }

  /** The LKE cluster that is ours. */
  own(cluster: number): void {
    this.#cluster = cluster;
  }

  /** What people make meanwhile is theirs. It must be done at once, without a wait. */
  byPeople<R>(act: () => R): R {
    this.#isByPeople = true;
    try {
      return act();
    } finally {
      this.#isByPeople = false;
    }
  }

  isStranger(linode: number): boolean {
    return this.#strangers.linodes.has(linode);
  }

  alive(): readonly BookedLinode[] {
    return [...this.#alive.values()];
  }

  all(): readonly BookedLinode[] {
    return this.#all;
  }

  /** Node pools of ours. */
  pools(): BookedPool[] {
    return this.#api.ledger.pools().flatMap(({ id, tags }) => {
      const claim = this.#strangers.pools.has(id) ? undefined : claimOf(tags);
      return claim ? [{ id, claim }] : [];
    });
  }

  /** What the autoscaler is about to ask for. */
  asks({ method, path }: ApiRequest): void {
    if (method === 'GET') return;
    const linode = Number(/\/linode\/instances\/(\d+)/.exec(path)?.[1] ?? Number.NaN);
    const pool = Number(/\/pools\/(\d+)/.exec(path)?.[1] ?? Number.NaN);
    const cluster = Number(/\/lke\/clusters\/(\d+)/.exec(path)?.[1] ?? this.#cluster);
    const node = /\/nodes\/([^/?]+)/.exec(path)?.[1];
    const linodes = this.#api.ledger
      .instances()
      .filter(({ id, lke }) => id === linode || lke?.poolId === pool || (node !== undefined && lke?.nodeId === node));
    const isForeign =
      cluster !== this.#cluster || this.#strangers.pools.has(pool) || linodes.some(({ id }) => this.isStranger(id));
    if (isForeign) this.offences.push({ kind: 'stranger', message: `${method} ${path} is about somebody else's` });
    if (method === 'DELETE') for (const { id } of linodes) this.#asked.add(id);
  }

  close(): void {
    this.#stop();
  }

  #changed(id: number): void {
    const instance = this.#api.ledger.instances().find((candidate) => candidate.id === id);
    const booked = this.#alive.get(id) ?? (instance ? this.#enter(id) : undefined);
    if (!booked) return;
    if ((!instance || instance.status === 'deleting') && booked.deletingAt === undefined) {
      booked.deletingAt = this.#clock.now();
      if (!this.#asked.has(id)) booked.goneBecause = 'taken';
    }
    if (instance) return;
    booked.goneAt = this.#clock.now();
    this.#alive.delete(id);
  }

  #enter(id: number): BookedLinode {
    const { ledger } = this.#api;
    const { plan, region, tags, lke } = ledger.instances().find((candidate) => candidate.id === id)!;
    const pool = lke && ledger.pools().find((candidate) => candidate.id === lke.poolId);
    // Those of a pool come by themselves: whose they are, the pool says.
    const isStranger = pool ? this.#strangers.pools.has(pool.id) : this.#isByPeople;
    if (isStranger) this.#strangers.linodes.add(id);
    const claim = isStranger ? undefined : claimOf(pool?.tags ?? tags);
    const booked: BookedLinode = {
      id,
      providerID: `linode://${id}`,
      instanceType: plan.id,
      zone: region.id,
      capacityType: 'on-demand',
      price: hourlyPrice(plan, region.id),
      launchedAt: this.#clock.now(),
      ...(claim ? { claim } : {}),
      ...(pool ? { pool: pool.id } : {}),
    };
    this.#all.push(booked);
    this.#alive.set(id, booked);
    this.#lookForSurplus();
    return booked;
  }

  /** At no time has a NodeClaim two pools or two Linodes. */
  #lookForSurplus(): void {
    const seen = new Map<string, string>();
    const look = (claim: Claim, what: string): void => {
      const other = seen.get(claim.uid);
      if (other) {
        const message = `NodeClaim ${claim.name} has ${other} and ${what}`;
        if (!this.offences.some((known) => known.message === message)) this.offences.push({ kind: 'surplus', message });
      }
      seen.set(claim.uid, what);
    };
    for (const { id, claim } of this.pools()) look(claim, `pool ${id}`);
    for (const { id, claim, pool, deletingAt } of this.#alive.values())
      if (claim && pool === undefined && deletingAt === undefined) look(claim, `Linode ${id}`);
  }
}

function claimOf(tags: readonly string[]): Claim | undefined {
  for (const tag of tags) {
    const parts = uidTag.exec(tag);
    if (!parts) continue;
    const name = tags.map((other) => nameTag.exec(other)?.[1]).find((found) => found !== undefined) ?? '';
    return { name, uid: parts.slice(1).join('-') };
  }
  return undefined;
}
