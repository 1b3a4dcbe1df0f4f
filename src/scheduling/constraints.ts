// SPDX-License-Identifier: Apache-2.0
// What constrains a pod beyond its size, in the form that relaxation works on: every list can lose an entry.

import { type LabelSet, normalizeLabelKey, restrictedLabelProblem, labels as wellKnown } from '../api/labels.ts';
import { isQualifiedName, isValidLabelValue, type LabelSelector, SelectorError } from '../kube/labels.ts';
import { type HostPort, hostPortsOf } from './host-ports.ts';
import type {
  NodeSelectorTerm,
  PodAffinityTerm,
  PodSpec,
  RequirementSpec,
  Toleration,
  TopologySpreadConstraint,
  WeightedPodAffinityTerm,
} from './objects.ts';
import type { PreferencePolicy } from './problem.ts';
import { selectorOf } from './selectors.ts';
import { toleratePreferences, tolerates } from './taints.ts';
import type { VolumeAlternatives } from './volumes.ts';

interface WeightedNodeTerm {
  readonly weight: number;
  readonly preference: NodeSelectorTerm;
}

export interface Constraints {
  readonly nodeSelector: Readonly<Record<string, string>>;
  /** Alternatives: the first is tried, relaxation drops it. */
  readonly nodeTerms: readonly NodeSelectorTerm[];
  /** All alternatives as written: what topology spread looks at. */
  readonly allNodeTerms: readonly NodeSelectorTerm[];
  /** Heaviest first. */
  readonly preferredNodeTerms: readonly WeightedNodeTerm[];
  readonly affinity: readonly PodAffinityTerm[];
  readonly preferredAffinity: readonly WeightedPodAffinityTerm[];
  readonly antiAffinity: readonly PodAffinityTerm[];
  readonly preferredAntiAffinity: readonly WeightedPodAffinityTerm[];
  readonly spread: readonly TopologySpreadConstraint[];
  readonly tolerations: readonly Toleration[];
  /** As written: what topology spread looks at. */
  readonly ownTolerations: readonly Toleration[];
  readonly ports: readonly HostPort[];
  readonly volumes: VolumeAlternatives;
}

const byWeight = (a: { readonly weight: number }, b: { readonly weight: number }): number => b.weight - a.weight;

/** The alternatives of a pod's node affinity. One without expressions matches no node, so it is none. */
function requiredNodeTerms({ affinity }: PodSpec): readonly NodeSelectorTerm[] {
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  return terms.filter(
    ({ matchExpressions, matchFields }) => (matchExpressions?.length ?? 0) > 0 || (matchFields?.length ?? 0) > 0,
  );
}

/** Whether a pod demands a node in a way that no node can meet. */
export function matchesNoNode(spec: PodSpec): boolean {
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  return Boolean(required) && requiredNodeTerms(spec).length === 0;
}

/** The constraints of a pod. Under Ignore, preferences are not read at all. */
export function constraintsOf(spec: PodSpec, volumes: VolumeAlternatives, policy: PreferencePolicy): Constraints {
  const { nodeAffinity, podAffinity, podAntiAffinity } = spec.affinity ?? {};
  const soft = policy === 'Respect';
  const terms = requiredNodeTerms(spec);
  const preferred = <T extends { readonly weight: number }>(list: readonly T[] | undefined): readonly T[] =>
    soft && list ? list.toSorted(byWeight) : [];
  return {
    nodeSelector: spec.nodeSelector ?? {},
    nodeTerms: terms,
    allNodeTerms: terms,
    preferredNodeTerms: preferred(nodeAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    affinity: podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
    preferredAffinity: preferred(podAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    antiAffinity: podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? [],
    preferredAntiAffinity: preferred(podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution),
    spread: (spec.topologySpreadConstraints ?? []).filter(
      ({ whenUnsatisfiable }) => soft || whenUnsatisfiable !== 'ScheduleAnyway',
    ),
    tolerations: spec.tolerations ?? [],
    ownTolerations: spec.tolerations ?? [],
    ports: hostPortsOf(spec),
    volumes,
  };
}

/**
 * The next weaker form, one step: each alternative in turn, then all of them again without the heaviest preference.
 * Undefined when only demands are left. Alternatives are demands: none is lost for good while a preference holds.
 */
export function relax(c: Constraints, preferNoScheduleExists: boolean): Constraints | undefined {
  if (c.nodeTerms.length > 1) return { ...c, nodeTerms: c.nodeTerms.slice(1) };
  const all = { ...c, nodeTerms: c.allNodeTerms };
  if (c.preferredAffinity.length > 0) return { ...all, preferredAffinity: c.preferredAffinity.slice(1) };
  if (c.preferredAntiAffinity.length > 0) return { ...all, preferredAntiAffinity: c.preferredAntiAffinity.slice(1) };
  if (c.preferredNodeTerms.length > 0) return { ...all, preferredNodeTerms: c.preferredNodeTerms.slice(1) };
  const soft = c.spread.findIndex(({ whenUnsatisfiable }) => whenUnsatisfiable === 'ScheduleAnyway');
  if (soft >= 0) return { ...all, spread: c.spread.filter((_, i) => i !== soft) };
  const already = c.tolerations.some((t) => tolerates(t, { key: '\0any', effect: 'PreferNoSchedule' }) && !t.key);
  if (preferNoScheduleExists && !already) return { ...all, tolerations: [...c.tolerations, toleratePreferences] };
  return undefined;
}

/** Every selector a pod brings, with the keys whose values it takes from the pod's own labels. */
export function* selectorsOf(
  c: Constraints,
): Generator<{ readonly selector: LabelSelector | null | undefined; readonly keys: readonly string[] }> {
  for (const { labelSelector, matchLabelKeys } of c.spread)
    yield { selector: labelSelector, keys: matchLabelKeys ?? [] };
  const weighted = [...c.preferredAffinity, ...c.preferredAntiAffinity].map(({ podAffinityTerm }) => podAffinityTerm);
  for (const term of [...c.affinity, ...c.antiAffinity, ...weighted])
    yield { selector: term.labelSelector, keys: [...(term.matchLabelKeys ?? []), ...(term.mismatchLabelKeys ?? [])] };
}

const operators = new Set(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt', 'Gte', 'Lte']);

/** Why one expression cannot be used, as a sentence; undefined when it can. */
export function requirementProblem(spec: RequirementSpec, labelSet: LabelSet): string | undefined {
  if (typeof spec.key !== 'string') return 'a requirement has no key';
  const key = normalizeLabelKey(labelSet, spec.key);
  if (!operators.has(spec.operator)) return `operator ${JSON.stringify(spec.operator)} of ${key} is not known`;
  const restricted = restrictedLabelProblem(labelSet, key);
  if (restricted !== undefined) return restricted;
  const badKey = isQualifiedName(key)[0];
  if (badKey !== undefined) return `label key ${JSON.stringify(key)} is not valid: ${badKey}`;
  const values = spec.values ?? [];
  for (const value of values) {
    const bad = isValidLabelValue(value)[0];
    if (bad !== undefined) return `value ${JSON.stringify(value)} of ${key} is not valid: ${bad}`;
  }
  return valueCountProblem(spec, key, values);
}

function valueCountProblem(spec: RequirementSpec, key: string, values: readonly string[]): string | undefined {
  switch (spec.operator) {
    case 'In':
      if (values.length === 0) return `${key} In needs at least one value`;
      if (spec.minValues !== undefined && values.length < spec.minValues)
        return `${key} lists ${values.length} values but asks for minValues ${spec.minValues}`;
      return undefined;
    case 'Gt':
    case 'Lt':
    case 'Gte':
    case 'Lte':
      return values.length === 1 && /^[0-9]{1,19}$/.test(values[0]!)
        ? undefined
        : `${key} ${spec.operator} needs one non-negative integer`;
    default:
      return undefined;
  }
}

/** Why the node selection of a pod cannot be used with a cloud's labels; undefined when it can. */
export function nodeSelectionProblem(c: Constraints, labelSet: LabelSet): string | undefined {
  for (const key in c.nodeSelector) {
    const problem = requirementProblem({ key, operator: 'In', values: [c.nodeSelector[key]!] }, labelSet);
    if (problem !== undefined) return `node selector: ${problem}`;
  }
  for (const term of c.allNodeTerms) {
    if ((term.matchFields?.length ?? 0) > 0) return 'node affinity: matchFields is not supported';
    for (const expression of term.matchExpressions ?? []) {
      const pool = normalizeLabelKey(labelSet, expression.key ?? '') === wellKnown.nodePool;
      if (pool && expression.operator === 'DoesNotExist')
        return `the pod asks for a node without ${wellKnown.nodePool}: it is not ours to place`;
      const problem = requirementProblem(expression, labelSet);
      if (problem !== undefined) return `node affinity: ${problem}`;
    }
  }
  return undefined;
}

/** Why a pod's selectors or constraints cannot be read; undefined when they can. */
export function selectorProblem(c: Constraints): string | undefined {
  const weighted = [...c.preferredAffinity, ...c.preferredAntiAffinity].map(({ podAffinityTerm }) => podAffinityTerm);
  const terms = [...c.affinity, ...c.antiAffinity, ...weighted];
  try {
    for (const { selector, keys } of selectorsOf(c)) {
      selectorOf(selector);
      for (const key of keys) {
        const bad = isQualifiedName(key)[0];
        if (bad !== undefined) return `label key ${JSON.stringify(key)} of matchLabelKeys is not valid: ${bad}`;
      }
    }
    for (const { namespaceSelector } of terms) selectorOf(namespaceSelector);
  } catch (error) {
    if (error instanceof SelectorError) return `a label selector is broken: ${error.message}`;
    throw error;
  }
  for (const { topologyKey } of terms) if (!topologyKey) return 'a pod affinity term names no topologyKey';
  for (const { preference } of c.preferredNodeTerms)
    for (const { key, operator } of preference.matchExpressions ?? [])
      if (!operators.has(operator))
        return `preferred node affinity: operator ${JSON.stringify(operator)} of ${key} is not known`;
  return spreadProblem(c.spread);
}

function spreadProblem(spread: readonly TopologySpreadConstraint[]): string | undefined {
  for (const { topologyKey, maxSkew, minDomains, whenUnsatisfiable, nodeAffinityPolicy, nodeTaintsPolicy } of spread) {
    if (!topologyKey) return 'a topology spread constraint names no topologyKey';
    if (!Number.isInteger(maxSkew) || maxSkew < 1)
      return `topology spread over ${topologyKey}: maxSkew must be at least 1`;
    if (whenUnsatisfiable !== 'DoNotSchedule' && whenUnsatisfiable !== 'ScheduleAnyway')
      return `topology spread over ${topologyKey}: whenUnsatisfiable ${JSON.stringify(whenUnsatisfiable)} is not known`;
    if ((minDomains ?? 1) < 1) return `topology spread over ${topologyKey}: minDomains must be at least 1`;
    for (const policy of [nodeAffinityPolicy ?? 'Honor', nodeTaintsPolicy ?? 'Honor'])
      if (policy !== 'Honor' && policy !== 'Ignore')
        return `topology spread over ${topologyKey}: policy ${JSON.stringify(policy)} is neither Honor nor Ignore`;
  }
  return undefined;
}
