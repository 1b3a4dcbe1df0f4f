// SPDX-License-Identifier: Apache-2.0
// A pod as the scheduler thinks of it: everything that is asked again and again, worked out once.
import type {
  Affinity,
  Pod,
  PodAffinityTerm,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from '../../kube/kinds.ts';
import { compileLabelSelector, type LabelSelector, type Labels, nothing, type Selector } from '../../kube/labels.ts';
import { keyOf } from '../../kube/object.ts';
import { parseTime } from '../../kube/time.ts';
import { podRequests, podWeights, type Resources } from './resources.ts';

/** A pod (anti-)affinity term, ready to be matched. */
export interface AffinityTerm {
  readonly topologyKey: string;
  readonly selector: Selector;
  /** Names listed by the term; its own pod's namespace when it lists neither names nor a selector. */
  readonly namespaces: readonly string[];
  readonly namespaceSelector: Selector;
  /** 0 for required terms. */
  readonly weight: number;
}

/** A spread constraint, ready to be counted. */
export interface SpreadConstraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly hard: boolean;
  readonly honorAffinity: boolean;
  readonly honorTaints: boolean;
  readonly selector: Selector;
}

/** A port on the host. An address of 0.0.0.0 clashes with every other. */
export interface HostPort {
  readonly protocol: string;
  readonly ip: string;
  readonly port: number;
}

export interface PodInfo {
  readonly pod: Pod;
  readonly key: string;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Labels;
  readonly priority: number;
  readonly createdMs: number;
  readonly terminating: boolean;
  readonly requests: Resources;
  readonly weights: Resources;
  readonly tolerations: readonly Toleration[];
  readonly affinity: readonly AffinityTerm[];
  readonly antiAffinity: readonly AffinityTerm[];
  readonly preferredAffinity: readonly AffinityTerm[];
  /** Weights are negative: a match speaks against the node. */
  readonly preferredAntiAffinity: readonly AffinityTerm[];
  readonly spread: readonly SpreadConstraint[];
  readonly hostPorts: readonly HostPort[];
  /** `namespace/name` of the claims its volumes use, ephemeral ones included. */
  readonly claims: readonly string[];
}

/** Compiles a pod. Selectors that do not compile match nothing: the API server refuses them anyway. */
export function podInfo(pod: Pod): PodInfo {
  const spec = pod.spec!;
  const labels = pod.metadata.labels ?? {};
  const namespace = pod.metadata.namespace ?? 'default';
  return {
    pod,
    key: keyOf(pod),
    uid: pod.metadata.uid ?? keyOf(pod),
    namespace,
    name: pod.metadata.name ?? '',
    labels,
    priority: spec.priority ?? 0,
    createdMs: pod.metadata.creationTimestamp ? parseTime(pod.metadata.creationTimestamp) : 0,
    terminating: pod.metadata.deletionTimestamp !== undefined,
    requests: podRequests(spec),
    weights: podWeights(spec),
    tolerations: spec.tolerations ?? none,
    ...affinityTerms(spec.affinity, namespace, labels),
    spread: spec.topologySpreadConstraints?.map((constraint) => spreadConstraint(constraint, labels)) ?? none,
    hostPorts: hostPorts(pod),
    claims: claimsOf(pod),
  };
}

const none: readonly never[] = [];

type AffinityTerms = Pick<PodInfo, 'affinity' | 'antiAffinity' | 'preferredAffinity' | 'preferredAntiAffinity'>;

function affinityTerms(affinity: Affinity | undefined, namespace: string, labels: Labels): AffinityTerms {
  const { podAffinity, podAntiAffinity } = affinity ?? {};
  const term = (t: PodAffinityTerm, weight: number): AffinityTerm => affinityTerm(t, weight, namespace, labels);
  const required = (terms: readonly PodAffinityTerm[] = none) => terms.map((t) => term(t, 0));
  const preferred = (sign: 1 | -1, terms: readonly WeightedPodAffinityTerm[] = none) =>
    terms.map((t) => term(t.podAffinityTerm, sign * t.weight));
  return {
    affinity: required(podAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: required(podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution),
    preferredAffinity: preferred(1, podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    preferredAntiAffinity: preferred(-1, podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
  };
}

function compile(selector: LabelSelector | undefined): Selector {
  try {
    return compileLabelSelector(selector);
  } catch {
    // The API server validates selectors; one that slipped through must not stop the scheduler.
    return nothing;
  }
}

/** Adds `key in (the pod's own value)` (or notin) for the keys the pod carries. */
function withOwnLabels(
  selector: LabelSelector | undefined,
  labels: Labels,
  matching: readonly string[] = none,
  mismatching: readonly string[] = none,
): LabelSelector | undefined {
  const own = (keys: readonly string[], operator: 'In' | 'NotIn') =>
    keys.filter((key) => labels[key] !== undefined).map((key) => ({ key, operator, values: [labels[key]!] }));
  const extra = [...own(matching, 'In'), ...own(mismatching, 'NotIn')];
  if (!selector || extra.length === 0) return selector;
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...extra] };
}

function affinityTerm(term: PodAffinityTerm, weight: number, namespace: string, labels: Labels): AffinityTerm {
  const { matchLabelKeys, mismatchLabelKeys } = term as { matchLabelKeys?: string[]; mismatchLabelKeys?: string[] };
  const selector = withOwnLabels(term.labelSelector as LabelSelector, labels, matchLabelKeys, mismatchLabelKeys);
  const named = term.namespaces ?? none;
  return {
    topologyKey: term.topologyKey,
    selector: compile(selector),
    namespaces: named.length === 0 && term.namespaceSelector === undefined ? [namespace] : named,
    namespaceSelector: compile(term.namespaceSelector as LabelSelector | undefined),
    weight,
  };
}

function spreadConstraint(constraint: TopologySpreadConstraint, labels: Labels): SpreadConstraint {
  const selector = withOwnLabels(constraint.labelSelector as LabelSelector, labels, constraint.matchLabelKeys);
  return {
    topologyKey: constraint.topologyKey,
    maxSkew: constraint.maxSkew,
    minDomains: constraint.minDomains ?? 1,
    hard: constraint.whenUnsatisfiable === 'DoNotSchedule',
    honorAffinity: (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor',
    honorTaints: (constraint.nodeTaintsPolicy ?? 'Ignore') === 'Honor',
    selector: compile(selector),
  };
}

function hostPorts(pod: Pod): readonly HostPort[] {
  const ports: HostPort[] = [];
  const sidecars = pod.spec!.initContainers?.filter((c) => c.restartPolicy === 'Always') ?? [];
  for (const container of [...pod.spec!.containers, ...sidecars]) {
    for (const port of container.ports ?? []) {
      if (!port.hostPort) continue;
      ports.push({ protocol: port.protocol ?? 'TCP', ip: port.hostIP || '0.0.0.0', port: port.hostPort });
    }
  }
  return ports.length === 0 ? none : ports;
}

function claimsOf(pod: Pod): readonly string[] {
  const namespace = pod.metadata.namespace ?? 'default';
  const claims: string[] = [];
  for (const volume of pod.spec!.volumes ?? []) {
    if (volume.persistentVolumeClaim) claims.push(`${namespace}/${volume.persistentVolumeClaim.claimName}`);
    else if (volume.ephemeral) claims.push(`${namespace}/${pod.metadata.name}-${volume.name}`);
  }
  return claims.length === 0 ? none : claims;
}
