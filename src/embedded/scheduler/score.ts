// SPDX-License-Identifier: Apache-2.0
// Which of the nodes that will do is best: kube-scheduler's default scores and weights, each from 0 to 100.
import type { ClusterState } from './cluster-state.ts';
import { matchesPod } from './filter-affinity.ts';
import { countByDomain, hasLabels, spreadCounts } from './filter-spread.ts';
import type { NodeInfo } from './node-info.ts';
import { matchesTerm } from './node-selector.ts';
import type { PodInfo, SpreadConstraint } from './pod-info.ts';
import { tolerates } from './tolerations.ts';

const highest = 100;

/** The total score of each feasible node, in their order. */
export function scoreNodes(pod: PodInfo, state: ClusterState, feasible: readonly NodeInfo[]): number[] {
  const totals = feasible.map((node) => leastAllocated(pod, node) + balance(pod, node));
  const add = (weight: number, scores: readonly number[] | undefined): void => {
    if (scores) for (let i = 0; i < totals.length; i++) totals[i]! += weight * scores[i]!;
  };
  add(3, taintScores(pod, feasible));
  add(2, nodeAffinityScores(pod, feasible));
  add(2, spreadScores(pod, state, feasible));
  add(2, podAffinityScores(pod, state, feasible));
  return totals;
}

function leastAllocated(pod: PodInfo, node: NodeInfo): number {
  const { allocatable, weights } = node;
  let sum = 0;
  let counted = 0;
  if (allocatable.cpu > 0) {
    sum += freeShare(weights.cpu + pod.weights.cpu, allocatable.cpu);
    counted++;
  }
  if (allocatable.memory > 0) {
    sum += freeShare(weights.memory + pod.weights.memory, allocatable.memory);
    counted++;
  }
  return counted === 0 ? 0 : Math.floor(sum / counted);
}

function freeShare(used: number, capacity: number): number {
  return used > capacity ? 0 : Math.floor(((capacity - used) * highest) / capacity);
}

/** How the pod changes the node's balance of CPU and memory: 75 for no change, towards 100 for better. */
function balance(pod: PodInfo, node: NodeInfo): number {
  const { allocatable, requested } = node;
  const { requests } = pod;
  const after = evenness(requested.cpu + requests.cpu, requested.memory + requests.memory, allocatable);
  const before = evenness(requested.cpu, requested.memory, allocatable);
  return highest / 2 + Math.trunc((highest / 2 + after - before) / 2);
}

function evenness(cpu: number, memory: number, allocatable: { cpu: number; memory: number }): number {
  if (allocatable.cpu === 0 || allocatable.memory === 0) return highest;
  const deviation = Math.abs(Math.min(1, cpu / allocatable.cpu) - Math.min(1, memory / allocatable.memory)) / 2;
  return Math.trunc((1 - deviation) * highest);
}

/** Fewer PreferNoSchedule taints against the pod are better. */
function taintScores(pod: PodInfo, feasible: readonly NodeInfo[]): number[] | undefined {
  if (feasible.every((node) => node.softTaints.length === 0)) return undefined;
  const counts = feasible.map(
    (node) => node.softTaints.filter((taint) => !pod.tolerations.some((t) => tolerates(t, taint))).length,
  );
  const most = Math.max(...counts);
  return most === 0 ? undefined : counts.map((count) => highest - Math.trunc((highest * count) / most));
}

function nodeAffinityScores(pod: PodInfo, feasible: readonly NodeInfo[]): number[] | undefined {
  const preferred = pod.pod.spec!.affinity?.nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution;
  if (!preferred || preferred.length === 0) return undefined;
  const sums = feasible.map((node) =>
    preferred.reduce((sum, p) => sum + (matchesTerm(p.preference, node.node!) ? p.weight : 0), 0),
  );
  const most = Math.max(...sums);
  return most === 0 ? undefined : sums.map((sum) => Math.trunc((highest * sum) / most));
}

const hostname = 'kubernetes.io/hostname';

/** Soft constraints of the pod; without any, those every workload's replicas get by default. */
function softConstraints(pod: PodInfo, state: ClusterState): { soft: readonly SpreadConstraint[]; byDefault: boolean } {
  if (pod.spread.length > 0) return { soft: pod.spread.filter((c) => !c.hard), byDefault: false };
  const selector = state.lookups.ownerSelector(pod.pod);
  if (!selector) return { soft: [], byDefault: true };
  const constraint = (topologyKey: string, maxSkew: number): SpreadConstraint => ({
    topologyKey,
    maxSkew,
    minDomains: 1,
    hard: false,
    honorAffinity: true,
    honorTaints: false,
    selector,
  });
  return { soft: [constraint(hostname, 3), constraint('topology.kubernetes.io/zone', 5)], byDefault: true };
}

function spreadScores(pod: PodInfo, state: ClusterState, feasible: readonly NodeInfo[]): number[] | undefined {
  const { soft, byDefault } = softConstraints(pod, state);
  if (soft.length === 0) return undefined;
  const keys = soft.map((constraint) => constraint.topologyKey);
  // By default a node without a zone still takes part in spreading over hosts.
  const eligible = (node: NodeInfo): boolean => byDefault || hasLabels(node, keys);
  const parts = soft.map((constraint) => {
    const perNode = spreadCounts(pod, constraint, state);
    const present = new Set<string>();
    for (const node of feasible) {
      const value = node.labels[constraint.topologyKey];
      if (value !== undefined && eligible(node)) present.add(value);
    }
    const onHost = constraint.topologyKey === hostname;
    const size = onHost ? feasible.filter(eligible).length : present.size;
    return {
      constraint,
      perNode,
      domains: onHost || present.size === 0 ? undefined : countByDomain(pod, constraint, state, eligible),
      weight: Math.log(size + 2),
    };
  });
  const raw = feasible.map((node) => {
    if (!eligible(node)) return undefined;
    let score = 0;
    for (const { constraint, perNode, domains, weight } of parts) {
      const value = node.labels[constraint.topologyKey];
      if (value === undefined) continue;
      const count = domains ? (domains.get(value) ?? 0) : (perNode.get(node) ?? 0);
      score += count * weight + (constraint.maxSkew - 1);
    }
    return Math.round(score);
  });
  const known = raw.filter((score) => score !== undefined);
  const most = Math.max(0, ...known);
  const least = Math.min(...known);
  return raw.map((score) => {
    if (score === undefined) return 0;
    return most === 0 ? highest : Math.trunc((highest * (most + least - score)) / most);
  });
}

/** Preferred terms of the pod, and terms of running pods that speak of it; required affinity of those weighs 1. */
function podAffinityScores(pod: PodInfo, state: ClusterState, feasible: readonly NodeInfo[]): number[] | undefined {
  const byLabel = new Map<string, Map<string, number>>();
  const credit = (key: string, perNode: ReadonlyMap<NodeInfo, number>, weight: number): void => {
    const values = byLabel.get(key) ?? new Map<string, number>();
    byLabel.set(key, values);
    for (const [node, count] of perNode) {
      const value = node.labels[key];
      if (value !== undefined) values.set(value, (values.get(value) ?? 0) + count * weight);
    }
  };
  for (const term of [...pod.preferredAffinity, ...pod.preferredAntiAffinity]) {
    const selection = { namespaces: state.namespacesOf(term), selector: term.selector };
    credit(term.topologyKey, state.index.count([selection]).perNode, term.weight);
  }
  for (const { term, perNode } of state.index.scoredTerms()) {
    if (matchesPod(term, pod, state)) credit(term.topologyKey, perNode, term.weight === 0 ? 1 : term.weight);
  }
  if (byLabel.size === 0) return undefined;
  const sums = feasible.map((node) => {
    let sum = 0;
    for (const [key, values] of byLabel) {
      const value = node.labels[key];
      if (value !== undefined) sum += values.get(value) ?? 0;
    }
    return sum;
  });
  const most = Math.max(...sums);
  const least = Math.min(...sums);
  return most === least ? undefined : sums.map((sum) => Math.trunc((highest * (sum - least)) / (most - least)));
}
