// SPDX-License-Identifier: Apache-2.0
// One pod, one decision: filter the nodes, score those that will do, pick the best. Pure but for the tie-break.
import type { Random } from '../../base/random.ts';
import type { ClusterState } from './cluster-state.ts';
import type { Filter, FilterName, NodeCheck, Rejection } from './filter.ts';
import { interPodAffinity } from './filter-affinity.ts';
import { nodeAffinity, nodePorts, nodeResourcesFit, nodeUnschedulable, taintToleration } from './filter-node.ts';
import { podTopologySpread } from './filter-spread.ts';
import { nodeVolumeLimits, volumeBinding, volumeRestrictions } from './filter-volumes.ts';
import type { NodeInfo } from './node-info.ts';
import type { PodInfo } from './pod-info.ts';
import { scoreNodes } from './score.ts';

/** kube-scheduler's order: the first filter that objects gives a node's reason. */
const filters: readonly Filter[] = [
  nodeUnschedulable,
  taintToleration,
  nodeAffinity,
  nodePorts,
  nodeResourcesFit,
  volumeRestrictions,
  nodeVolumeLimits,
  volumeBinding,
  podTopologySpread,
  interPodAffinity,
];

/** No node will do. `message` reads as kube-scheduler's; `filters` are those that objected somewhere. */
export interface NoFit {
  readonly message: string;
  readonly filters: ReadonlySet<FilterName>;
}

export type Decision = { readonly node: NodeInfo } | NoFit;

/** Where the next search begins, so that a partial look over many nodes is fair to all of them. */
export interface Rotation {
  next: number;
}

/** Picks a node for the pod, or says why there is none. Does not change the state. */
export function schedulePod(
  pod: PodInfo,
  state: ClusterState,
  random: Random,
  rotation: Rotation = { next: 0 },
): Decision {
  const nodes = state.nodes();
  // It waits for a node, whichever.
  if (nodes.length === 0) return { message: 'no nodes available to schedule pods', filters: new Set(['NodeName']) };
  const checks: NodeCheck[] = [];
  for (const filter of filters) {
    const prepared = filter(pod, state);
    if (!prepared) continue;
    if ('refused' in prepared) return refusal(prepared.refused, nodes.length);
    checks.push(prepared);
  }
  const nominated = nominatedNode(pod, state);
  if (nominated && !objection(checks, nominated)) return { node: nominated };

  const enough = nodesToFind(nodes.length);
  const feasible: NodeInfo[] = [];
  const rejections: Rejection[] = [];
  let looked = 0;
  for (; looked < nodes.length && feasible.length < enough; looked++) {
    const node = nodes[(rotation.next + looked) % nodes.length]!;
    const rejected = objection(checks, node);
    if (rejected) rejections.push(rejected);
    else feasible.push(node);
  }
  rotation.next = (rotation.next + looked) % nodes.length;
  if (feasible.length === 0) {
    return { message: noFitMessage(rejections, nodes.length), filters: new Set(rejections.map((r) => r.filter)) };
  }
  return { node: best(pod, state, feasible, random) };
}

/** The first filter's objection to a node. */
function objection(checks: readonly NodeCheck[], node: NodeInfo): Rejection | undefined {
  for (const check of checks) {
    const rejected = check(node);
    if (rejected) return rejected;
  }
  return undefined;
}

/** Whether a node alone gives no reason against the pod: what decides if its change is worth another attempt. */
export function couldRunOn(pod: PodInfo, node: NodeInfo, state: ClusterState): boolean {
  for (const filter of [nodeUnschedulable, taintToleration, nodeAffinity, nodePorts, nodeResourcesFit]) {
    const check = filter(pod, state);
    if (check?.(node)) return false;
  }
  return true;
}

function nominatedNode(pod: PodInfo, state: ClusterState): NodeInfo | undefined {
  const name = pod.pod.status?.nominatedNodeName;
  return name ? state.node(name) : undefined;
}

/** Large clusters are sampled: enough feasible nodes are good enough (upstream's adaptive percentage). */
function nodesToFind(count: number): number {
  if (count < 100) return count;
  const percentage = Math.max(5, 50 - Math.floor(count / 125));
  return Math.max(100, Math.floor((count * percentage) / 100));
}

function best(pod: PodInfo, state: ClusterState, feasible: readonly NodeInfo[], random: Random): NodeInfo {
  if (feasible.length === 1) return feasible[0]!;
  const scores = scoreNodes(pod, state, feasible);
  let top = -Infinity;
  let ties: NodeInfo[] = [];
  for (const [i, node] of feasible.entries()) {
    if (scores[i]! > top) {
      top = scores[i]!;
      ties = [node];
    } else if (scores[i] === top) ties.push(node);
  }
  return ties[ties.length === 1 ? 0 : random.int(ties.length)]!;
}

const unhelpful = 'Preemption is not helpful for scheduling';
const noVictims = 'No preemption victims found for incoming pod';

function refusal(refused: Rejection, nodeCount: number): NoFit {
  return {
    message:
      `0/${nodeCount} nodes are available: ${refused.reasons.join(', ')}. ` +
      `no new claims to deallocate, ${preemptionMessage(0, nodeCount)}`,
    filters: new Set([refused.filter]),
  };
}

function noFitMessage(rejections: readonly Rejection[], nodeCount: number): string {
  const counts = new Map<string, number>();
  for (const { reasons } of rejections) {
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
  }
  const resolvable = rejections.filter((rejected) => rejected.resolvable).length;
  return (
    `0/${nodeCount} nodes are available: ${histogram(counts)}. ` +
    `no new claims to deallocate, ${preemptionMessage(resolvable, nodeCount)}`
  );
}

function preemptionMessage(resolvable: number, nodeCount: number): string {
  const counts = new Map<string, number>();
  if (resolvable > 0) counts.set(noVictims, resolvable);
  if (resolvable < nodeCount) counts.set(unhelpful, nodeCount - resolvable);
  return `preemption: 0/${nodeCount} nodes are available: ${histogram(counts)}.`;
}

/** `2 Insufficient cpu, 3 node(s) were unschedulable`, in the order of the finished strings. */
function histogram(counts: ReadonlyMap<string, number>): string {
  return [...counts]
    .map(([reason, count]) => `${count} ${reason}`)
    .sort()
    .join(', ');
}
