// SPDX-License-Identifier: Apache-2.0
// Pod affinity and anti-affinity, of the pod that is to be placed and of those that run already.
import type { ClusterState } from './cluster-state.ts';
import { type NodeCheck, rejection } from './filter.ts';
import type { NodeInfo } from './node-info.ts';
import type { AffinityTerm, PodInfo } from './pod-info.ts';

const lonely = rejection('InterPodAffinity', false, "node(s) didn't match pod affinity rules");
const crowded = rejection('InterPodAffinity', true, "node(s) didn't match pod anti-affinity rules");
const unwelcome = rejection('InterPodAffinity', true, "node(s) didn't satisfy existing pods anti-affinity rules");

/** Values of a topology label at which something holds. */
type Domains = ReadonlyMap<string, ReadonlySet<string>>;

export function interPodAffinity(pod: PodInfo, state: ClusterState): NodeCheck | undefined {
  const near = pod.affinity.length > 0 ? affinityCheck(pod, state) : undefined;
  const apart = pod.antiAffinity.length > 0 ? antiAffinityDomains(pod, state) : undefined;
  const forbidden = forbiddenDomains(pod, state);
  if (!near && !apart && forbidden.size === 0) return undefined;
  return (node) => {
    if (near && !near(node)) return lonely;
    if (apart && isIn(apart, node)) return crowded;
    return isIn(forbidden, node) ? unwelcome : undefined;
  };
}

/**
 * A running pod counts when it matches all terms at once. Where none does anywhere, the first of a group that matches
 * its own terms may start it, on any node that has the labels.
 */
function affinityCheck(pod: PodInfo, state: ClusterState): (node: NodeInfo) => boolean {
  const selections = pod.affinity.map((term) => ({ namespaces: state.namespacesOf(term), selector: term.selector }));
  const { perNode } = state.index.count(selections);
  const domains = pod.affinity.map((term) => valuesOf(term.topologyKey, perNode.keys()));
  const first =
    domains.every((values) => values.size === 0) && pod.affinity.every((term) => matchesPod(term, pod, state));
  return (node) =>
    pod.affinity.every((term, i) => {
      const value = node.labels[term.topologyKey];
      return value !== undefined && (first || domains[i]!.has(value));
    });
}

function antiAffinityDomains(pod: PodInfo, state: ClusterState): Domains {
  const domains = new Map<string, Set<string>>();
  for (const term of pod.antiAffinity) {
    const { perNode } = state.index.count([{ namespaces: state.namespacesOf(term), selector: term.selector }]);
    addValues(domains, term.topologyKey, perNode.keys());
  }
  return domains;
}

function forbiddenDomains(pod: PodInfo, state: ClusterState): Domains {
  const domains = new Map<string, Set<string>>();
  for (const { term, perNode } of state.index.requiredAntiAffinity()) {
    if (matchesPod(term, pod, state)) addValues(domains, term.topologyKey, perNode.keys());
  }
  return domains;
}

/** Whether a term speaks of this pod. */
export function matchesPod(term: AffinityTerm, pod: PodInfo, state: ClusterState): boolean {
  return term.selector.matches(pod.labels) && state.namespacesOf(term).includes(pod.namespace);
}

function valuesOf(key: string, nodes: Iterable<NodeInfo>): Set<string> {
  const values = new Set<string>();
  for (const node of nodes) {
    const value = node.labels[key];
    if (value !== undefined) values.add(value);
  }
  return values;
}

function addValues(domains: Map<string, Set<string>>, key: string, nodes: Iterable<NodeInfo>): void {
  const known = domains.get(key);
  const values = valuesOf(key, nodes);
  if (known) for (const value of values) known.add(value);
  else if (values.size > 0) domains.set(key, values);
}

function isIn(domains: Domains, node: NodeInfo): boolean {
  for (const [key, values] of domains) {
    const value = node.labels[key];
    if (value !== undefined && values.has(value)) return true;
  }
  return false;
}
