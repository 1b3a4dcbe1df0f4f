// SPDX-License-Identifier: Apache-2.0
// Lists that are sets or maps must not hold an item, or a key, twice.

import { getOwn, isObject, type JsonObject } from '../patch-error.ts';
import { listMapKey } from './correlate.ts';
import type { FieldError } from './field-error.ts';
import { goJson } from './go-format.ts';
import type { SchemaNode } from './schema-node.ts';

/**
 * Reports the second appearance of each repeated item. `old` is what the value replaces, known to be in order: what is the very same
 * in it is not looked at again.
 */
export function validateListTypes(
  node: SchemaNode,
  value: unknown,
  old: unknown,
  path: string,
  report: (error: FieldError) => void,
): void {
  if (!node.hasListTypes || typeof value !== 'object' || value === null || value === old) return;
  if (Array.isArray(value)) {
    reportDuplicates(node, value, path, report);
    if (!node.items?.hasListTypes) return;
    for (const [i, item] of value.entries()) validateListTypes(node.items, item, undefined, `${path}[${i}]`, report);
    return;
  }
  const before = isObject(old) ? old : undefined;
  for (const key of Object.keys(value)) {
    const inner = (value as JsonObject)[key];
    const same = before && getOwn(before, key);
    const property = node.properties.get(key);
    if (property !== undefined) validateListTypes(property, inner, same, path === '' ? key : `${path}.${key}`, report);
    else if (node.additional !== undefined) validateListTypes(node.additional, inner, same, `${path}[${key}]`, report);
  }
}

/** Whether nothing is repeated in a value. What was found of frozen parts is remembered: objects come back with most of them. */
export function areListsInOrder(node: SchemaNode, value: unknown): boolean {
  if (!node.hasListTypes || typeof value !== 'object' || value === null || node.inOrder.has(value)) return true;
  let isInOrder = true;
  if (Array.isArray(value)) {
    validateListTypes(node, value, undefined, '', () => {
      isInOrder = false;
    });
  } else {
    isInOrder = Object.keys(value).every((key) => {
      const child = node.of(key);
      return child === undefined || areListsInOrder(child, (value as JsonObject)[key]);
    });
  }
  if (isInOrder && Object.isFrozen(value)) node.inOrder.add(value);
  return isInOrder;
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
