// SPDX-License-Identifier: Apache-2.0
// Who owns which field. Owners are tracked for clients that have a name; the cluster's own parts, in this process, have
// none, and their objects are tracked from the first server-side apply on.
import { deepEqual, deepFreeze } from '../../base/freeze.ts';
import type { KubeObject } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { RequestContext } from './context.ts';
import { type FieldSet, fieldSetOf, fromFieldsV1, inBoth, toFieldsV1, valueAt, without } from './field-set.ts';
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
    fields: fieldsOf(context, object),
  };
}

function fieldsOf(context: RequestContext, object: KubeObject): FieldSet {
  return fieldSetOf(object, mergeTypeOf(context.resource, context.version));
}

/** Records owners; those who own nothing any more are left out. */
export function recordManagers(object: KubeObject, managers: readonly Manager[]): void {
  const kept = managers.filter((manager) => manager.fields.size > 0);
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
    if (named) recordManagers(object, [{ ...writerOf(context, object, options), fields: fieldsOf(context, object) }]);
    return;
  }
  if (!old.metadata.managedFields || cleared) {
    delete object.metadata.managedFields;
    return;
  }
  object.metadata.managedFields = old.metadata.managedFields;
  const now = fieldsOf(context, object);
  const changed: FieldSet = new Set();
  for (const path of now) if (!deepEqual(valueAt(old, path), valueAt(object, path))) changed.add(path);
  const managers = managersOf(old);
  const stillThere = managers.every(({ fields }) => without(fields, now).size === 0);
  if (changed.size === 0 && stillThere) return;
  const writer = writerOf(context, object, options);
  const own = managers.find((manager) => sameManager(manager, writer));
  recordManagers(object, [
    ...managers
      .filter((manager) => manager !== own)
      .map((manager) => ({ ...manager, fields: without(inBoth(manager.fields, now), changed) })),
    { ...writer, fields: new Set([...changed, ...inBoth(own?.fields ?? new Set(), now)]) },
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
