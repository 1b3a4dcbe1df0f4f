// SPDX-License-Identifier: Apache-2.0
// What a class of pods can use at all: kinds of existing nodes, templates, groups of new nodes. Worked out once per class;
// groups are added as they come up.
import { addDemand, bestSizePrice, type Demand, noDemand } from './best-size.ts';
import { allTypes, type View } from './catalog.ts';
import type { NodeGroup } from './in-flight.ts';
import type { NodeSide, PodClass } from './pod-class.ts';
import { incompatible, type RequirementSpace, type SetId } from './requirement-space.ts';
import { untolerated } from './taints.ts';
import type { Template } from './templates.ts';
import { selects } from './topology.ts';
import type { NodeKind, World } from './world.ts';

/** What a class of pods may use, as far as that never changes. */
interface Lasting {
  /** The machines of the first pool that suits. */
  readonly market: View | undefined;
  readonly kinds: readonly NodeKind[];
  /** Heaviest first; where that leaves it open, cheapest for the pods of the class. */
  readonly templates: readonly Opening[];
}

/** What it may use in one packing. */
export interface Reach extends Lasting {
  readonly live: Entry[];
  /** How many groups have been looked at. */
  seen: number;
}

/** Which of equally heavy pools comes first: the cheapest for a class, or the last by name. */
export type Pools = 'cheapest' | 'last';

/** A template that a class suits. */
export interface Opening {
  readonly template: Template;
  /** Requirements with the pod on it, one per alternative of its volumes. */
  readonly bases: readonly SetId[];
  readonly portMask: number;
}

/** A group of new nodes that a class suits. */
export interface Entry {
  readonly group: NodeGroup;
  readonly mask: number;
  readonly bases: readonly Base[];
  /** Whether its nodes are worth their price to the class; undefined before it is asked. */
  worthIt: boolean | undefined;
}

/** One way for a pod of a class to be on a node of a group. */
export interface Base {
  readonly set: SetId;
  readonly view: View;
  /** By domain of the only topology key that matters: what it is with that domain; null: impossible. Filled in when asked for. */
  readonly settled: (SettledBase | null | undefined)[];
}

/** The same with a topology domain decided. */
export interface SettledBase {
  readonly set: SetId;
  readonly view: View;
}

/** Numbers of the combinations in which no label may be undefined, and of those of templates. */
const noneUndefined = 1;
const templatesFrom = 2;

/** What a node of a template that offers `given` offers with a pod that asks for `asked` on it. */
export function combinedOn(
  space: RequirementSpace,
  { index, mayBeUndefined }: Template,
  given: SetId,
  asked: SetId,
): SetId {
  return space.combine(given, asked, templatesFrom + index, mayBeUndefined);
}

export class Reaches {
  readonly #world: World;
  readonly #groups: readonly NodeGroup[];
  readonly #pools: Pools;
  readonly #reach: (Reach | undefined)[] = [];
  readonly #lasting: (Lasting | undefined)[];
  readonly #bySide = new Map<NodeSide, Lasting>();
  /** By kind: its labels as a set. */
  readonly #sets: SetId[];
  /** By class: what its pods need. Worked out when first asked for. */
  #demands: (Demand | undefined)[] | undefined;

  /** `groups` grows while the pass goes on. */
  constructor(world: World, groups: readonly NodeGroup[], pools: Pools = 'cheapest') {
    this.#world = world;
    this.#pools = pools;
    this.#groups = groups;
    const lasting = lastingIn(world);
    this.#lasting = lasting[pools];
    this.#sets = lasting.sets;
  }

  /** What pods of a class can use, with every group of new nodes there is by now. */
  of(podClass: PodClass): Reach {
    let reach = this.#reach[podClass.id];
    if (!reach) {
      const { market, kinds, templates } = this.#lastingOf(podClass);
      reach = { market, kinds, templates, live: [], seen: 0 };
      this.#reach[podClass.id] = reach;
    }
    for (; reach.seen < this.#groups.length; reach.seen++) {
      const entry = this.#entry(podClass, reach, this.#groups[reach.seen]!);
      if (entry) reach.live.push(entry);
    }
    return reach;
  }

  #lastingOf(podClass: PodClass): Lasting {
    let lasting = this.#lasting[podClass.id];
    // Of one pool nothing but the node side of a class decides; of several, also what its pods need.
    if (!lasting && this.#world.templates.length < 2) lasting = this.#bySide.get(podClass.side);
    if (!lasting) {
      const templates = this.#cheapFirst(
        podClass,
        this.#world.templates.flatMap((template) => this.#opening(podClass, template)),
      );
      const [first] = templates;
      lasting = {
        market: first?.template.catalog.view(first.bases[0]!, first.portMask),
        kinds: this.#world.kinds.filter((kind) => this.#suitsKind(podClass, kind)),
        templates,
      };
      this.#bySide.set(podClass.side, lasting);
    }
    this.#lasting[podClass.id] = lasting;
    return lasting;
  }

  #cheapFirst(podClass: PodClass, templates: readonly Opening[]): readonly Opening[] {
    if (this.#pools !== 'cheapest' || templates.length < 2) return templates;
    if (new Set(templates.map(({ template }) => template.weight)).size === templates.length) return templates;
    const demand = this.#demandOf(podClass);
    if (!demand) return templates;
    const known = templates.map((opening) => {
      const { template, bases, portMask } = opening;
      const price = bestSizePrice(template.catalog, template.catalog.view(bases[0]!, portMask), demand);
      return { opening, cloud: placeOfCloud(opening, templates), price };
    });
    return known
      .sort(
        (a, b) =>
          b.opening.template.weight - a.opening.template.weight ||
          a.cloud - b.cloud ||
          compareNumbers(a.price, b.price),
      )
      .map(({ opening }) => opening);
  }

  /** What the pods of a class need together. */
  #demandOf({ origin, hostRules, labels }: PodClass): Demand | undefined {
    this.#demands ??= demandsOf(this.#world);
    const demand = this.#demands[origin];
    if (!demand) return undefined;
    // So many of them may share a machine.
    let most = Number.POSITIVE_INFINITY;
    for (const rule of hostRules)
      if (selects(rule.group.matchers, this.#world.batch.labels[labels]!)) most = Math.min(most, rule.most + 1);
    const machines = Math.max(1, Math.ceil(demand.machines / most));
    return { ...demand, machines };
  }

  #suitsKind(podClass: PodClass, kind: NodeKind): boolean {
    const { space } = this.#world;
    const { side } = podClass;
    const wish = side.wishes[kind.dialect];
    if (!wish || untolerated(kind.taints, side.tolerations)) return false;
    const node = (this.#sets[kind.id] ??= space.intern(kind.labels));
    if (space.combine(node, wish.all, noneUndefined, nothing) === incompatible) return false;
    return wish.volumes.some((place) => space.combine(node, place, noneUndefined, nothing) !== incompatible);
  }

  #opening(podClass: PodClass, template: Template): Opening[] {
    const { side } = podClass;
    if (untolerated(template.taints, side.tolerations)) return [];
    const bases = this.#bases(podClass, template, template.requirements);
    return bases.length === 0 ? [] : [{ template, bases, portMask: template.catalog.maskForPorts(side.ports) }];
  }

  #bases(podClass: PodClass, template: Template, given: SetId): SetId[] {
    const wish = podClass.side.wishes[template.dialect.index];
    if (!wish) return [];
    const { space } = this.#world;
    const base = combinedOn(space, template, given, wish.all);
    if (base === incompatible) return [];
    const { volumes } = wish;
    const sets: SetId[] = [];
    for (let i = 0; i < volumes.length; i++) {
      const set = combinedOn(space, template, base, volumes[i]!);
      if (set !== incompatible) sets.push(set);
    }
    return sets;
  }

  #entry(podClass: PodClass, reach: Reach, group: NodeGroup): Entry | undefined {
    const opening = openingOf(reach, group.template);
    // What suits no fresh node of the template may still suit one that other pods have given labels.
    if (!opening && untolerated(group.template.taints, podClass.side.tolerations)) return undefined;
    const bases = this.#bases(podClass, group.template, group.set);
    if (bases.length === 0) return undefined;
    const { catalog } = group.template;
    const portMask = opening?.portMask ?? catalog.maskForPorts(podClass.side.ports);
    const mask = portMask === allTypes ? group.mask : catalog.bothMasks(group.mask, portMask);
    const usable: Base[] = [];
    for (let i = 0; i < bases.length; i++) {
      const view = catalog.view(bases[i]!, mask);
      if (view.front.length > 0) usable.push({ set: bases[i]!, view, settled: [] });
    }
    return usable.length === 0 ? undefined : { group, mask, bases: usable, worthIt: undefined };
  }
}

function openingOf({ templates }: Reach, template: Template): Opening | undefined {
  for (let i = 0; i < templates.length; i++) if (templates[i]!.template === template) return templates[i];
  return undefined;
}

/** For all packings of a world: many of them differ in little but the order of their pods. By class, and the labels of kinds as sets. */
type LastingOfWorld = Record<Pools, (Lasting | undefined)[]> & { readonly sets: SetId[] };

const lastingOfWorlds = new WeakMap<World['templates'], LastingOfWorld>();

function lastingIn({ templates }: World): LastingOfWorld {
  let known = lastingOfWorlds.get(templates);
  if (!known) lastingOfWorlds.set(templates, (known = { cheapest: [], last: [], sets: [] }));
  return known;
}

const nothing: ReadonlySet<string> = new Set();

/** By class: the requests of its pods; how many there are stands in for the machines they need. */
function demandsOf({ batch, classOf, requests, axis }: World): (Demand | undefined)[] {
  const demands: (Demand | undefined)[] = [];
  for (let pod = 0; pod < classOf.length; pod++) {
    const { id } = classOf[pod]!;
    let demand = demands[id];
    if (!demand) {
      demand = { ...noDemand(axis.size), machines: 0 };
      demands[id] = demand;
    }
    addDemand(demand, requests[batch.shapeOf[pod]!]!);
    demand.machines++;
  }
  return demands;
}

/**
 * Where the cloud of a pool comes among those of its weight; the same for all of them when every price is known. Where a
 * price is a guess, clouds keep the order they have without prices.
 */
export function placeOfCloud({ template: { weight, cloud } }: Opening, templates: readonly Opening[]): number {
  const equals = templates.filter(({ template }) => template.weight === weight);
  if (equals.every(({ template }) => template.isPriced())) return 0;
  return equals.findIndex(({ template }) => template.cloud === cloud);
}

function compareNumbers(a: number, b: number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
