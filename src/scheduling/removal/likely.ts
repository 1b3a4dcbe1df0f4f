// SPDX-License-Identifier: Apache-2.0
// Where pods are likely to go when their nodes leave. Plans fill one node after the other; kube-scheduler knows nothing of
// plans and puts each pod where the most room is left, so that what is tight in a plan has gaps in the end, and pods are left
// over that need a machine more.
import { Domains } from '../domains.ts';
import { ExistingNodes, isOpen } from '../existing-nodes.ts';
import { Finalizer } from '../finalize.ts';
import type { ResourceList } from '../objects.ts';
import { Packer } from '../pack.ts';
import { affinityPossible } from '../pod-class.ts';
import { amountsOf } from '../pod-resources.ts';
import type { NewNodeClaim, Problem } from '../problem.ts';
import { Reaches } from '../reach.ts';
import { Reservations } from '../reservations.ts';
import { compile, remember, type Target, type World } from '../world.ts';

/** What became of pods that had no node. */
export interface Outcome {
  /** Machines that would be bought for those that found no place. */
  readonly newNodeClaims: readonly NewNodeClaim[];
  /** Pods that nothing can be bought for. */
  readonly failed: readonly string[];
  /** By name of a node: the pods it got. */
  readonly placed: ReadonlyMap<string, readonly string[]>;
}

/**
 * How it may come about: pods come the largest first as they are evicted, or those of each node in turn where some have to
 * wait; and of nodes that are as good as each other any may be taken, so each course begins with another.
 */
export interface Course {
  readonly order: 'largest' | 'around';
  readonly first: number;
}

/** What a node without such a taint scores more than one with it. */
const weightOfTaints = 300;

export const courses: readonly Course[] = [
  ...[0, 1, 2, 3].map((first): Course => ({ order: 'largest', first })),
  { order: 'around', first: 0 },
];

/** The pods of `problem.state.candidates` on the other nodes, one after the other as drains let go of them. */
export class LikelyPlacement {
  readonly #world: World;
  readonly #domains: Domains;
  readonly #reaches: Reaches;
  /** The resources that kube-scheduler looks at. */
  readonly #cpu: number;
  readonly #memory: number;
  readonly #orders = new Map<Course['order'], readonly number[]>();
  /** By slot: what the node holds when it is empty. */
  #capacity: Float64Array[] = [];
  #existing: ExistingNodes;
  readonly #avoided: ReadonlySet<string>;

  /** `avoided`: nodes by name with a taint that asks pods to go elsewhere if they can. */
  constructor(problem: Problem, avoided: ReadonlySet<string> = new Set()) {
    this.#avoided = avoided;
    const world = compile(problem);
    this.#world = world;
    this.#existing = new ExistingNodes(world);
    this.#domains = new Domains(world, new Reservations(world.problem, world.templates), 'cheapest');
    this.#reaches = new Reaches(world, []);
    this.#cpu = world.axis.names.indexOf('cpu');
    this.#memory = world.axis.names.indexOf('memory');
  }

  /** What comes of it. `instead`: nodes by name whose capacity is another than the problem says. */
  outcome({ order, first }: Course, instead: ReadonlyMap<string, ResourceList> = new Map()): Outcome {
    const world = this.#world;
    const restore = remember(world);
    this.#existing = new ExistingNodes(world);
    this.#capacity = [];
    for (const target of world.targets) {
      const other = instead.get(target.node.name);
      if (!other) continue;
      const before = world.axis.available(target.node.capacity);
      const now = world.axis.available(amountsOf(other));
      this.#capacity[target.slot] = now;
      for (let r = 0; r < now.length; r++) target.room[r]! += now[r]! - before[r]!;
    }
    const placed = new Map<string, string[]>();
    const left = this.#place(this.#inOrder(order), first, placed);
    const packed =
      left.length > 0 ? new Packer(world, {}, undefined, Int32Array.from(left)).run() : { nodes: [], failed: [] };
    const finalizer = new Finalizer(world);
    const { keys, rejected } = world.batch;
    const newNodeClaims = packed.nodes.map((node) => finalizer.claimOf(node));
    restore();
    return {
      newNodeClaims,
      failed: [...packed.failed.map(({ pod }) => keys[pod]!), ...rejected.map(({ key }) => key)],
      placed,
    };
  }

  /** Gives the pods that found no place. */
  #place(order: readonly number[], first: number, placed: Map<string, string[]>): number[] {
    const { keys } = this.#world.batch;
    let left = [...order];
    // A pod may have to wait for others: spread counts them.
    for (let before = Number.POSITIVE_INFINITY; left.length > 0 && left.length < before; ) {
      before = left.length;
      left = left.filter((pod) => {
        const target = this.#put(pod, first);
        if (!target) return true;
        const pods = placed.get(target.node.name);
        if (pods) pods.push(keys[pod]!);
        else placed.set(target.node.name, [keys[pod]!]);
        return false;
      });
    }
    return left;
  }

  #inOrder(by: Course['order']): readonly number[] {
    let order = this.#orders.get(by);
    if (!order) {
      order = this.#ordered(by);
      this.#orders.set(by, order);
    }
    return order;
  }

  #ordered(by: Course['order']): number[] {
    const { pods, shapeOf, order } = this.#world.batch;
    const total = new Float64Array(this.#world.axis.size);
    for (const pod of order) {
      const request = this.#world.requests[shapeOf[pod]!]!;
      for (let r = 0; r < total.length; r++) total[r]! += request[r]!;
    }
    const sizeOf = (pod: number): number =>
      [this.#cpu, this.#memory].reduce((sum, r) => {
        const units = r < 0 ? 0 : this.#world.requests[shapeOf[pod]!]![r]!;
        return units > 0 ? sum + units / total[r]! : sum;
      }, 0);
    const sizes = new Map(Array.from(order, (pod) => [pod, sizeOf(pod)]));
    const bySize = [...order].sort((a, b) => sizes.get(b)! - sizes.get(a)!);
    if (by === 'largest') return bySize;
    const drains = [...Map.groupBy(bySize, (pod) => pods[pod]!.spec.nodeName ?? '').values()];
    const longest = Math.max(0, ...drains.map(({ length }) => length));
    return Array.from({ length: longest }, (_, i) => drains.flatMap((own) => own[i] ?? [])).flat();
  }

  #put(pod: number, first: number): Target | undefined {
    const { classOf, batch } = this.#world;
    const podClass = classOf[pod]!;
    const shape = batch.shapeOf[pod]!;
    const choices = this.#domains.choices(podClass);
    if (!choices || !affinityPossible(podClass)) return undefined;
    let best: Target | undefined;
    let most = Number.NEGATIVE_INFINITY;
    for (const kind of this.#reaches.of(podClass).kinds) {
      if (!choices.every((choice) => isOpen(choice, kind.domains[choice.key.index]!))) continue;
      for (const target of kind.targets) {
        if (!this.#existing.takes(target, podClass, pod, shape)) continue;
        const score = this.#score(target, shape);
        const isBetter = best && score === most ? this.#comesBefore(target, best, first) : score > most;
        if (isBetter) [best, most] = [target, score];
      }
    }
    if (best) this.#existing.take(best, podClass, pod, shape);
    return best;
  }

  #comesBefore(a: Target, b: Target, first: number): boolean {
    const { length } = this.#world.targets;
    return (a.slot + length - (first % length)) % length < (b.slot + length - (first % length)) % length;
  }

  /** As kube-scheduler counts, in whole numbers: what is left of CPU and memory, and how evenly the two are used. */
  #score(target: Target, shape: number): number {
    const request = this.#world.requests[shape]!;
    const capacity = (this.#capacity[target.slot] ??= this.#world.axis.available(target.node.capacity));
    const used = (r: number, more: number): number =>
      r < 0 || !(capacity[r]! > 0) ? 0 : 1 - (target.room[r]! - more) / capacity[r]!;
    const [cpu, memory] = [this.#cpu, this.#memory];
    const [ofCpu, ofMemory] = [used(cpu, request[cpu] ?? 0), used(memory, request[memory] ?? 0)];
    const left = Math.floor((Math.floor(100 * (1 - ofCpu)) + Math.floor(100 * (1 - ofMemory))) / 2);
    const evenness = (a: number, b: number): number => Math.trunc(100 - 50 * Math.abs(a - b));
    const preferred = this.#avoided.has(target.node.name) ? 0 : weightOfTaints;
    return (
      preferred + left + Math.trunc((50 + evenness(ofCpu, ofMemory) - evenness(used(cpu, 0), used(memory, 0))) / 2)
    );
  }
}
