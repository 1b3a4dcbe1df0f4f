// SPDX-License-Identifier: Apache-2.0
// The cluster as a scheduling problem. Objects go in as they are: they are frozen, and the scheduler changes nothing.
import type { NodeClaim } from '../api/node-claim.ts';
import { planted } from '../base/defects.ts';
import type { CloudRegistry } from '../cloud/registry.ts';
import type { Node, Pod } from '../kube/kinds.ts';
import { keyOf } from '../kube/object.ts';
import { formatTime } from '../kube/time.ts';
import type { LabelRules, Problem, SolveSettings } from '../scheduling/problem.ts';
import type { ClusterState } from './cluster-state.ts';
import { isTerminal } from './pod-predicates.ts';
import { labelRulesOf, type PoolCatalog } from './pool-catalog.ts';

export interface SnapshotOptions {
  readonly catalog: PoolCatalog;
  readonly registry: CloudRegistry;
  /** Milliseconds since 1970. */
  readonly now: number;
  /** The pods that wait; those of the state unless told. */
  readonly pending?: Iterable<Pod>;
  /** Pods of machines that go away for which a place is on its way already: they are left out. */
  readonly held?: (pod: Pod) => boolean;
  /** Machines by key of which the pass asks whether they could go. */
  readonly candidates?: Iterable<string>;
  /** Machines by key that take no pods of the candidates. */
  readonly closedToMoves?: Iterable<string>;
  /** Whether pods that wait go where an earlier pass planned them. */
  readonly keepsPromises?: boolean;
  readonly settings?: SolveSettings;
}

/**
 * The problem of a pass: pods that wait, and those of machines that go away, on the machines there are and those that
 * could be bought. One consistent state: nothing is awaited.
 */
export function snapshotProblem(state: ClusterState, options: SnapshotOptions): Problem {
  const { catalog, registry, now, settings } = options;
  const { sources } = state;
  const nodes: Node[] = [];
  const nodeClaims: NodeClaim[] = [];
  const marked: string[] = [];
  const nominations: Record<string, string> = {};
  for (const machine of state.nodes()) {
    if (machine.node) nodes.push(machine.node);
    if (machine.nodeClaim && (machine.node || !planted('forgets-machines-on-their-way')))
      nodeClaims.push(machine.nodeClaim);
    const name = (machine.node ?? machine.nodeClaim)?.metadata.name ?? '';
    if (machine.markedForDeletion) marked.push(name);
    const promisedForMs = state.nominatedForMs(machine.key);
    if (promisedForMs > 0) nominations[name] = formatTime(now + promisedForMs);
  }
  const candidates = namesOf(state, options.candidates);
  const closedToMoves = namesOf(state, options.closedToMoves);
  const pending = [...(options.pending ?? state.pendingPods())];
  const declared = registry.providers.flatMap(({ disruptionReasons = [] }) => disruptionReasons);
  return {
    now: formatTime(now),
    nodePools: catalog.pools,
    instanceTypes: catalog.instanceTypes,
    labels: { ...labelsOfOrphans(state, options), ...catalog.labels },
    nodes,
    nodeClaims,
    pods: withPlaced(pending, state, options.held),
    podDisruptionBudgets: sources.podDisruptionBudgets.list(),
    daemonSets: sources.daemonSets.list(),
    namespaces: sources.namespaces.list(),
    persistentVolumeClaims: sources.persistentVolumeClaims.list(),
    persistentVolumes: sources.persistentVolumes.list(),
    storageClasses: sources.storageClasses.list(),
    csiNodes: sources.csiNodes.list(),
    state: {
      markedForDeletion: marked,
      nominations,
      ...(declared.length > 0 ? { disruptionReasons: declared } : {}),
      candidates,
      closedToMoves,
      ...(options.keepsPromises ? { promised: promisesTo(state, pending) } : {}),
    },
    ...(settings ? { settings } : {}),
  };
}

/** For pods that wait, or have to leave their machine: the one that was bought for them, as long as it is meant to stay. */
function promisesTo(state: ClusterState, pending: readonly Pod[]): Record<string, string> {
  const promised: Record<string, string> = {};
  const add = (pod: Pod): void => {
    const claim = state.bookkeeping.of(pod.metadata.uid ?? '')?.nodeClaim;
    const machine = claim === undefined ? undefined : state.nodeByClaim(claim);
    const name = (machine?.node ?? machine?.nodeClaim)?.metadata.name;
    if (name !== undefined && !machine?.markedForDeletion) promised[keyOf(pod)] = name;
  };
  for (const pod of pending) add(pod);
  for (const pod of state.leavingPods()) add(pod);
  return promised;
}

/** And pods on nodes, and the daemons among those without one: the newest pod of a DaemonSet stands for all it will make. */
function withPlaced(pending: readonly Pod[], state: ClusterState, held?: (pod: Pod) => boolean): Pod[] {
  const pods = [...pending];
  for (const pod of state.sources.pods.list()) {
    if (!pod.spec.nodeName || isTerminal(pod)) continue;
    if (held?.(pod) && state.nodeByName(pod.spec.nodeName)?.markedForDeletion) continue;
    pods.push(pod);
  }
  for (const pod of state.daemonSetPods().values()) if (!pod.spec.nodeName) pods.push(pod);
  return pods;
}

function namesOf(state: ClusterState, keys: Iterable<string> = []): string[] {
  const names: string[] = [];
  for (const key of keys) {
    const machine = state.nodeByProviderID(key);
    const name = (machine?.node ?? machine?.nodeClaim)?.metadata.name;
    if (name) names.push(name);
  }
  return names;
}

/** Machines of pools that take no part still speak the language of their cloud. */
function labelsOfOrphans(state: ClusterState, { catalog, registry }: SnapshotOptions): Record<string, LabelRules> {
  const rules: Record<string, LabelRules> = {};
  for (const { nodePool, nodeClaim } of state.nodes()) {
    if (nodePool === undefined || !nodeClaim || nodePool in catalog.labels || nodePool in rules) continue;
    const provider = registry.ofNodeClaim(nodeClaim);
    if (provider) rules[nodePool] = labelRulesOf(provider);
  }
  return rules;
}
