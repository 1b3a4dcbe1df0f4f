// SPDX-License-Identifier: Apache-2.0
// NodePool limits within a pass: what is bought counts at once, with the largest machine it might become.
import { allTypes, type View } from './catalog.ts';
import type { Template } from './templates.ts';

const oneNode = 1_000_000_000n;

export class Limits {
  /** By template: what is left, and the largest capacity of any type. */
  readonly #left: readonly (Map<string, bigint> | undefined)[];
  readonly #largest: readonly ReadonlyMap<string, bigint>[];
  /** By template: the limited resources, and how much of each every type has (roughly: only to compare). */
  readonly #sizes: readonly { readonly names: readonly string[]; readonly sizes: readonly Float64Array[] }[];
  readonly #taken = new Map<View, Map<number, ReadonlyMap<string, bigint>>>();

  constructor(templates: readonly Template[]) {
    this.#left = templates.map(({ limits }) => limits && new Map(limits));
    this.#sizes = templates.map(({ catalog, limits }) => {
      const names = [...(limits?.keys() ?? [])].filter((name) => name !== 'nodes');
      const sizes = names.map((name) =>
        Float64Array.from(catalog.types, ({ capacity }) => Number(capacity.get(name) ?? 0n)),
      );
      return { names, sizes };
    });
    this.#largest = templates.map(({ catalog, limits }) => {
      const largest = new Map<string, bigint>();
      if (!limits) return largest;
      for (const { capacity } of catalog.types) {
        for (const [name, nano] of capacity) if (nano > (largest.get(name) ?? -1n)) largest.set(name, nano);
      }
      return largest;
    });
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
    if (!left) return;
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
      const { names, sizes } = this.#sizes[template.index]!;
      const best = names.map(() => -1);
      for (const row of catalog.fitting(view, total)) {
        const type = catalog.typeOf[row]!;
        for (let i = 0; i < names.length; i++)
          if (best[i]! < 0 || sizes[i]![type]! > sizes[i]![best[i]!]!) best[i] = type;
      }
      taken = new Map(names.map((name, i) => [name, catalog.types[best[i]!]?.capacity.get(name) ?? 0n]));
      byShape.set(shape, taken);
    }
    return taken;
  }
}
