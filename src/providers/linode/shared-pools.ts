// SPDX-License-Identifier: Apache-2.0
// Node pools that NodeClaims share, behind a setting: fewer pools where an account may not have many. Whoever is recorded
// on a pool has a node in it or is waiting for one; how many nodes there must be follows from that record. Each step is one
// write of the whole record, made on what the API itself says of the pool a moment before, one after the other: a step that
// is repeated after a crash finds that it was done.
import type { Clock } from '../../base/clock.ts';
import { isGone, isTagLimit, isUncertain, shortageOf } from './api-errors.ts';
import type { LkePool } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import { changedTags, type TagChange } from './machines.ts';
import type { Pools } from './pools.ts';
import { KeyedLock } from './shared-call.ts';
import {
  freeNodes,
  isRecord,
  isSeated,
  type Member,
  membersOf,
  nodesFor,
  seated,
  sharedBy,
  sharedTag,
  tagsWith,
} from './shared-pool.ts';

export interface SharedPoolsOptions {
  readonly client: LinodeClient;
  readonly pools: Pools;
  readonly cluster: () => Promise<{ readonly id: number; readonly tier: 'standard' | 'enterprise' }>;
  readonly clock: Clock;
  /** A request about these NodeClaims was not answered. */
  readonly onUncertain: (uids: readonly string[]) => void;
}

/** What LKE allows in one pool. */
const mostNodes = { standard: 100, enterprise: 500 } as const;
/** How long after a write that was never answered it may still be carried out: nothing else is written meanwhile. */
const uncertainMs = 20_000;

export class SharedPools {
  readonly #options: SharedPoolsOptions;
  readonly #lock = new KeyedLock();
  /** Who waits to be recorded, by what pools are shared by: one write takes them all. */
  readonly #waiting = new Map<string, Set<string>>();
  /** What the API answered to the last write about a NodeClaim. */
  readonly #answers = new Map<string, LkePool>();
  /** When a write was last not answered. */
  readonly #unanswered = new Map<string, number>();
  /** How many tags a pool may have, as far as refusals have told. */
  #mostTags = Number.POSITIVE_INFINITY;

  constructor(options: SharedPoolsOptions) {
    this.#options = options;
  }

  /** Records a NodeClaim on a pool of this kind, a new one where none has room. Throws what the API threw. */
  async join(key: string, uid: string, order: object & { readonly tags: readonly string[] }, signal: AbortSignal) {
    const waiting = this.#waiting.get(key) ?? new Set();
    this.#waiting.set(key, waiting.add(uid));
    this.#answers.delete(uid);
    try {
      return await this.#hold(key, signal, async () => {
        const answer = this.#answers.get(uid);
        if (answer) return answer;
        const others = [...waiting].filter((other) => other !== uid);
        try {
          return await this.#record(key, [uid, ...others], order, signal);
        } catch (error) {
          // Where there is not enough for all there may be enough for one.
          if (others.length === 0 || shortageOf(error) === undefined) throw error;
          return this.#record(key, [uid], order, signal);
        }
      });
    } finally {
      waiting.delete(uid);
      if (waiting.size === 0) this.#waiting.delete(key);
    }
  }

  async #record(
    key: string,
    uids: readonly string[],
    order: object & { readonly tags: readonly string[] },
    signal: AbortSignal,
  ): Promise<LkePool> {
    const { pools, client, cluster } = this.#options;
    const { id, tier } = await cluster();
    const [first] = uids;
    const recorded = new Set<string>();
    const roomy: LkePool[] = [];
    for (const { id: poolId, deleting } of (await pools.fresh(signal)).own.filter((pool) => sharedBy(pool) === key)) {
      const pool = deleting ? undefined : await pools.one(poolId, signal);
      if (!pool) continue;
      const members = membersOf(pool);
      if (members.some((member) => member.uid === first && !member.leaving)) return pool;
      for (const { uid } of members) recorded.add(uid);
      if (pool.count < mostNodes[tier] && members.length < mostNodes[tier]) roomy.push(pool);
    }
    const missing = uids.filter((uid) => !recorded.has(uid));
    for (const pool of roomy) {
      const members = membersOf(pool);
      const some = missing.slice(0, mostNodes[tier] - Math.max(pool.count, members.length));
      const put = (_: string[], taken: readonly Member[]) => this.#put(key, pool, [...members, ...taken], signal);
      const grown = await this.#asManyAsFit(pool.tags, members, some, put);
      if (grown instanceof Error) continue;
      return grown;
    }
    const post = async (tags: string[], taken: readonly Member[]) => {
      const body = { ...order, count: taken.length, tags };
      const uidsOf = taken.map(({ uid }) => uid);
      const made = await this.#write(key, uidsOf, signal, () =>
        client.post<LkePool>(`lke/clusters/${id}/pools`, body, signal),
      );
      pools.made(made);
      return this.#remember(made);
    };
    const made = await this.#asManyAsFit([...order.tags, sharedTag(key)], [], missing.slice(0, mostNodes[tier]), post);
    if (!(made instanceof Error)) return made;
    // An empty pool takes nobody: what was learned was about something else.
    this.#mostTags = Number.POSITIVE_INFINITY;
    throw made;
  }

  /** Takes newcomers in: all of them, or as many as a pool may have tags for. Gives the refusal where that is none. */
  async #asManyAsFit(
    tags: readonly string[],
    members: readonly Member[],
    uids: readonly string[],
    write: (tags: string[], taken: readonly Member[]) => Promise<LkePool>,
  ): Promise<LkePool | Error> {
    const withSome = (some: readonly string[]) => tagsWith(tags, [...members, ...some.map(newcomer)]);
    let some = uids;
    // An empty pool is tried all the same.
    const least = members.length === 0 ? 1 : 0;
    while (some.length > least && withSome(some).length > this.#mostTags) some = some.slice(0, -1);
    if (some.length === 0 && uids.length > 0) return new Error('a pool has all the tags that it may have');
    for (;;) {
      const wanted = withSome(some);
      try {
        return await write(wanted, some.map(newcomer));
      } catch (error) {
        if (!isTagLimit(error) || !(error instanceof Error)) throw error;
        this.#mostTags = Math.min(this.#mostTags, wanted.length - 1);
        if (some.length <= 1) return error;
        some = some.slice(0, Math.ceil(some.length / 2));
      }
    }
  }

  /** The Linode of a NodeClaim in a pool; undefined as long as there is none. Those who wait are given what has come. */
  async seat(listed: LkePool, uid: string, signal: AbortSignal): Promise<number | undefined> {
    const mine = (pool: LkePool | undefined): number | undefined => {
      const member = pool && membersOf(pool).find((one) => one.uid === uid);
      return member && pool && isSeated(pool, member) ? member.linode : undefined;
    };
    const known = mine(listed);
    if (known !== undefined) return known;
    const before = membersOf(listed);
    const hasCome = freeNodes(listed, before).some(({ instance_id: id }) => id);
    const isLost = before.some((one) => one.uid === uid && one.linode !== undefined);
    if (!hasCome && !isLost && nodesFor(listed, before) <= listed.count) return undefined;
    this.#answers.delete(uid);
    return this.#hold(sharedBy(listed) ?? '', signal, async (key) => {
      const answered = mine(this.#answers.get(uid));
      if (answered !== undefined) return answered;
      const pool = await this.#options.pools.one(listed.id, signal);
      if (!pool) return undefined;
      // What nobody was told of may be lost again: its Linode died, another one comes.
      const members = membersOf(pool).map((member) =>
        member.uid === uid && !isSeated(pool, member) ? { ...member, linode: undefined } : member,
      );
      const after = seated(pool, members);
      const isWritten = after.every(({ uid: of, linode }) =>
        membersOf(pool).some((before) => before.uid === of && before.linode === linode),
      );
      if (isWritten && nodesFor(pool, after) <= pool.count) return mine(pool);
      return mine(await this.#put(key, pool, after, signal));
    });
  }

  /**
   * Removes the node of a NodeClaim, and then the NodeClaim from the record; the pool with the last of them. The record
   * stays as long as there is a node too many that cannot be named yet: asked again, it goes on.
   */
  leave(listed: LkePool, uid: string, linode: number | undefined, signal: AbortSignal): Promise<void> {
    return this.#hold(sharedBy(listed) ?? '', signal, async (key) => {
      this.#answers.delete(uid);
      const pool = await this.#options.pools.one(listed.id, signal);
      if (!pool) return;
      const recorded = membersOf(pool);
      const me = recorded.find((member) => member.uid === uid) ?? stranger(uid, linode, recorded);
      if (!isSeated(pool, me) && !recorded.includes(me)) return;
      const others = recorded.filter((member) => member.uid !== uid);
      if (others.every(({ leaving }) => leaving)) return this.#removePool(key, listed.id, signal);
      const leaving = { ...me, leaving: true };
      if (!me.leaving) await this.#put(key, pool, [...others, leaving], signal);
      const own = pool.nodes.find(({ instance_id: id }) => id !== null && id === me.linode);
      const surplus = pool.count - nodesFor(pool, [...others, leaving]);
      const node = own ?? (surplus > 0 ? freeNodes(pool, others).find(({ id }) => id !== '') : undefined);
      // LKE has not named it yet.
      if (node ? node.id === '' : surplus > 0) return;
      if (node) await this.#removeNode(key, node.id, signal);
      const left = await this.#options.pools.one(listed.id, signal);
      if (!left) return;
      const remaining = membersOf(left).filter((member) => member.uid !== uid);
      await this.#put(key, left, remaining, signal);
    });
  }

  /** Changes tags that are not about members. */
  retag(listed: LkePool, change: TagChange, signal: AbortSignal): Promise<void> {
    return this.#hold(sharedBy(listed) ?? '', signal, async (key) => {
      const pool = await this.#options.pools.one(listed.id, signal);
      const add = change.add.filter((tag) => !isRecord(tag));
      const tags = pool && changedTags(pool.tags, { add, remove: change.remove.filter((tag) => !isRecord(tag)) });
      if (pool && tags) await this.#update(key, [], pool.id, { tags }, signal);
    });
  }

  /** Writes the record, and as many nodes as it takes: never fewer than there are, which node went would be LKE's choice. */
  #put(key: string, pool: LkePool, members: readonly Member[], signal: AbortSignal): Promise<LkePool> {
    const count = Math.max(pool.count, nodesFor(pool, members));
    const body = { tags: tagsWith(pool.tags, members), ...(count > pool.count ? { count } : {}) };
    const uids = members.flatMap(({ uid, leaving, linode }) => (leaving || linode !== undefined ? [] : [uid]));
    return this.#update(key, uids, pool.id, body, signal);
  }

  async #update(key: string, uids: readonly string[], id: number, body: object, signal: AbortSignal): Promise<LkePool> {
    const { client, pools } = this.#options;
    const path = await this.#path(id);
    const answer = await this.#write(key, uids, signal, () => client.put<LkePool>(path, body, signal));
    pools.changed(id);
    return this.#remember(answer);
  }

  async #removeNode(key: string, node: string, signal: AbortSignal): Promise<void> {
    const { client, cluster } = this.#options;
    const path = `lke/clusters/${(await cluster()).id}/nodes/${node}`;
    await this.#write(key, [], signal, () => client.delete(path, signal).catch(ignoringGone));
  }

  async #removePool(key: string, id: number, signal: AbortSignal): Promise<void> {
    const { client, pools } = this.#options;
    const path = await this.#path(id);
    await this.#write(key, [], signal, () => client.delete(path, signal).catch(ignoringGone));
    pools.removed(id);
  }

  async #path(id: number): Promise<string> {
    return `lke/clusters/${(await this.#options.cluster()).id}/pools/${id}`;
  }

  #remember(pool: LkePool): LkePool {
    const whole = { ...pool, nodes: pool.nodes ?? [] };
    for (const { uid, leaving } of membersOf(whole)) if (!leaving) this.#answers.set(uid, whole);
    return whole;
  }

  async #write<R>(key: string, uids: readonly string[], signal: AbortSignal, call: () => Promise<R>): Promise<R> {
    try {
      return await call();
    } catch (error) {
      if (isUncertain(error) || signal.aborted) {
        this.#unanswered.set(key, this.#options.clock.monotonic());
        this.#options.onUncertain(uids);
      }
      throw error;
    }
  }

  /** One after the other, and nothing before a write that was not answered can no longer come. */
  #hold<R>(key: string, signal: AbortSignal, work: (key: string) => Promise<R>): Promise<R> {
    const { clock } = this.#options;
    return this.#lock.hold(key, async () => {
      signal.throwIfAborted();
      const at = this.#unanswered.get(key);
      const restMs = at === undefined ? 0 : at + uncertainMs - clock.monotonic();
      if (restMs > 0) await clock.sleep(restMs, signal);
      this.#unanswered.delete(key);
      return work(key);
    });
  }
}

const newcomer = (uid: string): Member => ({ uid, leaving: false, linode: undefined });

/** Somebody took the record away; the Linode is its own all the same, unless it is another's. */
function stranger(uid: string, linode: number | undefined, recorded: readonly Member[]): Member {
  const isTaken = recorded.some((member) => member.linode === linode);
  return { uid, leaving: false, linode: isTaken ? undefined : linode };
}

function ignoringGone(error: unknown): void {
  if (!isGone(error)) throw error;
}
