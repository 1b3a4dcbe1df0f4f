// SPDX-License-Identifier: Apache-2.0
// What is measured about nodes, under upstream's names.
import { commonLabelSet } from '../../../api/labels.ts';
import { compareStrings } from '../../../base/order.ts';
import { gauge } from '../../../runtime/metrics.ts';

/** Labels that every series about a node has besides the well-known ones. */
const ownLabels = ['node_name', 'phase', 'managed'] as const;
const withResource = 'resource_type';

/** Well-known label keys by the metric label they are shown as. Two clouds may use one word: then the node says whose it is. */
export type ShownLabels = ReadonlyMap<string, readonly string[]>;

/** How well-known labels are shown: without their domain, in snake case. */
export function shownLabels(wellKnown: Iterable<string>): ShownLabels {
  const shown = new Map<string, string[]>();
  for (const key of [...new Set(wellKnown)].sort(compareStrings)) {
    const word = key
      .split('/')[1]
      ?.toLowerCase()
      .replace(/[^a-z0-9_]/g, '_');
    if (!word || !/^[a-z_]/.test(word) || word === withResource || (ownLabels as readonly string[]).includes(word))
      continue;
    const keys = shown.get(word);
    if (keys) keys.push(key);
    else shown.set(word, [key]);
  }
  return new Map([...shown].sort(([a], [b]) => compareStrings(a, b)));
}

/** The names of the labels of series about nodes. */
export function nodeLabelNames(shown: ShownLabels): string[] {
  return [...shown.keys(), ...ownLabels];
}

// The labels that clouds add are known once the clouds are.
const perNode = nodeLabelNames(shownLabels(commonLabelSet.wellKnown));
const perResource = [...perNode, withResource];

/** By node and resource. */
export const nodeResourceMetrics = {
  allocatable: gauge({
    name: 'karpenter_nodes_allocatable',
    help: 'What a node has for pods. The labels also hold those a cloud adds.',
    labels: perResource,
    stability: 'beta',
  }),
  podRequests: gauge({
    name: 'karpenter_nodes_total_pod_requests',
    help: 'What the pods on a node request, those of DaemonSets included.',
    labels: perResource,
    stability: 'beta',
  }),
  podLimits: gauge({
    name: 'karpenter_nodes_total_pod_limits',
    help: 'What the pods on a node may use at most, those of DaemonSets included.',
    labels: perResource,
    stability: 'beta',
  }),
  daemonRequests: gauge({
    name: 'karpenter_nodes_total_daemon_requests',
    help: 'What the pods of DaemonSets on a node request.',
    labels: perResource,
    stability: 'beta',
  }),
  daemonLimits: gauge({
    name: 'karpenter_nodes_total_daemon_limits',
    help: 'What the pods of DaemonSets on a node may use at most.',
    labels: perResource,
    stability: 'beta',
  }),
  systemOverhead: gauge({
    name: 'karpenter_nodes_system_overhead',
    help: 'What a node keeps for itself: its capacity without what it has for pods.',
    labels: perResource,
    stability: 'beta',
  }),
} as const;

export const nodeMetrics = {
  lifetime: gauge({
    name: 'karpenter_nodes_current_lifetime_seconds',
    help: 'How old a node is.',
    labels: perNode,
    stability: 'alpha',
  }),
  utilization: gauge({
    name: 'karpenter_cluster_utilization_percent',
    help: 'How much of what all nodes have for pods is requested by pods.',
    labels: [withResource],
    stability: 'alpha',
  }),
} as const;
