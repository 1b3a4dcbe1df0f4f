// SPDX-License-Identifier: Apache-2.0
// Lists that are sets or maps must not hold an item, or a key, twice.

import { listMapKey } from './correlate.ts';
import type { FieldError } from './field-error.ts';
import { goJson } from './go-format.ts';
import type { SchemaNode } from './schema-node.ts';

/** Reports the second appearance of each repeated item. */
export function validateListTypes(
  node: SchemaNode,
  value: unknown,
  path: string,
  report: (error: FieldError) => void,
): void {
  if (!node.hasListTypes || typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    reportDuplicates(node, value, path, report);
    if (node.items === undefined) return;
    for (const [i, item] of value.entries()) validateListTypes(node.items, item, `${path}[${i}]`, report);
    return;
  }
  for (const [key, inner] of Object.entries(value)) {
    const property = node.properties.get(key);
    if (property !== undefined) validateListTypes(property, inner, path === '' ? key : `${path}.${key}`, report);
    else if (node.additional !== undefined) validateListTypes(node.additional, inner, `${path}[${key}]`, report);
  }
}

function reportDuplicates(
  node: SchemaNode,
  list: readonly unknown[],
  path: string,
  report: (error: FieldError) => void,
): void {
  const type = node.schema['x-kubernetes-list-type'];
  if (type !== 'set' && type !== 'map') return;
  if (type === 'map') {
    const stray = list.findIndex((item) => item !== null && (typeof item !== 'object' || Array.isArray(item)));
    if (stray >= 0) {
      const detail = 'must be an object for an array of list-type map';
      report({ field: `${path}[${stray}]`, type: 'Invalid', value: list[stray], detail });
      return;
    }
  }
  const seen = new Map<string, number>();
  for (const [i, item] of list.entries()) {
    const identity = type === 'set' ? item : listMapKey(item, node.schema['x-kubernetes-list-map-keys'] ?? []);
    const text = goJson(identity) ?? 'null';
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    if (times === 1) report({ field: `${path}[${i}]`, type: 'Duplicate value', value: identity, detail: '' });
  }
}
