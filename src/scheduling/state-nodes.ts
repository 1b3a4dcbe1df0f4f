// SPDX-License-Identifier: Apache-2.0
// Nodes and NodeClaims joined into the nodes that a pass may fill: which labels, taints and room each really has.
import { labels } from '../api/labels.ts';
import { isKnownEphemeralTaint, isSameTaint, leavingTaint } from '../api/taints.ts';
import { compareStrings } from '../base/order.ts';
import type { Batch } from './batch.ts';
import { type HostPort, hostPortsOf } from './host-ports.ts';
import { isDaemonPod } from './input.ts';
import type { CSINode, Node, NodeClaim, Pod, ResourceList, Taint } from './objects.ts';
import { type Amounts, addTo, amountsOf, amountsProblem, quantityProblem, subtractFrom } from './pod-resources.ts';
import type { ObjectError, Problem } from './problem.ts';
import { driversShape, nodeShape } from './shapes.ts';

/** A node that exists or is on its way. */
export interface StateNode {
  readonly name: string;
  readonly hostname: string;
  readonly nodePool: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly initialized: boolean;
  /** Whether a taint of ours asks pods to go elsewhere if they can. */
  readonly shunned: boolean;
  readonly capacity: ReadonlyMap<string, bigint>;
  /** Allocatable minus what its pods request. */
  readonly available: Amounts;
  /** What the daemonset pods on it request. */
  readonly daemonRequests: Amounts;
  readonly ports: readonly HostPort[];
  /** Volumes a CSI driver may attach, and those attached. */
  readonly volumeLimits: ReadonlyMap<string, number>;
  readonly attached: ReadonlyMap<string, ReadonlySet<string>>;
  /** Takes no pods of candidates. */
  readonly closedToMoves: boolean;
  /** Goes away: counts for topology, takes no pods. */
  readonly leaving: boolean;
}

type CSIDriver = NonNullable<NonNullable<CSINode['spec']>['drivers']>[number];

/** A Node with its NodeClaim, or one of them. */
export interface Joined {
  readonly node: Node | undefined;
  readonly claim: NodeClaim | undefined;
}

/** The Nodes and NodeClaims of a problem, those of one machine together. */
export function join(problem: Problem): Joined[] {
  const byProvider = new Map<string, NodeClaim>();
  const byNode = new Map<string, NodeClaim>();
  for (const claim of problem.nodeClaims ?? []) {
    if (claim.status?.providerID) byProvider.set(claim.status.providerID, claim);
    if (claim.status?.nodeName) byNode.set(claim.status.nodeName, claim);
  }
  const used = new Set<NodeClaim>();
  const all: Joined[] = (problem.nodes ?? []).map((node) => {
    const claim = byProvider.get(node.spec?.providerID ?? '') ?? byNode.get(node.metadata.name ?? '');
    if (claim) used.add(claim);
    return { node, claim };
  });
  for (const claim of problem.nodeClaims ?? []) if (!used.has(claim)) all.push({ node: undefined, claim });
  return all;
}

function nameOf({ node, claim }: Joined): string {
  return node?.metadata.name ?? claim?.status?.nodeName ?? claim?.metadata.name ?? '';
}

/** Names of nodes that go away: what is being deleted, what is marked, and what the pass only asks about. */
export function leavingNodes(problem: Problem, machines: readonly Joined[]): Map<string, 'deleted' | 'candidate'> {
  const marked = new Set(problem.state?.markedForDeletion);
  const candidates = new Set(problem.state?.candidates);
  const leaving = new Map<string, 'deleted' | 'candidate'>();
  const isAmong = (names: ReadonlySet<string>, { node, claim }: Joined): boolean =>
    names.size > 0 && (isNamed(names, node?.metadata.name) || isNamed(names, claim?.metadata.name));
  for (const joined of machines) {
    if (isDeleted(joined) || isAmong(marked, joined)) leaving.set(nameOf(joined), 'deleted');
    else if (isAmong(candidates, joined)) leaving.set(nameOf(joined), 'candidate');
  }
  return leaving;
}

function isNamed(names: ReadonlySet<string>, name = ''): boolean {
  return name !== '' && names.has(name);
}

function isDeleted({ node, claim }: Joined): boolean {
  if (!claim) return Boolean(node?.metadata.deletionTimestamp);
  let deleted = deletedClaims.get(claim);
  if (deleted === undefined) {
    deleted = isClaimDeleted(claim);
    if (Object.isFrozen(claim)) deletedClaims.set(claim, deleted);
  }
  return deleted;
}

/** Of claims that cannot change, whether they are going: a cluster is read again every few seconds, and most are the same. */
const deletedClaims = new WeakMap<NodeClaim, boolean>();

function isClaimDeleted({ metadata, status }: NodeClaim): boolean {
  const { conditions } = status ?? {};
  const terminates = (each: { readonly type: string; readonly status: string } | null): boolean =>
    each?.type === 'InstanceTerminating' && each.status === 'True';
  if (Array.isArray(conditions) && conditions.some(terminates)) return true;
  return Boolean(metadata.deletionTimestamp);
}

/** The nodes of a problem: initialised ones first, then by name. Unreadable ones become errors. */
export function stateNodes(
  problem: Problem,
  machines: readonly Joined[],
  batch: Batch,
  leaving: ReadonlyMap<string, unknown>,
  errors: ObjectError[],
): StateNode[] {
  const podsOf = new Map<string, Batch['bound'][number][]>();
  for (const entry of batch.bound) {
    const list = podsOf.get(entry.node);
    if (list) list.push(entry);
    else podsOf.set(entry.node, [entry]);
  }
  const limits = driversOf(problem, errors);
  const closed = new Set(problem.state?.closedToMoves);
  const nodes: StateNode[] = [];
  for (const joined of machines) {
    const name = nameOf(joined);
    try {
      const volumeLimits = limitsOf(limits.get(name));
      const pods = podsOf.get(name) ?? noPods;
      const machine = machineOf(joined, name);
      const { described, capacity, problem: unusable } = machine;
      const { available, daemonRequests, ports } = machine.usedBy(pods, batch);
      // It takes no pods, but those that are there count.
      if (unusable !== undefined)
        errors.push({ object: `Node/${name}`, reason: `its allocatable cannot be used: ${unusable}` });
      // Field by field: to spread what is described takes several times as long.
      nodes.push({
        name: described.name,
        hostname: described.hostname,
        nodePool: described.nodePool,
        labels: described.labels,
        taints: described.taints,
        initialized: described.initialized,
        shunned: described.shunned,
        capacity,
        // Ours to change: daemons that are still to come are taken off.
        available: new Map(available),
        daemonRequests,
        ports,
        volumeLimits,
        attached: volumeLimits.size > 0 ? attachedBy(pods, batch) : nothingAttached,
        closedToMoves: closed.has(name),
        leaving: leaving.has(name),
      });
    } catch (error) {
      const problem = quantityProblem(error);
      errors.push({ object: `Node/${name}`, reason: shapeOf(joined) ?? problem });
    }
  }
  return nodes.sort(byPreference);
}

const noPods: Batch['bound'] = [];
const noLimits: ReadonlyMap<string, number> = new Map();
/** Nothing is ever attached where nothing limits it. */
const nothingAttached: StateNode['attached'] = new Map();

function limitsOf(drivers: readonly CSIDriver[] | undefined): ReadonlyMap<string, number> {
  if (!drivers || drivers.length === 0) return noLimits;
  const limits = new Map<string, number>();
  for (const { name, allocatable } of drivers)
    if (allocatable?.count !== undefined) limits.set(name, allocatable.count);
  return limits;
}

/** Pods that wait go to nodes that are ready, and of these to such as stay: there kube-scheduler will put them. */
function byPreference(a: StateNode, b: StateNode): number {
  if (a.initialized !== b.initialized) return a.initialized ? -1 : 1;
  if (a.shunned !== b.shunned) return a.shunned ? 1 : -1;
  return compareStrings(a.name, b.name);
}

/** By node: its CSI drivers. Where they cannot be read, volumes are attached without a limit. */
function driversOf(problem: Problem, errors: ObjectError[]): ReadonlyMap<string, readonly CSIDriver[]> {
  const drivers = new Map<string, readonly CSIDriver[]>();
  for (const { metadata, spec } of problem.csiNodes ?? []) {
    const name = metadata.name ?? '';
    const wrong = driversShape(spec?.drivers ?? []);
    if (wrong === undefined) drivers.set(name, spec?.drivers ?? []);
    else errors.push({ object: `CSINode/${name}`, reason: wrong });
  }
  return drivers;
}

function shapeOf({ node, claim }: Joined): string | undefined {
  return (node && nodeShape(node)) ?? (claim && nodeShape(claim));
}

type Described = Pick<StateNode, 'name' | 'hostname' | 'nodePool' | 'labels' | 'taints' | 'initialized' | 'shunned'>;

function describe(joined: Joined, name: string): Described {
  const { node, claim } = joined;
  const is = (label: string): boolean => node !== undefined && (!claim || node.metadata.labels?.[label] === 'true');
  const registered = is(labels.registered);
  const initialized = is(labels.initialized);
  const own = (registered ? node?.metadata.labels : (claim?.metadata.labels ?? node?.metadata.labels)) ?? {};
  return {
    name,
    hostname: own[labels.hostname] ?? name,
    nodePool: own[labels.nodePool],
    labels: own[labels.hostname] === undefined ? { ...own, [labels.hostname]: name } : own,
    taints: taintsOf(joined, registered, initialized),
    initialized,
    shunned: node?.spec?.taints?.some((taint) => isSameTaint(taint, leavingTaint)) ?? false,
  };
}

/**
 * Whether a machine joined again under another name. It stays closed: the NodeClaim was registered with the first Node, and
 * nobody will open this one.
 */
export function hasJoinedAgain({ node, claim }: Joined): boolean {
  return node !== undefined && (claim?.status?.nodeName ?? node.metadata.name) !== node.metadata.name;
}

function taintsOf(joined: Joined, registered: boolean, initialized: boolean): Taint[] {
  const { node, claim } = joined;
  const startup = claim?.spec?.startupTaints ?? [];
  const isAnother = hasJoinedAgain(joined);
  // Until it is registered, a Node may carry what others put on young ones: Cluster API's own taint, say.
  const raw = (registered || isAnother ? node?.spec?.taints : claim?.spec?.taints) ?? [];
  if (raw.length > 0) mustBeTaints(raw);
  const isSettled = initialized || isAnother || !claim;
  // Where our own taint asks pods to go elsewhere they still may go: it asks nothing of plans.
  const taints = raw.filter((taint) => !isSameTaint(taint, leavingTaint) && (isSettled || !isPassing(taint, startup)));
  if (node?.spec?.unschedulable && !taints.some(({ key }) => key === unschedulable.key)) taints.push(unschedulable);
  return taints;
}

function mustBeTaints(raw: unknown): void {
  const ok = Array.isArray(raw) && raw.every((taint: unknown) => typeof taint === 'object' && taint !== null);
  if (!ok) throw new TypeError('taints must be a list of objects');
}

/** Taints that a new node carries for a while, and that its initialisation removes. */
function isPassing(taint: Taint, startup: readonly Taint[]): boolean {
  return isKnownEphemeralTaint(taint) || startup.some((own) => isSameTaint(own, taint));
}

const unschedulable: Taint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** What the pods of a machine leave of it. */
interface Used {
  readonly available: ReadonlyMap<string, bigint>;
  readonly daemonRequests: Amounts;
  readonly ports: readonly HostPort[];
}

/** How many ways to fill a machine are remembered: as it is, and without the pods that a pass would move. */
const usesKept = 2;

/** What follows from a Node and its NodeClaim, whatever the pass is about. */
class Machine {
  readonly claim: NodeClaim | undefined;
  readonly described: Described;
  readonly capacity: ReadonlyMap<string, bigint>;
  /** Why it can take no pods. */
  readonly problem: string | undefined;
  readonly #allocatable: ReadonlyMap<string, bigint>;
  readonly #uses: { readonly pods: readonly Pod[]; readonly used: Used }[] = [];

  constructor(joined: Joined, name: string) {
    const { node, claim } = joined;
    const initialized = !claim || node?.metadata.labels?.[labels.initialized] === 'true';
    const filled = (fromNode: ResourceList | undefined, fromClaim: ResourceList | undefined): Amounts => {
      const amounts = amountsOf(fromNode);
      // Until the node is initialised, what its kubelet does not report yet is what the cloud promised.
      if (!initialized)
        for (const [of, nano] of amountsOf(fromClaim)) if ((amounts.get(of) ?? 0n) === 0n) amounts.set(of, nano);
      return amounts;
    };
    this.claim = claim;
    this.described = describe(joined, name);
    this.#allocatable = filled(node?.status?.allocatable, claim?.status?.allocatable);
    this.problem = amountsProblem(this.#allocatable);
    this.capacity = filled(node?.status?.capacity, claim?.status?.capacity);
  }

  /** Most machines have the pods that they had in the pass before: those are not added up again. */
  usedBy(bound: Batch['bound'], batch: Batch): Used {
    const known = this.#uses.find(({ pods }) => isAbout(pods, bound));
    if (known) return known.used;
    const used = usage(this.#allocatable, bound, batch);
    const pods = bound.map(({ pod }) => pod);
    if (!pods.every((pod) => Object.isFrozen(pod))) return used;
    this.#uses.unshift({ pods, used });
    this.#uses.length = Math.min(this.#uses.length, usesKept);
    return used;
  }
}

function isAbout(pods: readonly Pod[], bound: Batch['bound']): boolean {
  if (pods.length !== bound.length) return false;
  for (let i = 0; i < pods.length; i++) if (pods[i] !== bound[i]!.pod) return false;
  return true;
}

/** Of objects that cannot change: a cluster is read again every few seconds, and most of its machines are the same. */
const machines = new WeakMap<Node | NodeClaim, Machine>();

function machineOf(joined: Joined, name: string): Machine {
  const { node, claim } = joined;
  const object = (node ?? claim)!;
  const known = machines.get(object);
  if (known && known.claim === claim) return known;
  const machine = new Machine(joined, name);
  if (Object.isFrozen(object) && (!claim || Object.isFrozen(claim))) machines.set(object, machine);
  return machine;
}

function usage(allocatable: ReadonlyMap<string, bigint>, bound: Batch['bound'], batch: Batch): Used {
  const available = new Map(allocatable);
  const daemonRequests: Amounts = new Map();
  const ports: HostPort[] = [];
  for (const { pod, shape } of bound) {
    const amounts = shape < 0 ? undefined : batch.shapes[shape]!.amounts;
    if (amounts) {
      subtractFrom(available, amounts);
      if (pod.metadata.ownerReferences && isDaemonPod(pod)) addTo(daemonRequests, amounts);
    }
    for (const container of pod.spec.containers ?? []) {
      if (container.ports) {
        ports.push(...hostPortsOf(pod.spec));
        break;
      }
    }
  }
  return { available, daemonRequests, ports };
}

function attachedBy(pods: Batch['bound'], batch: Batch): Map<string, Set<string>> {
  const attached = new Map<string, Set<string>>();
  for (const { pod } of pods) {
    for (const { driver, claim } of batch.attachments.get(pod) ?? []) {
      const claims = attached.get(driver);
      if (claims) claims.add(claim);
      else attached.set(driver, new Set([claim]));
    }
  }
  return attached;
}
