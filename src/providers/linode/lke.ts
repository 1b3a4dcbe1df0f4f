// SPDX-License-Identifier: Apache-2.0
// LKE mode: one node pool for each NodeClaim, of one node, found again by the NodeClaim's UID in its tags. So labels,
// taints, firewall and version are each NodeClaim's own, and no count is ever raised. Behind a setting NodeClaims that agree
// in all of that share pools: see shared-pools.ts.
import { labels as wellKnown } from '../../api/labels.ts';
import type { LinodeNodeClass } from '../../api/linode-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Taint } from '../../api/shared-schemas.ts';
import { unregisteredTaint } from '../../api/taints.ts';
import type { Clock } from '../../base/clock.ts';
import { planted } from '../../base/defects.ts';
import { messageOf } from '../../base/errors.ts';
import { compareStrings } from '../../base/order.ts';
import { CreateError, InsufficientCapacityError, NodeClaimNotFoundError } from '../../cloud/errors.ts';
import { parseTime } from '../../kube/time.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Account, Place } from './account.ts';
import { isGone, isTemporary, isUncertain, LinodeApiError, shortageOf } from './api-errors.ts';
import type { LinodeInstance, LkePool, LkeTaint } from './api-types.ts';
import type { LinodeClient } from './client.ts';
import { driftReasons, poolDrift } from './drift.ts';
import { Firewalls } from './firewalls.ts';
import { changedTags, type Launch, type Machine, type Machines, type Planner, type TagChange } from './machines.ts';
import {
  bareUid,
  fullUid,
  holdIdOf,
  linodeGroup,
  linodeIdOf,
  ownedTag,
  poolIdOfHold,
  providerIdOf,
  sha256,
  tagKeys,
  tagOf,
  tagValue,
} from './names.ts';
import { nodeClassHash } from './node-class.ts';
import { machineOf, type OwnPool, Pools, type PoolView } from './pools.ts';
import type { LinodeConfiguration } from './settings.ts';
import { KeyedLock } from './shared-call.ts';
import { isRecord, isSeated, type Member, membersOf, sharedBy, shortUid } from './shared-pool.ts';
import { SharedPools } from './shared-pools.ts';
import type { UnavailablePlans } from './unavailable.ts';

export interface LkeMachinesOptions {
  readonly client: LinodeClient;
  readonly account: Account;
  readonly unavailable: UnavailablePlans;
  readonly configuration: Pick<LinodeConfiguration, 'clusterName' | 'createDeadlineMs' | 'retryDelayMs' | 'sharePools'>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long after a request that was never answered its pool may still turn up. */
const uncertainMs = 20_000;
/** How old an answer may be for those who only look. */
const lookMs = 5000;
/** LKE names the Linode of a pool within a minute, where there is one to be had. */
const patienceMs = 2 * 60_000;
const hashTag = `${linodeGroup}/hash`;

type Lke = NonNullable<Place['lke']>;

export class LkeMachines implements Machines {
  readonly #options: LkeMachinesOptions;
  readonly #pools: Pools;
  readonly #shared: SharedPools;
  readonly #firewalls: Firewalls;
  readonly #lock = new KeyedLock();
  /** When a pool was last asked for without an answer, by UID. */
  readonly #uncertain = new Map<string, number>();

  constructor(options: LkeMachinesOptions) {
    this.#options = options;
    const { client, clock, configuration } = options;
    this.#firewalls = new Firewalls(client, clock);
    this.#pools = new Pools({
      client,
      clock,
      cluster: () => this.#cluster(),
      pollMs: configuration.retryDelayMs,
    });
    this.#shared = new SharedPools({
      client,
      clock,
      pools: this.#pools,
      cluster: () => this.#cluster(),
      onUncertain: (uids) => {
        for (const uid of uids) this.#uncertain.set(uid, clock.monotonic());
      },
    });
  }

  create(claim: NodeClaim, planner: Planner, signal: AbortSignal): Promise<Machine> {
    // One at a time for a NodeClaim: whoever comes second finds what the first has made.
    return this.#lock.hold(claim.metadata.uid ?? '', () => this.#create(claim, planner, signal));
  }

  async #create(claim: NodeClaim, planner: Planner, signal: AbortSignal): Promise<Machine> {
    const { clock, configuration } = this.#options;
    signal.throwIfAborted();
    const uid = claim.metadata.uid ?? '';
    const before = await this.#existing(uid, signal);
    const pool = before ?? (await this.#launch(claim, await planner.plan(), signal));
    const deadline = clock.monotonic() + configuration.createDeadlineMs;
    let found: OwnPool | LkePool | undefined = pool;
    for (;;) {
      if (!found) {
        const message = `node pool ${pool.id} is gone before LKE put a Linode into it`;
        throw new CreateError(message, { reason: 'NodePoolGone', message });
      }
      const linode = await this.#linodeIn(found, uid, signal);
      if (linode !== undefined) {
        await this.#guard(linode, planner.nodeClass, signal);
        return this.#machine(found, providerIdOf(linode), uid);
      }
      if (clock.monotonic() >= deadline) {
        const message = `LKE has not put a Linode into node pool ${pool.id} yet`;
        throw new CreateError(message, { reason: 'NodePoolProvisioning', message });
      }
      try {
        found = (await this.#pools.next(signal)).withId(pool.id);
      } catch (error) {
        // The pool is there; only looking failed.
        if (signal.aborted || !isTemporary(error)) throw error;
        await clock.sleep(configuration.retryDelayMs, signal);
      }
    }
  }

  /** The Linode that LKE has put into the pool for a NodeClaim; undefined as long as there is none. */
  async #linodeIn(pool: OwnPool | LkePool, uid: string, signal: AbortSignal): Promise<number | undefined> {
    if (sharedBy(pool) === undefined) return machineOf(pool)?.instance_id;
    try {
      return await this.#shared.seat(pool, uid, signal);
    } catch (error) {
      // It stays recorded, and is asked for again.
      if (signal.aborted || !isTemporary(error)) throw error;
      return undefined;
    }
  }

  /** Pools of standard clusters know no firewall: there it is put on the Linode itself. */
  async #guard(linodeId: number, nodeClass: LinodeNodeClass | undefined, signal: AbortSignal): Promise<void> {
    const firewallID = nodeClass?.spec?.firewallID;
    if (firewallID === undefined || (await this.#cluster()).tier === 'enterprise') return;
    try {
      const device = { id: linodeId, type: 'linode' };
      await this.#options.client.post(`networking/firewalls/${firewallID}/devices`, device, signal);
    } catch (error) {
      const isThere = error instanceof LinodeApiError && /already|exists|assigned/i.test(error.message);
      if (!isThere) throw asCreateError(error);
    }
  }

  /**
   * The pool that was made for a NodeClaim before. After a request that was never answered it is waited for until it can
   * no longer turn up: only then may another one be asked for.
   */
  async #existing(uid: string, signal: AbortSignal): Promise<OwnPool | undefined> {
    const { clock } = this.#options;
    let view = await this.#pools.fresh(signal);
    const asked = planted('linode-forgets-what-it-asked') ? undefined : this.#uncertain.get(uid);
    while (asked !== undefined && view.ofClaim(uid).length === 0 && clock.monotonic() - asked < uncertainMs) {
      view = await this.#pools.next(signal);
    }
    this.#uncertain.delete(uid);
    if (planted('linode-launches-again')) return undefined;
    const [first, ...others] = view.ofClaim(uid).filter(({ deleting, members }) => {
      return !deleting && !members?.some((member) => member.uid === uid && member.leaving);
    });
    for (const other of others) await this.#removeSurplus(other, uid, signal);
    return first;
  }

  /** Two requests were carried out where one was meant, by processes that could not know of each other. */
  async #removeSurplus(pool: OwnPool, uid: string, signal: AbortSignal): Promise<void> {
    this.#options.log.warn('removing a second node pool of a nodeclaim', { pool: pool.id, uid });
    if (pool.members) await this.#shared.leave(pool, uid, undefined, signal);
    else await this.#removePool(pool.id, signal);
  }

  /** Asks for a pool, plan by plan until one can be had. */
  async #launch(claim: NodeClaim, launch: Launch, signal: AbortSignal): Promise<LkePool> {
    const { client, unavailable, log, clock, configuration } = this.#options;
    const uid = claim.metadata.uid ?? '';
    const cluster = await this.#cluster();
    const refused: string[] = [];
    for (const { name: type } of launch.choices) {
      signal.throwIfAborted();
      try {
        if (configuration.sharePools) {
          const order = this.#sharedRequest(claim, launch.nodeClass, type, cluster);
          return await this.#shared.join(keyOf(order), uid, order, signal);
        }
        const order = this.#request(claim, launch.nodeClass, type, cluster);
        const made = await client.post<LkePool>(`lke/clusters/${cluster.id}/pools`, order, signal);
        const pool = { ...made, nodes: made.nodes ?? [] };
        this.#pools.made(pool);
        return pool;
      } catch (error) {
        const shortage = shortageOf(error);
        if (isUncertain(error) || signal.aborted) this.#uncertain.set(uid, clock.monotonic());
        if (shortage === 'limit') {
          unavailable.markAll();
          throw new InsufficientCapacityError(`Linode allows no more: ${messageOf(error)}`, { cause: error });
        }
        if (shortage === undefined) throw asCreateError(error);
        unavailable.mark(type);
        log.info('a plan is sold out', { 'instance-type': type, error: messageOf(error) });
        refused.push(type);
      }
    }
    throw new InsufficientCapacityError(`sold out: ${refused.join(', ')}`);
  }

  /**
   * What is written on a pool for all who share it. Taints that a node sheds after its birth are not: as the next node
   * needs them the pool would have to keep them, and LKE may put taints of the pool back on its nodes at any time.
   */
  #sharedRequest(claim: NodeClaim, nodeClass: LinodeNodeClass, type: string, cluster: Lke) {
    const whole = this.#request(claim, nodeClass, type, cluster);
    const tags = whole.tags.filter((tag) => !isRecord(tag) && !tag.startsWith(`${tagKeys.nodeClaim}=`));
    return { ...whole, tags, taints: taintsOf(claim.spec.taints ?? []) };
  }

  #request(claim: NodeClaim, nodeClass: LinodeNodeClass, type: string, { tier }: Lke) {
    const { firewallID, lkeK8sVersion, diskEncryption } = nodeClass.spec ?? {};
    return {
      count: 1,
      type,
      tags: this.#tags(claim, nodeClass),
      labels: nodeLabels(claim),
      taints: poolTaints(claim),
      ...(tier === 'enterprise' && firewallID ? { firewall_id: firewallID } : {}),
      ...(diskEncryption ? { disk_encryption: diskEncryption } : {}),
      ...(tier === 'enterprise' && lkeK8sVersion ? { k8s_version: lkeK8sVersion } : {}),
      ...(tier === 'enterprise' ? { update_strategy: 'on_recycle' } : {}),
    };
  }

  #tags(claim: NodeClaim, nodeClass: LinodeNodeClass): string[] {
    const { clusterName } = this.#options.configuration;
    const pool = claim.metadata.labels?.[wellKnown.nodePool];
    const own = [
      `${tagKeys.uid}=${bareUid(claim.metadata.uid ?? '')}`,
      tagOf(tagKeys.nodeClaim, claim.metadata.name ?? ''),
      ...(pool === undefined ? [] : [tagOf(tagKeys.nodePool, pool)]),
      tagOf(tagKeys.nodeClass, claim.spec.nodeClassRef.name),
      `${tagKeys.managed}=true`,
      tagOf(tagKeys.clusterName, clusterName),
      ownedTag(clusterName),
      tagOf(hashTag, nodeClassHash(nodeClass)),
    ];
    return [...new Set([...own, ...(nodeClass.spec?.tags ?? [])])].sort();
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const uid = claim.metadata.uid ?? '';
    const providerID = claim.status?.providerID ?? '';
    const view = await this.#pools.fresh(signal).catch((error: unknown) => {
      throw planted('linode-failure-is-gone') ? new NodeClaimNotFoundError(messageOf(error)) : error;
    });
    const pools = new Set(view.ofClaim(uid));
    const named = this.#poolNamed(view, providerID);
    // A pool of the upstream provider carries no UID; one with another NodeClaim's is not this one's to remove.
    if (named && named.claimUid === undefined && !isSeatOfAnother(named, uid, providerID)) pools.add(named);
    for (const pool of pools) {
      this.#learnFrom(pool, claim);
      await this.#remove(pool, uid, providerID, signal);
    }
    if (pools.size > 0 && [...pools].some(({ deleting }) => !deleting)) return;
    if (await this.#exists(view, providerID, signal)) return;
    if (pools.size > 0) return;
    throw new NodeClaimNotFoundError(`the node pool of NodeClaim ${claim.metadata.name} is gone`);
  }

  /** LKE takes orders for plans that it does not have. What it never delivered is not to be had. */
  #learnFrom(pool: OwnPool, { metadata }: NodeClaim): void {
    const { clock, unavailable, log } = this.#options;
    const { creationTimestamp } = metadata;
    const waitedMs = creationTimestamp ? clock.now() - parseTime(creationTimestamp) : 0;
    const isWaiting = pool.members
      ? pool.members.some((member) => member.uid === metadata.uid && !member.leaving && member.linode === undefined)
      : pool.claimUid !== undefined && !machineOf(pool);
    if (!isWaiting || pool.deleting || waitedMs < patienceMs) return;
    unavailable.mark(pool.type);
    log.info('a plan was ordered and never came', { 'instance-type': pool.type, pool: pool.id, waitedMs });
  }

  /** The whole pool where it has one node, else the node alone: NodeClaims share pools of the upstream provider. */
  async #remove(pool: OwnPool, uid: string, providerID: string, signal: AbortSignal): Promise<void> {
    if (pool.deleting) return;
    if (pool.members) return this.#shared.leave(pool, uid, linodeIdOf(providerID), signal);
    if (pool.claimUid !== undefined || pool.nodes.length <= 1) return this.#removePool(pool.id, signal);
    const { client } = this.#options;
    const id = linodeIdOf(providerID);
    const node = pool.nodes.find(({ instance_id }) => instance_id === id);
    if (!node) return;
    await ignoreGone(client.delete(`lke/clusters/${(await this.#cluster()).id}/nodes/${node.id}`, signal));
  }

  async #removePool(id: number, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    await ignoreGone(client.delete(`lke/clusters/${(await this.#cluster()).id}/pools/${id}`, signal));
    this.#pools.removed(id);
  }

  /** Whether the Linode itself is still there: a pool goes first, its Linode after it. */
  async #exists(view: PoolView, providerID: string, signal: AbortSignal): Promise<boolean> {
    const linode = await this.#linode(providerID, signal);
    return linode !== undefined && !view.isForeign(linode.id);
  }

  /** The Linode of a provider id, if it belongs to our cluster. */
  async #linode(providerID: string, signal: AbortSignal): Promise<LinodeInstance | undefined> {
    const id = linodeIdOf(providerID);
    if (id === undefined) return undefined;
    try {
      const linode = await this.#options.client.get<LinodeInstance>(`linode/instances/${id}`, signal);
      return linode.lke_cluster_id === (await this.#cluster()).id ? linode : undefined;
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  async get(providerID: string, signal: AbortSignal): Promise<Machine> {
    if (linodeIdOf(providerID) === undefined && poolIdOfHold(providerID) === undefined) {
      throw new NodeClaimNotFoundError(`${providerID} is no machine of Linode`);
    }
    const known = this.#poolNamed(await this.#pools.recent(lookMs, signal), providerID);
    if (known) return this.#machine(known, providerID);
    const view = await this.#pools.fresh(signal);
    const pool = this.#poolNamed(view, providerID);
    if (pool) return this.#machine(pool, providerID);
    const linode = await this.#linode(providerID, signal);
    if (!linode || view.isForeign(linode.id)) throw new NodeClaimNotFoundError(`there is no machine ${providerID}`);
    return this.#stray(linode, signal);
  }

  /** A Linode of our cluster that is in no pool: its pool is gone and it follows, or LKE has not listed it yet. */
  async #stray(linode: LinodeInstance, signal: AbortSignal): Promise<Machine> {
    // Enterprise clusters copy the tags of a pool, with all who share it.
    const uid = sharedBy(linode) === undefined ? fullUid(tagValue(linode.tags, tagKeys.uid)) : undefined;
    const pool = uid === undefined ? undefined : (await this.#pools.recent(lookMs, signal)).ofClaim(uid)[0];
    return {
      providerID: providerIdOf(linode.id),
      type: linode.type ?? '',
      region: linode.region,
      labels: {},
      ...(uid === undefined ? {} : { nodeClaim: { name: tagValue(linode.tags, tagKeys.nodeClaim) ?? '', uid } }),
      deleting: pool === undefined || pool.deleting,
    };
  }

  async list(signal: AbortSignal): Promise<readonly Machine[]> {
    const view = await this.#pools.fresh(signal);
    const machines: Machine[] = [];
    for (const pool of view.own) {
      const ids = pool.nodes.flatMap(({ instance_id: id }) => (id ? [providerIdOf(id)] : []));
      for (const member of pool.members ?? []) {
        if (!isSeated(pool, member)) machines.push(await this.#machine(pool, undefined, member.uid));
      }
      const named = ids.length > 0 ? ids : pool.claimUid === undefined ? [] : [holdIdOf(pool.id)];
      for (const id of named) machines.push(await this.#machine(pool, id));
    }
    return machines;
  }

  async drift(claim: NodeClaim, nodeClass: LinodeNodeClass, signal: AbortSignal): Promise<string> {
    const view = await this.#pools.recent(lookMs, signal);
    const pool = view.ofClaim(claim.metadata.uid ?? '')[0] ?? this.#poolNamed(view, claim.status?.providerID ?? '');
    if (!pool || pool.deleting) return '';
    const reason = poolDrift(pool, claim, nodeClass.spec ?? {});
    if (reason !== '' || nodeClass.spec?.firewallID === undefined) return reason;
    const linode = linodeIdOf(claim.status?.providerID ?? '');
    if (linode === undefined || (await this.#cluster()).tier === 'enterprise') return '';
    // Only one that is open: where something puts another firewall on all nodes, a replacement would get that one, too.
    const isOpen = view.withInstance(linode) && (await this.#firewalls.of(linode, signal)).length === 0;
    return isOpen ? driftReasons.firewall : '';
  }

  async tag(claim: NodeClaim, change: TagChange, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const view = await this.#pools.recent(lookMs, signal);
    const providerID = claim.status?.providerID ?? '';
    for (const pool of view.ofClaim(claim.metadata.uid ?? '')) {
      // The name of a Node is no matter of a pool that has many.
      const own = pool.members ? { ...change, add: change.add.filter((tag) => !isNodeName(tag)) } : change;
      const tags = changedTags(pool.tags, own);
      if (!tags) continue;
      if (pool.members) await this.#shared.retag(pool, own, signal);
      else await client.put(`lke/clusters/${(await this.#cluster()).id}/pools/${pool.id}`, { tags }, signal);
    }
    const linode = await this.#linode(providerID, signal);
    if (!linode) throw new NodeClaimNotFoundError(`there is no machine ${providerID}`);
    // The view is as it was before the change.
    const own = linodeTags(view.ofClaim(claim.metadata.uid ?? '')[0], claim).filter(
      (tag) => !change.remove.includes(tag),
    );
    const others = linode.tags.filter((tag) => isRecord(tag) && !own.includes(tag));
    const tags = changedTags(linode.tags, { add: [...own, ...change.add], remove: [...change.remove, ...others] });
    if (tags) await client.put(`linode/instances/${linode.id}`, { tags }, signal);
  }

  /** LKE may put taints of the pool back on its node: those that the node is rid of go from the pool as well. */
  async settle(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    const wanted = taintsOf(claim.spec.taints ?? []);
    for (const pool of (await this.#pools.recent(lookMs, signal)).ofClaim(claim.metadata.uid ?? '')) {
      if (pool.deleting || pool.members || !(pool.taints ?? []).some(({ key }) => key === unregisteredTaint.key))
        continue;
      await client.put(`lke/clusters/${(await this.#cluster()).id}/pools/${pool.id}`, { taints: wanted }, signal);
    }
  }

  #poolNamed(view: PoolView, providerID: string): OwnPool | undefined {
    const hold = poolIdOfHold(providerID);
    const id = linodeIdOf(providerID);
    if (hold === undefined) return id === undefined ? undefined : view.withInstance(id);
    const pool = view.withId(hold);
    // A shared pool outlives those who waited in it: a place in its queue is gone with whose it was.
    return pool?.members?.every((member) => !isNamed(pool, member, providerID)) ? undefined : pool;
  }

  /** A machine of a pool; in a shared one that of this NodeClaim, or the one whose Linode the provider id names. */
  async #machine(pool: LkePool | OwnPool, providerID?: string, member?: string): Promise<Machine> {
    const { region } = await this.#options.account.place();
    const isShared = sharedBy(pool) !== undefined;
    const uid = isShared
      ? (member ?? membersOf(pool).find((one) => isNamed(pool, one, providerID ?? ''))?.uid)
      : fullUid(tagValue(pool.tags, tagKeys.uid));
    const instance = isShared ? undefined : machineOf(pool);
    const hold = holdIdOf(pool.id, isShared ? shortUid(member ?? '') : undefined);
    return {
      providerID: providerID ?? (instance ? providerIdOf(instance.instance_id) : hold),
      type: pool.type,
      region: region.id,
      labels: ownLabels(pool.labels ?? {}),
      nodeClassHash: tagValue(pool.tags, hashTag),
      ...(uid === undefined ? {} : { nodeClaim: { name: tagValue(pool.tags, tagKeys.nodeClaim) ?? '', uid } }),
      ...('deleting' in pool && pool.deleting ? { deleting: true } : {}),
    };
  }

  async #cluster(): Promise<Lke> {
    return (await this.#options.account.place()).lke!;
  }
}

/** Domains whose labels the kubelet, or Kubernetes, puts on a node itself. */
const foreignDomains = ['kubernetes.io', 'k8s.io', 'linode.com'];

function isForeign(key: string): boolean {
  const [domain, name] = key.includes('/') ? key.split('/', 2) : ['', key];
  return name === '' || foreignDomains.some((of) => domain === of || domain!.endsWith(`.${of}`));
}

/** The labels of a NodeClaim that its node can have from its birth. The others come with registration. */
export function nodeLabels({ metadata }: NodeClaim): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata.labels ?? {}).filter(([key]) => !isForeign(key)));
}

/** The taints of a node from its birth: nothing runs on it before it is registered. */
function poolTaints({ spec }: NodeClaim): LkeTaint[] {
  return taintsOf([...(spec.taints ?? []), ...(spec.startupTaints ?? []), unregisteredTaint]);
}

function taintsOf(taints: readonly Taint[]): LkeTaint[] {
  const byKey = new Map(taints.map((taint) => [`${taint.key}:${taint.effect}`, taint]));
  return [...byKey.values()].map(({ key, value, effect }) => ({ key, ...(value ? { value } : {}), effect }));
}

/** What registration and NodePools told the pool: which pool and class the machine is of. */
function ownLabels(of: Readonly<Record<string, string>>): Record<string, string> {
  const kept = [wellKnown.nodePool, `${linodeGroup}/linodenodeclass`];
  return Object.fromEntries(kept.flatMap((key) => (of[key] === undefined ? [] : [[key, of[key]]])));
}

/** The tags that a Linode shares with its pool. Enterprise clusters copy them, standard ones do not. */
function linodeTags(pool: OwnPool | undefined, { metadata }: NodeClaim): string[] {
  const tags = (pool?.tags ?? []).filter((tag) => !tag.startsWith(`${hashTag}=`));
  if (!pool?.members) return tags;
  const own = [`${tagKeys.uid}=${bareUid(metadata.uid ?? '')}`, tagOf(tagKeys.nodeClaim, metadata.name ?? '')];
  return [...tags.filter((tag) => !isRecord(tag)), ...own];
}

function isNodeName(tag: string): boolean {
  return tag.startsWith(`${tagKeys.name}=`);
}

/** What all nodes of a shared pool have in common, in 16 digits. Tags are changed in place; hash and class are in them. */
function keyOf(order: { readonly tags: readonly string[] }): string {
  const common = { ...order, tags: order.tags.filter((tag) => /^karpenter\.(?:sh|k8s\.linode)\//.test(tag)).sort() };
  return sha256(JSON.stringify(common, (_, value: unknown) => inOrder(value))).slice(0, 16);
}

function inOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => compareStrings(a, b)));
}

/** Whether a provider id names the machine of a member: its Linode, or its place in the queue. */
function isNamed(pool: LkePool, { uid, linode }: Member, providerID: string): boolean {
  return (
    providerID === holdIdOf(pool.id, shortUid(uid)) || (linode !== undefined && providerID === providerIdOf(linode))
  );
}

function isSeatOfAnother(pool: OwnPool, uid: string, providerID: string): boolean {
  return pool.members?.some((member) => member.uid !== uid && isNamed(pool, member, providerID)) ?? false;
}

async function ignoreGone(call: Promise<void>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isGone(error)) throw error;
  }
}

/** A refusal that is the request's own fault is shown on the NodeClaim; everything else is only tried again. */
function asCreateError(error: unknown): unknown {
  if (!(error instanceof LinodeApiError) || isTemporary(error) || error.status === 401) return error;
  const message = messageOf(error);
  return new CreateError(message, { reason: 'NodePoolCreationFailed', message }, { cause: error });
}
