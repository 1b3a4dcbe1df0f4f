// SPDX-License-Identifier: Apache-2.0
// Nodes that exist, filled in their order. What a node refuses for good (room, neighbours, ports) is not asked again.
import type { HostPort } from './host-ports.ts';
import { hostRejects } from './in-flight.ts';
import { affinityAllows, type PodClass } from './pod-class.ts';
import { type Choice, type Group, passesFilter } from './topology.ts';
import { canAttach } from './volumes.ts';
import type { NodeKind, Target, World } from './world.ts';

export class ExistingNodes {
  readonly #world: World;
  readonly #shapeCount: number;
  /** By slot, copied when they first change: a pass may concern few of very many nodes. */
  readonly #ports: (HostPort[] | undefined)[] = [];
  readonly #attached: (Map<string, Set<string>> | undefined)[] = [];
  /** By kind and what is looked for: the position before which every node has said no for good. */
  readonly #cursors: Map<number, number>[];

  constructor(world: World) {
    this.#world = world;
    this.#shapeCount = world.requests.length;
    this.#cursors = world.kinds.map(() => new Map());
  }

  /** The first node among those of `kinds` that takes the pod. */
  find(
    kinds: readonly NodeKind[],
    podClass: PodClass,
    pod: number,
    shape: number,
    choices: readonly Choice[],
  ): Target | undefined {
    if (kinds.length === 0) return undefined;
    let best: Target | undefined;
    const isCandidate = this.#world.batch.isCandidate[pod] === 1;
    for (const kind of kinds) {
      if (kind.closedToMoves && isCandidate) continue;
      if (choices.length > 0 && !choices.every((choice) => isOpen(choice, kind.domains[choice.key.index]!))) continue;
      const found = this.#findInKind(kind, podClass, pod, shape, best?.slot ?? Number.POSITIVE_INFINITY);
      if (found) best = found;
    }
    return best;
  }

  /** Whether a node takes the pod, its domain aside. */
  takes(target: Target, podClass: PodClass, pod: number, shape: number): boolean {
    if (!hasRoom(target.room, this.#world.requests[shape]!)) return false;
    const ports = this.#ports[target.slot] ?? target.node.ports;
    if (podClass.signature !== 0 && hostRejects(podClass, target.slot, ports)) return false;
    return affinityAllows(podClass, target.slot) && this.#canAttach(target, pod);
  }

  #findInKind(kind: NodeKind, podClass: PodClass, pod: number, shape: number, below: number): Target | undefined {
    const { targets } = kind;
    const request = this.#world.requests[shape]!;
    const key = podClass.signature * this.#shapeCount + shape;
    const cursors = this.#cursors[kind.id]!;
    let position = cursors.get(key) ?? this.#world.refused?.[kind.id]?.get(key) ?? 0;
    let remembered = -1;
    let found: Target | undefined;
    for (; position < targets.length; position++) {
      const target = targets[position]!;
      if (target.slot >= below) break;
      if (!hasRoom(target.room, request)) continue;
      if (podClass.signature !== 0 && hostRejects(podClass, target.slot, this.#ports[target.slot] ?? target.node.ports))
        continue;
      if (affinityAllows(podClass, target.slot) && this.#canAttach(target, pod)) {
        found = target;
        break;
      }
      if (remembered < 0) remembered = position;
    }
    cursors.set(key, remembered < 0 ? position : remembered);
    return found;
  }

  #canAttach(target: Target, pod: number): boolean {
    const { attachments, pods } = this.#world.batch;
    return canAttach(
      target.node.volumeLimits,
      this.#attached[target.slot] ?? target.node.attached,
      attachments.get(pods[pod]!),
    );
  }

  /** Puts a pod on a node and counts it. */
  take(target: Target, podClass: PodClass, pod: number, shape: number): void {
    const request = this.#world.requests[shape]!;
    for (let r = 0; r < request.length; r++) target.room[r]! -= request[r]!;
    if (podClass.side.ports.length > 0)
      (this.#ports[target.slot] ??= [...target.node.ports]).push(...podClass.side.ports);
    for (const { driver, claim } of this.#world.batch.attachments.get(this.#world.batch.pods[pod]!) ?? []) {
      const attached = (this.#attached[target.slot] ??= new Map(
        [...target.node.attached].map(([of, claims]) => [of, new Set(claims)] as const),
      ));
      const claims = attached.get(driver);
      if (claims) claims.add(claim);
      else attached.set(driver, new Set([claim]));
    }
    const counted = this.#world.counted[podClass.labels]!;
    for (const group of counted.zoned) count(group, target);
    for (const group of counted.hosted) count(group, target);
    for (const group of podClass.owns) count(group, target);
  }
}

function count(group: Group, { kind, slot }: Target): void {
  if (group.filter && !passesFilter(group.filter, kind.labels, kind.taints, kind.dialect)) return;
  const domain = group.key ? kind.domains[group.key.index]! : 0;
  if (domain < 0) return;
  group.total++;
  if (group.key) group.counts[domain]!++;
  else group.hosts.set(slot, (group.hosts.get(slot) ?? 0) + 1);
}

/** Whether a choice admits a node in a domain; -1: it has none. */
export function isOpen(choice: Choice, domain: number): boolean {
  return domain < 0 ? choice.optional : choice.domains.includes(domain);
}

/** Whether a request fits. */
export function hasRoom(room: Float64Array, request: Float64Array): boolean {
  for (let r = 0; r < request.length; r++) if (room[r]! < request[r]!) return false;
  return true;
}
