// SPDX-License-Identifier: Apache-2.0
// Which zones the pods that run already leave to one that waits: required spread, affinity and anti-affinity over zones.
// For a metric: pods of the same pass are not counted.
import { labels } from '../../api/labels.ts';
import type { Namespace, Pod } from '../../kube/kinds.ts';
import { compileLabelSelector, type LabelSelector } from '../../kube/labels.ts';
import type { StateNode } from '../../state/state-node.ts';

export interface RunningPods {
  nodes(): Iterable<Pick<StateNode, 'labels' | 'runningPods'>>;
  readonly namespaces: readonly Namespace[];
}

type Counts = ReadonlyMap<string, number>;
type Spread = NonNullable<Pod['spec']['topologySpreadConstraints']>[number];

/** How many different questions one pass may ask about all running pods; further ones do not narrow anything. */
const maxQuestions = 32;

interface Term {
  readonly topologyKey: string;
  readonly labelSelector?: LabelSelector | undefined;
  readonly namespaces?: readonly string[] | undefined;
  readonly namespaceSelector?: LabelSelector | undefined;
}

/** Remembers what it counted: make a new one for each pass. */
export class ZoneRules {
  readonly #running: RunningPods;
  readonly #counts = new Map<string, Counts>();

  constructor(running: RunningPods) {
    this.#running = running;
  }

  /** Of the zones that a pod's own wishes leave, those that other pods leave. */
  open(pod: Pod, zones: readonly string[]): readonly string[] {
    const { topologySpreadConstraints = [], affinity } = pod.spec;
    let open = zones;
    for (const constraint of topologySpreadConstraints)
      if (constraint.topologyKey === labels.zone && constraint.whenUnsatisfiable !== 'ScheduleAnyway')
        open = this.#spread(pod, constraint, zones, open);
    for (const term of affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
      const counts = this.#countOf(term, pod);
      // The first of its kind may go anywhere.
      const isFirst = counts?.size === 0 && matches(term.labelSelector, pod);
      if (counts && !isFirst) open = open.filter((zone) => counts.has(zone));
    }
    for (const term of affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []) {
      const counts = this.#countOf(term, pod);
      if (counts) open = open.filter((zone) => !counts.has(zone));
    }
    return open;
  }

  /** Those of the open zones in which one more pod keeps the spread over all zones. */
  #spread(pod: Pod, constraint: Spread, zones: readonly string[], open: readonly string[]): readonly string[] {
    const selector = withKeys(constraint.labelSelector, constraint.matchLabelKeys, pod);
    const counts = this.#count([pod.metadata.namespace ?? ''], selector);
    if (!counts) return open;
    const tooFew = zones.length < (constraint.minDomains ?? 1);
    const least = tooFew ? 0 : Math.min(...zones.map((zone) => counts.get(zone) ?? 0));
    const own = matches(selector, pod) ? 1 : 0;
    return open.filter((zone) => (counts.get(zone) ?? 0) + own - least <= constraint.maxSkew);
  }

  #countOf(term: Term, pod: Pod): Counts | undefined {
    if (term.topologyKey !== labels.zone) return undefined;
    const { namespaceSelector, namespaces = [] } = term;
    const named = namespaceSelector
      ? this.#running.namespaces.filter(({ metadata }) =>
          compileLabelSelector(namespaceSelector).matches(metadata.labels),
        )
      : [];
    const all = [...namespaces, ...named.map(({ metadata }) => metadata.name ?? '')];
    return this.#count(all.length > 0 || namespaceSelector ? all : [pod.metadata.namespace ?? ''], term.labelSelector);
  }

  /** Running pods by zone; undefined when too much was asked already. */
  #count(namespaces: readonly string[], selector: LabelSelector | undefined): Counts | undefined {
    const question = JSON.stringify([namespaces, selector]);
    const known = this.#counts.get(question);
    if (known || this.#counts.size >= maxQuestions) return known;
    const counts = new Map<string, number>();
    const compiled = compileLabelSelector(selector);
    const within = new Set(namespaces);
    for (const node of this.#running.nodes()) {
      const zone = node.labels[labels.zone];
      if (zone === undefined) continue;
      for (const { metadata } of node.runningPods())
        if (within.has(metadata.namespace ?? '') && compiled.matches(metadata.labels))
          counts.set(zone, (counts.get(zone) ?? 0) + 1);
    }
    this.#counts.set(question, counts);
    return counts;
  }
}

function matches(selector: LabelSelector | undefined, { metadata }: Pod): boolean {
  return compileLabelSelector(selector).matches(metadata.labels);
}

/** The selector narrowed to pods that have the same values of some labels. */
function withKeys(
  selector: LabelSelector | undefined,
  keys: readonly string[] | undefined,
  { metadata }: Pod,
): LabelSelector | undefined {
  const same = (keys ?? []).flatMap((key) => {
    const value = metadata.labels?.[key];
    return value === undefined ? [] : [[key, value] as const];
  });
  if (!selector || same.length === 0) return selector;
  return { ...selector, matchLabels: { ...selector.matchLabels, ...Object.fromEntries(same) } };
}
