// SPDX-License-Identifier: Apache-2.0
// NodePool limits within a pass: what is bought counts at once, with the largest machine it might become.

import { planted } from '../base/defects.ts';
import { allTypes, type View } from './catalog.ts';
import type { Template } from './templates.ts';

const oneNode = 1_000_000_000n;

export class Limits {
  /** By template: what is left. */
  readonly #left: readonly (Map<string, bigint> | undefined)[];
  /** By template: the largest capacity of any type, for each limited resource. */
  readonly #largest: readonly ReadonlyMap<string, bigint>[];
  readonly #taken = new Map<View, Map<number, ReadonlyMap<string, bigint>>>();

  constructor(templates: readonly Template[]) {
    this.#left = templates.map(({ limits }) => limits && new Map(limits));
    this.#largest = templates.map(
      ({ catalog, limits }) => new Map(resourcesOf(limits).map((name) => [name, catalog.largestOf(name)])),
    );
  }

  /** The types that a pool may still buy; undefined when it may buy no node at all. */
  mask(template: Template): number | undefined {
    const left = this.#left[template.index];
    if (!left) return allTypes;
    const largest = this.#largest[template.index]!;
    let all = true;
    for (const [name, nano] of left) {
      if (name === 'nodes') {
        if (nano < oneNode) return undefined;
      } else if ((largest.get(name) ?? 0n) > nano) all = false;
    }
    if (all) return allTypes;
    const { catalog } = template;
    const keep = Uint8Array.from(catalog.types, ({ capacity }) => {
      for (const [name, nano] of left) if (name !== 'nodes' && (capacity.get(name) ?? 0n) > nano) return 0;
      return 1;
    });
    return keep.includes(1) ? catalog.mask(keep) : undefined;
  }

  /** Counts a node that was bought with a pod of this shape on it. */
  take(template: Template, view: View, total: Float64Array, shape: number): void {
    const left = this.#left[template.index];
    if (!left || planted('limit-not-counted-in-a-pass')) return;
    const taken = this.#largestFitting(template, view, total, shape);
    for (const [name, nano] of left) left.set(name, nano - (name === 'nodes' ? oneNode : (taken.get(name) ?? 0n)));
  }

  #largestFitting(template: Template, view: View, total: Float64Array, shape: number): ReadonlyMap<string, bigint> {
    let byShape = this.#taken.get(view);
    if (!byShape) {
      byShape = new Map();
      this.#taken.set(view, byShape);
    }
    let taken = byShape.get(shape);
    if (!taken) {
      const { catalog } = template;
      const names = resourcesOf(template.limits);
      const most = new Map<string, bigint>();
      for (let i = 0; i < names.length; i++) {
        const row = catalog.largestFitting(view, names[i]!, total);
        most.set(names[i]!, row < 0 ? 0n : (catalog.types[catalog.typeOf[row]!]!.capacity.get(names[i]!) ?? 0n));
      }
      taken = most;
      byShape.set(shape, taken);
    }
    return taken;
  }
}

function resourcesOf(limits: ReadonlyMap<string, bigint> | undefined): string[] {
  return [...(limits?.keys() ?? [])].filter((name) => name !== 'nodes');
}
