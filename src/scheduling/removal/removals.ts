// SPDX-License-Identifier: Apache-2.0
// A cluster from which nodes can be taken away in thought. Compiled once; each question changes only what the pods of the
// nodes in question touch, and is taken back or kept. What was kept counts in the next question.

import { commonLabelSet } from '../../api/labels.ts';
import type { Steps } from '../../base/steps.ts';
import { Domains, type Ties } from '../domains.ts';
import { exchange, nodesOf } from '../exchange.ts';
import { hasRoom, isOpen } from '../existing-nodes.ts';
import { Failures } from '../failures.ts';
import { Finalizer } from '../finalize.ts';
import type { HostPort } from '../host-ports.ts';
import { hostRejects, type NewNode } from '../in-flight.ts';
import { Limits } from '../limits.ts';
import { type Joins, type Packed, Packer } from '../pack.ts';
import { affinityAllows, affinityPossible, type PodClass } from '../pod-class.ts';
import type { NewNodeClaim, Problem } from '../problem.ts';
import { Reaches } from '../reach.ts';
import { regroup } from '../regroup.ts';
import { Reservations } from '../reservations.ts';
import { Thrift, ThriftMemo } from '../thrift.ts';
import { type Group, passesFilter } from '../topology.ts';
import { canAttach } from '../volumes.ts';
import { compileInSteps, type NodeKind, type Target, type World } from '../world.ts';
import { Answers } from './answers.ts';
import { LeastCost } from './least-cost.ts';
import { type Reshaped, reshape } from './reshape.ts';

/** Where the pods of nodes that went would be. */
export interface Removal {
  /** Slots of the nodes that went. */
  readonly slots: readonly number[];
  /** Their pods, and the slot each went to; -1 for one on a machine to be bought. */
  readonly moves: readonly { readonly pod: number; readonly slot: number }[];
  /** Machines to buy. */
  readonly claims: readonly NewNodeClaim[];
}

/** What is to be bought. */
interface Order {
  readonly slots: readonly number[];
  readonly pods: readonly number[];
  readonly budget: number;
  readonly isPromising: (claims: readonly NewNodeClaim[]) => boolean;
}

/** A packing, and what it buys. */
export interface Purchase {
  readonly packed: Packed;
  readonly claims: readonly NewNodeClaim[];
  readonly price: number;
}

/** How to pack; see plan.ts. */
interface Way {
  readonly tolerance?: number;
  readonly ties?: Ties;
  readonly joins?: Joins;
}

/**
 * How much work goes into a replacement. `glance`: whether there is one at all; `quick`: in large clusters; `thorough`: for what is done.
 */
export type Effort = 'glance' | 'quick' | 'thorough';

/** Tried where the usual packing is far from the bound. */
const thrifty: Way = { tolerance: 1.1 };
const farFromBound = 1.15;
/** What costs this many times too much in the usual way is not tried in another: one of 250 such questions had an answer. */
const hopeless = 1.5;
/** Takes a third of the time, and finds something cheaper more often; what it finds lasts less well. */
const frugal: Way = { joins: 'cheapest' };
/** What costs more than this many times too much is not tried in another way at a glance. */
const nearlyCheaper = 1.3;
/** Tried for a few pods that something cheaper was found for: perhaps there is something cheaper still. */
const otherWays: readonly Way[] = [frugal, { tolerance: 2 }, { joins: 'cheapest', ties: 'last' }];
const fewPods = 400;
/** Machines that are likely to last may cost a little more. */
const sturdy = { most: 16, allowance: 1.08, thorough: true };
/** How often machines exchange their pods before they are bought, for each of them. */
const exchangesPerNode = 20;
/** A price this near to the bound is not worth another packing. */
const nearBound = 1.02;

function priceOf(world: World, { nodes }: Packed): number {
  const finalizer = new Finalizer(world);
  return nodes.reduce((sum, node) => sum + finalizer.priceOf(node), 0);
}

function purchase(world: World, packed: Packed, price: number): Purchase {
  const finalizer = new Finalizer(world);
  return { packed, claims: packed.nodes.map((node) => finalizer.claimOf(node)), price };
}

/** What a packing buys, if it costs less than `budget`. */
function cheaperPurchase(world: World, packed: Packed, budget: number): Purchase | undefined {
  const price = priceOf(world, packed);
  return price < budget * (1 - 1e-9) ? purchase(world, packed, price) : undefined;
}

export class Removals {
  readonly world: World;
  readonly #slotOf = new Map<string, number>();
  /** By slot: the pods that would have to move; undefined for nodes that are no candidates. */
  readonly #pods: (number[] | undefined)[];
  /** By slot: 1 while it is in question, 2 when it is gone for good. */
  readonly #gone: Uint8Array;
  /** Slots that the question has put pods on. */
  readonly #touched = new Set<number>();
  readonly #reaches: Reaches;
  readonly #domains: Domains;
  readonly #rank: Int32Array;
  /** By kind and what is looked for: the position before which every node has said no for good. */
  readonly #cursors: Map<number, number>[];
  readonly #leastCost: LeastCost;
  /** Nodes by name that have a pod which cannot be used at all. */
  readonly #unusable = new Set<string>();
  readonly #filterMemo = new Map<number, boolean>();
  /** How many pods of a group are on machines to be bought whose domain is open: who minds the group has to wait for it. */
  readonly #undecided = new Map<Group, number>();
  /** What is left of reservations. */
  readonly #reservations = new Map<string, number>();
  /** Says why the last replacement could not be had; looked into only when somebody asks. */
  #whyNot: (() => string) | undefined;
  readonly #answers = new Answers();
  readonly #memo = new ThriftMemo();
  /** What takes the question back. */
  #undo: (() => void)[] = [];
  /** What takes back all that was kept. */
  #kept: (() => void)[] = [];

  readonly #effort: Effort;

  /** `problem.state.candidates` names the nodes that may be asked about. */
  static *inSteps(problem: Problem, effort: Effort): Steps<Removals> {
    const world = yield* compileInSteps(problem, { candidatesStay: true });
    yield;
    return new Removals(problem, world, effort);
  }

  /** `world` is compiled from the problem, and this one's own. */
  private constructor(problem: Problem, world: World, effort: Effort) {
    this.#effort = effort;
    this.world = world;
    const { batch, targets } = this.world;
    this.#pods = targets.map(() => undefined);
    this.#gone = new Uint8Array(targets.length);
    this.#cursors = this.world.kinds.map(() => new Map());
    this.#reaches = new Reaches(this.world, []);
    this.#domains = new Domains(this.world, new Reservations(problem, this.world.templates), 'cheapest');
    this.#rank = new Int32Array(batch.pods.length);
    for (const [rank, pod] of batch.order.entries()) this.#rank[pod] = rank;
    for (const { node, slot } of targets) this.#slotOf.set(node.name, slot);
    for (const name of problem.state?.candidates ?? []) {
      const slot = this.#slotOf.get(name);
      if (slot !== undefined) this.#pods[slot] = [];
    }
    this.#readReservations(problem);
    this.#putBack();
    this.#placeOthers();
    this.#findUnusable(problem);
    this.#leastCost = new LeastCost(this.world, this.#demands());
  }

  /** The slot of a candidate; undefined when it cannot be asked about. */
  slotOf(name: string): number | undefined {
    const slot = this.#slotOf.get(name);
    if (slot === undefined || !this.#pods[slot] || this.#unusable.has(name)) return undefined;
    return slot;
  }

  nameOf(slot: number): string {
    return this.world.targets[slot]!.node.name;
  }

  isGone(slot: number): boolean {
    return this.#gone[slot] !== 0;
  }

  /** The pods that would have to move now. */
  podsOn(slot: number): readonly number[] {
    return this.#pods[slot] ?? [];
  }

  /** The least that machines for the pods of these nodes can cost. */
  leastCost(slots: Iterable<number>): number {
    const total = new Float64Array(this.world.axis.size);
    const { requests, batch } = this.world;
    for (const slot of slots) {
      for (const pod of this.podsOn(slot)) {
        const request = requests[batch.shapeOf[pod]!]!;
        for (let r = 0; r < total.length; r++) total[r]! += request[r]!;
      }
    }
    return this.#leastCost.of(total);
  }

  /** Takes nodes away if their pods find a place on the others; undefined, and nothing changed, when they do not. */
  tryDelete(slots: readonly number[]): Removal | undefined {
    const pods = this.#takeAway(slots);
    if (this.#mindsUndecided(pods)) {
      this.takeBack();
      return undefined;
    }
    const moves: { pod: number; slot: number }[] = [];
    for (const pod of pods) {
      const target = this.#find(pod);
      if (!target) {
        this.takeBack();
        return undefined;
      }
      this.#take(target, pod);
      moves.push({ pod, slot: target.slot });
    }
    return { slots, moves, claims: [] };
  }

  /**
   * Takes nodes away and buys for less than `budget` what their pods need beyond the others; undefined, and nothing
   * changed, when that cannot be had. `isPromising`: whether machines like these would do at all; no better ones are looked for
   * where they would not.
   */
  tryReplace(
    slots: readonly number[],
    budget: number,
    isPromising: (claims: readonly NewNodeClaim[]) => boolean = () => true,
  ): Removal | undefined {
    const known = this.#answers.of(slots, budget);
    this.#whyNot = known?.whyNot;
    if (known && !known.purchase) return undefined;
    const pods = this.#takeAway(slots);
    if (this.#mindsUndecided(pods)) {
      this.#whyNot = () => 'where its pods may go depends on nodes that are still to come';
      this.takeBack();
      return undefined;
    }
    const best = known?.purchase ?? this.#buy({ slots, pods, budget, isPromising });
    if (!known) this.#answers.note(slots, budget, { purchase: best, whyNot: this.#whyNot });
    if (!best) {
      this.takeBack();
      return undefined;
    }
    return this.#order(slots, best);
  }

  /** Groups of nodes whose pods would cost less on other machines; `priceOf`: what a node costs. */
  reshapings(slots: readonly number[], priceOf: (slot: number) => number): Reshaped[] {
    const nodes = slots.map((slot) => ({ slot, pods: this.podsOn(slot), price: priceOf(slot) }));
    return reshape(this.world, nodes);
  }

  /** Takes nodes away and buys what was found for them, if that costs less than `budget`; undefined, and nothing changed, otherwise. */
  tryReshape({ slots, market, bins }: Reshaped, budget: number): Removal | undefined {
    const pods = this.#takeAway(slots);
    const nodes = nodesOf(this.world, market, bins, 0);
    const steps = nodes.flatMap((node) => node.pods.map((pod) => ({ pod, target: undefined, node, settled: [] })));
    const limits = new Limits(this.world.templates);
    const packed: Packed = { nodes, steps, failed: [], timedOut: false, attempts: 0, limits };
    const best = this.#mindsUndecided(pods) ? undefined : cheaperPurchase(this.world, packed, budget);
    if (best) return this.#order(slots, best);
    this.takeBack();
    return undefined;
  }

  /** Puts pods where a purchase has them. */
  #order(slots: readonly number[], best: Purchase): Removal | undefined {
    const moves: { pod: number; slot: number }[] = [];
    for (const { pod, target } of best.packed.steps) {
      if (target) this.#take(target, pod);
      moves.push({ pod, slot: target?.slot ?? -1 });
    }
    for (const node of best.packed.nodes) this.#countNew(node);
    for (const claim of best.claims) this.#chargeLimits(claim);
    if (!this.#holdReservations(best.claims)) {
      this.#whyNot = () => 'the reservation that would take its pods is used up';
      this.takeBack();
      return undefined;
    }
    return { slots, moves, claims: best.claims };
  }

  /** The cheapest way to pack these pods for less than `budget`. */
  #buy({ slots, pods, budget, isPromising }: Order): Purchase | undefined {
    let best: Purchase | undefined;
    const order = Int32Array.from(pods);
    const world: World = { ...this.world, refused: this.#cursors, batch: { ...this.world.batch, order } };
    const restore = this.#remember(pods);
    const memo = this.#memo;
    const attempt = ({ tolerance, ties, joins }: Way): number => {
      const thrift = tolerance === undefined ? undefined : new Thrift(tolerance, memo);
      const packed = new Packer(world, {}, thrift, order, ties, joins).run();
      const [failed] = packed.failed;
      if (failed) this.#whyNot ??= () => this.#sayFailed(failed, packed);
      const price = failed ? Number.POSITIVE_INFINITY : priceOf(world, packed);
      if (price < (best?.price ?? budget) * (1 - 1e-9)) best = purchase(world, packed, price);
      restore(packed);
      return price;
    };
    const usual = attempt({});
    if (best && !isPromising(best.claims)) return best;
    // Other ways cost more to find: only where the bound says that much is left to gain.
    const bound = this.leastCost(slots);
    const isFar = (by: number): boolean => pods.length > 1 && (best?.price ?? budget) > by * bound;
    if (this.#effort === 'glance') {
      const least = isFar(farFromBound) && pods.length <= fewPods ? Math.min(usual, attempt(frugal)) : usual;
      if (!best && slots.length > 1 && least < nearlyCheaper * budget && isFar(farFromBound)) attempt(thrifty);
      return best;
    }
    if (usual < hopeless * budget && isFar(farFromBound)) attempt(thrifty);
    if (this.#effort === 'quick' || !best) return best;
    if (pods.length <= fewPods) for (const way of otherWays) if (isFar(nearBound)) attempt(way);
    if (best.price > nearBound * bound) best = this.#exchanged(world, best) ?? best;
    return this.#sturdy(world, best, budget) ?? best;
  }

  /** The same pods on machines that cost less. */
  #exchanged(world: World, { packed, price }: Purchase): Purchase | undefined {
    const again = exchange(world, packed, new Finalizer(world), exchangesPerNode);
    return again && cheaperPurchase(world, again, price);
  }

  /** The same with machines that are likely to last, if they cost less than `budget` as well. */
  #sturdy(world: World, { packed }: Purchase, budget: number): Purchase | undefined {
    const again = regroup(world, packed, new Finalizer(world), sturdy);
    return again && cheaperPurchase(world, again, budget);
  }

  /** What stood in the way of the replacement that was asked about last, beside its price; undefined: the price did. */
  whyNot(): string | undefined {
    return this.#whyNot?.();
  }

  #sayFailed({ pod, why }: Packed['failed'][number], { limits }: Packed): string {
    const { reason } = new Failures(this.world, limits).of(pod, why);
    return `Not all pods would schedule: ${this.world.batch.keys[pod]} (${reason})`;
  }

  /** Whether the pods of all these nodes find places when they leave at once, whatever that costs. Changes nothing. */
  canGo(slots: readonly number[]): boolean {
    const pods = this.#takeAway(slots);
    const order = Int32Array.from(pods);
    const restore = this.#remember(pods);
    const packed = new Packer({ ...this.world, batch: { ...this.world.batch, order } }, {}, undefined, order).run();
    restore(packed);
    this.takeBack();
    return packed.failed.length === 0;
  }

  /** The last question is taken back: everything is as it was before. */
  takeBack(): void {
    for (let i = this.#undo.length - 1; i >= 0; i--) this.#undo[i]!();
    this.#undo = [];
    this.#touched.clear();
  }

  /** The last question is kept: the nodes are gone, and their pods where it put them. */
  keep(removal: Removal): void {
    const { slots, moves } = removal;
    this.#answers.keep(removal);
    this.#kept.push(...this.#undo);
    this.#undo = [];
    this.#touched.clear();
    for (const slot of slots) {
      const pods = this.#pods[slot];
      this.#kept.push(() => {
        this.#pods[slot] = pods;
      });
      this.#pods[slot] = [];
      this.#gone[slot] = 2;
    }
    for (const { pod, slot } of moves) {
      const pods = slot < 0 ? undefined : this.#pods[slot];
      if (!pods) continue;
      pods.push(pod);
      this.#kept.push(() => void pods.pop());
    }
  }

  /** Everything that was kept is taken back: the cluster is as it was at first. */
  reset(): void {
    this.takeBack();
    for (let i = this.#kept.length - 1; i >= 0; i--) this.#kept[i]!();
    this.#kept = [];
    this.#answers.reset();
    for (const cursors of this.#cursors) cursors.clear();
  }

  // ---- setting up

  #readReservations({ instanceTypes, labels }: Problem): void {
    for (const [pool, types] of Object.entries(instanceTypes)) {
      const key = labels?.[pool]?.reservationId;
      for (const { offerings } of types) {
        for (const { requirements, reservationCapacity } of offerings ?? []) {
          if (reservationCapacity === undefined) continue;
          const id =
            requirements.find((one) => (key === undefined ? !commonLabelSet.wellKnown.has(one.key) : one.key === key))
              ?.values?.[0] ?? '';
          const known = this.#reservations.get(id) ?? Number.POSITIVE_INFINITY;
          this.#reservations.set(id, Math.min(known, reservationCapacity));
        }
      }
    }
  }

  /** Pods of candidates are where they are. */
  #putBack(): void {
    const { batch, targets } = this.world;
    for (let pod = 0; pod < batch.pods.length; pod++) {
      if (batch.isCandidate[pod] === 0) continue;
      const slot = this.#slotOf.get(batch.pods[pod]!.spec.nodeName ?? '');
      if (slot === undefined) continue;
      this.#take(targets[slot]!, pod);
      this.#pods[slot]?.push(pod);
    }
    this.#undo = [];
    this.#touched.clear();
  }

  /** Pods that wait, or whose node is going anyway, get their places first. */
  #placeOthers(): void {
    const { batch } = this.world;
    const order = batch.order.filter((pod) => batch.isCandidate[pod] === 0);
    if (order.length === 0) return;
    const restore = this.#remember(order);
    const packed = new Packer({ ...this.world, batch: { ...batch, order } }, {}, undefined, order).run();
    restore(packed);
    // Machines that will be bought for them use up limits and reservations, and their pods count where they will be.
    const finalizer = new Finalizer(this.world);
    const claims = packed.nodes.map((node) => finalizer.claimOf(node));
    for (const node of packed.nodes) this.#countNew(node);
    for (const claim of claims) this.#chargeLimits(claim);
    this.#holdReservations(claims);
    for (const { pod, target } of packed.steps) {
      if (!target) continue;
      this.#take(target, pod);
      this.#pods[target.slot]?.push(pod);
    }
    this.#undo = [];
    this.#touched.clear();
  }

  /** Pods that cannot be used keep their node where it is. */
  #findUnusable(problem: Problem): void {
    const { rejected } = this.world.batch;
    if (rejected.length === 0) return;
    const keys = new Set(rejected.map(({ key }) => key));
    for (const { metadata, spec } of problem.pods)
      if (spec?.nodeName && keys.has(`${metadata?.namespace ?? 'default'}/${metadata?.name ?? ''}`))
        this.#unusable.add(spec.nodeName);
  }

  /** The mix of everything, and mixes that lean to one side. */
  #demands(): Float64Array[] {
    const { axis, requests, batch } = this.world;
    const total = new Float64Array(axis.size);
    for (let pod = 0; pod < batch.pods.length; pod++) {
      const request = requests[batch.shapeOf[pod]!]!;
      for (let r = 0; r < total.length; r++) if (Number.isFinite(request[r])) total[r]! += request[r]!;
    }
    const leaning = axis.names.flatMap((name, r) => {
      if (name !== 'cpu' && name !== 'memory') return [];
      const demand = total.slice();
      demand[r]! *= 4;
      return [demand];
    });
    return [total, ...leaning];
  }

  // ---- questions

  /** Whether the place of a pod depends on where machines come up that are still to be bought. */
  #mindsUndecided(pods: readonly number[]): boolean {
    if (this.#undecided.size === 0) return false;
    return pods.some((pod) =>
      this.world.classOf[pod]!.keyRules.some(({ spreads, affinities, antis }) =>
        [...spreads, ...affinities, ...antis].some(({ group }) => (this.#undecided.get(group) ?? 0) > 0),
      ),
    );
  }

  /** The nodes are gone; gives their pods in the order of the queue. */
  #takeAway(slots: readonly number[]): number[] {
    if (this.#undo.length > 0) throw new Error('the last question was neither taken back nor kept');
    const pods: number[] = [];
    for (const slot of slots) {
      const target = this.world.targets[slot]!;
      this.#gone[slot] = 1;
      const room = target.room.slice();
      for (const pod of this.podsOn(slot)) {
        pods.push(pod);
        this.#countAll(pod, target, -1);
      }
      target.room.fill(-1);
      this.#undo.push(() => {
        this.#gone[slot] = 0;
        target.room.set(room);
        for (const pod of this.podsOn(slot)) this.#countAll(pod, target, 1);
      });
      this.#freeLimits(target);
    }
    return pods.sort((a, b) => this.#rank[a]! - this.#rank[b]!);
  }

  #freeLimits({ node }: Target): void {
    const limits = this.world.templates.find(({ nodePool }) => nodePool === node.nodePool)?.limits;
    if (!limits) return;
    const before = new Map(limits);
    for (const [name, left] of before)
      limits.set(name, left + (name === 'nodes' ? 1_000_000_000n : (node.capacity.get(name) ?? 0n)));
    this.#undo.push(() => {
      for (const [name, left] of before) limits.set(name, left);
    });
  }

  /** A machine to be bought counts against the limits of its pool, as the largest it may become. */
  #chargeLimits({ nodePool, instanceTypes }: NewNodeClaim): void {
    const template = this.world.templates.find((one) => one.nodePool === nodePool);
    const limits = template?.limits;
    if (!limits) return;
    const listed = new Set(instanceTypes);
    const before = new Map(limits);
    for (const [name, left] of before) {
      let most = name === 'nodes' ? 1_000_000_000n : 0n;
      for (const type of template.catalog.types) {
        const has = type.capacity.get(name) ?? 0n;
        if (has > most && listed.has(type.name)) most = has;
      }
      limits.set(name, left - most);
    }
    this.#undo.push(() => {
      for (const [name, left] of before) limits.set(name, left);
    });
  }

  /** Takes what claims hold of reservations; false when one of them has none left. */
  #holdReservations(claims: readonly NewNodeClaim[]): boolean {
    for (const { reservations = [] } of claims) {
      for (const id of reservations) {
        const left = this.#reservations.get(id) ?? 0;
        if (left < 1) return false;
        this.#reservations.set(id, left - 1);
        this.#undo.push(() => void this.#reservations.set(id, left));
      }
    }
    return true;
  }

  /** Pods on a machine to be bought count in the domains it is sure to have, or must be kept away from. */
  #countNew(node: NewNode): void {
    const { classOf, counted, space } = this.world;
    const { template, set } = node.group;
    const requirements = space.get(set);
    const count = (group: Group, by: number): void => {
      const domains = this.#domains.domainsOf(node.group, group.key!);
      group.total += by;
      if (domains.length > 1) this.#undecided.set(group, (this.#undecided.get(group) ?? 0) + by);
      if (domains.length === 1 || group.kind !== 'definite') for (const domain of domains) group.counts[domain]! += by;
    };
    for (const pod of node.pods) {
      const { labels, owns } = classOf[pod]!;
      const groups = [...counted[labels]!.zoned, ...owns.filter(({ key }) => key)].filter((group) =>
        passesFilter(group.filter, requirements, template.taints, template.dialect.index, template.mayBeUndefined),
      );
      for (const group of groups) count(group, 1);
      this.#undo.push(() => {
        for (const group of groups) count(group, -1);
      });
    }
  }

  /** The first node that takes a pod as it is written. */
  #find(pod: number): Target | undefined {
    const { classOf, batch } = this.world;
    const podClass = classOf[pod]!;
    const { kinds } = this.#reaches.of(podClass);
    const choices = this.#domains.choices(podClass);
    if (!choices || !affinityPossible(podClass)) return undefined;
    let best: Target | undefined;
    for (const kind of kinds) {
      if (kind.closedToMoves && batch.isCandidate[pod] === 1) continue;
      if (!choices.every((choice) => isOpen(choice, kind.domains[choice.key.index]!))) continue;
      best = this.#findInKind(kind, podClass, pod, best?.slot ?? Number.POSITIVE_INFINITY) ?? best;
    }
    return best;
  }

  #findInKind(kind: NodeKind, podClass: PodClass, pod: number, below: number): Target | undefined {
    const { requests, batch } = this.world;
    const { targets } = kind;
    const shape = batch.shapeOf[pod]!;
    const request = requests[shape]!;
    const key = podClass.signature * requests.length + shape;
    const cursors = this.#cursors[kind.id]!;
    const known = cursors.get(key) ?? 0;
    // Behind the first node that may change its mind when the question is taken back nothing is remembered.
    let remembered = -1;
    let position = known;
    let found: Target | undefined;
    for (; position < targets.length; position++) {
      const target = targets[position]!;
      const { slot } = target;
      if (slot >= below) break;
      if (!hasRoom(target.room, request)) {
        if (remembered < 0 && (this.#gone[slot] === 1 || this.#touched.has(slot))) remembered = position;
        continue;
      }
      const rejects = podClass.signature !== 0 && hostRejects(podClass, slot, target.node.ports);
      if (!rejects && affinityAllows(podClass, slot) && this.#canAttach(target, pod)) {
        found = target;
        break;
      }
      if (remembered < 0) remembered = position;
    }
    cursors.set(key, remembered < 0 ? position : remembered);
    return found;
  }

  #canAttach(target: Target, pod: number): boolean {
    const { attachments, pods } = this.world.batch;
    return canAttach(target.node.volumeLimits, target.node.attached, attachments.get(pods[pod]!));
  }

  /** Puts a pod on a node, and remembers how to undo it. */
  #take(target: Target, pod: number): void {
    const { requests, batch, classOf } = this.world;
    const request = requests[batch.shapeOf[pod]!]!;
    const podClass = classOf[pod]!;
    for (let r = 0; r < request.length; r++) target.room[r]! -= request[r]!;
    this.#countAll(pod, target, 1);
    const { ports } = podClass.side;
    // The world is this one's own, and packings read what is taken from its nodes.
    const taken = target.node.ports as HostPort[];
    taken.push(...ports);
    this.#touched.add(target.slot);
    const added: { claims: Set<string>; claim: string }[] = [];
    if (target.node.volumeLimits.size > 0) {
      const attached = target.node.attached as Map<string, Set<string>>;
      for (const { driver, claim } of batch.attachments.get(batch.pods[pod]!) ?? []) {
        const claims = attached.get(driver) ?? new Set<string>();
        attached.set(driver, claims);
        if (claims.has(claim)) continue;
        claims.add(claim);
        added.push({ claims, claim });
      }
    }
    this.#undo.push(() => {
      for (let r = 0; r < request.length; r++) target.room[r]! += request[r]!;
      this.#countAll(pod, target, -1);
      taken.length -= ports.length;
      for (const { claims, claim } of added) claims.delete(claim);
    });
  }

  #countAll(pod: number, target: Target, by: number): void {
    const podClass = this.world.classOf[pod]!;
    const { zoned, hosted } = this.world.counted[podClass.labels]!;
    for (const group of zoned) this.#count(group, target, by);
    for (const group of hosted) this.#count(group, target, by);
    for (const group of podClass.owns) this.#count(group, target, by);
  }

  #count(group: Group, { kind, slot }: Target, by: number): void {
    if (group.filter && !this.#passes(group, kind)) return;
    const domain = group.key ? kind.domains[group.key.index]! : 0;
    if (domain < 0) return;
    group.total += by;
    if (group.key) {
      group.counts[domain]! += by;
      return;
    }
    const count = (group.hosts.get(slot) ?? 0) + by;
    if (count > 0) group.hosts.set(slot, count);
    else group.hosts.delete(slot);
  }

  #passes(group: Group, kind: NodeKind): boolean {
    const memo = group.id * this.world.kinds.length + kind.id;
    let passes = this.#filterMemo.get(memo);
    if (passes === undefined) {
      passes = passesFilter(group.filter, kind.labels, kind.taints, kind.dialect);
      this.#filterMemo.set(memo, passes);
    }
    return passes;
  }

  /** Remembers what a packing of these pods changes; the function it gives puts it back. */
  #remember(pods: Iterable<number>): (packed: Packed) => void {
    const { classOf, counted, targets, requests, batch } = this.world;
    const groups = new Set<Group>();
    for (const pod of pods) {
      const { labels, owns } = classOf[pod]!;
      for (const group of counted[labels]!.zoned) groups.add(group);
      for (const group of counted[labels]!.hosted) groups.add(group);
      for (const group of owns) groups.add(group);
    }
    const before = Array.from(groups, (group) => ({ group, counts: group.counts.slice(), total: group.total }));
    return (packed) => {
      const touched = new Map<number, number[]>();
      for (const { pod, target } of packed.steps) {
        if (!target) continue;
        const request = requests[batch.shapeOf[pod]!]!;
        for (let r = 0; r < request.length; r++) target.room[r]! += request[r]!;
        touched.set(target.slot, [...(touched.get(target.slot) ?? []), pod]);
      }
      for (const [slot, moved] of touched) for (const pod of moved) this.#uncountHosts(pod, targets[slot]!);
      for (const { group, counts, total } of before) {
        group.counts.set(counts);
        group.doubtful.fill(0);
        group.total = total;
        group.open.clear();
        for (const slot of group.hosts.keys()) if (slot >= targets.length) group.hosts.delete(slot);
      }
    };
  }

  #uncountHosts(pod: number, target: Target): void {
    const { labels, owns } = this.world.classOf[pod]!;
    const hosted = [...this.world.counted[labels]!.hosted, ...owns.filter(({ key }) => !key)];
    for (const group of hosted) if (!group.filter || this.#passes(group, target.kind)) this.#count(group, target, -1);
  }
}
