// SPDX-License-Identifier: Apache-2.0
// Who owns which field. Owners are tracked for clients that have a name; the cluster's own parts, in this process, have
// none, and their objects are tracked from the first server-side apply on.
import { deepFreeze } from '../../base/freeze.ts';
import { chain, compareStrings } from '../../base/order.ts';
import type { KubeObject } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { RequestContext } from './context.ts';
import {
  changesBetween,
  type FieldSet,
  fieldSetOf,
  fromFieldsV1,
  sameSet,
  toFieldsV1,
  union,
  without,
} from './field-set.ts';
import { mergeTypeOf } from './merge-types.ts';
import { isRecord } from './metadata.ts';
import type { WriteOptions } from './options.ts';

/** One owner of fields. */
export interface Manager {
  readonly manager: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  readonly time: string;
  readonly subresource: string;
  readonly fields: FieldSet;
}

/** Owns what an object had before anybody applied it. */
const beforeFirstApply = 'before-first-apply';

/** The owners an object records. */
export function managersOf(object: KubeObject): Manager[] {
  return (object.metadata.managedFields ?? []).filter(isRecord).map((entry) => ({
    manager: textOf(entry['manager']),
    operation: entry['operation'] === 'Apply' ? 'Apply' : 'Update',
    apiVersion: textOf(entry['apiVersion']),
    time: textOf(entry['time']),
    subresource: textOf(entry['subresource']),
    fields: fromFieldsV1(entry['fieldsV1']),
  }));
}

/** The owner of an object that records none. */
export function firstManager(context: RequestContext, object: KubeObject): Manager {
  return {
    manager: beforeFirstApply,
    operation: 'Update',
    apiVersion: object.apiVersion ?? '',
    time: formatTime(context.clock.now()),
    subresource: '',
    fields: fieldSetOf(object, mergeTypeOf(context.resource, context.version), true),
  };
}

/** Records owners; those who own nothing any more are left out. */
export function recordManagers(object: KubeObject, managers: readonly Manager[]): void {
  const kept = capped(managers.filter((manager) => manager.fields.size > 0)).sort(inOrder);
  if (kept.length === 0) {
    delete object.metadata.managedFields;
    return;
  }
  object.metadata.managedFields = kept.map(({ manager, operation, apiVersion, time, subresource, fields }) => ({
    manager,
    operation,
    apiVersion,
    time,
    fieldsType: 'FieldsV1',
    fieldsV1: sharedFields(fields),
    ...(subresource === '' ? {} : { subresource }),
  }));
}

/** Those who apply come first, then the oldest. */
const inOrder = chain<Manager>(
  (a, b) => compareStrings(a.operation, b.operation),
  (a, b) => compareStrings(a.time, b.time),
  (a, b) => compareStrings(a.manager, b.manager),
  (a, b) => compareStrings(a.apiVersion, b.apiVersion),
  (a, b) => compareStrings(a.subresource, b.subresource),
);

const mostUpdaters = 10;
const ancientChanges = 'ancient-changes';

/** Of those who update, the oldest lose their names when there are too many. */
function capped(managers: readonly Manager[]): Manager[] {
  const updaters = managers.filter(({ operation }) => operation === 'Update').sort(inOrder);
  const surplus = updaters.length - mostUpdaters;
  if (surplus <= 0) return [...managers];
  const merged = new Map<string, Manager>();
  // One more than too many: they need a place themselves.
  for (const manager of updaters.slice(0, surplus + 1)) {
    const before = merged.get(manager.apiVersion);
    merged.set(manager.apiVersion, {
      ...manager,
      manager: ancientChanges,
      subresource: '',
      fields: union(before?.fields ?? new Set(), manager.fields),
    });
  }
  const gone = new Set(updaters.slice(0, surplus + 1));
  return [...managers.filter((manager) => !gone.has(manager)), ...merged.values()];
}

/** Objects that were written alike share the form of their fields: it is larger than they are. */
const shared = new Map<string, unknown>();

function sharedFields(fields: FieldSet): unknown {
  const key = [...fields].sort().join('\n');
  let form = shared.get(key);
  if (form === undefined) {
    form = deepFreeze(toFieldsV1(fields));
    if (shared.size >= 1000) shared.clear();
    shared.set(key, form);
  }
  return form;
}

/** After an update: what it changed is the writer's, what it removed nobody's. */
export function trackManagers(
  context: RequestContext,
  object: KubeObject,
  old: KubeObject | undefined,
  options: WriteOptions,
): void {
  const given = object.metadata.managedFields;
  // An empty entry, or none at all, asks to forget all owners.
  const cleared = Array.isArray(given) && given.every((entry) => isRecord(entry) && Object.keys(entry).length === 0);
  if (!old) {
    delete object.metadata.managedFields;
    const named = options.fieldManager !== undefined || context.request.userAgent !== undefined;
    if (named && context.tracksOwners) {
      const { added } = changesBetween(undefined, object, mergeTypeOf(context.resource, context.version));
      recordManagers(object, [{ ...writerOf(context, object, options), fields: added }]);
    }
    return;
  }
  if (!old.metadata.managedFields || cleared) {
    delete object.metadata.managedFields;
    return;
  }
  object.metadata.managedFields = old.metadata.managedFields;
  const { added, modified, removed } = changesBetween(old, object, mergeTypeOf(context.resource, context.version));
  const taken = union(added, modified);
  if (taken.size === 0 && removed.size === 0) return;
  const writer = writerOf(context, object, options);
  const managers = managersOf(old);
  const own = managers.find((manager) => sameManager(manager, writer));
  const fields = union(without(own?.fields ?? new Set(), removed), taken);
  recordManagers(object, [
    ...managers
      .filter((manager) => manager !== own)
      .map((manager) => ({ ...manager, fields: without(without(manager.fields, taken), removed) })),
    { ...writer, fields, ...(own && sameSet(own.fields, fields) ? { time: own.time } : {}) },
  ]);
}

/** Who makes this request, as an owner of nothing yet. */
export function writerOf(context: RequestContext, object: KubeObject, options: WriteOptions): Omit<Manager, 'fields'> {
  const { request, info } = context;
  return {
    manager: options.fieldManager || request.userAgent?.split('/')[0] || 'unknown',
    operation: request.contentType?.startsWith('application/apply-patch') ? 'Apply' : 'Update',
    apiVersion: object.apiVersion ?? '',
    time: formatTime(context.clock.now()),
    subresource: info.subresource,
  };
}

export function sameManager(a: Omit<Manager, 'fields' | 'time'>, b: Omit<Manager, 'fields' | 'time'>): boolean {
  return (
    a.manager === b.manager &&
    a.operation === b.operation &&
    a.apiVersion === b.apiVersion &&
    a.subresource === b.subresource
  );
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
