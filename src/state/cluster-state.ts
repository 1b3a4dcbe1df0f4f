// SPDX-License-Identifier: Apache-2.0
// The model of the cluster in memory: machines with their pods and resources, pools with their sums, pods that wait, and
// what the API server does not know (promises, marks). Informers call back synchronously and everything runs in one
// thread: whatever is read between two awaits is one consistent state.
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodePool } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import { planted } from '../base/defects.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import type { Node, Pod } from '../kube/kinds.ts';
import type { Clusters } from '../runtime/clusters.ts';
import { type Logger, silentLogger } from '../runtime/logging.ts';
import type { ReadonlyAmounts } from './amounts.ts';
import { ConsolidationStamp } from './consolidation-stamp.ts';
import { CreatedClaims } from './created-claims.ts';
import { type LaunchHold, LaunchingClaims } from './launching-claims.ts';
import { NodePods } from './node-pods.ts';
import { PodBookkeeping } from './pod-bookkeeping.ts';
import { controllerOf, isOwnedByDaemonSet, isProvisionable, isReschedulable, podId } from './pod-predicates.ts';
import { PodUsages } from './pod-usage.ts';
import { PoolTotals } from './pool-totals.ts';
import { type StateSources, stateSources } from './sources.ts';
import { StateNode } from './state-node.ts';
import { Vacancies } from './vacancies.ts';

export interface ClusterStateOptions {
  readonly clusters: Clusters;
  readonly registry: CloudRegistry;
  readonly clock: Clock;
  readonly log?: Logger;
  /** The longest batch window: a promise to pods lasts twice as long. */
  readonly batchMaxDurationMs?: number;
}

/** The shortest time a node stays promised to pods. */
const shortestNominationMs = 10_000;
const noPods = new NodePods();

/**
 * The cluster as the autoscaler sees it. Make it before the controllers that read it: its handlers run first, so that
 * whoever hears of a change finds it in here. Nodes are named by their key: the provider id.
 */
export class ClusterState {
  /** The collections behind it: for whoever needs the objects themselves. */
  readonly sources: StateSources;
  /** When pods that waited were seen, tried and placed. */
  readonly bookkeeping: PodBookkeeping;
  readonly #registry: CloudRegistry;
  readonly #clock: Clock;
  readonly #nominationMs: number;
  readonly #vacancies = new Vacancies();
  readonly #created: CreatedClaims;
  readonly #stamp: ConsolidationStamp;
  readonly #totals = new PoolTotals((pool) => {
    for (const listener of this.#usageListeners) listener(pool);
  });
  readonly #usageListeners: ((pool: string) => void)[] = [];
  readonly #usages = new PodUsages();
  readonly #nodes = new Map<string, StateNode>();
  readonly #keyByNode = new Map<string, string>();
  /** '' until the claim is launched. */
  readonly #keyByClaim = new Map<string, string>();
  readonly #launching = new LaunchingClaims();
  readonly #podsByNode = new Map<string, NodePods>();
  /** The node each pod is on, by the pod's id. */
  readonly #bindings = new Map<string, string>();
  readonly #pending = new Map<string, Pod>();
  /** Pods that are to run and have no node yet, whether kube-scheduler has come to them or not. */
  readonly #unbound = new Set<string>();
  /** The pods of each DaemonSet, `namespace/name`. */
  readonly #daemonPods = new Map<string, Map<string, Pod>>();
  #unsyncedSince: number | undefined;

  constructor(options: ClusterStateOptions) {
    const { clusters, registry, clock, log = silentLogger } = options;
    this.#registry = registry;
    this.#clock = clock;
    this.#nominationMs = Math.max(shortestNominationMs, 2 * (options.batchMaxDurationMs ?? 0));
    this.#stamp = new ConsolidationStamp(clock);
    this.bookkeeping = new PodBookkeeping(clock);
    this.sources = stateSources(clusters);
    this.#created = new CreatedClaims({
      clock,
      log,
      client: clusters.karpenter.client,
      seen: (name) => this.sources.nodeClaims.get(name) !== undefined,
      vanished: (name) => this.#removeClaim(name),
    });
    this.#follow();
  }

  #follow(): void {
    const { nodes, nodeClaims, nodePools, pods } = this.sources;
    nodes.addHandler({
      added: (node) => this.#putNode(node),
      updated: (node) => this.#putNode(node),
      deleted: (node) => this.#removeNode(node.metadata.name ?? ''),
    });
    nodeClaims.addHandler({
      added: (claim) => this.#putClaim(claim),
      updated: (claim) => this.#putClaim(claim),
      deleted: (claim) => this.#removeClaim(claim.metadata.name ?? ''),
    });
    nodePools.addHandler({
      added: () => this.markUnconsolidated(),
      updated: (pool, old) => {
        if (pool.metadata.generation !== old.metadata.generation) this.markUnconsolidated();
      },
      deleted: () => this.markUnconsolidated(),
    });
    pods.addHandler({
      added: (pod) => this.#putPod(pod),
      updated: (pod) => this.#putPod(pod),
      deleted: (pod) => this.#removePod(pod),
    });
  }

  // Reading

  /** Whether decisions may be based on it: every collection was read, and every NodeClaim that stays has its machine. */
  isSynced(): boolean {
    return this.#launching.names.size === 0 && this.hasRead;
  }

  /** For how long it has not been synced, as far as anybody asked; 0 when it is. */
  unsyncedMs(): number {
    if (this.isSynced()) {
      this.#unsyncedSince = undefined;
      return 0;
    }
    this.#unsyncedSince ??= this.#clock.monotonic();
    return this.#clock.monotonic() - this.#unsyncedSince;
  }

  /** Whether every collection was read once. */
  get hasRead(): boolean {
    for (const informer of Object.values(this.sources) as { readonly hasSynced: boolean }[])
      if (!informer.hasSynced) return false;
    return true;
  }

  /** Names of NodeClaims that have no machine yet. */
  get unlaunchedClaims(): ReadonlySet<string> {
    return this.#launching.names;
  }

  /** What NodeClaims without a machine keep from being planned; undefined when there are none. */
  launchHold(): LaunchHold | undefined {
    return this.#launching.hold(({ metadata }) => {
      const pool = this.sources.nodePools.get(metadata.labels?.[labels.nodePool] ?? '');
      return pool?.spec.replicas !== undefined;
    });
  }

  /** Every machine, those on their way included, in the order they came. */
  nodes(): IterableIterator<StateNode> {
    return this.#nodes.values();
  }

  get nodeCount(): number {
    return this.#nodes.size;
  }

  nodeByProviderID(providerID: string): StateNode | undefined {
    return this.#nodes.get(providerID);
  }

  /** By the name of the Node; of one that is still to come, by the name its NodeClaim expects. */
  nodeByName(name: string): StateNode | undefined {
    return this.#nodes.get(this.#keyByNode.get(name) ?? '');
  }

  /** By the name of the NodeClaim; undefined until it is launched. */
  nodeByClaim(name: string): StateNode | undefined {
    return this.#nodes.get(this.#keyByClaim.get(name) ?? '');
  }

  /** Whether the claim is known, launched or not. */
  hasClaim(name: string): boolean {
    return this.#keyByClaim.has(name);
  }

  nodesOfPool(pool: string): ReadonlySet<StateNode> {
    return this.#totals.nodesOf(pool);
  }

  /** What the pool's nodes have in sum, `nodes` included; those that go away count nothing. */
  poolUsage(pool: string): ReadonlyAmounts {
    return this.#totals.usageOf(pool);
  }

  /** Calls `listener` with the name of a pool whose nodes, or what they have in sum, changed. */
  onPoolUsage(listener: (pool: string) => void): void {
    this.#usageListeners.push(listener);
  }

  nodePool(name: string): NodePool | undefined {
    return this.sources.nodePools.get(name);
  }

  /** Every pod bound to a node name, also those that are over. */
  podsOn(nodeName: string): readonly Pod[] {
    return this.#podsByNode.get(nodeName)?.all() ?? [];
  }

  /** The pods of machines that are to go. */
  *leavingPods(): Generator<Pod, void, undefined> {
    for (const { markedForDeletion, nodeName } of this.#nodes.values())
      if (markedForDeletion && nodeName !== undefined) yield* this.podsOn(nodeName);
  }

  /** The node a pod is on, by the pod's UID. */
  nodeOfPod(uid: string): StateNode | undefined {
    return this.nodeByName(this.#bindings.get(uid) ?? '');
  }

  /** Pods that wait for a node that does not exist yet, in the order they were first seen waiting. */
  pendingPods(): Iterable<Pod> {
    return this.#pending.values();
  }

  get pendingCount(): number {
    return this.#pending.size;
  }

  /**
   * Names of NodeClaims that pods wait for which they were made for: nobody may take their machine for an empty one. Some were made for pods
   * that kube-scheduler had not come to, because it is slow or away, and may not have come to yet.
   */
  awaitedClaims(): ReadonlySet<string> {
    const awaited = new Set<string>();
    if (losesPromises()) return awaited;
    for (const uid of this.#unbound) {
      const claim = this.bookkeeping.of(uid)?.nodeClaim;
      if (claim !== undefined) awaited.add(claim);
    }
    return awaited;
  }

  /** The newest pod of each DaemonSet that has one, by `namespace/name` of the set. */
  daemonSetPods(): Map<string, Pod> {
    const newest = new Map<string, Pod>();
    for (const [set, pods] of this.#daemonPods) {
      for (const pod of pods.values()) {
        const known = newest.get(set);
        if (!known || createdAfter(pod, known)) newest.set(set, pod);
      }
    }
    return newest;
  }

  // Promises and marks

  /** Promises a machine to pods: it is not disrupted for so long. Without a time, for twice the longest batch. */
  nominate(key: string, forMs = this.#nominationMs): void {
    if (losesPromises()) return;
    this.#nodes.get(key)?.setNominatedUntil(this.#clock.monotonic() + forMs);
  }

  isNominated(key: string): boolean {
    return this.nominatedForMs(key) > 0;
  }

  /** For how long a machine is still promised to pods; 0 when it is not. Counted on a clock that does not jump. */
  nominatedForMs(key: string): number {
    const machine = this.#nodes.get(key);
    return machine ? Math.max(0, machine.nominatedUntil - this.#clock.monotonic()) : 0;
  }

  /** Nothing is planned on these any more, and they count nothing in their pools. */
  markForDeletion(keys: Iterable<string>): void {
    this.#mark(keys, true);
  }

  /** Takes the mark back: the plan to delete them was given up. */
  unmarkForDeletion(keys: Iterable<string>): void {
    this.#mark(keys, false);
  }

  isMarkedForDeletion(key: string): boolean {
    return this.#nodes.get(key)?.markedForDeletion ?? false;
  }

  #mark(keys: Iterable<string>, marked: boolean): void {
    for (const key of keys) {
      const node = this.#nodes.get(key);
      if (!node) continue;
      const was = node.markedForDeletion;
      node.setMarked(marked);
      this.#totals.recount(node);
      if (node.markedForDeletion !== was) this.markUnconsolidated();
    }
  }

  /** Something changed that consolidation should look at. */
  markUnconsolidated(): void {
    this.#stamp.bump();
  }

  /** Changes whenever something did, and at least every five minutes: a method that found nothing may rest while it is the same. */
  consolidationStamp(): number {
    return this.#stamp.read();
  }

  /**
   * Takes in a NodeClaim that was just written for some pods (`namespace/name`), before its watch event comes: the next
   * pass must know about it. One that vanishes without an event is dropped again.
   */
  trackCreated(claim: NodeClaim, pods: Iterable<string> = []): void {
    const name = claim.metadata.name ?? '';
    if (!this.sources.nodeClaims.get(name)) {
      this.#putClaim(claim);
      this.#created.track(name);
    }
    const planned = [...pods];
    this.#launching.plan(name, planned);
    for (const key of planned) {
      const uid = this.sources.pods.get(key)?.metadata.uid;
      if (uid !== undefined) this.bookkeeping.assign(uid, name);
    }
  }

  /** Ends what goes on in the background. */
  close(): void {
    this.#created.close();
  }

  // Changes

  #putNode(node: Node): void {
    const name = node.metadata.name ?? '';
    const key = keyOfNode(node);
    const before = this.#keyByNode.get(name);
    if (before !== undefined && before !== key && this.#nodes.get(before)?.node?.metadata.name === name)
      this.#removeNode(name);
    if (key === undefined) return;
    this.#keyByNode.set(name, key);
    const own = this.#ownNode(key, this.#nodes.get(key)?.nodeClaim);
    if (own && own.metadata.name !== name) return;
    this.#change(key, (state) => state.replaceNode(node, this.#podsOf(name)));
  }

  /** Of a machine that joined twice that Node counts which its NodeClaim names, whichever was heard of last. */
  #ownNode(key: string, claim: NodeClaim | undefined): Node | undefined {
    const own = this.sources.nodes.get(claim?.status?.nodeName ?? '');
    return own && keyOfNode(own) === key ? own : undefined;
  }

  #removeNode(name: string): void {
    const key = this.#keyByNode.get(name);
    if (key === undefined) return;
    this.#keyByNode.delete(name);
    if (this.#podsByNode.get(name)?.size === 0) this.#podsByNode.delete(name);
    const state = this.#nodes.get(key);
    if (state?.node?.metadata.name !== name) return;
    this.#change(key, () => state.replaceNode(undefined, this.#podsOfClaim(state.nodeClaim)));
  }

  #putClaim(claim: NodeClaim): void {
    const cloud = this.#registry.ofNodeClaim(claim);
    if (!cloud) return;
    const name = claim.metadata.name ?? '';
    const key = claim.status?.providerID ?? '';
    const before = this.#keyByClaim.get(name);
    if (before !== undefined && before !== key) this.#removeClaim(name);
    this.#keyByClaim.set(name, key);
    if (key === '') {
      // One that is going gets no machine any more, and its end may take long: a cloud has to answer, or a stranger.
      if (claim.metadata.deletionTimestamp === undefined) this.#launching.put(claim, cloud.name);
      else this.#launching.remove(name);
      return;
    }
    const { nodeName } = claim.status ?? {};
    if (nodeName && !this.#keyByNode.has(nodeName)) this.#keyByNode.set(nodeName, key);
    const own = this.#ownNode(key, claim);
    this.#change(key, (state) => {
      const ownName = own?.metadata.name ?? '';
      if (own && state.node && state.node.metadata.name !== ownName) state.replaceNode(own, this.#podsOf(ownName));
      const pods = state.node ? this.#podsOf(state.node.metadata.name ?? '') : this.#podsOfClaim(claim);
      state.replaceClaim(claim, pods);
    });
  }

  #removeClaim(name: string): void {
    const key = this.#keyByClaim.get(name);
    if (key === undefined) return;
    this.#keyByClaim.delete(name);
    this.#launching.remove(name);
    const state = this.#nodes.get(key);
    if (state?.nodeClaim?.metadata.name !== name) return;
    const expected = state.nodeClaim.status?.nodeName ?? '';
    if (!state.node && this.#keyByNode.get(expected) === key) this.#keyByNode.delete(expected);
    this.#change(key, () => state.replaceClaim(undefined, this.#podsOf(state.node?.metadata.name ?? '')));
  }

  /** Changes one machine, makes or drops it, and draws the conclusions. */
  #change(key: string, change: (state: StateNode) => void): void {
    let state = this.#nodes.get(key);
    const before = state && flagsOf(state);
    if (!state) {
      state = new StateNode(key, noPods);
      this.#nodes.set(key, state);
    }
    change(state);
    const gone = !state.node && !state.nodeClaim;
    if (gone) this.#nodes.delete(key);
    this.#totals.recount(state, gone);
    if (gone || before !== flagsOf(state)) this.markUnconsolidated();
  }

  #podsOf(nodeName: string): NodePods {
    if (nodeName === '') return noPods;
    let pods = this.#podsByNode.get(nodeName);
    if (!pods) {
      pods = new NodePods();
      this.#podsByNode.set(nodeName, pods);
    }
    return pods;
  }

  #podsOfClaim(claim: NodeClaim | undefined): NodePods {
    return this.#podsOf(claim?.status?.nodeName ?? '');
  }

  #putPod(pod: Pod): void {
    const id = podId(pod);
    const nodeName = pod.spec.nodeName ?? '';
    const bound = this.#bindings.get(id);
    if (bound !== undefined && bound !== nodeName) this.#unbind(id, bound);
    if (nodeName !== '') {
      const outcome = this.#podsOf(nodeName).put(id, pod, (of) => this.#usages.of(of));
      if (bound !== nodeName) this.#bindings.set(id, nodeName);
      if (outcome !== 'changed') this.markUnconsolidated();
    }
    const isToRun = isReschedulable(pod);
    if (!isToRun) this.#leavePlace(id, pod);
    if (isToRun && nodeName === '') this.#unbound.add(id);
    else this.#unbound.delete(id);
    if (isProvisionable(pod)) {
      if (!this.#pending.has(id)) this.#takePlace(id, pod);
      this.#pending.set(id, pod);
    } else this.#pending.delete(id);
    if (pod.metadata.ownerReferences && isOwnedByDaemonSet(pod)) this.#putDaemonPod(id, pod);
  }

  #removePod(pod: Pod): void {
    const id = podId(pod);
    const bound = this.#bindings.get(id);
    this.#leavePlace(id, pod);
    if (bound !== undefined) this.#unbind(id, bound);
    this.#pending.delete(id);
    this.#unbound.delete(id);
    this.bookkeeping.forget(id);
    const set = daemonSetOf(pod);
    const pods = this.#daemonPods.get(set);
    pods?.delete(id);
    if (pods?.size === 0) this.#daemonPods.delete(set);
    this.markUnconsolidated();
  }

  /** A pod that has to leave its machine, and had a place elsewhere, is over: the place is for the one that comes after it. */
  #leavePlace(id: string, pod: Pod): void {
    const claim = this.bookkeeping.of(id)?.nodeClaim;
    if (claim === undefined || !this.nodeOfPod(id)?.markedForDeletion) return;
    this.bookkeeping.release(id);
    const now = this.#clock.monotonic();
    this.#vacancies.leave(controllerOf(pod)?.uid, claim, now, now + this.#nominationMs);
  }

  #takePlace(id: string, pod: Pod): void {
    if (this.bookkeeping.of(id)?.nodeClaim !== undefined) return;
    const claim = this.#vacancies.take(controllerOf(pod)?.uid, this.#clock.monotonic());
    if (claim !== undefined) this.bookkeeping.assign(id, claim);
  }

  #unbind(id: string, nodeName: string): void {
    this.#bindings.delete(id);
    const pods = this.#podsByNode.get(nodeName);
    pods?.remove(id);
    if (pods?.size === 0 && !this.#keyByNode.has(nodeName)) this.#podsByNode.delete(nodeName);
  }

  #putDaemonPod(id: string, pod: Pod): void {
    const set = daemonSetOf(pod);
    const pods = this.#daemonPods.get(set);
    if (pods) pods.set(id, pod);
    else this.#daemonPods.set(set, new Map([[id, pod]]));
  }
}

/**
 * The key of a Node: its provider id, or the name of one that is not ours and has none. Undefined for a node of ours that
 * does not say yet which machine it is.
 */
function keyOfNode(node: Node): string | undefined {
  const own = node.metadata.labels ?? {};
  const ours = own[labels.nodePool] !== undefined;
  const providerID = node.spec?.providerID ?? '';
  if (providerID === '') return ours ? undefined : (node.metadata.name ?? '');
  if (ours && own[labels.instanceType] === undefined && own[labels.initialized] !== 'true') return undefined;
  return providerID;
}

/** A mistake for the simulator to find: machines are nobody's, neither for a while nor as long as pods wait for them. */
function losesPromises(): boolean {
  return planted('loses-nominations');
}

/** What consolidation cares about. */
function flagsOf(state: StateNode): number {
  return (state.initialized ? 1 : 0) + (state.markedForDeletion ? 2 : 0);
}

function daemonSetOf(pod: Pod): string {
  const owner = pod.metadata.ownerReferences?.find(({ kind }) => kind === 'DaemonSet');
  return owner ? `${pod.metadata.namespace}/${owner.name}` : '';
}

function createdAfter(a: Pod, b: Pod): boolean {
  const [left, right] = [a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''];
  return left === right ? podId(a) > podId(b) : left > right;
}
