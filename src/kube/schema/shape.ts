// SPDX-License-Identifier: Apache-2.0
// Giving values the shape of their schema: unknown fields go, missing ones get their defaults. Inputs are never changed.

import { deepClone } from '../../base/freeze.ts';
import { type JsonObject, setOwn } from '../patch-error.ts';
import type { SchemaNode } from './schema-node.ts';

const envelope = new Set(['apiVersion', 'kind', 'metadata']);

/** A copy without the fields the schema does not know; their paths go to `unknown`. `isResource`: keeps what every object has. */
export function pruned(
  node: SchemaNode | undefined,
  value: unknown,
  isResource: boolean,
  path: string,
  unknown: string[],
): unknown {
  if (node === undefined || typeof value !== 'object' || value === null) return deepClone(value);
  if (Array.isArray(value)) {
    const { items } = node;
    if (items === undefined) return deepClone(value);
    return value.map((item, i) => pruned(items, item, items.embedded, `${path}[${i}]`, unknown));
  }
  const copy: JsonObject = {};
  const keepsUnknown = node.preservesUnknown || node.schema.additionalProperties === true;
  for (const [key, inner] of Object.entries(value as JsonObject)) {
    if (isResource && envelope.has(key)) {
      setOwn(copy, key, deepClone(inner));
      continue;
    }
    const child = node.of(key);
    const at = path === '' ? key : `${path}.${key}`;
    if (child !== undefined) setOwn(copy, key, pruned(child, inner, child.embedded, at, unknown));
    else if (keepsUnknown) setOwn(copy, key, deepClone(inner));
    else unknown.push(at);
  }
  return copy;
}

/** A copy with defaults filled in. A null that the schema does not allow counts as missing. */
export function defaulted(node: SchemaNode | undefined, value: unknown): unknown {
  if (node === undefined || typeof value !== 'object' || value === null) return deepClone(value);
  if (Array.isArray(value)) {
    const { items } = node;
    return value.map((item) =>
      defaulted(items, item === null && items !== undefined && !items.nullable ? (items.schema.default ?? null) : item),
    );
  }
  const copy: JsonObject = {};
  for (const [key, inner] of Object.entries(value as JsonObject)) {
    const child = node.of(key);
    const dropped = inner === null && child !== undefined && !child.nullable && child.schema.default === undefined;
    if (inner === undefined || dropped) continue;
    const missing = inner === null && child !== undefined && !child.nullable;
    setOwn(copy, key, defaulted(child, missing ? child.schema.default : inner));
  }
  for (const [key, child] of node.properties) {
    if (child.schema.default !== undefined && !Object.hasOwn(copy, key)) {
      setOwn(copy, key, defaulted(child, child.schema.default));
    }
  }
  return copy;
}
