// SPDX-License-Identifier: Apache-2.0
// The packing loop: one pod after the other, on an existing node, on a node being bought, or on a new one; relaxed step by
// step where it does not fit; again from the start as long as anything moves.
import { noRow, type View } from './catalog.ts';
import { Domains, type Ties } from './domains.ts';
import { ExistingNodes, isOpen } from './existing-nodes.ts';
import { NewNode, NodeGroup, type Search } from './in-flight.ts';
import { Limits } from './limits.ts';
import { Marks } from './marks.ts';
import { absent, PairTable } from './pair-table.ts';
import { affinityAllows, affinityPossible, type PodClass } from './pod-class.ts';
import { PoolTerms } from './pool-terms.ts';
import type { SolveOptions } from './problem.ts';
import { type Entry, type Opening, type Pools, placeOfCloud, type Reach, Reaches } from './reach.ts';
import { incompatible, type SetId } from './requirement-space.ts';
import { Reservations } from './reservations.ts';
import { type Settled, Tally } from './tally.ts';
import type { Template } from './templates.ts';
import type { Thrift, Waiting } from './thrift.ts';
import { type Choice, chooseDomains, type KeyRules, skewCeiling, type TopologyKey } from './topology.ts';
import type { Target, World } from './world.ts';

/** One step of the solution. */
export interface Step {
  readonly pod: number;
  /** Undefined when it went to a new node. */
  readonly target: Target | undefined;
  readonly node: NewNode | undefined;
  readonly settled: readonly Settled[];
}

export interface Packed {
  readonly nodes: readonly NewNode[];
  readonly steps: readonly Step[];
  /** Pods without a place, in the order of the queue. */
  readonly failed: readonly { readonly pod: number; readonly why: Failure }[];
  readonly timedOut: boolean;
  /** Attempts to place a pod. */
  readonly attempts: number;
  /** What is left of the pools' limits. */
  readonly limits: Limits;
}

/** Why a pod was not placed: nothing suits, it waits for reserved capacity, or time was up. */
export type Failure = 'unschedulable' | 'reserved' | 'deadline';

interface Found {
  readonly node: NewNode;
  readonly set: SetId;
  readonly mask: number;
  readonly row: number;
}

/** Which of the nodes that take a pod it joins: the one with the fewest pods, or the one whose price grows least. */
export type Joins = 'emptiest' | 'cheapest';

const noChoices: readonly Choice[] = [];
const maxSettles = 8;
/** Most packings are about a few nodes: room for so many groups of them, to begin with. */
const fewGroups = 16;
/** How often pods are asked anew whether they may go where they were planned. */
const maxRounds = 64;
/** How many pods of one shape may refuse a node before the next shape is tried. */
const maxRefusals = 16;

export class Packer {
  readonly #world: World;
  readonly #options: SolveOptions;
  readonly #terms: PoolTerms;
  readonly #tally: Tally;
  readonly #limits: Limits;
  readonly #zero: Float64Array;
  readonly #nodes: NewNode[] = [];
  readonly #groups: NodeGroup[] = [];
  /** By template, set and mask: the place in `#groups`. */
  readonly #groupIds: PairTable[] = [];
  readonly #reaches: Reaches;
  readonly #steps: Step[] = [];
  readonly #existing: ExistingNodes;
  readonly #domains: Domains;
  readonly #shapeCount: number;
  #seq = 0;
  /** Grows with everything that changes the state. */
  #version = 0;
  readonly #search: Search;
  readonly #thrift: Thrift | undefined;
  /** Whether all that is left are pods that would be left out. */
  #isLastResort = false;
  readonly #joins: Joins;
  readonly #cheapOpenings = new Map<Reach, (readonly Opening[])[]>();
  readonly #order: Int32Array;
  readonly #keeps: boolean;
  /** Pods that are placed. */
  readonly #done: Marks;

  /**
   * `order` is the queue, when it is not the usual one; `ties` how domains are chosen that counts leave open; `joins` which
   * of the nodes being bought a pod joins; `pools` which of equally heavy pools comes first; `keeps` whether pods go where an
   * earlier pass planned them.
   */
  constructor(
    world: World,
    options: SolveOptions,
    thrift?: Thrift,
    order?: Int32Array,
    ties: Ties = 'cheapest',
    joins: Joins = 'emptiest',
    pools: Pools = 'cheapest',
    keeps = true,
  ) {
    this.#world = world;
    this.#keeps = keeps && world.promises.size > 0;
    this.#joins = joins;
    this.#order = order ?? world.batch.order;
    this.#thrift = thrift;
    this.#options = options;
    const reservations = new Reservations(world.problem, world.templates);
    this.#terms = new PoolTerms(world, reservations);
    this.#limits = new Limits(world.templates);
    this.#zero = new Float64Array(world.axis.size);
    this.#existing = new ExistingNodes(world);
    this.#reaches = new Reaches(world, this.#groups, pools);
    this.#domains = new Domains(world, reservations, ties);
    this.#tally = new Tally(world, this.#domains);
    this.#shapeCount = world.requests.length;
    this.#done = new Marks(world.batch.pods.length, this.#order.length);
    // The first search fills in what is looked for.
    this.#search = {
      key: 0,
      set: 0,
      most: 0,
      only: undefined,
      picky: false,
      accepts: (node: NewNode) => this.#accepts(node),
    } as unknown as Search;
  }

  run(): Packed {
    const { batch, classOf } = this.#world;
    const done = this.#done;
    const { clock, timeoutMs, maxSteps = Number.POSITIVE_INFINITY } = this.#options;
    const end = clock && timeoutMs !== undefined ? clock() + timeoutMs : Number.POSITIVE_INFINITY;
    let waiting: Int32Array | number[] = this.#order;
    if (this.#thrift) this.announce(this.#thrift);
    this.#keepPromises();
    const why = new Map<number, Failure>();
    const failedAt = new Map<number, { version: number; failure: Failure }>();
    let timedOut = false;
    let steps = 0;
    for (let progress = true; progress && waiting.length > 0 && !timedOut; ) {
      progress = false;
      const again: number[] = [];
      for (let i = 0; i < waiting.length; i++) {
        const pod = waiting[i]!;
        if (timedOut || ++steps > maxSteps || ((steps & 31) === 0 && clock !== undefined && clock() >= end)) {
          timedOut = true;
          again.push(pod);
          continue;
        }
        if (done.has(pod)) continue;
        const same = classOf[pod]!.id * this.#shapeCount + batch.shapeOf[pod]!;
        const before = failedAt.get(same);
        const failure =
          before?.version === this.#version && !this.#hasOwnState(pod) ? before.failure : this.#attempt(pod);
        if (failure === undefined) {
          progress = true;
          why.delete(pod);
        } else {
          failedAt.set(same, { version: this.#version, failure });
          why.set(pod, failure);
          again.push(pod);
        }
      }
      waiting = again;
      progress ||= this.#lastResort(waiting);
    }
    const failed = Array.from(waiting, (pod) => ({ pod, why: why.get(pod) ?? 'deadline' }));
    return { nodes: this.#nodes, steps: this.#steps, failed, timedOut, attempts: steps, limits: this.#limits };
  }

  /**
   * Pods go where an earlier pass planned them, in any order that their rules allow. Whose place others have taken goes anywhere
   * else that is there: what it merely wished for was paid for once, or each pass would buy it another machine.
   */
  #keepPromises(): void {
    if (!this.#keeps) return;
    const { promises, batch, classes, classOf } = this.#world;
    let waiting = Array.from(this.#order).filter((pod) => promises.has(pod));
    for (let round = 0, before = Number.POSITIVE_INFINITY; waiting.length < before && round < maxRounds; round++) {
      before = waiting.length;
      waiting = waiting.filter((pod) => !this.#keep(pod, promises.get(pod)!));
    }
    for (const pod of waiting) {
      const shape = batch.shapeOf[pod]!;
      let next: PodClass | null = classOf[pod]!;
      while (next && !this.#settles(next, pod, shape)) next = classes.relaxed(next);
    }
  }

  #settles(podClass: PodClass, pod: number, shape: number): boolean {
    const choices = this.#choices(podClass);
    return choices !== undefined && affinityPossible(podClass) && this.#placeOnExisting(podClass, pod, shape, choices);
  }

  #keep(pod: number, target: Target): boolean {
    const { classOf, batch } = this.#world;
    const podClass = classOf[pod]!;
    const shape = batch.shapeOf[pod]!;
    const { kind } = target;
    if (!this.#reaches.of(podClass).kinds.includes(kind) || !affinityPossible(podClass)) return false;
    if (kind.closedToMoves && batch.isCandidate[pod] === 1) return false;
    const choices = this.#domains.choices(podClass);
    if (!choices?.every((choice) => isOpen(choice, kind.domains[choice.key.index]!))) return false;
    if (!this.#existing.takes(target, podClass, pod, shape)) return false;
    this.#existing.take(target, podClass, pod, shape);
    this.#log(pod, target, undefined);
    return true;
  }

  /** Whether what is done only for pods that would be left out, once nobody else waits, may help any of these. */
  #lastResort(waiting: readonly number[]): boolean {
    if (this.#isLastResort || waiting.length === 0) return false;
    this.#isLastResort = true;
    const mayHelp = this.#liftMasks() || waiting.some((pod) => this.#world.classOf[pod]!.keyRules.some(isBound));
    if (mayHelp) this.#version++;
    return mayHelp;
  }

  /** Who found no place with an eye on the price may take what there is: nodes may become dearer machines again. */
  #liftMasks(): boolean {
    let lifted = false;
    for (const node of this.#nodes) {
      const { template, group } = node;
      const mask = template.catalog.plainMask(group.mask);
      if (mask === group.mask) continue;
      group.remove(node);
      this.#group(template, group.set, mask).insert(node, this.#seq++);
      this.#tally.moved(node, group);
      lifted = true;
    }
    return lifted;
  }

  /** Tells a thrifty pass what will be asked for where. */
  announce(thrift: Thrift): void {
    const { batch, classOf, requests } = this.#world;
    for (const pod of batch.order) {
      const { templates, market } = this.#reaches.of(classOf[pod]!);
      if (market)
        thrift.expect(templates[0]!.template, market, requests[batch.shapeOf[pod]!]!, batch.shapeOf[pod]!, pod);
    }
  }

  /** What pods of a class can use. */
  reachOf(podClass: PodClass): Reach {
    return this.#reaches.of(podClass);
  }

  /** Whether a pod's answer may differ from that of others of its class. */
  #hasOwnState(pod: number): boolean {
    const { batch } = this.#world;
    return batch.attachments.size > 0 || batch.isCandidate[pod] === 1;
  }

  /** Places a pod, relaxing it as far as it takes; says why when it cannot. */
  #attempt(pod: number): Failure | undefined {
    const shape = this.#world.batch.shapeOf[pod]!;
    let podClass = this.#world.classOf[pod]!;
    for (let next: PodClass | null = podClass; next; next = this.#world.classes.relaxed(next)) {
      podClass = next;
      const failure = this.#place(podClass, pod, shape);
      if (failure !== 'unschedulable') return failure;
    }
    if (!this.#isLastResort) return 'unschedulable';
    // There may be domains that are open to it and of no use, while others wait for nodes to decide.
    for (let settles = 0; settles < maxSettles && this.#settleAny(podClass); settles++) {
      const failure = this.#place(podClass, pod, shape);
      if (failure !== 'unschedulable') return failure;
    }
    return 'unschedulable';
  }

  #settleAny(podClass: PodClass): boolean {
    for (let at = 0; at < podClass.keyRules.length; at++) if (this.#settleFor(podClass, at)) return true;
    return false;
  }

  #place(podClass: PodClass, pod: number, shape: number): Failure | undefined {
    const reach = this.#reaches.of(podClass);
    const choices = podClass.keyRules.length === 0 ? noChoices : this.#choices(podClass);
    if (!choices || !affinityPossible(podClass)) return 'unschedulable';
    if (this.#placeOnExisting(podClass, pod, shape, choices)) return undefined;
    if (this.#joins === 'cheapest') return this.#placeCheaply(reach, podClass, pod, shape, choices);
    const found = this.#findInFlight(reach, podClass, shape, choices);
    if (found) {
      this.#join(found, podClass, pod, shape);
      return undefined;
    }
    return this.#open(reach, podClass, pod, shape, choices);
  }

  #placeOnExisting(podClass: PodClass, pod: number, shape: number, choices: readonly Choice[]): boolean {
    const { kinds } = this.#reaches.of(podClass);
    const target = kinds.length > 0 ? this.#existing.find(kinds, podClass, pod, shape, choices) : undefined;
    if (!target) return false;
    this.#existing.take(target, podClass, pod, shape);
    this.#log(pod, target, undefined);
    return true;
  }

  /** Joins the node whose price grows least, unless a node of its own costs less. */
  #placeCheaply(
    reach: Reach,
    podClass: PodClass,
    pod: number,
    shape: number,
    choices: readonly Choice[],
  ): Failure | undefined {
    const search = this.#search;
    search.podClass = podClass;
    search.request = this.#world.requests[shape]!;
    const picky = this.#isPicky(podClass);
    let best: Found | undefined;
    let least = Number.POSITIVE_INFINITY;
    for (const entry of reach.live) {
      search.picky = picky || entry.group.template.isPicky;
      for (const node of entry.group.all()) {
        search.only = node;
        const found = this.#findInEntry(entry, 0, choices);
        if (!found) continue;
        const growth = this.#growth(found);
        if (growth > least || (growth === least && best && !isBefore(node, best.node))) continue;
        [best, least] = [found, growth];
      }
    }
    search.only = undefined;
    const [first] = this.#openings(reach, shape);
    if (!best || least > (first ? this.#priceAlone(first, shape) : 0) * (1 + 1e-9)) {
      const failure = this.#open(reach, podClass, pod, shape, choices);
      if (failure === undefined || !best) return failure;
    }
    this.#join(best, podClass, pod, shape);
    return undefined;
  }

  /** What the cheapest node for a shape alone costs. */
  #priceAlone({ template, bases, portMask }: Opening, shape: number): number {
    return this.#domains.leastPriceIn(template, template.catalog.view(bases[0]!, portMask), shape);
  }

  /** The pools that a pod is offered a node from, in order: by weight, and where that is equal, by price. */
  #openings(reach: Reach, shape: number): readonly Opening[] {
    const { templates } = reach;
    if (this.#joins !== 'cheapest' || templates.length < 2) return templates;
    let byShape = this.#cheapOpenings.get(reach);
    if (!byShape) {
      byShape = [];
      this.#cheapOpenings.set(reach, byShape);
    }
    byShape[shape] ??= templates.toSorted(
      (a, b) =>
        b.template.weight - a.template.weight ||
        placeOfCloud(a, templates) - placeOfCloud(b, templates) ||
        this.#priceAlone(a, shape) - this.#priceAlone(b, shape) ||
        0,
    );
    return byShape[shape];
  }

  /** By how much the cheapest launch of a node grows when the pod that is looked for joins it. */
  #growth({ node, set, mask }: Found): number {
    if (node.reservations.length > 0) return 0;
    const { catalog } = node.template;
    const before = catalog.priceOf(catalog.view(node.group.set, catalog.plainMask(node.group.mask)), node.total);
    const after = catalog.priceOf(catalog.view(set, catalog.plainMask(mask)), sum(node.total, this.#search.request));
    return after - before;
  }

  // ---- topology

  /** Domains open to a class, by topology key; undefined when some key has none. */
  #choices(podClass: PodClass): Choice[] | undefined {
    for (let tries = 0; ; tries++) {
      const { keyRules } = podClass;
      const choices: Choice[] = [];
      let stuck = -1;
      for (let i = 0; i < keyRules.length; i++) {
        const rules = keyRules[i]!;
        const choice = chooseDomains(rules, this.#domains.allowedDomains(podClass, rules.key));
        choices.push(choice);
        if (stuck < 0 && choice.domains.length === 0) stuck = i;
      }
      if (stuck < 0) return choices;
      if (tries < maxSettles && this.#settleFor(podClass, stuck)) continue;
      return choices.every(({ domains, optional }) => optional || domains.length > 0) ? choices : undefined;
    }
  }

  /**
   * A key has no domain left for a class only because nodes have not decided theirs: decides one of them, so that the pods
   * it holds count somewhere, or cease to be possible elsewhere. False when there is nothing to decide.
   */
  #settleFor(podClass: PodClass, at: number): boolean {
    const rules = podClass.keyRules[at]!;
    const allowed = this.#domains.allowedDomains(podClass, rules.key);
    const affinities = rules.affinities.filter(({ group, self }) => !(self && group.total === 0));
    for (const { group } of affinities) {
      for (const index of group.open) {
        const node = this.#nodes[index]!;
        for (const domain of this.#domains.domainsOf(node.group, rules.key)) {
          if (
            allowed[domain] === 1 &&
            rules.antis.every((anti) => anti.group.counts[domain] === 0) &&
            this.#settle(node, rules.key, domain)
          )
            return true;
        }
      }
    }
    if (affinities.length > 0) return false;
    for (const { group, required } of rules.antis) {
      if (!required) continue;
      for (const index of group.open) {
        const node = this.#nodes[index]!;
        const domains = this.#domains.domainsOf(node.group, rules.key);
        if (domains.length < 2) continue;
        // Where most are already, so that the fewest domains stay blocked.
        const crowded = [...domains].sort((a, b) => group.counts[b]! - group.counts[a]! || a - b);
        const frees = crowded.slice(1).some((domain) => allowed[domain] === 1);
        if (frees && crowded.some((domain) => this.#settle(node, rules.key, domain))) return true;
      }
    }
    return false;
  }

  /** Decides a node's domain, if a type is left then. */
  #settle(node: NewNode, key: TopologyKey, domain: number): boolean {
    const set = this.#domains.with(node.group.set, this.#domains.setOf(key, domain));
    if (set === incompatible) return false;
    const view = node.template.catalog.view(set, node.group.mask);
    const row = node.template.catalog.fit(view, node.total, this.#zero, node.row);
    if (row < 0 || this.#terms.refusal(node, node.template, set, view, node.total)) return false;
    this.#terms.hold(node);
    node.row = row;
    const former = node.group;
    former.remove(node);
    this.#group(node.template, set, former.mask).insert(node, this.#seq++);
    this.#tally.moved(node, former);
    this.#version++;
    return true;
  }

  // ---- nodes being bought

  #findInFlight(reach: Reach, podClass: PodClass, shape: number, choices: readonly Choice[]): Found | undefined {
    let best: Found | undefined;
    const search = this.#search;
    search.podClass = podClass;
    search.request = this.#world.requests[shape]!;
    // Groups without nodes have fewest Infinity: they are passed over like those with too many pods.
    search.most = Number.MAX_VALUE;
    const key = podClass.signature * this.#shapeCount + shape;
    const picky = this.#isPicky(podClass);
    const isThrifty = this.#thrift !== undefined && !this.#isLastResort;
    const { live } = reach;
    for (let i = 0; i < live.length; i++) {
      const entry = live[i]!;
      const { group } = entry;
      if (isThrifty && !this.#isWorthIt(reach, entry)) continue;
      if (group.fewest > search.most) continue;
      search.picky = picky || group.template.isPicky;
      const found = this.#findInEntry(entry, key, choices);
      if (!found || (best && !isBefore(found.node, best.node))) continue;
      best = found;
      search.most = found.node.pods.length;
    }
    return best;
  }

  /** What the machine costs that nodes of a group are meant to become. */
  #priceOf({ template: { catalog }, mask, view }: NodeGroup): number {
    const { rows, prices } = catalog.byPrice(view);
    const at = rows.indexOf(catalog.rowOf(mask));
    return at < 0 ? Number.POSITIVE_INFINITY : prices[at]!;
  }

  #isWorthIt({ market }: Reach, entry: Entry): boolean {
    entry.worthIt ??=
      market === undefined ||
      this.#thrift!.isWorthIt(market, entry.group.template, entry.group.mask, this.#priceOf(entry.group));
    return entry.worthIt;
  }

  #findInEntry({ group, mask, bases }: Entry, key: number, choices: readonly Choice[]): Found | undefined {
    const search = this.#search;
    const { catalog } = group.template;
    for (let at = 0; at < bases.length; at++) {
      const base = bases[at]!;
      search.base = base.view;
      search.key = key * 1_048_576 + base.view.frontId;
      if (choices.length === 0) {
        const found = this.#findWith(group, base.set, base.view, mask);
        if (found) return found;
      } else if (choices.length === 1 && isOneByOne(choices[0]!)) {
        const { key } = choices[0]!;
        const domains = this.#domains.cheapFirst(choices[0]!, group.template);
        for (let i = 0; i < domains.length; i++) {
          const settled = this.#domains.settled(base, key, domains[i]!, group.template, mask);
          if (settled === undefined) continue;
          const found = this.#findWith(group, settled.set, settled.view, mask);
          if (found) return found;
        }
      } else {
        for (const set of this.#domains.narrow(base.set, choices, group.template)) {
          const found = this.#findWith(group, set, catalog.view(set, mask), mask);
          if (found) return found;
        }
      }
    }
    return undefined;
  }

  #findWith(group: NodeGroup, set: SetId, view: View, mask: number): Found | undefined {
    if (view.front.length === 0) return undefined;
    this.#search.set = set;
    this.#search.view = view;
    const node = group.find(this.#search);
    return node && { node, set, mask, row: group.foundRow };
  }

  #accepts(node: NewNode): boolean {
    const { podClass, set, view, request } = this.#search;
    return (
      affinityAllows(podClass, node.slot) &&
      this.#skewAllows(podClass, node, set) &&
      (!node.template.isPicky ||
        this.#terms.refusal(node, node.template, set, view, sum(node.total, request)) === undefined)
    );
  }

  /** Whether a class needs a look at each node that may change. */
  #isPicky({ hostAffinities, keyRules }: PodClass): boolean {
    if (hostAffinities.length > 0) return true;
    for (let i = 0; i < keyRules.length; i++) {
      const { spreads } = keyRules[i]!;
      for (let j = 0; j < spreads.length; j++) if (spreads[j]!.group.open.size > 0) return true;
    }
    return false;
  }

  /** Pods on an undecided node are counted when its domain is decided: together with the new one they must keep the skew. */
  #skewAllows(podClass: PodClass, node: NewNode, set: SetId): boolean {
    for (const { key, spreads } of podClass.keyRules) {
      for (const rule of spreads) {
        const { group } = rule;
        if (!group.open.has(node.index)) continue;
        const value = this.#world.space.get(set).get(key.key)?.values.values().next().value;
        const domain = key.indexOf.get(value ?? '\0');
        if (domain === undefined) return false;
        // They are counted with this step, also for the smallest count.
        const before = group.counts[domain]!;
        group.counts[domain] = before + node.pending.reduce((n, other) => n + (other === group ? 1 : 0), 0);
        const tooMany = group.counts[domain] > skewCeiling(rule, this.#domains.allowedDomains(podClass, key));
        group.counts[domain] = before;
        if (tooMany) return false;
      }
    }
    return true;
  }

  #join({ node, set, mask, row }: Found, podClass: PodClass, pod: number, shape: number): void {
    const request = this.#world.requests[shape]!;
    for (let r = 0; r < request.length; r++) node.total[r]! += request[r]!;
    if (node.template.catalog.hasReserved) {
      this.#terms.refusal(node, node.template, set, node.template.catalog.view(set, mask), node.total);
      this.#terms.hold(node);
    }
    node.row = row;
    if (podClass.side.ports.length > 0) node.ports.push(...podClass.side.ports);
    const former = node.group;
    former.remove(node);
    node.pods.push(pod);
    const group = former.set === set && former.mask === mask ? former : this.#group(node.template, set, mask);
    group.insert(node, this.#seq++);
    this.#tally.moved(node, former);
    this.#tally.count(node, podClass);
    this.#log(pod, undefined, node);
  }

  // ---- new nodes

  /** Buys a node for a pod, from the first pool that can give one. */
  #open(reach: Reach, podClass: PodClass, pod: number, shape: number, choices: readonly Choice[]): Failure | undefined {
    const { hostAffinities } = podClass;
    if (hostAffinities.length > 0 && !hostAffinities.every(({ group, self }) => self && group.total === 0))
      return 'unschedulable';
    const request = this.#world.requests[shape]!;
    const openings = this.#openings(reach, shape);
    for (let o = 0; o < openings.length; o++) {
      const { template, bases, portMask } = openings[o]!;
      const limited = this.#limits.mask(template);
      if (limited === undefined) continue;
      const { catalog } = template;
      const open = catalog.bothMasks(limited, portMask);
      let reserved = false;
      for (let b = 0; b < bases.length; b++) {
        const sets = this.#domains.narrowByPrice(bases[b]!, choices, template, open, shape);
        for (let s = 0; s < sets.length; s++) {
          const set = sets[s]!;
          let mask =
            this.#thrift && reach.market && template === reach.templates[0]!.template
              ? this.#thrift.mask(reach.market, catalog.view(set, open), open, request)
              : open;
          let view = catalog.view(set, mask);
          let row = catalog.fit(view, this.#zero, request, -1);
          if (row < 0 && mask !== open) {
            // In this domain nothing costs as little as planned: then whatever there is.
            mask = open;
            view = catalog.view(set, mask);
            row = catalog.fit(view, this.#zero, request, -1);
          }
          if (row < 0) continue;
          const final = this.#terms.minValuesFor(template, set, view, request);
          if (final === undefined) continue;
          const refusal = this.#terms.refusal(undefined, template, final, view, request);
          if (refusal) {
            reserved ||= refusal === 'wait';
            continue;
          }
          const node = this.#buy(template, final, mask, row, podClass, pod, shape, final !== set);
          if (this.#thrift && reach.market) this.#fill(node, reach.market, this.#thrift);
          return undefined;
        }
      }
      if (reserved) return 'reserved';
    }
    return 'unschedulable';
  }

  #buy(
    template: Template,
    set: SetId,
    mask: number,
    row: number,
    podClass: PodClass,
    pod: number,
    shape: number,
    relaxed: boolean,
  ): NewNode {
    const { targets, axis, requests } = this.#world;
    const group = this.#group(template, set, mask);
    const node = new NewNode(targets.length + this.#nodes.length, this.#nodes.length, group, axis.size);
    this.#nodes.push(node);
    node.total.set(requests[shape]!);
    node.row = row;
    node.minValuesRelaxed = relaxed;
    node.pods.push(pod);
    if (podClass.side.ports.length > 0) node.ports.push(...podClass.side.ports);
    this.#terms.hold(node);
    group.insert(node, this.#seq++);
    this.#limits.take(template, template.catalog.view(set, template.catalog.plainMask(mask)), node.total, shape);
    this.#tally.opened(node);
    this.#tally.count(node, podClass);
    this.#log(pod, undefined, node);
    return node;
  }

  /** Fills a node that was just bought with what it was bought for: the largest pods of its market that fit. */
  #fill(node: NewNode, market: View, thrift: Thrift): void {
    const { catalog } = node.template;
    const row = catalog.rowOf(node.group.mask);
    if (row === noRow) return;
    const banned = new Set<Waiting>();
    const refusals = new Map<Waiting, number>();
    for (;;) {
      const room = catalog.free.slice(row * catalog.width, (row + 1) * catalog.width);
      for (let r = 0; r < room.length; r++) room[r]! -= node.total[r]!;
      const next = thrift.next(market, room, banned);
      if (!next) return;
      const refused = refusals.get(next) ?? 0;
      const pod = this.#waitingPod(next, refused);
      if (pod === undefined) banned.add(next);
      else if (!this.#placeOn(node, pod, next.shape)) {
        refusals.set(next, refused + 1);
        if (refused + 1 >= maxRefusals) banned.add(next);
      }
    }
  }

  /** The pod of a shape that is next in the queue, after `skip` others. */
  #waitingPod(waiting: Waiting, skip: number): number | undefined {
    const { pods } = waiting;
    while (waiting.first < pods.length && this.#done.has(pods[waiting.first]!)) waiting.first++;
    let left = skip;
    for (let i = waiting.first; i < pods.length; i++) if (!this.#done.has(pods[i]!) && left-- === 0) return pods[i];
    return undefined;
  }

  /** Puts a pod as it is written on an existing node, else on this one; false when neither takes it. */
  #placeOn(node: NewNode, pod: number, shape: number): boolean {
    const podClass = this.#world.classOf[pod]!;
    const reach = this.#reaches.of(podClass);
    const choices = podClass.keyRules.length === 0 ? noChoices : this.#choices(podClass);
    if (!choices || !affinityPossible(podClass)) return false;
    const target = this.#existing.find(reach.kinds, podClass, pod, shape, choices);
    if (target) {
      this.#existing.take(target, podClass, pod, shape);
      this.#log(pod, target, undefined);
      return true;
    }
    const entry = reach.live.find(({ group }) => group === node.group);
    if (!entry) return false;
    const search = this.#search;
    search.podClass = podClass;
    search.request = this.#world.requests[shape]!;
    search.picky = this.#isPicky(podClass) || node.template.isPicky;
    search.only = node;
    const found = this.#findInEntry(entry, 0, choices);
    search.only = undefined;
    if (!found) return false;
    this.#join(found, podClass, pod, shape);
    return true;
  }

  #group(template: Template, set: SetId, mask: number): NodeGroup {
    const groups = this.#groups;
    const ids = (this.#groupIds[template.index] ??= new PairTable(fewGroups));
    const id = ids.get(set, mask);
    if (id !== absent) return groups[id]!;
    const group = new NodeGroup(groups.length, template, set, mask);
    ids.add(set, mask, group.id);
    groups.push(group);
    return group;
  }

  #log(pod: number, target: Target | undefined, node: NewNode | undefined): void {
    this.#version++;
    this.#done.add(pod);
    if (this.#thrift) {
      const market = this.#reaches.of(this.#world.classOf[pod]!).market;
      if (market)
        this.#thrift.placed(
          market,
          this.#world.requests[this.#world.batch.shapeOf[pod]!]!,
          this.#world.batch.shapeOf[pod]!,
        );
    }
    this.#steps.push({ pod, target, node, settled: this.#tally.takeSettled() });
  }
}

/** Whether a node comes first: fewer pods, then longer with as many. */
function isBefore(a: NewNode, b: NewNode): boolean {
  return a.pods.length < b.pods.length || (a.pods.length === b.pods.length && a.seq < b.seq);
}

/** Whether the domains of a choice are tried one after the other: where there is one, it makes no difference. */
function isOneByOne({ one, optional, domains }: Choice): boolean {
  return one || (!optional && domains.length === 1);
}

/** Whether where others are decides where a pod can be. */
function isBound({ antis, affinities }: KeyRules): boolean {
  return antis.length > 0 || affinities.length > 0;
}

function sum(a: Float64Array, b: Float64Array): Float64Array {
  return a.map((value, i) => value + b[i]!);
}
