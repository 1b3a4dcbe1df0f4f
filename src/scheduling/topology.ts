// SPDX-License-Identifier: Apache-2.0
// Who counts where: domains of topology keys, groups of pods that constraints count, and the rules that follow for a pod.
// Counts are of two kinds. Definite: the pod is in that domain. Possible: the pod may end up there, so whoever must keep
// away has to. A hostname is always definite.
import { labels } from '../api/labels.ts';
import { isValidLabelValue, type LabelSelector, type Selector } from '../kube/labels.ts';
import type { LabelClass } from './batch.ts';
import type { Namespace, PodAffinityTerm, Taint, Toleration } from './objects.ts';
import { compatible, type Requirements } from './requirements.ts';
import { selectorOf } from './selectors.ts';
import { untolerated } from './taints.ts';

/** A topology key other than the hostname, with every value it can have. */
export interface TopologyKey {
  readonly index: number;
  readonly key: string;
  /** Sorted. */
  readonly domains: readonly string[];
  readonly indexOf: ReadonlyMap<string, number>;
}

/** Which pods a term means: those of some namespaces that a selector matches. */
export interface Matcher {
  /** Undefined: all namespaces. */
  readonly namespaces: ReadonlySet<string> | undefined;
  readonly selector: Selector;
}

/** Which nodes count for a spread constraint. */
export interface NodeFilter {
  readonly signature: string;
  /** By dialect: alternatives; empty: every node. */
  readonly terms: readonly (readonly Requirements[])[];
  /** Undefined: taints do not matter. */
  readonly tolerations: readonly Toleration[] | undefined;
}

export type GroupKind = 'definite' | 'possible' | 'owners';

/** Pods that are counted together. */
export interface Group {
  readonly id: number;
  readonly kind: GroupKind;
  /** Undefined: the hostname. */
  readonly key: TopologyKey | undefined;
  /** All must match. */
  readonly matchers: readonly Matcher[];
  readonly filter: NodeFilter | undefined;
  /** By domain. */
  readonly counts: Float64Array;
  /** By domain: how many of them are on nodes to be bought that may yet turn out not to count. They crowd a domain, but fill none. */
  readonly doubtful: Float64Array;
  /** By domain: 1 when the domain counts for this group; undefined when all do. */
  readonly universe: Uint8Array | undefined;
  /** By node slot. */
  readonly hosts: Map<number, number>;
  /** Pods counted anywhere, also on nodes whose domain is not decided. */
  total: number;
  /** New nodes, by index, that hold pods of the group and whose domain is not decided. */
  readonly open: Set<number>;
}

export interface SpreadRule {
  readonly group: Group;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly self: number;
}

export interface AffinityRule {
  readonly group: Group;
  readonly self: boolean;
}

export interface AntiRule {
  readonly group: Group;
  /** False for a preference. */
  readonly required: boolean;
}

/** What a pod asks of one topology key. */
export interface KeyRules {
  readonly key: TopologyKey;
  readonly spreads: SpreadRule[];
  readonly affinities: AffinityRule[];
  readonly antis: AntiRule[];
}

/** Domains open to a pod, best first. */
export interface Choice {
  readonly key: TopologyKey;
  readonly domains: readonly number[];
  /** By place in `domains`: equal where nothing but the price makes a difference. Ascending. */
  readonly ranks: readonly number[];
  /** The pod settles on one of them; else any of them will do. */
  readonly one: boolean;
  /** Only others have to be avoided: a node without the label is fine as well. */
  readonly optional: boolean;
}

/** So many are sorted by moving each to its place: for three zones a sort costs more than what it sorts. */
const fewDomains = 8;

/**
 * The domains of a key that a pod may use now. `allowed[domain]` is 1 where the pod's own node selection admits it: only
 * those count for the smallest count.
 */
export function chooseDomains(rules: KeyRules, allowed: Uint8Array): Choice {
  const { key, spreads, affinities, antis } = rules;
  let one = spreads.length > 0;
  for (const { group, self } of affinities) if (self && group.total === 0) one = true;
  const domains: number[] = [];
  const ceilings: number[] = [];
  for (let i = 0; i < spreads.length; i++) ceilings.push(skewCeiling(spreads[i]!, allowed));
  for (let d = 0; d < allowed.length; d++) if (allowed[d] === 1 && isValid(rules, ceilings, d)) domains.push(d);
  if (spreads.length > 0 && domains.length > 1) sortByCounts(spreads, domains);
  const optional = spreads.length === 0 && affinities.length === 0 && antis.length > 0;
  return { key, domains, ranks: ranksOf(spreads, domains), one, optional };
}

/** Sorts ascending domains: those with the fewest pods first. */
function sortByCounts(spreads: readonly SpreadRule[], domains: number[]): void {
  if (domains.length > fewDomains) {
    domains.sort((a, b) => compareCounts(spreads, a, b) || a - b);
    return;
  }
  for (let i = 1; i < domains.length; i++) {
    const domain = domains[i]!;
    let at = i;
    for (; at > 0 && compareCounts(spreads, domains[at - 1]!, domain) > 0; at--) domains[at] = domains[at - 1]!;
    domains[at] = domain;
  }
}

function ranksOf(spreads: readonly SpreadRule[], domains: readonly number[]): number[] {
  const ranks: number[] = [];
  let rank = 0;
  for (let i = 0; i < domains.length; i++) {
    if (i > 0 && compareCounts(spreads, domains[i - 1]!, domains[i]!) !== 0) rank = i;
    ranks.push(rank);
  }
  return ranks;
}

function isValid({ spreads, affinities, antis }: KeyRules, ceilings: readonly number[], d: number): boolean {
  for (let i = 0; i < antis.length; i++) if (antis[i]!.group.counts[d]! > 0) return false;
  for (let i = 0; i < affinities.length; i++) {
    const { group, self } = affinities[i]!;
    if (group.counts[d] === 0 && !(self && group.total === 0)) return false;
  }
  for (let i = 0; i < spreads.length; i++) {
    const { counts, universe } = spreads[i]!.group;
    if (counts[d]! > ceilings[i]! || universe?.[d] === 0) return false;
  }
  return true;
}

/** The most pods that a domain may have for one more to keep the skew. */
export function skewCeiling(rule: SpreadRule, allowed: Uint8Array): number {
  return rule.maxSkew + smallestCount(rule, allowed) - rule.self;
}

function smallestCount({ group, minDomains }: SpreadRule, allowed: Uint8Array): number {
  const { counts, doubtful, universe } = group;
  let least = Number.POSITIVE_INFINITY;
  let supported = 0;
  for (let d = 0; d < counts.length; d++) {
    if (allowed[d] === 0 || universe?.[d] === 0) continue;
    supported++;
    const sure = counts[d]! - doubtful[d]!;
    if (sure < least) least = sure;
  }
  return supported === 0 || supported < minDomains ? 0 : least;
}

function compareCounts(spreads: readonly SpreadRule[], a: number, b: number): number {
  for (let i = 0; i < spreads.length; i++) {
    const { counts } = spreads[i]!.group;
    if (counts[a] !== counts[b]) return counts[a]! - counts[b]!;
  }
  return 0;
}

/** Whether a filter lets a node count. `mayBeUndefined`: labels that a node to be bought has without saying so. */
export function passesFilter(
  filter: NodeFilter | undefined,
  node: Requirements,
  taints: readonly Taint[],
  dialect: number,
  mayBeUndefined?: ReadonlySet<string>,
): boolean {
  if (!filter) return true;
  if (
    filter.tolerations &&
    untolerated(
      taints.filter(({ effect }) => effect !== 'PreferNoSchedule'),
      filter.tolerations,
    )
  )
    return false;
  const terms = filter.terms[dialect] ?? [];
  return terms.length === 0 || terms.some((term) => compatible(node, term, mayBeUndefined));
}

/** Whether a filter lets a node to be bought count whatever it becomes, for which `passesFilter` is true. */
export function surelyPasses(
  filter: NodeFilter | undefined,
  node: Requirements,
  dialect: number,
  mayHave: ReadonlySet<string>,
): boolean {
  const terms = filter?.terms[dialect] ?? [];
  return terms.length === 0 || terms.some((term) => isImplied(term, node, mayHave));
}

/** Whether every node with `given` satisfies `asked`. `mayHave`: labels that come with the machine. */
function isImplied(asked: Requirements, given: Requirements, mayHave: ReadonlySet<string>): boolean {
  for (const [key, requirement] of asked) {
    const own = given.get(key);
    if (!own) {
      if (requirement.mustExist || mayHave.has(key)) return false;
      continue;
    }
    if (requirement.mustExist && !own.mustExist) return false;
    if (!own.complement) {
      for (const value of own.values) if (!requirement.has(value)) return false;
      continue;
    }
    if (!requirement.complement) return false;
    if (requirement.gte !== undefined && !(own.gte !== undefined && own.gte >= requirement.gte)) return false;
    if (requirement.lte !== undefined && !(own.lte !== undefined && own.lte <= requirement.lte)) return false;
    for (const value of requirement.values) if (own.has(value)) return false;
  }
  return true;
}

/** Namespaces by their labels. Every namespace carries its name as a label. */
export class Namespaces {
  readonly #labels = new Map<string, Readonly<Record<string, string>>>();

  constructor(given: readonly Namespace[] | undefined, used: Iterable<string>) {
    for (const name of used) this.#labels.set(name, { 'kubernetes.io/metadata.name': name });
    for (const { metadata } of given ?? []) {
      const name = metadata.name ?? '';
      this.#labels.set(name, { 'kubernetes.io/metadata.name': name, ...metadata.labels });
    }
  }

  /** The namespaces a term looks at, for a pod in `own`; undefined for all. */
  of(term: PodAffinityTerm, own: string): Set<string> | undefined {
    const listed = term.namespaces ?? [];
    const selector = term.namespaceSelector;
    if (selector === undefined || selector === null) return new Set(listed.length > 0 ? listed : [own]);
    const compiled = selectorOf(selector);
    if (compiled.requirements.length === 0) return undefined;
    const all = new Set(listed);
    for (const [name, own] of this.#labels) if (compiled.matches(own)) all.add(name);
    return all;
  }
}

/** The pods that a term of a pod with these labels means. */
export function matcherOf(
  selector: LabelSelector | null | undefined,
  namespaces: ReadonlySet<string> | undefined,
  own: LabelClass,
  same: readonly string[] | undefined,
  different: readonly string[] | undefined,
): Matcher {
  if (!selector || (!same?.length && !different?.length)) return { namespaces, selector: selectorOf(selector) };
  const expressions = [...(selector.matchExpressions ?? [])];
  const add = (keys: readonly string[] | undefined, operator: string): void => {
    for (const key of keys ?? []) {
      const value = own.labels[key];
      if (value !== undefined && isValidLabelValue(value).length === 0)
        expressions.push({ key, operator, values: [value] });
    }
  };
  add(same, 'In');
  add(different, 'NotIn');
  return { namespaces, selector: selectorOf({ ...selector, matchExpressions: expressions }) };
}

/** Whether all matchers mean pods with these labels. */
export function selects(matchers: readonly Matcher[], pod: LabelClass): boolean {
  for (const { namespaces, selector } of matchers) {
    if (namespaces !== undefined && !namespaces.has(pod.namespace)) return false;
    if (!selector.matches(pod.labels)) return false;
  }
  return true;
}

function matcherText({ namespaces, selector }: Matcher, selectsNothing: boolean): string {
  const where = namespaces === undefined ? '*' : [...namespaces].sort().join(',');
  return `${where}:${selectsNothing ? '-' : selector.toString()}`;
}

/** All groups of a pass: equal constraints share one. */
export class Groups {
  readonly all: Group[] = [];
  readonly #ids = new Map<string, Group>();
  /** Of owners, and of those that are counted: nobody asks for both. */
  readonly #repelling = new SelectorIndex();
  readonly #counting = new SelectorIndex();

  /** The group of these pods; `universe` is asked only when it is new. */
  of(
    kind: GroupKind,
    key: TopologyKey | undefined,
    matchers: readonly Matcher[],
    filter: NodeFilter | undefined,
    universe?: () => Uint8Array | undefined,
  ): Group {
    // On a hostname there is nothing undecided: both kinds of counts are one.
    const counted = key === undefined && kind === 'possible' ? 'definite' : kind;
    const texts = matchers.map((m) => matcherText(m, m.selector.requirements.length === 0 && !m.selector.matches({})));
    const signature = `${counted}|${key?.key ?? labels.hostname}|${texts.sort().join('&')}|${filter?.signature ?? ''}`;
    let group = this.#ids.get(signature);
    if (!group) {
      group = {
        id: this.all.length,
        kind: counted,
        key,
        matchers,
        filter,
        counts: new Float64Array(key?.domains.length ?? 0),
        doubtful: new Float64Array(key?.domains.length ?? 0),
        universe: universe?.(),
        hosts: new Map(),
        total: 0,
        open: new Set(),
      };
      this.all.push(group);
      this.#ids.set(signature, group);
      (counted === 'owners' ? this.#repelling : this.#counting).add(group);
    }
    return group;
  }

  /** The groups of owners that keep pods with these labels away, by id. */
  repelling(pod: LabelClass): Group[] {
    return this.#repelling.selecting(pod);
  }

  /** The groups that count pods with these labels, by id. */
  counting(pod: LabelClass): Group[] {
    return this.#counting.selecting(pod);
  }
}

/** Groups by what they select. */
class SelectorIndex {
  readonly #byLabel = new Map<string, Map<string, Group[]>>();
  readonly #unindexed: Group[] = [];

  // A selector that wants one value of one label is found through that label; most do.
  add(group: Group): void {
    for (const { selector } of group.matchers) {
      const exact = selector.requirements.find(({ operator, values }) => operator === 'In' && values.length === 1);
      if (!exact) continue;
      let values = this.#byLabel.get(exact.key);
      if (!values) {
        values = new Map();
        this.#byLabel.set(exact.key, values);
      }
      const list = values.get(exact.values[0]!);
      if (list) list.push(group);
      else values.set(exact.values[0]!, [group]);
      return;
    }
    this.#unindexed.push(group);
  }

  selecting(pod: LabelClass): Group[] {
    const found: Group[] = this.#unindexed.filter((group) => selects(group.matchers, pod));
    for (const key in pod.labels) {
      const list = this.#byLabel.get(key)?.get(pod.labels[key]!);
      for (const group of list ?? []) if (selects(group.matchers, pod)) found.push(group);
    }
    return found.sort((a, b) => a.id - b.id);
  }
}
