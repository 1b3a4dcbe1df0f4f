// SPDX-License-Identifier: Apache-2.0
// Giving values the shape of their schema: unknown fields go, missing ones get their defaults. Inputs are never changed.

import { deepClone } from '../../base/freeze.ts';
import { getOwn, type JsonObject, setOwn } from '../patch-error.ts';
import type { SchemaNode } from './schema-node.ts';

const envelope = new Set(['apiVersion', 'kind', 'metadata']);

/** What of a value needs no look any more; then it is taken as it is. */
export type IsKnown = (value: object) => boolean;

/**
 * The value without the fields the schema does not know; their paths go to `unknown`. `isResource`: keeps what every object has. Parts
 * that the schema describes and that have nothing to drop are the value's own, others are copied.
 */
export function pruned(
  node: SchemaNode | undefined,
  value: unknown,
  isResource: boolean,
  path: string,
  unknown: string[],
  isKnown: IsKnown,
): unknown {
  if (typeof value !== 'object' || value === null || isKnown(value)) return value;
  if (node === undefined) return deepClone(value);
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === undefined) return deepClone(value);
    return mapped(value, (item, i) => pruned(items, item, items.embedded, `${path}[${i}]`, unknown, isKnown));
  }
  const keepsUnknown = node.preservesUnknown || node.schema.additionalProperties === true;
  const result = new Copied(value as JsonObject);
  for (const key of Object.keys(value)) {
    if (isResource && envelope.has(key)) continue;
    const child = node.of(key);
    const at = path === '' ? key : `${path}.${key}`;
    if (child !== undefined || keepsUnknown) {
      result.set(key, pruned(child, (value as JsonObject)[key], child?.embedded ?? false, at, unknown, isKnown));
    } else {
      unknown.push(at);
      result.drop(key);
    }
  }
  return result.value;
}

/** The value with defaults filled in; parts that the schema describes and that need none are its own. */
export function defaulted(node: SchemaNode | undefined, value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (node === undefined) return deepClone(value);
  if (Array.isArray(value)) {
    const { items } = node;
    return items === undefined ? deepClone(value) : mapped(value, (item) => filled(items, item, null));
  }
  const result = new Copied(value as JsonObject);
  for (const key of Object.keys(value)) {
    const made = filled(node.of(key), (value as JsonObject)[key], undefined);
    if (made === undefined) result.drop(key);
    else result.set(key, made);
  }
  for (const [key, child] of node.properties) {
    if (child.schema.default !== undefined && !Object.hasOwn(result.value, key)) {
      result.set(key, defaulted(child, deepClone(child.schema.default)));
    }
  }
  return result.value;
}

/** A null that the schema does not allow counts as missing: it becomes the default, or `otherwise`. */
function filled(node: SchemaNode | undefined, value: unknown, otherwise: null | undefined): unknown {
  if (value !== null || node === undefined || node.nullable) return defaulted(node, value);
  return node.schema.default === undefined ? otherwise : defaulted(node, deepClone(node.schema.default));
}

/** The list with each item replaced by what is made of it; the same list when that is the same. */
function mapped(list: readonly unknown[], make: (item: unknown, i: number) => unknown): readonly unknown[] {
  const items = list.map(make);
  return items.every((item, i) => item === list[i]) ? list : items;
}

/** An object that is copied when it turns out to become another. */
class Copied {
  value: JsonObject;
  readonly #original: JsonObject;

  constructor(original: JsonObject) {
    this.value = original;
    this.#original = original;
  }

  set(key: string, value: unknown): void {
    if (getOwn(this.value, key) !== value) setOwn(this.#own(), key, value);
  }

  drop(key: string): void {
    delete this.#own()[key];
  }

  #own(): JsonObject {
    if (this.value === this.#original) this.value = { ...this.#original };
    return this.value;
  }
}
