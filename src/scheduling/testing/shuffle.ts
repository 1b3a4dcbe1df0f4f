// SPDX-License-Identifier: Apache-2.0
// The same value with the keys of every object in another order: what a result must not depend on.
import type { Random } from '../../base/random.ts';

export function shuffledKeys<T>(value: T, random: Random): T {
  if (Array.isArray(value)) return value.map((item: unknown) => shuffledKeys(item, random)) as T;
  if (typeof value !== 'object' || value === null) return value;
  const keys = Object.keys(value);
  for (let i = keys.length - 1; i > 0; i--) {
    const j = random.int(i + 1);
    [keys[i], keys[j]] = [keys[j]!, keys[i]!];
  }
  const copy: Record<string, unknown> = {};
  for (const key of keys) copy[key] = shuffledKeys((value as Record<string, unknown>)[key], random);
  return copy as T;
}
