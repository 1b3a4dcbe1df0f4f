// SPDX-License-Identifier: Apache-2.0
// The validator's counting of pods by topology domain: spread, affinity, anti-affinity in both directions. A node to
// come may still have several possible domains; what is checked must hold for each of them.
import type { Pod, PodAffinityTerm, TopologySpreadConstraint } from '../objects.ts';
import type { Problem } from '../problem.ts';
import { hostnameLabel, namespaceOf, selects } from './pod-rules.ts';

/** A place for pods, as topology sees it. */
export interface Place {
  /** Unique; the domain of kubernetes.io/hostname. */
  readonly id: string;
  /** The domains this place may be in, empty when it lacks the label. */
  domains(key: string): readonly string[];
}

/** Which pods a rule is about. */
export interface Audience {
  readonly key: string;
  picks(pod: Pod): boolean;
}

type LabelSelector = TopologySpreadConstraint['labelSelector'];

function withLabelKeys(
  selector: LabelSelector,
  pod: Pod,
  matching: readonly string[] | undefined,
  mismatching: readonly string[] | undefined,
): LabelSelector {
  if (!selector || (!matching?.length && !mismatching?.length)) return selector;
  const extra: { key: string; operator: 'In' | 'NotIn'; values: string[] }[] = [];
  const value = (key: string) => pod.metadata.labels?.[key];
  for (const key of matching ?? [])
    if (value(key) !== undefined) extra.push({ key, operator: 'In', values: [value(key)!] });
  for (const key of mismatching ?? [])
    if (value(key) !== undefined) extra.push({ key, operator: 'NotIn', values: [value(key)!] });
  return { ...selector, matchExpressions: [...(selector.matchExpressions ?? []), ...extra] } as LabelSelector;
}

/** The pods that a spread constraint of this pod counts. */
export function spreadAudience(pod: Pod, constraint: TopologySpreadConstraint): Audience {
  const selector = withLabelKeys(constraint.labelSelector, pod, constraint.matchLabelKeys, undefined);
  const namespace = namespaceOf(pod);
  return {
    key: JSON.stringify([[namespace], selector]),
    picks: (other) => namespaceOf(other) === namespace && selects(selector, other.metadata.labels),
  };
}

/** The pods that an affinity term of this pod is about. */
export function termAudience(problem: Problem, pod: Pod, term: PodAffinityTerm): Audience {
  const selector = withLabelKeys(term.labelSelector, pod, term.matchLabelKeys, term.mismatchLabelKeys);
  const namespaces = new Set(term.namespaces);
  if (term.namespaceSelector) {
    for (const ns of problem.namespaces ?? [])
      if (selects(term.namespaceSelector, ns.metadata.labels)) namespaces.add(ns.metadata.name ?? '');
    // An empty selector means every namespace, also those nobody listed.
    const everywhere =
      Object.keys(term.namespaceSelector.matchLabels ?? {}).length === 0 &&
      (term.namespaceSelector.matchExpressions?.length ?? 0) === 0;
    if (everywhere)
      return { key: JSON.stringify(['*', selector]), picks: (other) => selects(selector, other.metadata.labels) };
  } else if (namespaces.size === 0) namespaces.add(namespaceOf(pod));
  return {
    key: JSON.stringify([[...namespaces].sort(), selector]),
    picks: (other) => namespaces.has(namespaceOf(other)) && selects(selector, other.metadata.labels),
  };
}

/** The pods that match every one of several terms: Kubernetes lets only those satisfy an affinity. */
export function allOf(audiences: readonly Audience[]): Audience {
  return {
    key: `all:${audiences.map((a) => a.key).join('&')}`,
    picks: (pod) => audiences.every((a) => a.picks(pod)),
  };
}

/** Counts the pods of one audience over the domains of one topology key. */
export class Tally {
  readonly topologyKey: string;
  readonly audience: Audience;
  /** Places that do not count for this rule (node affinity and taints policies). */
  readonly #counts: (place: Place) => 'yes' | 'no' | 'maybe';
  readonly #perPlace = new Map<Place, number>();
  /** Pods certainly in a domain, and counted by whoever places the next pod. */
  readonly certain = new Map<string, number>();
  /** Pods that may or may not be counted in a domain: their place was still open when some rule looked. */
  readonly open = new Map<string, number>();
  /** Pods on new nodes that do not count for this rule, by domain: whether they do is known only with the type. */
  readonly outside = new Map<string, number>();
  /** For anti-affinity: pods that may end up in a domain. */
  readonly possible = new Map<string, number>();
  readonly #settled = new Set<Place>();
  total = 0;

  constructor(topologyKey: string, audience: Audience, counts: (place: Place) => 'yes' | 'no' | 'maybe' = () => 'yes') {
    this.topologyKey = topologyKey;
    this.audience = audience;
    this.#counts = counts;
  }

  on(place: Place): number {
    return this.#perPlace.get(place) ?? 0;
  }

  /** Whether a node at this place counts for the rule, whatever it becomes. */
  includes(place: Place): boolean {
    return this.#counts(place) === 'yes';
  }

  /** Whether everybody knows the domain of this place. */
  isSettled(place: Place): boolean {
    return this.#settled.has(place);
  }

  /** Records a pod at a place. `settled`: its domain is known to everybody from now on. */
  record(place: Place, settled: boolean): void {
    const verdict = this.#counts(place);
    const domains = place.domains(this.topologyKey);
    if (verdict === 'no') {
      for (const d of domains) bump(this.outside, d, 1);
      return;
    }
    if (domains.length === 0) return;
    this.total++;
    this.#perPlace.set(place, this.on(place) + 1);
    for (const d of domains) bump(this.possible, d, 1);
    if (domains.length !== 1) return;
    // A node's name is nobody else's: there is nothing to settle.
    if (settled || this.topologyKey === hostnameLabel) this.#settled.add(place);
    bump(this.#settled.has(place) && verdict === 'yes' ? this.certain : this.open, domains[0]!, 1);
  }

  /** From now on everybody knows the domain of this place: what waits there is counted. */
  settle(place: Place): void {
    if (this.#settled.has(place)) return;
    this.#settled.add(place);
    const domains = place.domains(this.topologyKey);
    const waiting = this.on(place);
    if (domains.length !== 1 || waiting === 0 || this.#counts(place) !== 'yes') return;
    bump(this.open, domains[0]!, -waiting);
    bump(this.certain, domains[0]!, waiting);
  }
}

function bump(map: Map<string, number>, key: string, by: number): void {
  map.set(key, (map.get(key) ?? 0) + by);
}
