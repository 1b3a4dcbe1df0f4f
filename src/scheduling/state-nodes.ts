// SPDX-License-Identifier: Apache-2.0
// Nodes and NodeClaims joined into the nodes that a pass may fill: which labels, taints and room each really has.
import { labels } from '../api/labels.ts';
import { isKnownEphemeralTaint, isSameTaint } from '../api/taints.ts';
import { compareStrings } from '../base/order.ts';
import type { Batch } from './batch.ts';
import { type HostPort, hostPortsOf } from './host-ports.ts';
import { isDaemonPod } from './input.ts';
import type { CSINode, Node, NodeClaim, ResourceList, Taint } from './objects.ts';
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

interface Joined {
  readonly node: Node | undefined;
  readonly claim: NodeClaim | undefined;
}

function join(problem: Problem): Joined[] {
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
export function leavingNodes(problem: Problem): Map<string, 'deleted' | 'candidate'> {
  const marked = new Set(problem.state?.markedForDeletion);
  const candidates = new Set(problem.state?.candidates);
  const leaving = new Map<string, 'deleted' | 'candidate'>();
  if ((problem.nodes?.length ?? 0) === 0 && (problem.nodeClaims?.length ?? 0) === 0) return leaving;
  for (const joined of join(problem)) {
    const names = [joined.node?.metadata.name ?? '', joined.claim?.metadata.name ?? ''].filter((name) => name !== '');
    if (isDeleted(joined) || names.some((name) => marked.has(name))) leaving.set(nameOf(joined), 'deleted');
    else if (names.some((name) => candidates.has(name))) leaving.set(nameOf(joined), 'candidate');
  }
  return leaving;
}

function isDeleted({ node, claim }: Joined): boolean {
  if (!claim) return Boolean(node?.metadata.deletionTimestamp);
  const { conditions } = claim.status ?? {};
  const terminates = (each: { readonly type: string; readonly status: string } | null): boolean =>
    each?.type === 'InstanceTerminating' && each.status === 'True';
  if (Array.isArray(conditions) && conditions.some(terminates)) return true;
  return Boolean(claim.metadata.deletionTimestamp);
}

/** The nodes of a problem: initialised ones first, then by name. Unreadable ones become errors. */
export function stateNodes(
  problem: Problem,
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
  for (const joined of join(problem)) {
    const name = nameOf(joined);
    try {
      const volumeLimits = new Map<string, number>();
      for (const { name: driver, allocatable } of limits.get(name) ?? [])
        if (allocatable?.count !== undefined) volumeLimits.set(driver, allocatable.count);
      const pods = podsOf.get(name) ?? [];
      const { problem: unusable, ...used } = usage(joined, pods, batch);
      // It takes no pods, but those that are there count.
      if (unusable !== undefined)
        errors.push({ object: `Node/${name}`, reason: `its allocatable cannot be used: ${unusable}` });
      nodes.push({
        ...describe(joined, name),
        ...used,
        volumeLimits,
        attached: volumeLimits.size > 0 ? attachedBy(pods, batch) : new Map(),
        closedToMoves: closed.has(name),
        leaving: leaving.has(name),
      });
    } catch (error) {
      const problem = quantityProblem(error);
      errors.push({ object: `Node/${name}`, reason: shapeOf(joined) ?? problem });
    }
  }
  return nodes.sort((a, b) => Number(b.initialized) - Number(a.initialized) || compareStrings(a.name, b.name));
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

type Described = Pick<StateNode, 'name' | 'hostname' | 'nodePool' | 'labels' | 'taints' | 'initialized'>;

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
  const taints = initialized || isAnother || !claim ? [...raw] : raw.filter((taint) => !isPassing(taint, startup));
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

function usage(
  { node, claim }: Joined,
  pods: Batch['bound'],
  batch: Batch,
): Pick<StateNode, 'capacity' | 'available' | 'daemonRequests' | 'ports'> & { problem: string | undefined } {
  const initialized = !claim || node?.metadata.labels?.[labels.initialized] === 'true';
  const filled = (fromNode: ResourceList | undefined, fromClaim: ResourceList | undefined): Amounts => {
    const amounts = amountsOf(fromNode);
    // Until the node is initialised, what its kubelet does not report yet is what the cloud promised.
    if (!initialized)
      for (const [name, nano] of amountsOf(fromClaim)) if ((amounts.get(name) ?? 0n) === 0n) amounts.set(name, nano);
    return amounts;
  };
  const available = filled(node?.status?.allocatable, claim?.status?.allocatable);
  const problem = amountsProblem(available);
  const daemonRequests: Amounts = new Map();
  const ports: HostPort[] = [];
  for (const { pod, shape } of pods) {
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
  const capacity = filled(node?.status?.capacity, claim?.status?.capacity);
  return { capacity, available, daemonRequests, ports, problem };
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
