// SPDX-License-Identifier: Apache-2.0
// Filters that look at one node alone: cordons, names, taints, labels, ports and room.
import type { ClusterState } from './cluster-state.ts';
import { type NodeCheck, type Rejection, rejection } from './filter.ts';
import type { NodeInfo } from './node-info.ts';
import { matchesNodeSelection, pinnedNodes, selectsNodes } from './node-selector.ts';
import type { PodInfo } from './pod-info.ts';
import { tolerates, toleratesAll } from './tolerations.ts';

const cordoned = rejection('NodeUnschedulable', false, 'node(s) were unschedulable');
const unschedulableTaint = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** Cordoned nodes, unless the pod tolerates that. */
export function nodeUnschedulable(pod: PodInfo): NodeCheck | undefined {
  if (pod.tolerations.some((t) => tolerates(t, unschedulableTaint))) return undefined;
  return (node) => (node.unschedulable ? cordoned : undefined);
}

const tainted = rejection('TaintToleration', false, 'node(s) had untolerated taint(s)');

export function taintToleration(pod: PodInfo): NodeCheck {
  return (node) =>
    node.blockingTaints.length > 0 && !toleratesAll(pod.tolerations, node.blockingTaints) ? tainted : undefined;
}

const unselected = rejection('NodeAffinity', false, "node(s) didn't match Pod's node affinity/selector");

export function nodeAffinity(pod: PodInfo): NodeCheck | undefined {
  const spec = pod.pod.spec!;
  if (!selectsNodes(spec)) return undefined;
  const pinned = pinnedNodes(spec);
  return (node) =>
    (pinned && !pinned.has(node.name)) || !matchesNodeSelection(spec, node.node!) ? unselected : undefined;
}

const portTaken = rejection('NodePorts', true, "node(s) didn't have free ports for the requested pod ports");

export function nodePorts(pod: PodInfo): NodeCheck | undefined {
  if (pod.hostPorts.length === 0) return undefined;
  return (node) => (pod.hostPorts.some((port) => node.portTaken(port)) ? portTaken : undefined);
}

/** Room: the number of pods first, then each resource the pod asks for. */
export function nodeResourcesFit(pod: PodInfo, _state: ClusterState): NodeCheck {
  return (node) => (fits(pod, node) ? undefined : shortage(pod, node));
}

// The common case, without building a list of reasons.
function fits(pod: PodInfo, node: NodeInfo): boolean {
  const { requests } = pod;
  const { allocatable, requested } = node;
  if (node.pods.size + 1 > allocatable.pods) return false;
  if (requests.cpu > 0 && requests.cpu > allocatable.cpu - requested.cpu) return false;
  if (requests.memory > 0 && requests.memory > allocatable.memory - requested.memory) return false;
  const storage = requests.ephemeralStorage;
  if (storage > 0 && storage > allocatable.ephemeralStorage - requested.ephemeralStorage) return false;
  for (const [name, value] of requests.scalars) {
    if (value > 0 && value > allocatable.get(name) - requested.get(name)) return false;
  }
  return true;
}

function shortage(pod: PodInfo, node: NodeInfo): Rejection {
  const reasons: string[] = [];
  let resolvable = true;
  if (node.pods.size + 1 > node.allocatable.pods) reasons.push('Too many pods');
  for (const name of ['cpu', 'memory', 'ephemeral-storage', ...pod.requests.scalars.keys()]) {
    const wanted = pod.requests.get(name);
    if (wanted === 0 || wanted <= node.allocatable.get(name) - node.requested.get(name)) continue;
    reasons.push(`Insufficient ${name}`);
    if (wanted > node.allocatable.get(name)) resolvable = false;
  }
  return { filter: 'NodeResourcesFit', reasons, resolvable };
}
