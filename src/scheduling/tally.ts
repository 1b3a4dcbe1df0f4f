// SPDX-License-Identifier: Apache-2.0
// Who is counted where: what pods on nodes being bought add to the counts of topology groups, and what changes in them when
// a node's domain is decided.
import type { Domains } from './domains.ts';
import type { NewNode, NodeGroup } from './in-flight.ts';
import type { PodClass } from './pod-class.ts';
import { type Group, passesFilter, type TopologyKey } from './topology.ts';
import type { World } from './world.ts';

/** A label of a new node whose value a step decided. */
export interface Settled {
  readonly node: NewNode;
  readonly key: TopologyKey;
  readonly domain: number;
}

const nothingSettled: readonly Settled[] = [];

export class Tally {
  readonly #world: World;
  readonly #domains: Domains;
  readonly #filterMemo = new Map<string, boolean>();
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
    for (const key of this.#world.keys) {
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
      group.counts[domain]!++;
    }
    node.pending = still;
  }

  /** Counts a pod that a node has taken. */
  count(node: NewNode, podClass: PodClass): void {
    const counted = this.#world.counted[podClass.labels]!;
    const { hosted, zoned } = counted;
    for (let i = 0; i < hosted.length; i++) {
      const group = hosted[i]!;
      if (group.filter && !this.#passes(group, node)) continue;
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
    if (group.filter && !this.#passes(group, node)) return;
    const domains = this.#domains.domainsOf(node.group, group.key!);
    if (domains.length === 0) return;
    group.total++;
    if (domains.length > 1) group.open.add(node.index);
    if (group.kind === 'definite') {
      if (domains.length === 1) group.counts[domains[0]!]!++;
      else node.pending.push(group);
      return;
    }
    for (let i = 0; i < domains.length; i++) group.counts[domains[i]!]!++;
    if (domains.length > 1) node.possible.push(group);
  }

  #passes(group: Group, node: NewNode): boolean {
    const { template, set } = node.group;
    const memo = `${group.id}:${template.index}:${set}`;
    let passes = this.#filterMemo.get(memo);
    if (passes === undefined) {
      passes = passesFilter(
        group.filter,
        this.#world.space.get(set),
        template.taints,
        template.dialect.index,
        template.mayBeUndefined,
      );
      this.#filterMemo.set(memo, passes);
    }
    return passes;
  }
}
