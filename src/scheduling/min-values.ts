// SPDX-License-Identifier: Apache-2.0
// minValues: a node must stay launchable with at least so many different values of a label.
import type { Catalog } from './catalog.ts';
import type { Requirements } from './requirements.ts';

/** How many different values of each key the types bring, where that is less than asked; empty when all is well. */
export function missingValues(catalog: Catalog, types: Iterable<number>, asked: Requirements): Map<string, number> {
  const seen = new Map<string, Set<string>>();
  for (const { key, minValues } of asked.values()) if (minValues !== undefined) seen.set(key, new Set());
  for (const type of types) {
    for (const [key, values] of seen) {
      for (const value of catalog.types[type]!.requirements.get(key)?.values ?? []) values.add(value);
    }
  }
  const missing = new Map<string, number>();
  for (const [key, values] of seen) if (values.size < asked.get(key)!.minValues!) missing.set(key, values.size);
  return missing;
}

/** The types of some rows, in the order of the rows, each once. */
export function typesOf(catalog: Catalog, rows: Iterable<number>): Set<number> {
  const types = new Set<number>();
  for (const row of rows) types.add(catalog.typeOf[row]!);
  return types;
}

/**
 * The first `most` of `types`, unless that loses a value which minValues needs: then the last ones make room for the
 * first types further down that bring one.
 */
export function truncate(catalog: Catalog, types: readonly number[], most: number, asked: Requirements): number[] {
  const kept = types.slice(0, most);
  if (kept.length === types.length || missingValues(catalog, kept, asked).size === 0) return kept;
  const wanted = [...asked.values()].filter(({ minValues }) => minValues !== undefined);
  const chosen = new Set<number>();
  for (const { key, minValues } of wanted) {
    const values = new Set<string>();
    for (const type of types) {
      if (values.size >= minValues!) break;
      const before = values.size;
      for (const value of catalog.types[type]!.requirements.get(key)?.values ?? []) values.add(value);
      if (values.size > before) chosen.add(type);
    }
  }
  for (const type of types) {
    if (chosen.size >= most) break;
    chosen.add(type);
  }
  return types.filter((type) => chosen.has(type));
}
