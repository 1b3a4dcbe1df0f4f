// SPDX-License-Identifier: Apache-2.0
// A machine as the autoscaler sees it: the Node and the NodeClaim of one provider id, from the launch to the end.
import { nodeClaimConditions } from '../api/conditions.ts';
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import { isKnownEphemeralTaint, isSameTaint, leavingTaint } from '../api/taints.ts';
import type { Node, Pod } from '../kube/kinds.ts';
import { type HostPort, hostPortsOf } from '../scheduling/host-ports.ts';
import type { Taint } from '../scheduling/objects.ts';
import { hasJoinedAgain } from '../scheduling/state-nodes.ts';
import { type Amounts, one, type ReadonlyAmounts, readAmounts, subtractFrom } from './amounts.ts';
import type { NodePods } from './node-pods.ts';
import { evictionCost, isOwnedByDaemonSet } from './pod-predicates.ts';

type StringMap = Readonly<Record<string, string>>;
const noStrings: StringMap = {};

const isLeaving = (taint: Taint): boolean => isSameTaint(taint, leavingTaint);

function isTrue(
  conditions: readonly { readonly type: string; readonly status: string }[] = [],
  wanted: string,
): boolean {
  for (const { type, status } of conditions) if (type === wanted && status === 'True') return true;
  return false;
}

/**
 * One machine of the cluster. A live view: it shows the newest Node, NodeClaim and pods. Only ClusterState changes it
 * (the methods below `ClusterState calls these`).
 */
export class StateNode {
  /** The provider id; for a Node without one, its name. */
  readonly key: string;
  #node: Node | undefined;
  #nodeClaim: NodeClaim | undefined;
  #pods: NodePods;
  #marked = false;
  #nominatedUntil = Number.NEGATIVE_INFINITY;
  /** What spoke for it before the latest change. */
  #last: Node | NodeClaim | undefined;
  // What follows from the Node and the NodeClaim is asked for all day and changes with them only.
  #deleted = false;
  #instanceTerminating = false;
  #ready: boolean | undefined;
  #registered = false;
  #initialized = false;
  #labels: StringMap = noStrings;
  #taints: readonly Taint[] | undefined;
  #capacity: ReadonlyAmounts | undefined;
  #allocatable: ReadonlyAmounts | undefined;

  constructor(key: string, pods: NodePods) {
    this.key = key;
    this.#pods = pods;
  }

  get node(): Node | undefined {
    return this.#node;
  }

  get nodeClaim(): NodeClaim | undefined {
    return this.#nodeClaim;
  }

  /** Whether we made it: it has a NodeClaim. */
  get managed(): boolean {
    return this.#nodeClaim !== undefined;
  }

  /** The Node's name once it is registered; until then the NodeClaim's. */
  get name(): string {
    return this.#own.metadata.name ?? '';
  }

  /** The name under which pods are bound to it: of the Node, or the one its NodeClaim expects. */
  get nodeName(): string | undefined {
    return this.#node?.metadata.name ?? this.#nodeClaim?.status?.nodeName;
  }

  get providerID(): string {
    return this.#node?.spec?.providerID ?? this.#nodeClaim?.status?.providerID ?? '';
  }

  get hostname(): string {
    return this.#labels[labels.hostname] ?? this.name;
  }

  get labels(): StringMap {
    return this.#labels;
  }

  get annotations(): StringMap {
    return this.#own.metadata.annotations ?? noStrings;
  }

  /** The name of its NodePool; undefined for nodes of nobody. */
  get nodePool(): string | undefined {
    return this.#labels[labels.nodePool];
  }

  /** We have seen its Node and brought it in line. Nodes that are not ours count as registered. */
  get registered(): boolean {
    return this.#registered;
  }

  /** Ready for pods, with everything it was promised to have. Nodes that are not ours count as initialised. */
  get initialized(): boolean {
    return this.#initialized;
  }

  #hasReached(label: string): boolean {
    if (!this.#node) return false;
    return !this.#nodeClaim || this.#node.metadata.labels?.[label] === 'true';
  }

  /** The object that speaks for it: the NodeClaim until the Node is registered. */
  get #own(): Node | NodeClaim {
    if (this.#node && (this.#registered || !this.#nodeClaim)) return this.#node;
    // Whoever keeps a machine that is gone, a command about it say, still knows its name.
    return (this.#nodeClaim ?? this.#node ?? this.#last)!;
  }

  /** What pods must tolerate. Until it is initialised, taints that will go away by themselves are left out. */
  get taints(): readonly Taint[] {
    this.#taints ??= this.#readTaints();
    return this.#taints;
  }

  #readTaints(): readonly Taint[] {
    const claim = this.#nodeClaim;
    const node = this.#node;
    const isAnother = hasJoinedAgain({ node, claim });
    const raw = (this.registered || isAnother ? node?.spec?.taints : claim?.spec.taints) ?? [];
    // It asks pods to go elsewhere if they can, and nothing of plans.
    const lasting = raw.some(isLeaving) ? raw.filter((taint) => !isLeaving(taint)) : raw;
    if (!claim || isAnother || this.initialized) return lasting;
    const startup = claim.spec.startupTaints ?? [];
    return lasting.filter((taint) => !isKnownEphemeralTaint(taint) && !startup.some((own) => isSameTaint(own, taint)));
  }

  /** All it has; `nodes` is 1. Until it is initialised, what the Node does not report yet is what the cloud promised. */
  get capacity(): ReadonlyAmounts {
    if (!this.#capacity) {
      const capacity = this.#filled('capacity');
      capacity.set('nodes', one);
      this.#capacity = capacity;
    }
    return this.#capacity;
  }

  /** What it has for pods. */
  get allocatable(): ReadonlyAmounts {
    this.#allocatable ??= this.#filled('allocatable');
    return this.#allocatable;
  }

  #filled(what: 'capacity' | 'allocatable'): Amounts {
    const amounts = readAmounts(this.#node?.status?.[what]);
    if (this.initialized) return amounts;
    for (const [name, nano] of readAmounts(this.#nodeClaim?.status?.[what]))
      if ((amounts.get(name) ?? 0n) === 0n) amounts.set(name, nano);
    return amounts;
  }

  /** What is left for pods. */
  available(): Amounts {
    const left = new Map(this.allocatable);
    subtractFrom(left, this.requests);
    return left;
  }

  get requests(): ReadonlyAmounts {
    return this.#pods.requests;
  }

  get limits(): ReadonlyAmounts {
    return this.#pods.limits;
  }

  get daemonRequests(): ReadonlyAmounts {
    return this.#pods.daemonRequests;
  }

  get daemonLimits(): ReadonlyAmounts {
    return this.#pods.daemonLimits;
  }

  /** Every pod bound to it, also those that are over. */
  pods(): Iterable<Pod> {
    return this.#pods.all();
  }

  /** The pods that take something of it. */
  runningPods(): Iterable<Pod> {
    return this.#pods.running();
  }

  hostPorts(): HostPort[] {
    const ports: HostPort[] = [];
    for (const pod of this.#pods.running()) ports.push(...hostPortsOf(pod.spec));
    return ports;
  }

  /** What it costs to move its pods: 1, and the cost of each pod that would be moved, unless that is negative. */
  rescheduleCost(): number {
    let cost = 1;
    for (const pod of this.#pods.running()) if (!isOwnedByDaemonSet(pod)) cost += Math.max(0, evictionCost(pod));
    return cost;
  }

  /** On its way out for good: its NodeClaim, or the Node of somebody else, is being deleted. */
  get deleted(): boolean {
    return this.#deleted;
  }

  #isDeleted(): boolean {
    const claim = this.#nodeClaim;
    if (!claim) return this.#node?.metadata.deletionTimestamp !== undefined;
    return claim.metadata.deletionTimestamp !== undefined || this.#instanceTerminating;
  }

  /** Whether its instance is going already, as its NodeClaim says. */
  get instanceTerminating(): boolean {
    return this.#instanceTerminating;
  }

  /** Whether its Node says that it is ready. */
  get ready(): boolean {
    this.#ready ??= isTrue(this.#node?.status?.conditions, 'Ready');
    return this.#ready;
  }

  /** Nothing may be planned on it: it is marked, or deleted already. */
  get markedForDeletion(): boolean {
    return this.#marked || this.#deleted;
  }

  /** Until when it is promised to pods that are not bound yet, on the clock of whoever keeps it: `Machines.isNominated` asks. */
  get nominatedUntil(): number {
    return this.#nominatedUntil;
  }

  // ClusterState calls these.

  replaceNode(node: Node | undefined, pods: NodePods): void {
    this.#last = this.#own;
    this.#node = node;
    this.#pods = pods;
    this.#conclude();
  }

  replaceClaim(claim: NodeClaim | undefined, pods: NodePods): void {
    this.#last = this.#own;
    this.#nodeClaim = claim;
    this.#pods = pods;
    this.#conclude();
  }

  setMarked(marked: boolean): void {
    this.#marked = marked;
  }

  setNominatedUntil(untilMs: number): void {
    this.#nominatedUntil = Math.max(this.#nominatedUntil, untilMs);
  }

  #conclude(): void {
    this.#registered = this.#hasReached(labels.registered);
    this.#initialized = this.#hasReached(labels.initialized);
    this.#instanceTerminating = isTrue(this.#nodeClaim?.status?.conditions, nodeClaimConditions.instanceTerminating);
    this.#ready = undefined;
    this.#deleted = this.#isDeleted();
    this.#labels = this.#own.metadata.labels ?? noStrings;
    this.#taints = undefined;
    this.#capacity = undefined;
    this.#allocatable = undefined;
  }
}
