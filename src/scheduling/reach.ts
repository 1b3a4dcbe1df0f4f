// SPDX-License-Identifier: Apache-2.0
// What a class of pods can use at all: kinds of existing nodes, templates, groups of new nodes. Worked out once per class;
// groups are added as they come up.
import { allTypes, type View } from './catalog.ts';
import type { NodeGroup } from './in-flight.ts';
import type { PodClass } from './pod-class.ts';
import { incompatible, type SetId } from './requirement-space.ts';
import { untolerated } from './taints.ts';
import type { Template } from './templates.ts';
import type { NodeKind, World } from './world.ts';

/** What a class of pods may use, as far as that never changes. */
export interface Reach {
  /** The machines of the first pool that suits. */
  readonly market: View | undefined;
  readonly kinds: readonly NodeKind[];
  readonly templates: readonly Opening[];
  readonly live: Entry[];
  /** How many groups have been looked at. */
  seen: number;
}

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
  /** By domain of the only topology key that matters: the set with that domain. -2: not asked yet. */
  readonly settled: Int32Array;
}

/** Numbers of the combinations in which no label may be undefined, and of those of templates. */
const noneUndefined = 1;
const templatesFrom = 2;

export class Reaches {
  readonly #world: World;
  readonly #groups: readonly NodeGroup[];
  readonly #reach: (Reach | undefined)[] = [];

  /** `groups` grows while the pass goes on. */
  constructor(world: World, groups: readonly NodeGroup[]) {
    this.#world = world;
    this.#groups = groups;
  }

  /** What pods of a class can use, with every group of new nodes there is by now. */
  of(podClass: PodClass): Reach {
    let reach = this.#reach[podClass.id];
    if (!reach) {
      const templates = this.#world.templates.flatMap((template) => this.#opening(podClass, template));
      const [first] = templates;
      reach = {
        market: first?.template.catalog.view(first.bases[0]!, first.portMask),
        kinds: this.#world.kinds.filter((kind) => this.#suitsKind(podClass, kind)),
        templates,
        live: [],
        seen: 0,
      };
      this.#reach[podClass.id] = reach;
    }
    for (; reach.seen < this.#groups.length; reach.seen++) {
      const entry = this.#entry(podClass, reach, this.#groups[reach.seen]!);
      if (entry) reach.live.push(entry);
    }
    return reach;
  }

  #suitsKind(podClass: PodClass, kind: NodeKind): boolean {
    const { space } = this.#world;
    const { side } = podClass;
    const wish = side.wishes[kind.dialect];
    if (!wish || untolerated(kind.taints, side.tolerations)) return false;
    const node = space.intern(kind.labels);
    const empty = new Set<string>();
    if (space.combine(node, wish.all, noneUndefined, empty) === incompatible) return false;
    return wish.volumes.some((place) => space.combine(node, place, noneUndefined, empty) !== incompatible);
  }

  #opening(podClass: PodClass, template: Template): Opening[] {
    const { side } = podClass;
    if (untolerated(template.taints, side.tolerations)) return [];
    const bases = this.#bases(podClass, template, template.requirements);
    return bases.length === 0 ? [] : [{ template, bases, portMask: template.catalog.maskForPorts(side.ports) }];
  }

  #bases(podClass: PodClass, { dialect, index, mayBeUndefined }: Template, set: SetId): SetId[] {
    const wish = podClass.side.wishes[dialect.index];
    if (!wish) return [];
    const { space } = this.#world;
    const base = space.combine(set, wish.all, templatesFrom + index, mayBeUndefined);
    if (base === incompatible) return [];
    return wish.volumes
      .map((place) => space.combine(base, place, templatesFrom + index, mayBeUndefined))
      .filter((with_) => with_ !== incompatible);
  }

  #entry(podClass: PodClass, reach: Reach, group: NodeGroup): Entry | undefined {
    const opening = reach.templates.find(({ template }) => template === group.template);
    // What suits no fresh node of the template may still suit one that other pods have given labels.
    if (!opening && untolerated(group.template.taints, podClass.side.tolerations)) return undefined;
    const bases = this.#bases(podClass, group.template, group.set);
    if (bases.length === 0) return undefined;
    const { catalog } = group.template;
    const portMask = opening?.portMask ?? catalog.maskForPorts(podClass.side.ports);
    const mask = portMask === allTypes ? group.mask : catalog.bothMasks(group.mask, portMask);
    const domains = podClass.keyRules.length === 1 ? podClass.keyRules[0]!.key.domains.length : 0;
    const usable = bases
      .map((set) => ({ set, view: catalog.view(set, mask), settled: new Int32Array(domains).fill(-2) }))
      .filter(({ view }) => view.front.length > 0);
    return usable.length === 0 ? undefined : { group, mask, bases: usable, worthIt: undefined };
  }
}
