// SPDX-License-Identifier: Apache-2.0
// The books of a Linode account in a world: every Linode that ever was, whose it is, and what the autoscaler asked for that
// it may not. Kept by looking at the account itself; no fault and no list that lags behind touches them.
import type { VirtualClock } from '../../base/clock.ts';
import type { ApiRequest, LinodeApi } from '../../embedded/clouds/linode/api.ts';
import { hourlyPrice } from '../../embedded/clouds/linode/plans.ts';
import type { Ledger, LedgerInstance } from '../contract.ts';

/** As the documents name it: the tag that says for which NodeClaim a Linode or a pool was made. */
const uidTag = /^karpenter\.sh\/(?:uid|gone)=([0-9a-f]{8})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{4})([0-9a-f]{12})$/;
/** Many NodeClaims have a node in it, each named by the end of its UID. */
const sharedTag = /^karpenter\.k8s\.linode\/shared=/;
const seatTag = /^karpenter\.sh\/node=([0-9a-f]{12})\.(\d+)$/;
const nameTag = /^karpenter\.sh\/nodeclaim=(.+)$/;

interface BookedLinode extends LedgerInstance {
  readonly id: number;
  /** The node pool it came with, in LKE. */
  readonly pool?: number;
  claim?: Claim;
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
  /** Pools that are known. */
  readonly #seen = new Set<number>();
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
      if (this.#isByPeople && !this.#seen.has(id)) this.#strangers.pools.add(id);
      this.#seen.add(id);
      this.#seat(id);
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
      return this.#strangers.pools.has(id) ? [] : claimsOf(tags).map((claim) => ({ id, claim }));
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
    const claim = isStranger ? undefined : claimsOf(pool?.tags ?? tags)[0];
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
    if (pool) this.#seat(pool.id);
    this.#lookForSurplus();
    return booked;
  }

  /** In a shared pool: whose each Linode is, as far as its tags say; the others are those of whoever waits. */
  #seat(poolId: number): void {
    const tags = this.#api.ledger.pools().find(({ id }) => id === poolId)?.tags ?? [];
    if (!tags.some((tag) => sharedTag.test(tag)) || this.#strangers.pools.has(poolId)) return;
    const seats = new Map<number, string>();
    for (const tag of tags) {
      const [, uid, linode] = seatTag.exec(tag) ?? [];
      if (uid !== undefined) seats.set(Number(linode), uid);
    }
    const claims = claimsOf(tags);
    const linodes = [...this.#alive.values()].filter(({ pool }) => pool === poolId);
    const free = new Set(claims);
    const others: BookedLinode[] = [];
    for (const linode of linodes) {
      const seat = seats.get(linode.id);
      const mine = claims.find(({ uid }) => seat !== undefined && uid.endsWith(seat));
      if (mine) {
        linode.claim = mine;
        free.delete(mine);
      } else if (linode.deletingAt === undefined) others.push(linode);
    }
    for (const linode of others) {
      const [next] = free;
      if (next) linode.claim = next;
      free.delete(next!);
    }
    const standing = linodes.filter(({ deletingAt }) => deletingAt === undefined);
    // One that died is replaced by LKE before its NodeClaim is gone from the record: the record has both.
    if (standing.length > claims.length)
      this.#offend(`pool ${poolId} has ${standing.length} Linodes for ${claims.length} NodeClaims`);
    if (new Set(seats.values()).size < seats.size) this.#offend(`pool ${poolId} has two Linodes of one NodeClaim`);
  }

  #offend(message: string): void {
    if (!this.offences.some((known) => known.message === message)) this.offences.push({ kind: 'surplus', message });
  }

  /** At no time has a NodeClaim two pools or two Linodes. */
  #lookForSurplus(): void {
    const seen = new Map<string, string>();
    const look = (claim: Claim, what: string): void => {
      const other = seen.get(claim.uid);
      if (other) this.#offend(`NodeClaim ${claim.name || claim.uid} has ${other} and ${what}`);
      seen.set(claim.uid, what);
    };
    for (const { id, claim } of this.pools()) look(claim, `pool ${id}`);
    for (const { id, claim, pool, deletingAt } of this.#alive.values())
      if (claim && pool === undefined && deletingAt === undefined) look(claim, `Linode ${id}`);
  }
}

/** One, or in a shared pool many. */
function claimsOf(tags: readonly string[]): Claim[] {
  const name = tags.map((tag) => nameTag.exec(tag)?.[1]).find((found) => found !== undefined) ?? '';
  return tags.flatMap((tag) => {
    const parts = uidTag.exec(tag);
    return parts ? [{ name, uid: parts.slice(1).join('-') }] : [];
  });
}
