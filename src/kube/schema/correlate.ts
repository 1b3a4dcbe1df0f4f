// SPDX-License-Identifier: Apache-2.0
// Which old value belongs to which new one: keys of objects, and items of lists that are maps.

import type { SchemaNode } from './schema-node.ts';

/**
 * Finds the old value of a key (objects) or of an item (lists that are maps by their keys). `undefined` where there is none or where values
 * do not correspond: items of other lists, keys of atomic maps.
 */
export function correlate(node: SchemaNode, old: unknown): (keyOrItem: unknown) => unknown {
  if (typeof old !== 'object' || old === null) return nothing;
  if (!Array.isArray(old)) {
    if (node.schema['x-kubernetes-map-type'] === 'atomic') return nothing;
    const object = old as Readonly<Record<string, unknown>>;
    return (key) => (typeof key === 'string' && Object.hasOwn(object, key) ? object[key] : undefined);
  }
  const keys = node.schema['x-kubernetes-list-map-keys'];
  if (node.schema['x-kubernetes-list-type'] !== 'map' || keys === undefined) return nothing;
  const byKey = new Map<string, unknown>();
  for (const item of old as unknown[]) {
    const key = identify(item, keys);
    if (!byKey.has(key)) byKey.set(key, item);
  }
  return (item) => byKey.get(identify(item, keys));
}

/** The part of an item that names it in a list that is a map. */
export function listMapKey(item: unknown, keys: readonly string[]): Record<string, unknown> {
  const key: Record<string, unknown> = {};
  if (typeof item !== 'object' || item === null) return key;
  for (const name of keys) if (Object.hasOwn(item, name)) key[name] = (item as Record<string, unknown>)[name];
  return key;
}

/** The values of the keys as one text; they are scalars. */
function identify(item: unknown, keys: readonly string[]): string {
  if (typeof item !== 'object' || item === null) return '';
  if (keys.length === 1) {
    const value = Object.hasOwn(item, keys[0]!) ? (item as Record<string, unknown>)[keys[0]!] : undefined;
    // A text is told from a number, and a missing key from an empty text.
    return typeof value === 'string' ? `"${value}` : value === undefined ? '' : JSON.stringify(value);
  }
  return keys
    .map((name) => (Object.hasOwn(item, name) ? JSON.stringify((item as Record<string, unknown>)[name]) : ''))
    .join();
}

function nothing(): undefined {
  return undefined;
}
