// SPDX-License-Identifier: Apache-2.0
// Pods with the same constraints and labels are one class: their rules are worked out once, and so is each weaker form
// that relaxation leads to.
import { type LabelSet, labels } from '../api/labels.ts';
import type { LabelClass } from './batch.ts';
import { type Constraints, nodeSelectionProblem, relax } from './constraints.ts';
import type { HostPort } from './host-ports.ts';
import type { PodAffinityTerm, Toleration, TopologySpreadConstraint } from './objects.ts';
import type { RequirementSpace, SetId } from './requirement-space.ts';
import {
  mergeRequirements,
  type Requirement,
  type Requirements,
  requirementsOf,
  requirementsOfLabels,
} from './requirements.ts';
import type { Dialect } from './templates.ts';
import {
  type AffinityRule,
  type Group,
  type Groups,
  type KeyRules,
  type Matcher,
  matcherOf,
  type Namespaces,
  type NodeFilter,
  selects,
  type TopologyKey,
} from './topology.ts';

/** What constraints ask of a node's labels, in one cloud's words. */
export interface NodeWish {
  /** Demands and the heaviest preference. */
  readonly all: SetId;
  /** Demands only: what the pod's own topology domains follow from. */
  readonly strict: SetId;
  /** Where volumes are, as alternatives; one empty set when it does not matter. */
  readonly volumes: readonly SetId[];
}

/** The part of constraints that does not depend on the pod's labels. Shared by all classes with the same constraints. */
export interface NodeSide {
  readonly constraints: Constraints;
  /** By dialect; undefined where the pod asks for labels that this cloud forbids. */
  readonly wishes: readonly (NodeWish | undefined)[];
  /** Set when no dialect allows the node selection. */
  readonly problem: string | undefined;
  readonly tolerations: readonly Toleration[];
  readonly tolerationsId: number;
  readonly ports: readonly HostPort[];
}

/** A limit on what else is on the same node. */
export interface HostRule {
  readonly group: Group;
  /** Most pods of the group that may be there already. */
  readonly most: number;
}

export interface PodClass {
  readonly id: number;
  /** The class that its pods were in as they were written. */
  readonly origin: number;
  readonly labels: number;
  readonly side: NodeSide;
  readonly keyRules: readonly KeyRules[];
  readonly hostRules: readonly HostRule[];
  readonly hostAffinities: readonly AffinityRule[];
  /** Equal for classes whose host rules and ports are equal. */
  readonly signature: number;
  /** Groups whose owners this pod joins wherever it lands. */
  readonly owns: readonly Group[];
  /** The next weaker form: undefined before it is asked for, null when there is none. */
  next: PodClass | null | undefined;
}

export interface ClassContext {
  readonly space: RequirementSpace;
  readonly dialects: readonly Dialect[];
  readonly groups: Groups;
  readonly namespaces: Namespaces;
  readonly labelClasses: readonly LabelClass[];
  readonly preferNoScheduleExists: boolean;
  /** The topology key by name; undefined for the hostname. */
  keyOf(name: string): TopologyKey | undefined;
  /** Which domains count for a spread constraint with this filter. */
  universe(key: TopologyKey, filter: NodeFilter): Uint8Array;
  /** Owner groups that select a label class. */
  repelling(labelClass: number): readonly Group[];
}

export class PodClasses {
  readonly #context: ClassContext;
  readonly #sides = new Map<Constraints, NodeSide>();
  readonly #weaker = new Map<Constraints, Constraints | undefined>();
  readonly #tolerations = new Map<string, number>();
  readonly #signatures = new Map<string, number>([['', 0]]);
  #count = 0;

  constructor(context: ClassContext) {
    this.#context = context;
  }

  get count(): number {
    return this.#count;
  }

  /** The class of pods with these constraints and labels. */
  make(constraints: Constraints, labelClass: number, origin?: number): PodClass {
    const { groups, labelClasses } = this.#context;
    const keyOf = (name: string): TopologyKey | undefined => this.#context.keyOf(name);
    const side = this.#side(constraints);
    const own = labelClasses[labelClass]!;
    const byKey = new Map<TopologyKey, KeyRules>();
    const rulesOf = (key: TopologyKey): KeyRules => {
      let rules = byKey.get(key);
      if (!rules) {
        rules = { key, spreads: [], affinities: [], antis: [] };
        byKey.set(key, rules);
      }
      return rules;
    };
    const hostRules: HostRule[] = [];
    const hostAffinities: AffinityRule[] = [];
    for (const constraint of constraints.spread) {
      const key = keyOf(constraint.topologyKey);
      const group = this.#spreadGroup(constraint, key, constraints, own);
      const self = selects(group.matchers, own) ? 1 : 0;
      if (key)
        rulesOf(key).spreads.push({ group, maxSkew: constraint.maxSkew, minDomains: constraint.minDomains ?? 1, self });
      else hostRules.push({ group, most: constraint.maxSkew - self });
    }
    const addAffinity = (term: PodAffinityTerm, matchers: readonly Matcher[]): void => {
      const key = keyOf(term.topologyKey);
      const group = groups.of('definite', key, matchers, undefined);
      const rule = { group, self: selects(matchers, own) };
      if (key) rulesOf(key).affinities.push(rule);
      else hostAffinities.push(rule);
    };
    // Kubernetes looks for pods that match all required terms at once.
    const required = constraints.affinity.map((term) => this.#matcher(term, own));
    for (const term of constraints.affinity) addAffinity(term, required);
    for (const { podAffinityTerm } of constraints.preferredAffinity)
      addAffinity(podAffinityTerm, [this.#matcher(podAffinityTerm, own)]);
    const addAnti = (term: PodAffinityTerm, isRequired: boolean): void => {
      const key = keyOf(term.topologyKey);
      const group = groups.of('possible', key, [this.#matcher(term, own)], undefined);
      if (key) rulesOf(key).antis.push({ group, required: isRequired });
      else hostRules.push({ group, most: 0 });
    };
    for (const term of constraints.antiAffinity) addAnti(term, true);
    for (const { podAffinityTerm } of constraints.preferredAntiAffinity) addAnti(podAffinityTerm, false);
    for (const group of this.#context.repelling(labelClass)) {
      if (group.key) rulesOf(group.key).antis.push({ group, required: true });
      else hostRules.push({ group, most: 0 });
    }
    const id = this.#count++;
    return {
      id,
      origin: origin ?? id,
      labels: labelClass,
      side,
      keyRules: [...byKey.values()],
      hostRules,
      hostAffinities,
      signature: this.#signature(hostRules, side.ports),
      owns: this.ownerGroups(constraints, labelClass),
      next: undefined,
    };
  }

  /** The class after one step of relaxation; null when there is none. */
  relaxed(podClass: PodClass): PodClass | null {
    if (podClass.next === undefined) {
      const { constraints } = podClass.side;
      let weaker = this.#weaker.get(constraints);
      if (weaker === undefined && !this.#weaker.has(constraints)) {
        weaker = relax(constraints, this.#context.preferNoScheduleExists);
        this.#weaker.set(constraints, weaker);
      }
      podClass.next = weaker ? this.make(weaker, podClass.labels, podClass.origin) : null;
    }
    return podClass.next;
  }

  /** The groups of owners of required anti-affinity terms: their members keep others away from where they are. */
  ownerGroups(constraints: Constraints, labelClass: number): Group[] {
    const own = this.#context.labelClasses[labelClass]!;
    return constraints.antiAffinity.map((term) =>
      this.#context.groups.of('owners', this.#context.keyOf(term.topologyKey), [this.#matcher(term, own)], undefined),
    );
  }

  #matcher(term: PodAffinityTerm, own: LabelClass): Matcher {
    const namespaces = this.#context.namespaces.of(term, own.namespace);
    return matcherOf(term.labelSelector, namespaces, own, term.matchLabelKeys, term.mismatchLabelKeys);
  }

  #spreadGroup(
    constraint: TopologySpreadConstraint,
    key: TopologyKey | undefined,
    c: Constraints,
    own: LabelClass,
  ): Group {
    const { groups } = this.#context;
    const matcher = matcherOf(
      constraint.labelSelector,
      new Set([own.namespace]),
      own,
      constraint.matchLabelKeys,
      undefined,
    );
    const filter = filterOf(constraint, c, this.#context.dialects);
    const universe = key && (() => this.#context.universe(key, filter ?? everyNode));
    return groups.of('definite', key, [matcher], filter, universe);
  }

  #side(constraints: Constraints): NodeSide {
    let side = this.#sides.get(constraints);
    if (!side) {
      side = this.#makeSide(constraints);
      this.#sides.set(constraints, side);
    }
    return side;
  }

  #makeSide(c: Constraints): NodeSide {
    const { space, dialects } = this.#context;
    let problem: string | undefined;
    const wishes = dialects.map(({ labels: set }): NodeWish | undefined => {
      const asked = askedOf(c, set);
      if (typeof asked === 'string') {
        problem ??= asked;
        return undefined;
      }
      return {
        all: space.intern(asked.all),
        strict: space.intern(asked.strict),
        volumes: asked.volumes.length === 0 ? [space.empty] : asked.volumes.map((place) => space.intern(place)),
      };
    });
    const text = JSON.stringify(c.tolerations);
    let tolerationsId = this.#tolerations.get(text);
    if (tolerationsId === undefined) {
      tolerationsId = this.#tolerations.size;
      this.#tolerations.set(text, tolerationsId);
    }
    return {
      constraints: c,
      wishes,
      problem: wishes.some((wish) => wish !== undefined) ? undefined : problem,
      tolerations: c.tolerations,
      tolerationsId,
      ports: c.ports,
    };
  }

  #signature(rules: readonly HostRule[], ports: readonly HostPort[]): number {
    if (rules.length === 0 && ports.length === 0) return 0;
    const text = `${rules
      .map(({ group, most }) => `${group.id}:${most}`)
      .sort()
      .join()}|${JSON.stringify(ports)}`;
    let id = this.#signatures.get(text);
    if (id === undefined) {
      id = this.#signatures.size;
      this.#signatures.set(text, id);
    }
    return id;
  }
}

/** What constraints ask of a node's labels in the words of one cloud, before it has numbers. */
interface Asked {
  readonly all: Requirements;
  readonly strict: Requirements;
  readonly volumes: readonly Requirements[];
}

/** Equal constraints are one object from one problem to the next (see batch.ts), and never change: they are read once. */
const askedBefore = new WeakMap<Constraints, Map<LabelSet, Asked | string>>();

/** Or why the node selection cannot be used. */
function askedOf(c: Constraints, set: LabelSet): Asked | string {
  let bySet = askedBefore.get(c);
  if (!bySet) askedBefore.set(c, (bySet = new Map()));
  let asked = bySet.get(set);
  if (asked === undefined) bySet.set(set, (asked = readAsked(c, set)));
  return asked;
}

function readAsked(c: Constraints, set: LabelSet): Asked | string {
  const wrong = nodeSelectionProblem(c, set);
  if (wrong !== undefined) return wrong;
  const strict = mergeRequirements(
    requirementsOfLabels(c.nodeSelector, set),
    requirementsOf(c.nodeTerms[0]?.matchExpressions ?? [], set),
  );
  const preferred = requirementsOf(c.preferredNodeTerms[0]?.preference.matchExpressions ?? [], set);
  const all = mergeRequirements(strict, preferred);
  return { all, strict, volumes: c.volumes.map((place) => requirementsOf(place, set)) };
}

const everyNode: NodeFilter = { signature: '', terms: [], tolerations: undefined };

/** Which nodes count for a spread constraint: by default those the pod could select. Undefined: all of them. */
function filterOf(
  constraint: TopologySpreadConstraint,
  c: Constraints,
  dialects: readonly Dialect[],
): NodeFilter | undefined {
  const honorsAffinity = (constraint.nodeAffinityPolicy ?? 'Honor') === 'Honor';
  const honorsTaints = constraint.nodeTaintsPolicy === 'Honor';
  const terms = dialects.map(({ labels: set }) => (honorsAffinity ? selectionTerms(c, set) : []));
  const plain = terms[0] ?? [];
  if (plain.length === 0 && !honorsTaints) return undefined;
  const parts = plain.map((term) =>
    [...term.values()]
      .map((r: Requirement) => r.signature)
      .sort()
      .join(';'),
  );
  return {
    signature: `${parts.join('|')}#${honorsTaints ? JSON.stringify(c.ownTolerations) : ''}`,
    terms,
    tolerations: honorsTaints ? c.ownTolerations : undefined,
  };
}

function selectionTerms(c: Constraints, set: LabelSet): Requirements[] {
  const base = requirementsOfLabels(c.nodeSelector, set);
  if (c.allNodeTerms.length === 0) return base.size === 0 ? [] : [base];
  return c.allNodeTerms.map((term) => mergeRequirements(base, requirementsOf(term.matchExpressions ?? [], set)));
}

/** The key that every node has a value of its own for. */
export const hostnameKey = labels.hostname;

/** By domain of a key: 1 where requirements admit it. */
export function domainsAdmitted(requirements: Requirements, { key, domains }: TopologyKey): Uint8Array {
  const requirement = requirements.get(key);
  return Uint8Array.from(domains, (domain) => (!requirement || requirement.has(domain) ? 1 : 0));
}

/** Whether required neighbours exist anywhere, or the pod may be the first of its kind. */
export function affinityPossible({ hostAffinities }: PodClass): boolean {
  for (let i = 0; i < hostAffinities.length; i++) {
    const { group, self } = hostAffinities[i]!;
    if (group.hosts.size === 0 && !(self && group.total === 0)) return false;
  }
  return true;
}

/** Whether required neighbours are on a node already, or the pod may be the first of them. */
export function affinityAllows({ hostAffinities }: PodClass, slot: number): boolean {
  for (let i = 0; i < hostAffinities.length; i++) {
    const { group, self } = hostAffinities[i]!;
    if (!group.hosts.has(slot) && !(self && group.total === 0)) return false;
  }
  return true;
}
