// SPDX-License-Identifier: Apache-2.0
// Topology domains as requirement sets: which domains a pod admits, what a node becomes when it settles on some of them, and
// which of them it may still have.
import { allTypes, type View } from './catalog.ts';
import type { NodeGroup } from './in-flight.ts';
import { domainsAdmitted, type NodeSide, type NodeWish, type PodClass } from './pod-class.ts';
import type { Base, SettledBase } from './reach.ts';
import { incompatible, type SetId } from './requirement-space.ts';
import { Requirement, type Requirements } from './requirements.ts';
import type { Reservations } from './reservations.ts';
import type { Template } from './templates.ts';
import { type Choice, chooseDomains, type TopologyKey } from './topology.ts';
import type { World } from './world.ts';

const anything: ReadonlySet<string> = { has: () => true } as unknown as ReadonlySet<string>;
/** Numbers the combinations in which any label may be undefined. */
const anyUndefined = 0;
/** How many combinations of domains over several topology keys are tried. */
const maxCombinations = 64;

/** Which of several equally good domains a new node goes to. */
export type Ties = 'cheapest' | 'first' | 'last';

export class Domains {
  readonly #world: World;
  readonly #reservations: Reservations;
  readonly #ties: Ties;
  readonly #sets: readonly SetId[][];
  readonly #manySets = new Map<string, SetId>();
  readonly #leastPrices = new Map<View, Float64Array>();
  readonly #prices = new Map<number, Float64Array | undefined>();
  readonly #allowed = new Map<number, Uint8Array>();
  /** What `cheapFirst` was asked last, and what it said. */
  #lastCheap: { readonly choice: Choice; readonly template: Template; readonly domains: readonly number[] } | undefined;

  constructor(world: World, reservations: Reservations, ties: Ties) {
    this.#ties = ties;
    this.#world = world;
    this.#reservations = reservations;
    this.#sets = setsIn(world);
  }

  /** The requirement that a node is in one domain. */
  setOf(key: TopologyKey, domain: number): SetId {
    return this.#sets[key.index]![domain]!;
  }

  /** The domains that a pod may go to, as counts are now; undefined when a key has none for it. */
  choices(podClass: PodClass): Choice[] | undefined {
    const choices = podClass.keyRules.map((rules) => chooseDomains(rules, this.allowedDomains(podClass, rules.key)));
    return choices.every(({ domains, optional }) => optional || domains.length > 0) ? choices : undefined;
  }

  /** By domain of a key: 1 where the pod's own demands admit it. */
  allowedDomains({ side }: PodClass, key: TopologyKey): Uint8Array {
    const wish = firstWish(side);
    if (!wish) return new Uint8Array(key.domains.length);
    const memo = wish.strict * 4096 + key.index;
    let allowed = this.#allowed.get(memo);
    if (!allowed) {
      allowed = domainsAdmitted(this.#world.space.get(wish.strict), key);
      this.#allowed.set(memo, allowed);
    }
    return allowed;
  }

  /** The requirement sets that a choice of domains leads to, best first. */
  narrow(base: SetId, choices: readonly Choice[], template: Template): SetId[] {
    let sets = [base];
    for (let i = 0; i < choices.length; i++) {
      const choice = choices[i]!;
      const provided = this.#world.provided[choice.key.index]![template.index]!;
      if (choice.optional && !provided.includes(1)) continue;
      const next: SetId[] = [];
      const asked = this.#setsOf(choice, provided);
      for (let s = 0; s < sets.length; s++) {
        for (let j = 0; j < asked.length; j++) {
          const narrowed = this.with(sets[s]!, asked[j]!);
          if (narrowed !== incompatible) next.push(narrowed);
        }
      }
      sets = next.length > maxCombinations ? next.slice(0, maxCombinations) : next;
    }
    return sets;
  }

  /** What a choice asks of a node: one set for each of its domains, or one for all of them. */
  #setsOf({ key, domains, one }: Choice, provided: Uint8Array): SetId[] {
    const open: number[] = [];
    for (let i = 0; i < domains.length; i++) if (provided[domains[i]!] === 1) open.push(domains[i]!);
    // A set of one domain is the same either way.
    if (one || open.length === 1) {
      for (let i = 0; i < open.length; i++) open[i] = this.setOf(key, open[i]!);
      return open;
    }
    const many = this.#manySet(key, open);
    return many === incompatible ? [] : [many];
  }

  /** Like `#narrow` for a new node: what counts leave open, the price decides. */
  narrowByPrice(base: SetId, choices: readonly Choice[], template: Template, mask: number, shape: number): SetId[] {
    const sets = choices.length === 0 ? [base] : this.narrow(base, choices, template);
    if (sets.length < 2) return sets;
    const cheapest = this.#ties === 'cheapest';
    const known = sets.map((set, i) => ({
      set,
      rank: rankOf(this.#world.space.get(set), choices),
      price: cheapest ? this.#leastPrice(template, set, mask, shape) : this.#ties === 'first' ? i : -i,
    }));
    return known.sort((a, b) => a.rank - b.rank || a.price - b.price).map(({ set }) => set);
  }

  /** The domains of a choice for nodes of a template: what counts leave open, the price of the cheapest machine decides. */
  cheapFirst(choice: Choice, template: Template): readonly number[] {
    const { key, domains, ranks } = choice;
    if (this.#ties !== 'cheapest' || domains.length < 2 || ranks[1] !== 0) return domains;
    // One pod asks for all groups of nodes in turn.
    const last = this.#lastCheap;
    if (last && last.choice === choice && last.template === template) return last.domains;
    const prices = this.#pricesOf(key, template);
    if (!prices) return domains;
    const rank = (domain: number): number => ranks[domains.indexOf(domain)]!;
    const sorted = domains.toSorted((a, b) => rank(a) - rank(b) || prices[a]! - prices[b]! || a - b);
    this.#lastCheap = { choice, template, domains: sorted };
    return sorted;
  }

  /** By domain: the price of the cheapest machine there; undefined when it is the same everywhere. */
  #pricesOf(key: TopologyKey, template: Template): Float64Array | undefined {
    const memo = key.index * 65_536 + template.index;
    if (!this.#prices.has(memo)) {
      const { catalog, requirements } = template;
      const prices = Float64Array.from(key.domains, (_, domain) => {
        const set = this.with(requirements, this.setOf(key, domain));
        if (set === incompatible) return Number.POSITIVE_INFINITY;
        const view = catalog.view(set, allTypes);
        if (!catalog.hasReserved) return catalog.byPrice(view).prices[0] ?? Number.POSITIVE_INFINITY;
        return catalog.leastPrice(view, new Float64Array(catalog.width), () => true);
      });
      this.#prices.set(memo, prices.every((price) => price === prices[0]) ? undefined : prices);
    }
    return this.#prices.get(memo);
  }

  /** What the cheapest new node for a shape costs now. */
  #leastPrice(template: Template, set: SetId, mask: number, shape: number): number {
    return this.leastPriceIn(template, template.catalog.view(set, mask), shape);
  }

  /** The same for a view. */
  leastPriceIn({ catalog }: Template, view: View, shape: number): number {
    const request = this.#world.requests[shape]!;
    if (catalog.hasReserved) {
      return catalog.leastPrice(
        view,
        request,
        ({ reservation }) => reservation === undefined || this.#reservations.isLeft(reservation),
      );
    }
    let known = this.#leastPrices.get(view);
    if (!known) {
      known = new Float64Array(this.#world.requests.length).fill(-1);
      this.#leastPrices.set(view, known);
    }
    if (known[shape] === -1) known[shape] = catalog.priceOf(view, request);
    return known[shape]!;
  }

  /** Both sets at once; `incompatible` when they exclude each other. */
  with(set: SetId, more: SetId): SetId {
    return this.#world.space.combine(set, more, anyUndefined, anything);
  }

  #manySet(key: TopologyKey, domains: readonly number[]): SetId {
    if (domains.length === 0) return incompatible;
    const text = `${key.index}:${domains.join()}`;
    let set = this.#manySets.get(text);
    if (set === undefined) {
      set = this.#world.space.single(
        Requirement.in(
          key.key,
          domains.map((domain) => key.domains[domain]!),
        ),
      );
      this.#manySets.set(text, set);
    }
    return set;
  }

  /** The domains that nodes of a group may still have. */
  domainsOf(group: NodeGroup, key: TopologyKey): Int32Array {
    let domains = group.domains[key.index];
    if (!domains) {
      const provided = this.#world.provided[key.index]![group.template.index]!;
      const found: number[] = [];
      const sets = this.#sets[key.index]!;
      for (let domain = 0; domain < sets.length; domain++) {
        if (provided[domain] === 0) continue;
        const narrowed = this.with(group.set, sets[domain]!);
        if (
          narrowed !== incompatible &&
          group.template.catalog.view(narrowed, group.template.catalog.plainMask(group.mask)).front.length > 0
        )
          found.push(domain);
      }
      domains = Int32Array.from(found);
      group.domains[key.index] = domains;
    }
    return domains;
  }

  /** A base with one domain settled, remembered; undefined when it cannot be there. */
  settled(base: Base, key: TopologyKey, domain: number, template: Template, mask: number): SettledBase | undefined {
    let settled = base.settled[domain];
    if (settled === undefined) {
      const provided = this.#world.provided[key.index]![template.index]!;
      const set = provided[domain] === 0 ? incompatible : this.with(base.set, this.setOf(key, domain));
      settled = set === incompatible ? null : { set, view: template.catalog.view(set, mask) };
      base.settled[domain] = settled;
    }
    return settled ?? undefined;
  }
}

function firstWish({ wishes }: NodeSide): NodeWish | undefined {
  for (let i = 0; i < wishes.length; i++) if (wishes[i] !== undefined) return wishes[i];
  return undefined;
}

/** How good the domains are that a set has settled on; the first choice matters most. */
function rankOf(set: Requirements, choices: readonly Choice[]): number {
  let rank = 0;
  for (const { key, domains, ranks, one } of choices) {
    if (!one) continue;
    const domain = key.indexOf.get(set.get(key.key)?.values.values().next().value ?? '\0');
    rank = rank * (domains.length + 1) + (domain === undefined ? 0 : ranks[domains.indexOf(domain)]!);
  }
  return rank;
}

/** By key and domain, for all packings of a world. */
const setsOfWorlds = new WeakMap<World['keys'], readonly SetId[][]>();

function setsIn({ keys, space }: World): readonly SetId[][] {
  let sets = setsOfWorlds.get(keys);
  if (!sets) {
    sets = keys.map(({ key, domains }) => domains.map((domain) => space.single(Requirement.in(key, [domain]))));
    setsOfWorlds.set(keys, sets);
  }
  return sets;
}
