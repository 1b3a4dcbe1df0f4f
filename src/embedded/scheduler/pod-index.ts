// SPDX-License-Identifier: Apache-2.0
// Which pods run where, answered without looking at every pod: pods with the same namespace and labels form a class,
// a question asked once (a selector in some namespaces) is kept up to date as pods come and go.
import { type Labels, nothing, type Selector } from '../../kube/labels.ts';
import type { NodeInfo } from './node-info.ts';
import type { AffinityTerm, PodInfo } from './pod-info.ts';

/** A standing question: how many pods that match run on each node. */
export interface PodCount {
  readonly perNode: ReadonlyMap<NodeInfo, number>;
}

interface PodClass {
  readonly key: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly terminating: boolean;
  readonly perNode: Map<NodeInfo, number>;
  readonly askedBy: Set<Question>;
}

interface Question extends PodCount {
  readonly key: string;
  readonly matches: (podClass: PodClass) => boolean;
  readonly perNode: Map<NodeInfo, number>;
}

/** One selector over the pods of some namespaces. */
export interface PodSelection {
  readonly namespaces: readonly string[];
  readonly selector: Selector;
}

/** A term that running pods carry against (or for) others, and the nodes they run on. */
export interface StandingTerm {
  readonly term: AffinityTerm;
  readonly perNode: Map<NodeInfo, number>;
}

/** How many standing questions are kept; the longest unasked goes first. */
const questionLimit = 512;

export class PodIndex {
  readonly #classes = new Map<string, PodClass>();
  readonly #questions = new Map<string, Question>();
  readonly #requiredAntiAffinity = new Map<string, StandingTerm>();
  readonly #scoredTerms = new Map<string, StandingTerm>();

  add(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, 1);
  }

  remove(pod: PodInfo, node: NodeInfo): void {
    this.#count(pod, node, -1);
  }

  /** Pods that match every selection given. Terminating ones count unless told otherwise. */
  count(selections: readonly PodSelection[], options: { skipTerminating?: boolean } = {}): PodCount {
    const skipTerminating = options.skipTerminating ?? false;
    const key = `${skipTerminating}|${selections.map((s) => `${s.namespaces.join(',')}|${signature(s.selector)}`).join('||')}`;
    const known = this.#questions.get(key);
    if (known) {
      // Re-inserted, so that the map's order is the order of last use.
      this.#questions.delete(key);
      this.#questions.set(key, known);
      return known;
    }
    const question: Question = {
      key,
      perNode: new Map(),
      matches: (podClass) =>
        !(skipTerminating && podClass.terminating) &&
        selections.every((s) => s.namespaces.includes(podClass.namespace) && s.selector.matches(podClass.labels)),
    };
    for (const podClass of this.#classes.values()) {
      if (!question.matches(podClass)) continue;
      podClass.askedBy.add(question);
      for (const [node, n] of podClass.perNode) bump(question.perNode, node, n);
    }
    this.#questions.set(key, question);
    if (this.#questions.size > questionLimit) this.#forget(this.#questions.values().next().value!);
    return question;
  }

  /** Required anti-affinity terms of running pods. */
  requiredAntiAffinity(): Iterable<StandingTerm> {
    return this.#requiredAntiAffinity.values();
  }

  /** Terms of running pods that attract or repel others when nodes are scored: preferred ones, and required affinity. */
  scoredTerms(): Iterable<StandingTerm> {
    return this.#scoredTerms.values();
  }

  #count(pod: PodInfo, node: NodeInfo, by: 1 | -1): void {
    const podClass = this.#classOf(pod);
    bump(podClass.perNode, node, by);
    for (const question of podClass.askedBy) bump(question.perNode, node, by);
    if (podClass.perNode.size === 0) this.#classes.delete(podClass.key);
    for (const term of pod.antiAffinity) stand(this.#requiredAntiAffinity, term, node, by);
    for (const term of pod.affinity) stand(this.#scoredTerms, term, node, by);
    for (const term of pod.preferredAffinity) stand(this.#scoredTerms, term, node, by);
    for (const term of pod.preferredAntiAffinity) stand(this.#scoredTerms, term, node, by);
  }

  #classOf(pod: PodInfo): PodClass {
    const key = classKey(pod);
    let podClass = this.#classes.get(key);
    if (!podClass) {
      podClass = {
        key,
        namespace: pod.namespace,
        labels: pod.labels,
        terminating: pod.terminating,
        perNode: new Map(),
        askedBy: new Set(),
      };
      for (const question of this.#questions.values()) {
        if (question.matches(podClass)) podClass.askedBy.add(question);
      }
      this.#classes.set(key, podClass);
    }
    return podClass;
  }

  #forget(question: Question): void {
    this.#questions.delete(question.key);
    for (const podClass of this.#classes.values()) podClass.askedBy.delete(question);
  }
}

/** Text that tells selectors apart: those that match nothing and everything both print as nothing. */
function signature(selector: Selector): string {
  return selector === nothing ? '!' : selector.toString();
}

function classKey(pod: PodInfo): string {
  let key = pod.terminating ? `-${pod.namespace}` : pod.namespace;
  for (const name of Object.keys(pod.labels).sort()) key += `\n${name}=${pod.labels[name]}`;
  return key;
}

function stand(terms: Map<string, StandingTerm>, term: AffinityTerm, node: NodeInfo, by: number): void {
  const key = `${term.weight}|${term.topologyKey}|${term.namespaces.join(',')}|${signature(term.namespaceSelector)}|${signature(term.selector)}`;
  let standing = terms.get(key);
  if (!standing) {
    standing = { term, perNode: new Map() };
    terms.set(key, standing);
  }
  bump(standing.perNode, node, by);
  if (standing.perNode.size === 0) terms.delete(key);
}

function bump(counts: Map<NodeInfo, number>, node: NodeInfo, by: number): void {
  const n = (counts.get(node) ?? 0) + by;
  if (n === 0) counts.delete(node);
  else counts.set(node, n);
}
