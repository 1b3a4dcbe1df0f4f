// SPDX-License-Identifier: Apache-2.0
// Server-side apply: the client says what it wants and owns that; what others own stays theirs, unless forced.
import { deepClone } from '../../base/freeze.ts';
import { compareStrings } from '../../base/order.ts';
import type { KubeObject } from '../../kube/object.ts';
import { badRequest, invalidOptions, notFound, StatusError } from '../status.ts';
import { encode, type RequestContext, storageNamespace } from './context.ts';
import {
  changesBetween,
  type FieldSet,
  fieldSetOf,
  inBoth,
  inOrder,
  mergeValues,
  ownsWithin,
  removeAt,
  sameSet,
  showPath,
  union,
  without,
} from './field-set.ts';
import { firstManager, type Manager, managersOf, recordManagers, sameManager, writerOf } from './managed-fields.ts';
import { type MergeType, mergeTypeOf } from './merge-types.ts';
import { isRecord } from './metadata.ts';
import type { WriteOptions } from './options.ts';
import type { ApiResponse } from './request.ts';
import { createObject, decodeBody, updateObject } from './write.ts';

export function handleApply(context: RequestContext, options: WriteOptions): ApiResponse {
  const { name } = context.info;
  const stored = context.collection.get(storageNamespace(context), name);
  if (!stored && context.info.subresource !== '') throw notFound(context.resource, name);
  const applied = readApplied(context, options);
  if (!stored) return createByApply(context, applied, options);
  const live = encode(context, stored);
  const type = mergeTypeOf(context.resource, context.version);
  const wanted = fieldSetOf(applied, type);
  const writer = writerOf(context, applied, options);
  const managers = live.metadata.managedFields ? managersOf(live) : [firstManager(context, live)];
  const own = managers.find((manager) => sameManager(manager, writer));
  const others = managers.filter((manager) => manager !== own);
  const object = deepClone(mergeValues(live, applied, type)) as KubeObject;
  dropAbandoned(object, own?.fields, wanted, others, type);
  const changes = changesBetween(live, object, type);
  const conflicts = conflictsWith(others, union(changes.added, changes.modified));
  if (conflicts.length > 0 && !options.force) throw conflictError(conflicts);
  const decoded = decodeBody(context, object, true, options);
  decoded.metadata.resourceVersion ??= live.metadata.resourceVersion!;
  const taken = union(changes.removed, ...conflicts.map(({ paths }) => new Set(paths)));
  const owners = [
    ...others.map((manager) => ({ ...manager, fields: without(manager.fields, taken) })),
    {
      ...writer,
      ...(own && sameSet(own.fields, wanted) ? { time: own.time } : {}),
      fields: wanted,
    },
  ];
  const updated = updateObject(context, stored, decoded, options, (final) => recordManagers(final, owners));
  return { status: 200, body: encode(context, updated) };
}

function readApplied(context: RequestContext, options: WriteOptions): Record<string, unknown> & KubeObject {
  if (options.fieldManager === undefined || options.fieldManager === '') {
    throw invalidOptions('PatchOptions', [
      { field: 'fieldManager', type: 'Required', detail: 'is required for apply patch' },
    ]);
  }
  const { body, bodyProblem } = context.request;
  if (!isRecord(body)) throw badRequest(`error decoding YAML: ${bodyProblem ?? 'the body is not an object'}`);
  const applied = deepClone(body);
  for (const field of ['apiVersion', 'kind']) {
    if (typeof applied[field] !== 'string') throw badRequest(`invalid object type: ${field} must be set`);
  }
  const metadata = isRecord(applied['metadata']) ? applied['metadata'] : {};
  if (metadata['managedFields'] !== undefined) throw badRequest('metadata.managedFields must be nil');
  // A kind that keeps its status apart takes it through the status subresource only.
  if (context.version.status && context.info.subresource === '') delete applied['status'];
  if (context.info.subresource === 'status') keepOnly(applied, 'status');
  const { name } = context.info;
  const named = metadata['name'] ?? name;
  if (named !== name) {
    throw badRequest(
      `the name of the object (${typeof named === 'string' ? named : JSON.stringify(named)}) does not match the name on the URL (${name})`,
    );
  }
  applied['metadata'] = { ...metadata, name };
  refuseUndeclared(context, applied);
  return applied as Record<string, unknown> & KubeObject;
}

/** Drops all fields but one and those that every object has. */
function keepOnly(applied: Record<string, unknown>, kept: string): void {
  for (const field of Object.keys(applied)) {
    if (!['apiVersion', 'kind', 'metadata', kept].includes(field)) delete applied[field];
  }
}

/** Fields that a built-in kind does not have cannot be owned. */
function refuseUndeclared(context: RequestContext, applied: Record<string, unknown>): void {
  const { resource, version } = context;
  if (resource.custom) return;
  const [unknown] = version.admit?.(applied as unknown as KubeObject, false).unknown ?? [];
  if (unknown === undefined) return;
  const object = `${storageNamespace(context)}/${context.info.name}; ${resource.group}/${version.name}, Kind=${resource.kind}`;
  throw new StatusError(
    500,
    undefined,
    `failed to create typed patch object (${object}): .${unknown}: field not declared in schema`,
  );
}

function createByApply(context: RequestContext, applied: KubeObject, options: WriteOptions): ApiResponse {
  if (context.info.subresource !== '') throw notFound(context.resource, context.info.name);
  if (applied.metadata.uid) {
    throw new StatusError(
      409,
      'Conflict',
      `uid mismatch: the provided object specified uid ${applied.metadata.uid}, and no existing object was found`,
    );
  }
  const type = mergeTypeOf(context.resource, context.version);
  const writer = { ...writerOf(context, applied, options), fields: fieldSetOf(applied, type) };
  const object = decodeBody(context, applied, true, options);
  const created = createObject(context, object, options, (final) => recordManagers(final, [writer]));
  return { status: 201, body: encode(context, created) };
}

interface Conflict {
  readonly with: Manager;
  readonly paths: string[];
}

/** Fields that others own and that would change. */
function conflictsWith(others: readonly Manager[], changed: FieldSet): Conflict[] {
  const conflicts: Conflict[] = [];
  for (const manager of others) {
    const paths = inOrder(inBoth(changed, manager.fields));
    if (paths.length > 0) conflicts.push({ with: manager, paths });
  }
  return conflicts;
}

/** How a conflict names an owner: those who applied need no more words. */
function described({ manager, operation, subresource, apiVersion }: Manager): string {
  const where = subresource === '' ? '' : ` with subresource ${JSON.stringify(subresource)}`;
  return `${JSON.stringify(manager)}${where}${operation === 'Apply' ? '' : ` using ${apiVersion}`}`;
}

function conflictError(conflicts: readonly Conflict[]): StatusError {
  const all = conflicts.flatMap(({ with: manager, paths }) =>
    paths.map((path) => ({
      reason: 'FieldManagerConflict',
      message: `conflict with ${described(manager)}`,
      field: showPath(path),
    })),
  );
  const listed = conflicts.map(({ with: manager, paths }) => {
    const who = described(manager);
    return paths.length === 1
      ? `conflict with ${who}: ${showPath(paths[0]!)}`
      : `conflicts with ${who}:\n${paths.map((path) => `- ${showPath(path)}`).join('\n')}`;
  });
  const count = all.length === 1 ? '1 conflict' : `${all.length} conflicts`;
  return new StatusError(409, 'Conflict', `Apply failed with ${count}: ${listed.join('\n')}`, { causes: all });
}

/** Removes what this owner applied before, no longer wants, and nobody else owns. */
function dropAbandoned(
  object: KubeObject,
  before: FieldSet | undefined,
  wanted: FieldSet,
  others: readonly Manager[],
  type: MergeType,
): void {
  const kept = (path: string): boolean =>
    ownsWithin(wanted, path) || others.some(({ fields }) => ownsWithin(fields, path));
  const abandoned = [...(before ?? [])].filter((path) => !kept(path));
  // An item of a list goes as a whole, before its fields: without its keys it could not be found.
  for (const path of abandoned.sort((a, b) => a.length - b.length || compareStrings(a, b))) {
    removeAt(object, path, type, kept);
  }
}
