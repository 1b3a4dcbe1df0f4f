// SPDX-License-Identifier: Apache-2.0
// Strategic merge patch: a merge patch that knows which lists are sets or maps of items, with kubectl's directives
// ($patch, $retainKeys, $setElementOrder/…, $deleteFromPrimitiveList/…).

import { deepClone } from '../base/freeze.ts';
import { getOwn, isObject, type JsonObject, PatchError, setOwn, withinStack } from './patch-error.ts';
import { goValue } from './schema/go-format.ts';

/** How the fields of a type are patched; fields that are not listed hold plain values, atomic lists or maps. */
export type PatchSchema = ReadonlyMap<string, PatchField>;

export interface PatchField {
  /** `merge`: the list is a set, or a map by `mergeKey`. `replace`: even an object is replaced as a whole. */
  readonly strategy?: 'merge' | 'replace';
  readonly mergeKey?: string;
  /** How the value, or each item of the list, is patched. */
  readonly schema?: PatchSchema;
}

const patchMarker = '$patch';
const retainKeysMarker = '$retainKeys';
const orderPrefix = '$setElementOrder';
const deletePrefix = '$deleteFromPrimitiveList';
const anything: PatchSchema = new Map();
const plain: PatchField = {};

/**
 * The document after the patch; neither is changed, and what the patch leaves alone is the document's own. Throws PatchError
 * with the API server's message.
 */
export function applyStrategicMergePatch(document: unknown, patch: unknown, schema: PatchSchema): unknown {
  if (!isObject(patch)) throw new PatchError('invalid JSON document', 400);
  return withinStack(() => mergeObject(isObject(document) ? document : {}, deepClone(patch), schema));
}

/** A copy of `original` with `patch` merged into it; the patch is ours to change. */
function mergeObject(original: JsonObject, patch: JsonObject, schema: PatchSchema): JsonObject {
  if (Object.hasOwn(patch, patchMarker)) return applyMarker(patch);
  const merged = { ...original };
  retainKeys(merged, patch);
  applyOrders(merged, patch, schema);
  for (const [name, change] of Object.entries(patch)) {
    const deletes = name.startsWith(deletePrefix);
    const key = deletes ? fieldOf(name, deletePrefix, 'primitive list') : name;
    if (change === null) {
      delete merged[key];
      continue;
    }
    const current = getOwn(merged, key);
    const field = schema.get(key) ?? plain;
    if (isObject(current) && isObject(change)) {
      const replaces = field.strategy === 'replace';
      setOwn(merged, key, replaces ? clean(change) : mergeObject(current, change, field.schema ?? anything));
    } else if (Array.isArray(current) && Array.isArray(change)) {
      setOwn(merged, key, mergeList(current, change, field, deletes));
    } else if (!deletes) {
      const taken = clean(change);
      if (taken === undefined) delete merged[key];
      else setOwn(merged, key, taken);
    }
  }
  return merged;
}

/** `$patch: replace` takes the rest of the patch as it is, `$patch: delete` leaves an empty object. */
function applyMarker(patch: JsonObject): JsonObject {
  const { [patchMarker]: directive, ...rest } = patch;
  if (directive === 'delete') return {};
  if (directive === 'replace') return clean(rest) as JsonObject;
  throw badMarker(directive, patch);
}

function badMarker(directive: unknown, patch: JsonObject): PatchError {
  return new PatchError(`unknown patch type: ${goValue(directive)} in map: ${goValue(patch)}`, 500);
}

/** `$retainKeys`: only the listed keys survive; the patch itself may set no others. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, retainKeysMarker)) return;
  const list = patch[retainKeysMarker];
  delete patch[retainKeysMarker];
  if (!Array.isArray(list)) throw badFormat('retainKeys');
  const retained = new Set<unknown>(list);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null || key.startsWith(deletePrefix) || key.startsWith(orderPrefix)) continue;
    if (!retained.has(key)) throw badFormat('retainKeys');
  }
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
}

function badFormat(what: string): PatchError {
  return new PatchError(`invalid patch format of ${what}`, 400);
}

function fieldOf(name: string, prefix: string, what: string): string {
  if (!name.startsWith(`${prefix}/`)) throw badFormat(what);
  return name.slice(prefix.length + 1);
}

/** `$setElementOrder/list`: merges the list of that name, then orders it. Both are taken out of the patch. */
function applyOrders(original: JsonObject, patch: JsonObject, schema: PatchSchema): void {
  for (const name of Object.keys(patch)) {
    if (!name.startsWith(orderPrefix)) continue;
    const order = patch[name];
    delete patch[name];
    if (!Array.isArray(order)) throw wrongType('[]interface {}', order);
    const key = fieldOf(name, orderPrefix, 'setElementOrder list');
    const current = listAt(original, key);
    const change = listAt(patch, key);
    const field = schema.get(key) ?? plain;
    checkOrder(change ?? [], order, field.mergeKey);
    delete patch[key];
    if (current === undefined && change === undefined) continue;
    const merged = mergeOrTake(current, change, field);
    setOwn(original, key, inOrder(merged, order, current ?? [], field.mergeKey));
  }
}

function mergeOrTake(current: unknown[] | undefined, change: unknown[] | undefined, field: PatchField): unknown[] {
  if (change === undefined) return current ?? [];
  return current === undefined ? (clean(change) as unknown[]) : mergeList(current, change, field, false);
}

function listAt(object: JsonObject, key: string): unknown[] | undefined {
  const list = getOwn(object, key);
  if (list === undefined) return undefined;
  if (!Array.isArray(list)) throw wrongType('[]interface {}', list);
  return list;
}

/** What the patch sets must be listed in the order, and stand in that order. */
function checkOrder(change: readonly unknown[], order: readonly unknown[], mergeKey: string | undefined): void {
  if (change.length === 0 || order.length === 0) return;
  const listed = change.filter((item) => !isObject(item) || !Object.hasOwn(item, patchMarker));
  let at = 0;
  for (const item of listed) {
    while (at < order.length && !sameItem(item, order[at], mergeKey)) at++;
    if (at === order.length) {
      throw new PatchError(
        `The order in patch list:\n${goValue(change)}\n doesn't match ${orderPrefix} list:\n${goValue(order)}\n`,
        500,
      );
    }
    at++;
  }
}

function sameItem(a: unknown, b: unknown, mergeKey: string | undefined): boolean {
  return mergeKey === undefined ? a === b : keyOfItem(a, mergeKey) === keyOfItem(b, mergeKey);
}

function keyOfItem(item: unknown, mergeKey: string): unknown {
  if (!isObject(item)) throw wrongType('map[string]interface {}', item);
  if (!Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return item[mergeKey];
}

function noMergeKey(item: JsonObject, mergeKey: string): PatchError {
  return new PatchError(`map: ${goValue(item)} does not contain declared merge key: ${mergeKey}`, 500);
}

function wrongType(expected: string, actual: unknown): PatchError {
  return new PatchError(`expected a ${expected}, but received a ${goType(actual)}`, 500);
}

function goType(value: unknown): string {
  if (value === null || value === undefined) return '%!s(<nil>)';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  return typeof value === 'object' ? 'map[string]interface {}' : typeof value === 'boolean' ? 'bool' : 'string';
}

function mergeList(current: unknown[], change: unknown[], field: PatchField, deletes: boolean): unknown[] {
  if (field.strategy !== 'merge' && !deletes) return clean(change) as unknown[];
  if (current.length === 0 && change.length === 0) return current;
  const itemType = commonType(current, change);
  if (itemType !== 'map[string]interface {}') {
    if (deletes) return current.filter((item) => !change.includes(item));
    return inOrder([...new Set([...current, ...change])], change, current, undefined);
  }
  if (field.mergeKey === undefined) throw new PatchError('cannot merge lists without merge key for struct', 500);
  return mergeItems(current as JsonObject[], change as JsonObject[], field.mergeKey, field.schema ?? anything);
}

function commonType(current: readonly unknown[], change: readonly unknown[]): string {
  const [first = '', ...others] = new Set([...current, ...change].map(goType));
  if (first === '[]interface {}') throw new PatchError('lists of lists are not supported', 422);
  if (others.length > 0) {
    throw new PatchError(`list element types are not identical: ${goValue([current, change])}`, 500);
  }
  return first;
}

function mergeItems(current: JsonObject[], change: JsonObject[], mergeKey: string, schema: PatchSchema): unknown[] {
  let kept = current;
  let replaces = false;
  const wanted: JsonObject[] = [];
  for (const item of change) {
    if (!Object.hasOwn(item, patchMarker)) {
      wanted.push(item);
      continue;
    }
    switch (item[patchMarker]) {
      case 'delete': {
        const gone = keyOfItem(item, mergeKey);
        kept = kept.filter((existing) => getOwn(existing, mergeKey) !== gone);
        break;
      }
      case 'replace':
        replaces = true;
        break;
      case 'merge':
        throw new PatchError('merging lists cannot yet be specified in the patch', 500);
      default:
        throw badMarker(item[patchMarker], item);
    }
  }
  if (replaces) return clean(wanted) as unknown[];
  const merged = [...kept];
  for (const item of wanted) {
    const wantedKey = keyOfItem(item, mergeKey);
    const at = merged.findIndex((existing) => getOwn(existing, mergeKey) === wantedKey);
    const existing = merged[at];
    if (existing === undefined) merged.push(clean(item) as JsonObject);
    else merged[at] = mergeObject(existing, item, schema);
  }
  return inOrder(merged, wanted, kept, mergeKey);
}

/**
 * Puts the items that `order` names into its order, the others into the order of `previous`, and weaves the two together so that the others
 * keep their place before what followed them.
 */
function inOrder(
  items: readonly unknown[],
  order: readonly unknown[],
  previous: readonly unknown[],
  mergeKey: string | undefined,
): unknown[] {
  const idOf = (item: unknown): unknown => (mergeKey === undefined ? item : keyOfItem(item, mergeKey));
  const orderIndex = firstIndexes(order, idOf);
  const previousIndex = firstIndexes(previous, idOf);
  const by = (indexes: Map<unknown, number>) => (a: unknown, b: unknown) =>
    (indexes.get(idOf(a)) ?? 0) - (indexes.get(idOf(b)) ?? 0);
  const named = items.filter((item) => orderIndex.has(idOf(item))).sort(by(orderIndex));
  const others = items.filter((item) => !orderIndex.has(idOf(item))).sort(by(previousIndex));
  const woven: unknown[] = [];
  let next = 0;
  for (const item of named) {
    const limit = previousIndex.get(idOf(item));
    while (next < others.length && limit !== undefined) {
      const place = previousIndex.get(idOf(others[next]));
      if (place === undefined || place > limit) break;
      woven.push(others[next++]);
    }
    woven.push(item);
  }
  woven.push(...others.slice(next));
  return woven;
}

function firstIndexes(list: readonly unknown[], idOf: (item: unknown) => unknown): Map<unknown, number> {
  const indexes = new Map<unknown, number>();
  for (const [i, item] of list.entries()) if (!indexes.has(idOf(item))) indexes.set(idOf(item), i);
  return indexes;
}

/** What a patch means where there is nothing to merge it with: no nulls, no directives. `undefined`: nothing. */
function clean(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(clean).filter((item) => item !== undefined);
  if (!isObject(value)) return value;
  if (Object.hasOwn(value, patchMarker)) return undefined;
  const copy: JsonObject = {};
  for (const [key, inner] of Object.entries(value)) {
    if (inner === null || key === retainKeysMarker || key.startsWith(orderPrefix) || key.startsWith(deletePrefix))
      continue;
    const cleaned = clean(inner);
    if (cleaned !== undefined) setOwn(copy, key, cleaned);
  }
  return copy;
}
