// SPDX-License-Identifier: Apache-2.0
// The node pools of our LKE cluster as the API lists them, put right by what we have just done ourselves: lists lag. One
// list serves everybody who asks at the same time.
import type { Clock } from '../../base/clock.ts';
import { isGone } from './api-errors.ts';
import type { LinodeInstance, LkePool, LkePoolNode } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import { fullUid, tagKeys, tagValue } from './names.ts';
import { sharedAfter, waitFor } from './shared-call.ts';
import { type Member, membersOf, sharedBy } from './shared-pool.ts';

/** A pool of ours. */
export interface OwnPool extends LkePool {
  /** The UID of the NodeClaim it was made for; undefined for pools that NodeClaims share: ours and the upstream provider's. */
  readonly claimUid: string | undefined;
  /** The NodeClaims that share it by our record; undefined where there is none. */
  readonly members: readonly Member[] | undefined;
  /** We have asked for its removal. */
  readonly deleting: boolean;
}

export interface PoolsOptions {
  readonly client: LinodeClient;
  readonly cluster: () => Promise<{ readonly id: number; readonly tier: 'standard' | 'enterprise' }>;
  readonly clock: Clock;
  /** The least time between two lists for those who wait for a change. */
  readonly pollMs: number;
}

/** How long the API's lists may lag behind what it has answered to us. */
const lagMs = 60_000;

/** What the pools are at one time. */
export class PoolView {
  readonly own: readonly OwnPool[];
  readonly #byUid = new Map<string, OwnPool[]>();
  readonly #byInstance = new Map<number, OwnPool>();

  readonly #foreign: ReadonlySet<number>;

  constructor(own: readonly OwnPool[], foreign: Iterable<LkePool> = []) {
    this.own = own;
    this.#foreign = new Set([...foreign].flatMap(({ nodes }) => (nodes ?? []).map(({ instance_id: id }) => id ?? 0)));
    for (const pool of own) {
      const uids = pool.members?.map(({ uid }) => uid) ?? (pool.claimUid === undefined ? [] : [pool.claimUid]);
      for (const uid of uids) this.#byUid.set(uid, [...(this.#byUid.get(uid) ?? []), pool]);
      for (const { instance_id: id } of pool.nodes) if (id) this.#byInstance.set(id, pool);
    }
  }

  /** The pools of a NodeClaim, oldest first. More than one is one too many. */
  ofClaim(uid: string): readonly OwnPool[] {
    return this.#byUid.get(uid) ?? [];
  }

  withInstance(linodeId: number): OwnPool | undefined {
    return this.#byInstance.get(linodeId);
  }

  /** Whether a Linode is in a pool that others made. */
  isForeign(linodeId: number): boolean {
    return this.#foreign.has(linodeId);
  }

  withId(poolId: number): OwnPool | undefined {
    return this.own.find(({ id }) => id === poolId);
  }
}

export class Pools {
  readonly #options: PoolsOptions;
  readonly #list: () => Promise<PoolView>;
  /** What we made and when, until lists have it. */
  readonly #made = new Map<number, { readonly pool: LkePool; readonly at: number }>();
  /** What we removed and when, until lists no longer have it. */
  readonly #removed = new Map<number, number>();
  /** What we changed and when, until lists must have it. */
  readonly #changed = new Map<number, number>();
  readonly #signal = new AbortController().signal;
  #last: { readonly view: PoolView; readonly at: number } | undefined;
  #tick: Promise<PoolView> | undefined;

  constructor(options: PoolsOptions) {
    this.#options = options;
    this.#list = sharedAfter(() => this.#read());
  }

  /** The pools as of now or later. */
  fresh(signal: AbortSignal): Promise<PoolView> {
    return waitFor(this.#list(), signal);
  }

  /** The pools as of at most `maxAgeMs` ago. */
  async recent(maxAgeMs: number, signal: AbortSignal): Promise<PoolView> {
    const last = this.#last;
    if (last && this.#options.clock.monotonic() - last.at <= maxAgeMs) return last.view;
    return this.fresh(signal);
  }

  /** The pools a while from now: everybody who waits waits for the same list. */
  next(signal: AbortSignal): Promise<PoolView> {
    const { clock, pollMs } = this.#options;
    this.#tick ??= clock.sleep(pollMs).then(() => {
      this.#tick = undefined;
      return this.#list();
    });
    return waitFor(this.#tick, signal);
  }

  /** The API answered that it made this one. */
  made(pool: LkePool): void {
    this.#made.set(pool.id, { pool, at: this.#options.clock.monotonic() });
    this.#last = undefined;
  }

  /** The API answered that it removes this one, or that it is gone. */
  removed(poolId: number): void {
    this.#removed.set(poolId, this.#options.clock.monotonic());
    this.#made.delete(poolId);
    this.#last = undefined;
  }

  /** The API answered that it changed this one. */
  changed(poolId: number): void {
    this.#changed.set(poolId, this.#options.clock.monotonic());
    this.#last = undefined;
  }

  async #read(): Promise<PoolView> {
    const { client, cluster, clock } = this.#options;
    const { id, tier } = await cluster();
    const startedAt = clock.monotonic();
    const listed = await client.list<LkePool>(`lke/clusters/${id}/pools`, { signal: this.#signal });
    const known = new Set(listed.map((pool) => pool.id));
    const missing = await Promise.all(
      [...this.#made.values()]
        .filter(({ pool }) => !known.has(pool.id) && !this.#removed.has(pool.id))
        .map(({ pool, at }) => this.#look(id, pool, at)),
    );
    const current = await Promise.all(listed.map((pool) => this.#current(id, pool)));
    const pools = [...current, ...missing].flatMap((pool) => (pool ? [pool] : []));
    const own = pools.filter((pool) => isOwn(pool)).map((pool) => this.#own(pool));
    const complete = tier === 'enterprise' ? await this.#withMachines(own, id) : own;
    const view = new PoolView(
      complete.sort((a, b) => a.id - b.id),
      pools.filter((pool) => !isOwn(pool)),
    );
    this.#forget(startedAt, known);
    this.#last = { view, at: startedAt };
    return view;
  }

  /** One pool as the API has it now, past every list; undefined when it is gone. */
  async one(poolId: number, signal: AbortSignal): Promise<LkePool | undefined> {
    const { client, cluster } = this.#options;
    const { id, tier } = await cluster();
    try {
      const pool = await client.get<LkePool>(`lke/clusters/${id}/pools/${poolId}`, signal);
      const known = { ...pool, nodes: pool.nodes ?? [] };
      return tier === 'enterprise' && known.nodes.length < known.count
        ? withNodes(known, await this.#marked(id))
        : known;
    } catch (error) {
      if (!isGone(error)) throw error;
      return undefined;
    }
  }

  /**
   * Enterprise clusters list the nodes of a new pool up to a minute late, and mark its Linodes at once: with the pool and
   * the cluster. Both are checked here as well, because a filter that is not understood lets everything through.
   */
  async #withMachines(own: readonly OwnPool[], clusterId: number): Promise<OwnPool[]> {
    const isComplete = (pool: OwnPool): boolean => (pool.members ? pool.nodes.length >= pool.count : !!machineOf(pool));
    if (own.every(isComplete)) return [...own];
    const linodes = await this.#marked(clusterId);
    return own.map((pool) => (isComplete(pool) ? pool : withNodes(pool, linodes)));
  }

  async #marked(clusterId: number): Promise<LinodeInstance[]> {
    const filter = { '+and': [{ tags: { '+contains': `lke${clusterId}` } }, { tags: { '+contains': tagKeys.uid } }] };
    const linodes = await this.#options.client.list<LinodeInstance>('linode/instances', {
      filter,
      signal: this.#signal,
    });
    return linodes.filter(({ lke_cluster_id: of, status }) => of === clusterId && status !== 'deleting');
  }

  /** A pool that was changed a moment ago may be listed as it was before. */
  async #current(clusterId: number, pool: LkePool): Promise<LkePool | undefined> {
    if (!this.#changed.has(pool.id) || this.#removed.has(pool.id)) return pool;
    try {
      return await this.#options.client.get<LkePool>(`lke/clusters/${clusterId}/pools/${pool.id}`, this.#signal);
    } catch (error) {
      if (!isGone(error)) throw error;
      return undefined;
    }
  }

  /** What a list left out though we made it: either the list lags, or somebody removed it. */
  async #look(clusterId: number, pool: LkePool, madeAt: number): Promise<LkePool | undefined> {
    const { client, clock } = this.#options;
    try {
      return await client.get<LkePool>(`lke/clusters/${clusterId}/pools/${pool.id}`, this.#signal);
    } catch (error) {
      if (!isGone(error)) throw error;
      return clock.monotonic() - madeAt < lagMs / 4 ? pool : undefined;
    }
  }

  #own(pool: LkePool): OwnPool {
    const isShared = sharedBy(pool) !== undefined;
    return {
      ...pool,
      nodes: pool.nodes ?? [],
      claimUid: isShared ? undefined : fullUid(tagValue(pool.tags, tagKeys.uid)),
      members: isShared ? membersOf(pool) : undefined,
      deleting: this.#removed.has(pool.id),
    };
  }

  #forget(now: number, listed: ReadonlySet<number>): void {
    for (const [id, { at }] of this.#made) if (listed.has(id) || now - at > lagMs) this.#made.delete(id);
    for (const [id, at] of this.#changed) if (now - at > lagMs) this.#changed.delete(id);
    // What is still listed long after was not removed after all: it is asked for again.
    for (const [id, at] of this.#removed) if (now - at > lagMs) this.#removed.delete(id);
  }
}

/** A pool with those of its Linodes that it does not list yet; the ids of their nodes are not known. */
function withNodes<P extends LkePool>(pool: P, linodes: readonly LinodeInstance[]): P {
  const listed = new Set(pool.nodes.map(({ instance_id: id }) => id));
  const more = linodes.filter(({ id, tags }) => !listed.has(id) && tagValue(tags, 'nodepool') === String(pool.id));
  return {
    ...pool,
    nodes: [...pool.nodes, ...more.map(({ id }) => ({ id: '', instance_id: id, status: 'not_ready' }))],
  };
}

/** Made by us, or by the upstream provider. */
function isOwn({ tags }: LkePool): boolean {
  return (
    Array.isArray(tags) &&
    (fullUid(tagValue(tags, tagKeys.uid)) !== undefined || tagValue(tags, tagKeys.managed) === 'true')
  );
}

/** The machine of a pool, once LKE has named it. */
export function machineOf({ nodes }: LkePool): (LkePoolNode & { readonly instance_id: number }) | undefined {
  return nodes.find((node): node is LkePoolNode & { readonly instance_id: number } => Boolean(node.instance_id));
}
