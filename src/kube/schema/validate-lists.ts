// SPDX-License-Identifier: Apache-2.0
// Lists that are sets or maps must not hold an item, or a key, twice.

import { getOwn, isObject, type JsonObject } from '../patch-error.ts';
import { listMapKey } from './correlate.ts';
import type { FieldError } from './field-error.ts';
import { goJson } from './go-format.ts';
import type { SchemaNode } from './schema-node.ts';

/** Reports the second appearance of each repeated item. What is the very same in `old` is not looked at. */
function validateListTypes(
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

/** What is repeated in a value, unless something was repeated already in the one it replaces: that may stay wrong. */
export function listErrors(node: SchemaNode, value: unknown, old: unknown): FieldError[] {
  const [errors, before]: [FieldError[], FieldError[]] = [[], []];
  validateListTypes(node, value, old, '', (error) => errors.push(error));
  if (errors.length > 0) validateListTypes(node, old, undefined, '', (error) => before.push(error));
  return before.length > 0 ? [] : errors;
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
  const keys = type === 'set' ? undefined : (node.schema['x-kubernetes-list-map-keys'] ?? []);
  if (areDistinctTexts(list, keys)) return;
  const seen = new Map<string, number>();
  for (const [i, item] of list.entries()) {
    const identity = keys === undefined ? item : listMapKey(item, keys);
    const text = goJson(identity) ?? 'null';
    const times = seen.get(text) ?? 0;
    seen.set(text, times + 1);
    if (times === 1) report({ field: `${path}[${i}]`, type: 'Duplicate value', value: identity, detail: '' });
  }
}

/** Whether all items, or their only keys, are texts and none comes twice: so it is nearly always. */
function areDistinctTexts(list: readonly unknown[], keys: readonly string[] | undefined): boolean {
  if (keys !== undefined && keys.length !== 1) return false;
  const texts = new Set<string>();
  for (const item of list) {
    const text = keys === undefined ? item : isObject(item) ? getOwn(item, keys[0]!) : undefined;
    if (typeof text !== 'string') return false;
    texts.add(text);
  }
  return texts.size === list.length;
}
