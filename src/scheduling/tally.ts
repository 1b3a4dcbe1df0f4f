// SPDX-License-Identifier: Apache-2.0
// Who is counted where: what pods on nodes being bought add to the counts of topology groups, and what changes in them when
// a node's domain is decided.
import type { Domains } from './domains.ts';
import type { NewNode, NodeGroup } from './in-flight.ts';
import type { PodClass } from './pod-class.ts';
import { type Group, passesFilter, surelyPasses, type TopologyKey } from './topology.ts';
import type { World } from './world.ts';

/** A label of a new node whose value a step decided. */
export interface Settled {
  readonly node: NewNode;
  readonly key: TopologyKey;
  readonly domain: number;
}

/** Whether a node to be bought counts for a group: also when it depends on what it becomes. */
type Verdict = 'yes' | 'maybe' | 'no';

const nothingSettled: readonly Settled[] = [];

export class Tally {
  readonly #world: World;
  readonly #domains: Domains;
  readonly #verdicts = new Map<string, Verdict>();
  #settled: Settled[] = [];

  constructor(world: World, domains: Domains) {
    this.#world = world;
    this.#domains = domains;
  }

  /** What was decided since this was last asked. */
  takeSettled(): readonly Settled[] {
    if (this.#settled.length === 0) return nothingSettled;
    const settled = this.#settled;
    this.#settled = [];
    return settled;
  }

  /** A node was bought: some of its labels may have one value only from the start. */
  opened(node: NewNode): void {
    const { keys } = this.#world;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const domains = this.#domains.domainsOf(node.group, key);
      if (domains.length === 1) this.#settled.push({ node, key, domain: domains[0]! });
    }
  }

  /** A node has come into another group: what it may still become has shrunk. */
  moved(node: NewNode, former: NodeGroup): void {
    if (former === node.group) return;
    const { keys } = this.#world;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const before = this.#domains.domainsOf(former, key);
      const after = this.#domains.domainsOf(node.group, key);
      if (before.length === after.length) continue;
      for (const group of node.possible) {
        if (group.key !== key) continue;
        for (const domain of before) if (!after.includes(domain)) group.counts[domain]!--;
        if (after.length === 1) group.open.delete(node.index);
      }
      if (after.length === 1) this.#decided(node, key, after[0]!);
    }
    if (node.doubts.length > 0) this.#judgeDoubts(node);
  }

  /** What a node may become has shrunk: some of what was in doubt is known now. */
  #judgeDoubts(node: NewNode): void {
    const still: Group[] = [];
    for (const group of node.doubts) {
      const verdict = this.#verdict(group, node);
      if (verdict === 'maybe') {
        still.push(group);
        continue;
      }
      const [domain] = this.#domains.domainsOf(node.group, group.key!);
      group.doubtful[domain!]!--;
      if (verdict === 'yes') continue;
      group.counts[domain!]!--;
      group.total--;
    }
    node.doubts = still;
  }

  #decided(node: NewNode, key: TopologyKey, domain: number): void {
    this.#settled.push({ node, key, domain });
    if (node.pending.length === 0) return;
    const still: Group[] = [];
    for (const group of node.pending) {
      if (group.key !== key) {
        still.push(group);
        continue;
      }
      group.open.delete(node.index);
      this.#countIn(group, node, domain);
    }
    node.pending = still;
  }

  /** Counts a pod that is on a node of this domain, as far as the node counts. */
  #countIn(group: Group, node: NewNode, domain: number): void {
    const verdict = group.filter ? this.#verdict(group, node) : 'yes';
    if (verdict === 'no') {
      group.total--;
      return;
    }
    group.counts[domain]!++;
    if (verdict === 'yes') return;
    group.doubtful[domain]!++;
    node.doubts.push(group);
  }

  /** Counts a pod that a node has taken. */
  count(node: NewNode, podClass: PodClass): void {
    const counted = this.#world.counted[podClass.labels]!;
    const { hosted, zoned } = counted;
    for (let i = 0; i < hosted.length; i++) {
      const group = hosted[i]!;
      if (group.filter && this.#verdict(group, node) === 'no') continue;
      group.total++;
      group.hosts.set(node.slot, (group.hosts.get(node.slot) ?? 0) + 1);
    }
    for (let i = 0; i < zoned.length; i++) this.#countZoned(zoned[i]!, node);
    for (let i = 0; i < podClass.owns.length; i++) {
      const group = podClass.owns[i]!;
      if (group.key) this.#countZoned(group, node);
      else {
        group.total++;
        group.hosts.set(node.slot, (group.hosts.get(node.slot) ?? 0) + 1);
      }
    }
  }

  #countZoned(group: Group, node: NewNode): void {
    if (group.filter && this.#verdict(group, node) === 'no') return;
    const domains = this.#domains.domainsOf(node.group, group.key!);
    if (domains.length === 0) return;
    group.total++;
    if (domains.length > 1) group.open.add(node.index);
    if (group.kind === 'definite') {
      if (domains.length === 1) this.#countIn(group, node, domains[0]!);
      else node.pending.push(group);
      return;
    }
    for (let i = 0; i < domains.length; i++) group.counts[domains[i]!]!++;
    if (domains.length > 1) node.possible.push(group);
  }

  #verdict(group: Group, { group: { template, set } }: NewNode): Verdict {
    if (!group.filter) return 'yes';
    const memo = `${group.id}:${template.index}:${set}`;
    let verdict = this.#verdicts.get(memo);
    if (verdict === undefined) {
      const { dialect, taints, mayBeUndefined, catalog } = template;
      const node = this.#world.space.get(set);
      if (!passesFilter(group.filter, node, taints, dialect.index, mayBeUndefined)) verdict = 'no';
      else verdict = surelyPasses(group.filter, node, dialect.index, catalog.keys) ? 'yes' : 'maybe';
      this.#verdicts.set(memo, verdict);
    }
    return verdict;
  }
}
