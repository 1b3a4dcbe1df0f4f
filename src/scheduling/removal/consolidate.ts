// SPDX-License-Identifier: Apache-2.0
// Looks for the cheapest shape of a cluster that removing nodes can lead to. First every node whose pods fit on the
// others; then nodes that smaller or fewer machines can replace, many at once before one by one. A node that took pods in
// thought may itself be replaced: then both are one command, and the pods move once.
import type { Steps } from '../../base/steps.ts';
import type { NewNodeClaim, Problem } from '../problem.ts';
import { type Removal, Removals } from './removals.ts';

/** A node that may go. */
export interface Removable {
  readonly node: string;
  /** Whose budget it takes from. */
  readonly pool: string;
  /** Per hour. */
  readonly price: number;
  /** Where it is: pods that are spread over zones are best replaced zone by zone. */
  readonly zone?: string;
}

/** Nodes that go together. */
export interface RemovalCommand<T extends Removable> {
  readonly nodes: readonly T[];
  readonly claims: readonly NewNodeClaim[];
  /** Nodes by name that take some of their pods. */
  readonly destinations: readonly string[];
  /** How many pods move. */
  readonly pods: number;
  /** Where they end up: a node by name; undefined on one of `claims`. */
  readonly placements: readonly { readonly pod: string; readonly node: string | undefined }[];
}

export interface ConsolidateOptions<T extends Removable> {
  /** The cluster; `state.candidates` names all that may go. */
  readonly problem: Problem;
  /** Those that may go, the best to lose first. */
  readonly removable: readonly T[];
  /** How many nodes each pool may lose. */
  readonly budget: (pool: string) => number;
  /**
   * Whether nodes may go for these machines: gives the machines, perhaps fewer types of each, or why not. `pods` is how many
   * move.
   */
  readonly approve: (
    nodes: readonly T[],
    claims: readonly NewNodeClaim[],
    pods: number,
  ) => readonly NewNodeClaim[] | string;
  /**
   * Why nodes do not go for machines of this kind, whatever they cost: a cheap question that `approve` asks as well. Where it
   * has an answer no better packing is looked for, nor one for some of them.
   */
  readonly refuse?: (nodes: readonly T[], claims: readonly NewNodeClaim[]) => string | undefined;
  /** Says, for a node by itself, why it stays. */
  readonly explain?: (node: T, why: string) => void;
  /** What moving a pod is worth, by the hour; 0 unless told. */
  readonly movePrice?: number;
  /** What `problem` was compiled to before, and what was found out about it; worked out unless told. */
  readonly removals?: Removals;
  /** Whether it is enough to know that something can be done: the first command that is found is all there is then. */
  readonly any?: boolean;
  /** Whether time is up: what was found until then stands. */
  readonly expired?: () => boolean;
}

/** With more nodes than this only one strategy is tried: the others differ little over so many. */
const largeCluster = 128;
/** The least share of the price that the bound must promise before a replacement is tried: packings do not reach bounds. */
const promising = 0.02;
/** How many nodes are replaced together at most. */
const largestChunk = 32;
/** At a glance: more together take longest and say least. Of 757 glances 225 found something with 8, and 223 with 32. */
const chunkAtGlance = 8;
/** How many nodes one command may remove: it waits for all of its machines, and is given up as a whole. */
const largestCommand = 64;

/** The commands, each of which saves by itself; together they leave every pod a place. */
export function* consolidate<T extends Removable>(options: ConsolidateOptions<T>): Steps<RemovalCommand<T>[]> {
  const isLarge = options.removable.length > largeCluster;
  const removals = options.removals ?? (yield* Removals.inSteps(options.problem, isLarge ? 'quick' : 'thorough'));
  let best: { commands: RemovalCommand<T>[]; gain: number } | undefined;
  const all = isLarge ? [plain] : options.any ? eager : strategies;
  const gains = new Set<number>();
  const known = new Map<string, RemovalCommand<T>[]>();
  for (const strategy of all) {
    const search = new Search(options, removals, best !== undefined);
    const steps = search.stepsOf(strategy);
    const commands: RemovalCommand<T>[] = known.get(steps.join()) ?? (yield* search.run(steps));
    known.set(steps.join(), commands);
    const gain = commands.reduce((sum, command) => sum + gainOf(command, options.movePrice ?? 0), 0);
    if (!best || gain > best.gain * (1 + 1e-9)) best = { commands, gain };
    removals.reset();
    if (options.expired?.()) break;
    // Where no node could go or be replaced by itself, no order of doing so helps: only zones as a whole are left to try.
    if (commands.length === 0 ? strategy !== all[0] : options.any) break;
    gains.add(Math.round(gain * 1e6));
    if (strategy === plain && gains.size === 1) break;
  }
  if (best!.commands.length === 0 && !options.expired?.()) {
    const search = new Search(options, removals, true);
    best = { commands: yield* search.run(lastResort), gain: 0 };
    removals.reset();
  }
  yield;
  return standing(removals, best!.commands);
}

/**
 * Those that hold when all their nodes leave at once: in thought they left one after the other, and a pod that must be
 * near another may have counted on one that left later.
 */
function standing<T extends Removable>(removals: Removals, commands: RemovalCommand<T>[]): RemovalCommand<T>[] {
  const slotsOf = (some: readonly RemovalCommand<T>[]): number[] =>
    some.flatMap(({ nodes }) => nodes.map(({ node }) => removals.slotOf(node)!));
  if (commands.length === 0 || removals.canGo(slotsOf(commands))) return commands;
  const kept: RemovalCommand<T>[] = [];
  for (const command of commands) if (removals.canGo(slotsOf([...kept, command]))) kept.push(command);
  return kept;
}

/** What a command saves by the hour, less what its moves are worth. */
function gainOf<T extends Removable>({ nodes, claims, pods }: RemovalCommand<T>, movePrice: number): number {
  const price = nodes.reduce((sum, node) => sum + node.price, 0);
  // Of two that save the same, the one that buys and moves less.
  return claims.reduce((sum, claim) => sum - claim.price - 1e-5, price) - pods * (movePrice + 1e-6);
}

/** In which order to try what. */
type Strategy = readonly ('delete' | 'delete wasteful' | 'replace' | 'replace all' | 'replace zones' | 'reshape')[];

/**
 * The only one in large clusters. Where it saves as much as those before it, as unlike it as can be, so do those after it: in 129 of 133
 * such searches. In all of them together they would have saved a percent more.
 */
const plain: Strategy = ['delete', 'replace'];

/** None is best for every cluster: they are tried in turn, and the one that saves most is taken. */
const strategies: readonly Strategy[] = [
  ['replace all', 'delete', 'replace'],
  ['replace zones', 'delete', 'replace'],
  plain,
  ['replace', 'delete', 'replace'],
  ['delete wasteful', 'replace'],
];

/** For whoever wants to know whether there is anything: what is most likely to find it, and takes least, comes first. */
const eager: readonly Strategy[] = [['delete', 'replace all', 'replace'], ['replace zones']];

/** For where no other helps. */
const lastResort: Strategy = ['reshape'];

interface Draft<T> {
  readonly nodes: T[];
  claims: NewNodeClaim[];
  readonly pods: Set<number>;
}

class Search<T extends Removable> {
  readonly #options: ConsolidateOptions<T>;
  readonly #removals: Removals;
  readonly #left = new Map<string, number>();
  readonly #bySlot = new Map<number, T>();
  /** The commands so far, and by pod the one that moves it. */
  readonly #drafts = new Set<Draft<T>>();
  readonly #draftOf = new Map<number, Draft<T>>();
  /** By pod: where it is now; -1 on a machine to be bought. */
  readonly #whereabouts = new Map<number, number>();
  readonly #largestChunk: number;

  /** `quiet`: reasons were told before. */
  constructor(options: ConsolidateOptions<T>, removals: Removals, quiet: boolean) {
    const { explain: _, ...rest } = options;
    this.#options = quiet ? rest : options;
    this.#largestChunk = options.any ? chunkAtGlance : largestChunk;
    this.#removals = removals;
    for (const removable of options.removable) {
      const slot = this.#removals.slotOf(removable.node);
      if (slot === undefined) options.explain?.(removable, 'it cannot be simulated');
      else this.#bySlot.set(slot, removable);
    }
  }

  /** A strategy without its first step where that has nothing to do: then it is like another one. */
  stepsOf(strategy: Strategy): Strategy {
    const isIdle =
      (strategy[0] === 'replace all' && this.#together() === undefined) ||
      (strategy[0] === 'replace zones' && this.#zones().length === 0);
    return isIdle ? strategy.slice(1) : strategy;
  }

  *run(strategy: Strategy): Steps<RemovalCommand<T>[]> {
    for (const step of strategy) {
      yield;
      if (this.#expired()) break;
      if (step === 'replace') yield* this.#replace();
      else if (step === 'replace all') this.#replaceAll();
      else if (step === 'replace zones') yield* this.#replaceZones();
      else if (step === 'reshape') yield* this.#reshape();
      else yield* this.#delete(step === 'delete wasteful' ? this.#byWaste() : [...this.#bySlot.keys()]);
    }
    return [...this.#drafts].map((draft) => ({
      nodes: draft.nodes,
      claims: draft.claims,
      pods: draft.pods.size,
      placements: [...draft.pods].map((pod) => {
        const slot = this.#whereabouts.get(pod) ?? -1;
        const node = slot < 0 ? undefined : this.#removals.nameOf(slot);
        return { pod: this.#removals.world.batch.keys[pod]!, node };
      }),
      destinations: [...new Set([...draft.pods].map((pod) => this.#whereabouts.get(pod) ?? -1))]
        .filter((slot) => slot >= 0)
        .map((slot) => this.#removals.nameOf(slot)),
    }));
  }

  /** Whether to leave it at what was found. */
  #expired(): boolean {
    return (this.#options.any === true && this.#drafts.size > 0) || (this.#options.expired?.() ?? false);
  }

  *#delete(slots: readonly number[]): Steps<void> {
    for (const slot of slots) {
      yield;
      if (this.#expired()) return;
      if (this.#removals.isGone(slot) || !this.#budgetFor([this.#bySlot.get(slot)!])) continue;
      if (this.#sizeWith([slot]) > largestCommand) continue;
      const removal = this.#removals.tryDelete([slot]);
      if (removal && !this.#settle(removal)) this.#removals.takeBack();
    }
  }

  /** Those that cost most for what their pods need at least come first. */
  #byWaste(): number[] {
    return [...this.#bySlot]
      .map(([slot, { price }]) => ({ slot, waste: price - this.#removals.leastCost([slot]) }))
      .sort((a, b) => b.waste - a.waste || a.slot - b.slot)
      .map(({ slot }) => slot);
  }

  /** What is left is replaced: the most wasteful together, in halves where that does not pay, in the end one by one. */
  *#replace(): Steps<void> {
    const wasteful = [...this.#bySlot]
      .filter(([slot]) => !this.#removals.isGone(slot))
      .map(([slot, removable]) => ({ slot, removable, waste: removable.price - this.#removals.leastCost([slot]) }))
      .filter(({ waste, removable }) => {
        if (waste > promising * removable.price) return true;
        this.#options.explain?.(removable, cannotBeCheaper);
        return false;
      })
      .sort((a, b) => b.waste - a.waste || a.slot - b.slot);
    let chunk: number[] = [];
    const taken = new Map<string, number>();
    for (const { slot, removable } of wasteful) {
      const { pool } = removable;
      if ((taken.get(pool) ?? 0) >= this.#leftOf(pool)) continue;
      taken.set(pool, (taken.get(pool) ?? 0) + 1);
      chunk.push(slot);
      if (this.#expired()) return;
      if (chunk.length < this.#largestChunk) continue;
      yield* this.#tryReplace(chunk);
      chunk = [];
      taken.clear();
    }
    if (chunk.length > 0) yield* this.#tryReplace(chunk);
  }

  /** Those that cost much more than what their pods need at least, the most wasteful first. */
  #wasteful(): number[] {
    return this.#byWaste().filter((slot) => {
      const { price } = this.#bySlot.get(slot)!;
      return price - this.#removals.leastCost([slot]) > promising * price;
    });
  }

  /** Nodes whose pods would cost less if they were shared out otherwise. */
  *#reshape(): Steps<void> {
    const priceOf = (slot: number): number => this.#bySlot.get(slot)!.price;
    for (const reshaped of this.#removals.reshapings(this.#wasteful(), priceOf)) {
      yield;
      if (this.#expired()) return;
      const { slots } = reshaped;
      if (!this.#budgetFor(slots.map((slot) => this.#bySlot.get(slot)!))) continue;
      const removal = this.#removals.tryReshape(
        reshaped,
        slots.reduce((sum, slot) => sum + priceOf(slot), 0),
      );
      if (removal && !this.#settle(removal)) this.#removals.takeBack();
    }
  }

  /** All that are wasteful in a zone at once, one zone after the other. */
  *#replaceZones(): Steps<void> {
    const most = this.#options.any ? chunkAtGlance : Number.POSITIVE_INFINITY;
    for (const slots of this.#zones())
      for (let from = 0; from < slots.length; from += most) yield* this.#tryReplace(slots.slice(from, from + most));
  }

  /** Several that are wasteful in the same zone, where there is more than one. */
  #zones(): number[][] {
    const byZone = Map.groupBy(this.#wasteful(), (slot) => this.#bySlot.get(slot)!.zone);
    return byZone.size < 2 ? [] : [...byZone.values()].filter(({ length }) => length > 1);
  }

  /** All that are wasteful at once, where that is not too much for one command. */
  #replaceAll(): void {
    const slots = this.#together();
    const removal = slots && this.#leanest(slots);
    if (removal && !this.#settle(removal)) this.#removals.takeBack();
  }

  #together(): number[] | undefined {
    const slots = this.#wasteful();
    const nodes = slots.map((slot) => this.#bySlot.get(slot)!);
    return slots.length < 2 || slots.length > largeCluster || !this.#budgetFor(nodes) ? undefined : slots;
  }

  /** Replaces nodes, but none of them by its like: what would be bought again at the same price stays where it is. */
  #leanest(slots: readonly number[]): Removal | undefined {
    const priceOf = (some: readonly number[]): number =>
      some.reduce((sum, slot) => sum + this.#bySlot.get(slot)!.price, 0);
    const costOf = ({ claims }: Removal): number => claims.reduce((sum, { price }) => sum + price, 0);
    const first = this.#buy(slots, priceOf(slots));
    if (!first || slots.length === 1) return first;
    const bought = first.claims.map(({ price }) => price);
    // The least wasteful come last: of nodes that are alike, those with the most on them stay.
    const kept = slots.toReversed().filter((slot) => {
      const { price } = this.#bySlot.get(slot)!;
      const at = bought.findIndex((one) => Math.abs(one - price) < 1e-9);
      if (at >= 0) bought.splice(at, 1);
      return at >= 0;
    });
    if (kept.length === 0) return first;
    const rest = slots.filter((slot) => !kept.includes(slot));
    this.#removals.takeBack();
    if (rest.length > 0) {
      const second = this.#buy(rest, priceOf(rest) * (1 + 1e-9));
      if (second && costOf(second) + priceOf(kept) <= costOf(first) + 1e-9) return second;
      if (second) this.#removals.takeBack();
    }
    return this.#buy(slots, priceOf(slots));
  }

  #buy(slots: readonly number[], budget: number): Removal | undefined {
    const { refuse } = this.#options;
    if (!refuse) return this.#removals.tryReplace(slots, budget);
    const nodes = slots.map((slot) => this.#bySlot.get(slot)!);
    return this.#removals.tryReplace(slots, budget, (claims) => refuse(nodes, claims) === undefined);
  }

  *#tryReplace(slots: readonly number[]): Steps<void> {
    yield;
    if (this.#expired()) return;
    const live = slots.filter((slot) => !this.#removals.isGone(slot));
    if (live.length === 0) return;
    const nodes = live.map((slot) => this.#bySlot.get(slot)!);
    if (this.#budgetFor(nodes) && this.#sizeWith(live) <= largestCommand) {
      const price = nodes.reduce((sum, { price: own }) => sum + own, 0);
      const worthIt = this.#removals.leastCost(live) < price * (1 - promising);
      const removal = worthIt ? this.#leanest(live) : undefined;
      if (removal) {
        if (this.#settle(removal)) return;
        this.#removals.takeBack();
        if (this.#isRefused(nodes, removal.claims)) return;
      } else if (live.length === 1)
        this.#options.explain?.(nodes[0]!, (worthIt ? this.#removals.whyNot() : undefined) ?? cannotBeCheaper);
    }
    if (live.length === 1) return;
    const middle = Math.ceil(live.length / 2);
    yield* this.#tryReplace(live.slice(0, middle));
    yield* this.#tryReplace(live.slice(middle));
  }

  /** Whether none of these nodes goes for machines of this kind: then no part of them does, either. */
  #isRefused(nodes: readonly T[], claims: readonly NewNodeClaim[]): boolean {
    const why = claims.length === 0 ? undefined : this.#options.refuse?.(nodes, claims);
    if (why === undefined) return false;
    for (const node of nodes) this.#options.explain?.(node, why);
    return true;
  }

  // ---- commands

  /** Makes a removal part of a command, if the command it makes up is approved; false leaves all as it was. */
  #settle(removal: Removal): boolean {
    const merged = new Set<Draft<T>>();
    for (const { pod } of removal.moves) {
      const draft = this.#draftOf.get(pod);
      if (draft) merged.add(draft);
    }
    const fresh = removal.slots.map((slot) => this.#bySlot.get(slot)!);
    const nodes = [...[...merged].flatMap((draft) => draft.nodes), ...fresh];
    const pods = new Set([...[...merged].flatMap((draft) => [...draft.pods]), ...removal.moves.map(({ pod }) => pod)]);
    const claims = [...[...merged].flatMap((draft) => draft.claims), ...removal.claims];
    const approved = this.#options.approve(nodes, claims, pods.size);
    if (typeof approved === 'string') {
      if (removal.slots.length === 1) this.#options.explain?.(fresh[0]!, approved);
      return false;
    }
    const draft: Draft<T> = { nodes, claims: [...approved], pods };
    for (const old of merged) this.#drafts.delete(old);
    this.#drafts.add(draft);
    for (const pod of pods) this.#draftOf.set(pod, draft);
    for (const { pod, slot } of removal.moves) this.#whereabouts.set(pod, slot);
    for (const { pool } of fresh) this.#left.set(pool, this.#leftOf(pool) - 1);
    this.#removals.keep(removal);
    return true;
  }

  /** How many nodes the command would remove that these would be part of. */
  #sizeWith(slots: readonly number[]): number {
    const merged = new Set<Draft<T>>();
    for (const slot of slots)
      for (const pod of this.#removals.podsOn(slot)) {
        const draft = this.#draftOf.get(pod);
        if (draft) merged.add(draft);
      }
    return [...merged].reduce((sum, draft) => sum + draft.nodes.length, slots.length);
  }

  #leftOf(pool: string): number {
    return this.#left.get(pool) ?? this.#options.budget(pool);
  }

  #budgetFor(nodes: readonly T[]): boolean {
    const wanted = new Map<string, number>();
    for (const { pool } of nodes) wanted.set(pool, (wanted.get(pool) ?? 0) + 1);
    for (const [pool, count] of wanted) if (count > this.#leftOf(pool)) return false;
    return true;
  }
}

const cannotBeCheaper = "Can't replace with a cheaper node";
