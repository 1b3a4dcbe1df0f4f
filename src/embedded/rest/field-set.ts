// SPDX-License-Identifier: Apache-2.0
// Sets of fields, and what can be asked of an object by them. A path is a list of steps in the notation of FieldsV1:
// `f:name` a field, `k:{"name":"c"}` an item of a list by its keys, `v:"x"` an item of a set by its value.
import { deepEqual } from '../../base/freeze.ts';
import type { ListKey, MergeType } from './merge-types.ts';
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
    ['f:metadata'],
    ...'name namespace generateName uid resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds managedFields selfLink'
      .split(' ')
      .map((field) => ['f:metadata', `f:${field}`]),
  ].map((steps) => steps.join(separator)),
);

export function union(...sets: readonly FieldSet[]): FieldSet {
  return new Set(sets.flatMap((set) => [...set]));
}

export function inBoth(a: FieldSet, b: FieldSet): FieldSet {
  return new Set([...a].filter((path) => b.has(path)));
}

export function without(a: FieldSet, b: FieldSet): FieldSet {
  return new Set([...a].filter((path) => !b.has(path)));
}

export function sameSet(a: FieldSet, b: FieldSet): boolean {
  return a.size === b.size && without(a, b).size === 0;
}

/**
 * What somebody who says this value owns: its leaves, the items of its lists and the entries of its maps. `typed`: with what Go
 * writes of it even when there is nothing.
 */
export function fieldSetOf(value: unknown, type: MergeType, typed = false): FieldSet {
  const set: FieldSet = new Set();
  collect(value, type, '', set, typed);
  for (const path of unowned) set.delete(path);
  return set;
}

function collect(value: unknown, type: MergeType, path: string, set: FieldSet, typed: boolean): void {
  if (isRecord(value) && type.granular) {
    for (const [key, inner] of Object.entries(typed ? withZeros(value, type) : value)) {
      const at = join(path, `f:${key}`);
      if (type.map || isEmpty(inner)) set.add(at);
      collect(inner, type.field(key), at, set, typed);
    }
  } else if (Array.isArray(value) && type.listKeys) {
    for (const item of value) {
      const at = join(path, itemStep(item, type.listKeys));
      set.add(at);
      if (type.listKeys.length > 0) collect(item, type.item(), at, set, typed);
    }
  } else set.add(path);
}

function withZeros(value: Record<string, unknown>, type: MergeType): Record<string, unknown> {
  const zeros = [...type.always].filter(([name]) => value[name] === undefined);
  return zeros.length === 0 ? value : { ...value, ...Object.fromEntries(zeros) };
}

function isEmpty(value: unknown): boolean {
  return value === null || (isRecord(value) && Object.keys(value).length === 0);
}

/** What became of an object's fields. What is new as a whole is in the set itself, with all that is in it. */
export interface Changes {
  readonly added: FieldSet;
  readonly modified: FieldSet;
  readonly removed: FieldSet;
}

/** Compares two states of an object; undefined is one that is not there yet. */
export function changesBetween(old: unknown, now: unknown, type: MergeType): Changes {
  const changes: Changes = { added: new Set(), modified: new Set(), removed: new Set() };
  compare(old ?? {}, now, type, '', changes);
  for (const set of [changes.added, changes.modified, changes.removed]) {
    set.delete('');
    for (const path of unowned) set.delete(path);
  }
  return changes;
}

function compare(old: unknown, now: unknown, type: MergeType, path: string, changes: Changes): void {
  const [before, after] = [partsOf(old, type, path), partsOf(now, type, path)];
  const whole = !before || !after || before.size + after.size === 0;
  if (!whole) compareParts(before, after, changes);
  if (old === undefined) changes.added.add(path);
  else if (now === undefined) changes.removed.add(path);
  else if (whole && !deepEqual(old, now)) changes.modified.add(path);
}

function compareParts(before: ReadonlyMap<string, Part>, after: ReadonlyMap<string, Part>, changes: Changes): void {
  for (const [key, { value, type }] of after) compare(before.get(key)?.value, value, type, key, changes);
  for (const [key, { value, type }] of before) if (!after.has(key)) compare(value, undefined, type, key, changes);
}

interface Part {
  readonly value: unknown;
  readonly type: MergeType;
}

const noParts: ReadonlyMap<string, Part> = new Map();

/** The parts of a value by their paths; undefined when it is one piece. What is not there has none, whatever it would be. */
function partsOf(value: unknown, type: MergeType, path: string): ReadonlyMap<string, Part> | undefined {
  if (value === undefined || value === null) return type.granular || type.listKeys ? noParts : undefined;
  if (isRecord(value) && type.granular) {
    return new Map(
      Object.entries(withZeros(value, type))
        .filter(([, inner]) => inner !== undefined)
        .map(([key, inner]) => [join(path, `f:${key}`), { value: inner, type: type.field(key) }]),
    );
  }
  const keys = type.listKeys;
  if (!Array.isArray(value) || !keys) return undefined;
  // Members of a set have no parts themselves.
  return new Map(value.map((item) => [join(path, itemStep(item, keys)), { value: item, type: type.item() }]));
}

function itemStep(item: unknown, keys: readonly ListKey[]): string {
  if (keys.length === 0) return `v:${JSON.stringify(item)}`;
  const named = isRecord(item) ? item : {};
  const values = keys
    .map(({ name, fallback }) => [name, named[name] ?? fallback] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `k:${JSON.stringify(Object.fromEntries(values))}`;
}

/** The item of a list that a step names. */
function findItem(list: readonly unknown[], step: string, keys: readonly ListKey[] = []): unknown {
  const wanted = JSON.parse(step.slice(2)) as unknown;
  if (step.startsWith('v:')) return list.find((item) => deepEqual(item, wanted));
  const fallback = (name: string): unknown => keys.find((key) => key.name === name)?.fallback;
  return list.find(
    (item) =>
      isRecord(item) &&
      Object.entries(wanted as object).every(([key, value]) => deepEqual(item[key] ?? fallback(key), value)),
  );
}

/** Removes what is at a path, in place. What becomes empty by it goes as well, unless `keeps` says that it must stay. */
export function removeAt(object: unknown, path: string, type: MergeType, keeps: (path: string) => boolean): void {
  const steps = stepsOf(path);
  const last = steps.pop()!;
  const parent = steps.join(separator);
  let at = object;
  let place = type;
  for (const step of steps) {
    if (step.startsWith('f:')) {
      at = isRecord(at) ? at[step.slice(2)] : undefined;
      place = place.field(step.slice(2));
    } else {
      at = Array.isArray(at) ? findItem(at, step, place.listKeys) : undefined;
      place = place.item();
    }
  }
  if (last.startsWith('f:')) {
    if (isRecord(at)) delete at[last.slice(2)];
  } else if (Array.isArray(at)) {
    const index = at.indexOf(findItem(at, last, place.listKeys));
    if (index >= 0) at.splice(index, 1);
  }
  const empty = Array.isArray(at) ? at.length === 0 : isRecord(at) && Object.keys(at).length === 0;
  if (empty && parent !== '' && !keeps(parent)) removeAt(object, parent, type, keeps);
}

/** Paths in the order in which Go lists a set: at each place first what ends there, then what goes on. */
export function inOrder(set: FieldSet): string[] {
  const ends: string[] = [];
  const below = new Map<string, FieldSet>();
  for (const path of set) {
    const [first = '', ...rest] = stepsOf(path);
    if (rest.length === 0) ends.push(first);
    else below.set(first, (below.get(first) ?? new Set<string>()).add(rest.join(separator)));
  }
  const inside = [...below].sort(([a], [b]) => (a < b ? -1 : 1));
  return [...ends.sort(), ...inside.flatMap(([step, inner]) => inOrder(inner).map((path) => join(step, path)))];
}

/** Whether a set holds the path or anything below it. */
export function ownsWithin(set: FieldSet, path: string): boolean {
  if (set.has(path)) return true;
  const prefix = path + separator;
  for (const other of set) if (other.startsWith(prefix)) return true;
  return false;
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

/** The set in the form of FieldsV1: a path that has others below it and is owned itself carries a `.`. */
export function toFieldsV1(set: FieldSet): unknown {
  const tree: Tree = {};
  // In their order, a path comes before all that is below it: the first step into a node that is there finds it owned.
  const owned = new Set<Tree>();
  for (const path of [...set].sort()) {
    let at = tree;
    for (const step of stepsOf(path)) {
      if (owned.has(at)) at['.'] ??= {};
      at = at[step] ??= {};
    }
    owned.add(at);
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
    const found = findItem(merged, itemStep(item, keys), keys);
    if (found === undefined) merged.push(item);
    else if (keys.length > 0) merged[merged.indexOf(found)] = mergeValues(found, item, type.item());
  }
  return merged;
}
