// SPDX-License-Identifier: Apache-2.0
// NodePool limits within a pass: what is bought counts at once, with the largest machine it might become.

import { planted } from '../base/defects.ts';
import { allTypes, type View } from './catalog.ts';
import type { Template } from './templates.ts';

/** The limit on how many machines a pool may have. */
const nodes = 'nodes';
const oneNode = 1_000_000_000n;

/** What a pool may still buy of what is limited. Lists, as they are gone through for every node. */
interface Left {
  readonly names: readonly string[];
  /** By place among the names, in nano units. */
  readonly amounts: bigint[];
  /** The same: the most that any type has; of nodes, one. */
  readonly largest: readonly bigint[];
}

export class Limits {
  /** By template; undefined without limits. */
  readonly #left: readonly (Left | undefined)[];
  /** By what could be bought and the shape of the first pod: what it takes of each name. */
  readonly #taken = new Map<View, Map<number, readonly bigint[]>>();

  constructor(templates: readonly Template[]) {
    this.#left = templates.map(leftOf);
  }

  /** The types that a pool may still buy; undefined when it may buy no node at all. */
  mask(template: Template): number | undefined {
    const left = this.#left[template.index];
    if (!left) return allTypes;
    const { names, amounts, largest } = left;
    let all = true;
    for (let i = 0; i < names.length; i++) {
      if (largest[i]! <= amounts[i]!) continue;
      if (names[i] === nodes) return undefined;
      all = false;
    }
    if (all) return allTypes;
    const { catalog } = template;
    const keep = Uint8Array.from(catalog.types, ({ capacity }) => {
      for (let i = 0; i < names.length; i++)
        if (names[i] !== nodes && (capacity.get(names[i]!) ?? 0n) > amounts[i]!) return 0;
      return 1;
    });
    return keep.includes(1) ? catalog.mask(keep) : undefined;
  }

  /** Counts a node that was bought with a pod of this shape on it. */
  take(template: Template, view: View, total: Float64Array, shape: number): void {
    const left = this.#left[template.index];
    if (!left || planted('limit-not-counted-in-a-pass')) return;
    const taken = this.#largestFitting(template, left.names, view, total, shape);
    for (let i = 0; i < taken.length; i++) left.amounts[i]! -= taken[i]!;
  }

  #largestFitting(
    { catalog }: Template,
    names: readonly string[],
    view: View,
    total: Float64Array,
    shape: number,
  ): readonly bigint[] {
    let byShape = this.#taken.get(view);
    if (!byShape) {
      byShape = new Map();
      this.#taken.set(view, byShape);
    }
    let taken = byShape.get(shape);
    if (!taken) {
      taken = names.map((name) => {
        if (name === nodes) return oneNode;
        const row = catalog.largestFitting(view, name, total);
        return row < 0 ? 0n : (catalog.types[catalog.typeOf[row]!]!.capacity.get(name) ?? 0n);
      });
      byShape.set(shape, taken);
    }
    return taken;
  }
}

function leftOf({ limits, catalog }: Template): Left | undefined {
  if (!limits) return undefined;
  const names = [...limits.keys()];
  return {
    names,
    amounts: [...limits.values()],
    largest: names.map((name) => (name === nodes ? oneNode : catalog.largestOf(name))),
  };
}
