// SPDX-License-Identifier: Apache-2.0
// Topology spread: hard constraints as a filter; the counting is shared with the score.
import type { ClusterState } from './cluster-state.ts';
import { type NodeCheck, rejection } from './filter.ts';
import type { NodeInfo } from './node-info.ts';
import { matchesNodeSelection } from './node-selector.ts';
import type { PodInfo, SpreadConstraint } from './pod-info.ts';
import { toleratesAll } from './tolerations.ts';

const skewed = rejection('PodTopologySpread', true, "node(s) didn't match pod topology spread constraints");
const unlabelled = rejection(
  'PodTopologySpread',
  false,
  "node(s) didn't match pod topology spread constraints (missing required label)",
);

/** Keeps every domain within `maxSkew` of the emptiest one. */
export function podTopologySpread(pod: PodInfo, state: ClusterState): NodeCheck | undefined {
  const hard = pod.spread.filter((constraint) => constraint.hard);
  if (hard.length === 0) return undefined;
  const keys = hard.map((constraint) => constraint.topologyKey);
  const rules = hard.map((constraint) => {
    const domains = countByDomain(pod, constraint, state, (node) => hasLabels(node, keys));
    return {
      constraint,
      domains,
      least: domains.size < constraint.minDomains ? 0 : Math.min(...domains.values()),
      self: constraint.selector.matches(pod.labels) ? 1 : 0,
    };
  });
  return (node) => {
    for (const { constraint, domains, least, self } of rules) {
      const domain = node.labels[constraint.topologyKey];
      if (domain === undefined) return unlabelled;
      // No domain at all counts as an endless minimum upstream: nothing is ever too skewed then.
      if (domains.size > 0 && (domains.get(domain) ?? 0) + self - least > constraint.maxSkew) return skewed;
    }
    return undefined;
  };
}

/**
 * Matching pods per value of the constraint's label, over the nodes that take part: those that pass `eligible` and the
 * constraint's own policies on affinity and taints. A domain whose nodes are all empty is in the map, with zero.
 */
export function countByDomain(
  pod: PodInfo,
  constraint: SpreadConstraint,
  state: ClusterState,
  eligible: (node: NodeInfo) => boolean,
): Map<string, number> {
  const counts = spreadCounts(pod, constraint, state);
  const domains = new Map<string, number>();
  for (const node of state.nodes()) {
    const domain = node.labels[constraint.topologyKey];
    if (domain === undefined || !eligible(node) || !takesPart(pod, constraint, node)) continue;
    domains.set(domain, (domains.get(domain) ?? 0) + (counts.get(node) ?? 0));
  }
  return domains;
}

/** Matching pods per node, those on their way out left aside. */
export function spreadCounts(
  pod: PodInfo,
  constraint: SpreadConstraint,
  state: ClusterState,
): ReadonlyMap<NodeInfo, number> {
  const selection = { namespaces: [pod.namespace], selector: constraint.selector };
  return state.index.count([selection], { skipTerminating: true }).perNode;
}

/** Whether a node counts, by the constraint's policies on node affinity and taints. */
export function takesPart(pod: PodInfo, constraint: SpreadConstraint, node: NodeInfo): boolean {
  if (constraint.honorAffinity && !matchesNodeSelection(pod.pod.spec!, node.node!)) return false;
  if (!constraint.honorTaints) return true;
  return toleratesAll(pod.tolerations, node.blockingTaints);
}

export function hasLabels(node: NodeInfo, keys: readonly string[]): boolean {
  return keys.every((key) => node.labels[key] !== undefined);
}
