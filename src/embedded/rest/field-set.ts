// SPDX-License-Identifier: Apache-2.0
// Sets of fields, and what can be asked of an object by them. A path is a list of steps in the notation of FieldsV1:
// `f:name` a field, `k:{"name":"c"}` an item of a list by its keys, `v:"x"` an item of a set by its value.
import { deepEqual } from '../../base/freeze.ts';
import type { MergeType } from './merge-types.ts';
import { isRecord } from './metadata.ts';

/** Paths, each joined into one string. */
export type FieldSet = Set<string>;

const separator = '\u0001';

function join(path: string, step: string): string {
  return path === '' ? step : `${path}${separator}${step}`;
}

function stepsOf(path: string): string[] {
  return path.split(separator);
}

/** Fields nobody owns: what names the object, and what the server sets. */
const unowned = new Set(
  [
    ['f:apiVersion'],
    ['f:kind'],
    ...'name namespace generateName uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields selfLink'
      .split(' ')
      .map((field) => ['f:metadata', `f:${field}`]),
  ].map((steps) => steps.join(separator)),
);

export function inBoth(a: FieldSet, b: FieldSet): FieldSet {
  return new Set([...a].filter((path) => b.has(path)));
}

export function without(a: FieldSet, b: FieldSet): FieldSet {
  return new Set([...a].filter((path) => !b.has(path)));
}

/** Every leaf of a value. */
export function fieldSetOf(value: unknown, type: MergeType): FieldSet {
  const set: FieldSet = new Set();
  collect(value, type, '', set);
  return set;
}

function collect(value: unknown, type: MergeType, path: string, set: FieldSet): void {
  if (unowned.has(path)) return;
  if (isRecord(value) && type.granular) {
    const keys = Object.keys(value);
    if (keys.length === 0 && path !== '') set.add(path);
    for (const key of keys) collect(value[key], type.field(key), join(path, `f:${key}`), set);
  } else if (Array.isArray(value) && type.listKeys && value.length > 0) {
    for (const item of value) {
      const step = itemStep(item, type.listKeys);
      set.add(join(path, step));
      if (type.listKeys.length > 0) collect(item, type.item(), join(path, step), set);
    }
  } else if (path !== '') set.add(path);
}

function itemStep(item: unknown, keys: readonly string[]): string {
  if (keys.length === 0) return `v:${JSON.stringify(item)}`;
  const named = isRecord(item) ? item : {};
  return `k:${JSON.stringify(Object.fromEntries(keys.toSorted().map((key) => [key, named[key]])))}`;
}

/** The item of a list that a step names. */
function findItem(list: readonly unknown[], step: string): unknown {
  const wanted = JSON.parse(step.slice(2)) as unknown;
  if (step.startsWith('v:')) return list.find((item) => deepEqual(item, wanted));
  return list.find(
    (item) => isRecord(item) && Object.entries(wanted as object).every(([key, value]) => deepEqual(item[key], value)),
  );
}

/** The value at a path; undefined where there is none. */
export function valueAt(object: unknown, path: string): unknown {
  let at = object;
  for (const step of stepsOf(path)) {
    if (step.startsWith('f:')) at = isRecord(at) ? at[step.slice(2)] : undefined;
    else at = Array.isArray(at) ? findItem(at, step) : undefined;
  }
  return at;
}

/** Removes what is at a path, in place. Objects and lists that become empty by it stay. */
export function removeAt(object: unknown, path: string): void {
  const steps = stepsOf(path);
  const last = steps.pop()!;
  const parent = steps.length === 0 ? object : valueAt(object, steps.join(separator));
  if (last.startsWith('f:')) {
    if (isRecord(parent)) delete parent[last.slice(2)];
  } else if (Array.isArray(parent)) {
    const index = parent.indexOf(findItem(parent, last));
    if (index >= 0) parent.splice(index, 1);
  }
}

/** Whether a set holds the path or anything below it. */
export function ownsWithin(set: FieldSet, path: string): boolean {
  if (set.has(path)) return true;
  const prefix = path + separator;
  for (const other of set) if (other.startsWith(prefix)) return true;
  return false;
}

/** Whether a path names a list item as such. */
export function isItem(path: string): boolean {
  return !stepsOf(path).at(-1)!.startsWith('f:');
}

/** `.spec.containers[name="c"].image`, as conflicts are shown. */
export function showPath(path: string): string {
  return stepsOf(path)
    .map((step) => {
      if (step.startsWith('f:')) return `.${step.slice(2)}`;
      const value = JSON.parse(step.slice(2)) as unknown;
      if (step.startsWith('v:')) return `[=${JSON.stringify(value)}]`;
      return `[${Object.entries(value as object)
        .map(([key, item]) => `${key}=${JSON.stringify(item)}`)
        .join(',')}]`;
    })
    .join('');
}

interface Tree {
  [step: string]: Tree;
}

/** The set in the form of FieldsV1. */
export function toFieldsV1(set: FieldSet): unknown {
  const tree: Tree = {};
  for (const path of [...set].sort()) {
    let at = tree;
    for (const step of stepsOf(path)) at = at[step] ??= {};
    if (isItem(path) && path.includes('k:')) at['.'] ??= {};
  }
  return tree;
}

/** The set that a FieldsV1 value stands for; what cannot be read is left out. */
export function fromFieldsV1(tree: unknown): FieldSet {
  const set: FieldSet = new Set();
  const walk = (at: unknown, path: string): void => {
    const steps = isRecord(at) ? Object.keys(at) : [];
    const inner = steps.filter((step) => step !== '.');
    if (path !== '' && (inner.length === 0 || steps.includes('.'))) set.add(path);
    for (const step of inner) if (/^[fkv]:/.test(step)) walk((at as Tree)[step], join(path, step));
  };
  walk(tree, '');
  return set;
}

/** Lays one value over another: what the upper one does not mention stays. */
export function mergeValues(live: unknown, applied: unknown, type: MergeType): unknown {
  if (isRecord(live) && isRecord(applied) && type.granular) {
    const merged: Record<string, unknown> = { ...live };
    for (const key of Object.keys(applied)) merged[key] = mergeValues(live[key], applied[key], type.field(key));
    return merged;
  }
  if (!Array.isArray(live) || !Array.isArray(applied) || !type.listKeys) return applied;
  const keys = type.listKeys;
  const merged: unknown[] = [...live];
  for (const item of applied) {
    const found = findItem(merged, itemStep(item, keys));
    if (found === undefined) merged.push(item);
    else if (keys.length > 0) merged[merged.indexOf(found)] = mergeValues(found, item, type.item());
  }
  return merged;
}
