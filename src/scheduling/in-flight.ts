// SPDX-License-Identifier: Apache-2.0
// Nodes that the pass has decided to buy. They are kept in groups that constraints cannot tell apart, and within a group by
// how many pods they hold: the emptiest node that takes a pod is found without asking again what said no for good.
import type { Catalog, View } from './catalog.ts';
import { type HostPort, portsConflict } from './host-ports.ts';
import type { PodClass } from './pod-class.ts';
import type { SetId } from './requirement-space.ts';
import type { Template } from './templates.ts';
import type { Group } from './topology.ts';

export class NewNode {
  /** Its place among all nodes: behind the existing ones. */
  readonly slot: number;
  readonly index: number;
  readonly template: Template;
  group: NodeGroup;
  /** What its pods request. */
  readonly total: Float64Array;
  readonly pods: number[] = [];
  readonly ports: HostPort[] = [];
  /** A row of the catalog with room for `total`. */
  row = -1;
  /** Definite counts that wait for the domain to be decided, one entry per pod. */
  pending: Group[] = [];
  /** Counts of which it is not sure that they are any, one entry per pod. */
  doubts: Group[] = [];
  /** Possible counts made for each domain it may still have, one entry per pod. */
  readonly possible: Group[] = [];
  reservations: readonly string[] = [];
  minValuesRelaxed = false;
  /** Grows with every move: the order within a bucket. */
  seq = 0;
  bucket: Bucket | undefined;
  position = 0;

  constructor(slot: number, index: number, group: NodeGroup, width: number) {
    this.slot = slot;
    this.index = index;
    this.template = group.template;
    this.group = group;
    this.total = new Float64Array(width);
  }
}

/** Nodes with the same number of pods, longest there first. */
interface Bucket {
  readonly count: number;
  nodes: (NewNode | undefined)[];
  live: number;
  /** By what is looked for: the position before which every node has said no for good. */
  cursors: Map<number, number> | undefined;
}

/** What is looked for in a group. One object serves all searches of a pass. */
export interface Search {
  podClass: PodClass;
  /** Numbers host rules, ports, requests and `base` together. */
  key: number;
  request: Float64Array;
  /** Without the topology domain that would be settled: what does not fit here never will. */
  base: View;
  /** With it. */
  view: View;
  set: SetId;
  /** Buckets with more pods are of no interest. */
  most: number;
  /** When set, no other node is asked. */
  only: NewNode | undefined;
  /** Whether `accepts` has to be asked. */
  picky: boolean;
  /** A last check that may say no today and yes tomorrow. */
  readonly accepts: (node: NewNode) => boolean;
}

/** Whether a node's neighbours or ports rule a class out, for good. */
export function hostRejects(podClass: PodClass, slot: number, taken: readonly HostPort[]): boolean {
  const { hostRules, side } = podClass;
  for (let i = 0; i < hostRules.length; i++) {
    const { group, most } = hostRules[i]!;
    if ((group.hosts.get(slot) ?? 0) > most) return true;
  }
  return side.ports.length > 0 && taken.length > 0 && portsConflict(taken, side.ports);
}

/** Nodes of one template with the same requirements and the same types to choose from. */
export class NodeGroup {
  readonly id: number;
  readonly template: Template;
  readonly set: SetId;
  readonly mask: number;
  readonly view: View;
  /** By topology key: the domains its nodes may still have. Made when first asked for. */
  readonly domains: (Int32Array | undefined)[] = [];
  /** The least number of pods on any node; Infinity without nodes. Kept, as every search asks for it. */
  fewest = Number.POSITIVE_INFINITY;
  readonly #catalog: Catalog;
  /** By count, ascending; none is empty. */
  readonly #buckets: Bucket[] = [];

  constructor(id: number, template: Template, set: SetId, mask: number) {
    this.id = id;
    this.template = template;
    this.set = set;
    this.mask = mask;
    this.#catalog = template.catalog;
    this.view = template.catalog.view(set, mask);
  }

  /** Puts a node where its number of pods belongs. */
  insert(node: NewNode, seq: number): void {
    const count = node.pods.length;
    const buckets = this.#buckets;
    let at = buckets.length;
    while (at > 0 && buckets[at - 1]!.count >= count) at--;
    let bucket = buckets[at];
    if (!bucket || bucket.count !== count) {
      bucket = { count, nodes: [], live: 0, cursors: undefined };
      buckets.splice(at, 0, bucket);
      if (at === 0) this.fewest = count;
    }
    node.group = this;
    node.seq = seq;
    node.bucket = bucket;
    node.position = bucket.nodes.length;
    bucket.nodes.push(node);
    bucket.live++;
  }

  remove(node: NewNode): void {
    const bucket = node.bucket!;
    bucket.nodes[node.position] = undefined;
    node.bucket = undefined;
    bucket.live--;
    if (bucket.live === 0) {
      const buckets = this.#buckets;
      buckets.splice(buckets.indexOf(bucket), 1);
      this.fewest = buckets.length === 0 ? Number.POSITIVE_INFINITY : buckets[0]!.count;
    } else if (bucket.nodes.length > 64 && bucket.live * 2 < bucket.nodes.length) {
      bucket.nodes = bucket.nodes.filter((other) => other !== undefined);
      for (const [position, other] of bucket.nodes.entries()) other!.position = position;
      bucket.cursors = undefined;
    }
  }

  /** The first node, fewest pods first, that takes what is looked for; its witness row is left in `foundRow`. */
  find(search: Search): NewNode | undefined {
    const { most, key, only } = search;
    if (only) return this.#ask(only, search) === 'yes' ? only : undefined;
    const buckets = this.#buckets;
    for (let i = 0; i < buckets.length; i++) {
      const bucket = buckets[i]!;
      if (bucket.count > most) return undefined;
      const { nodes } = bucket;
      let position = bucket.cursors?.get(key) ?? 0;
      // Behind the first node that may change its mind nothing is remembered.
      let remembered = -1;
      let found: NewNode | undefined;
      for (; position < nodes.length; position++) {
        const node = nodes[position];
        if (!node) continue;
        const answer = this.#ask(node, search);
        if (answer === 'yes') {
          found = node;
          break;
        }
        if (answer === 'not now' && remembered < 0) remembered = position;
      }
      if (remembered >= 0) position = remembered;
      if (position > 0) (bucket.cursors ??= new Map()).set(key, position);
      if (found) return found;
    }
    return undefined;
  }

  foundRow = -1;

  #ask(node: NewNode, search: Search): 'yes' | 'not now' | 'never' {
    const { podClass, request, base, view } = search;
    if (podClass.signature !== 0 && hostRejects(podClass, node.slot, node.ports)) return 'never';
    let row = this.#catalog.fit(base, node.total, request, node.row);
    if (row < 0) return 'never';
    if (view !== base) {
      row = this.#catalog.fit(view, node.total, request, row);
      if (row < 0) return 'not now';
    }
    if (search.picky && !search.accepts(node)) return 'not now';
    this.foundRow = row;
    return 'yes';
  }

  /** Every node of the group, fewest pods first. */
  *all(): Generator<NewNode> {
    for (const { nodes } of this.#buckets) for (const node of nodes) if (node) yield node;
  }
}
