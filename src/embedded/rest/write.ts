// SPDX-License-Identifier: Apache-2.0
// Creates and updates: from what a client sent to what is stored. Every write of every kind passes here.
import { deepClone, deepEqual } from '../../base/freeze.ts';
import { apiVersionOf, type KubeObject, type ObjectMeta } from '../../kube/object.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { formatTime } from '../../kube/time.ts';
import { describeRules, type PolicyRule } from '../rbac.ts';
import { alreadyExists, badRequest, conflict, forbidden, invalid, modified, notFound, StatusError } from '../status.ts';
import { type RequestContext, sharesParts, storageNamespace } from './context.ts';
import { trackManagers } from './managed-fields.ts';
import {
  checkShape,
  isRecord,
  jsonType,
  keepSystemMetadata,
  sameIntent,
  validateMetadata,
  validateMetadataUpdate,
} from './metadata.ts';
import { versionProblem, type WriteOptions } from './options.ts';

/** Reads a body as an object of the resource's kind, in storage form, private to the request. */
export function decodeBody(context: RequestContext, body: unknown, owned: boolean, options: WriteOptions): KubeObject {
  const { resource, version, request } = context;
  if (!isRecord(body)) throw unrecognized(resource.kind, request.bodyProblem ?? notAnObject(body));
  checkKind(context, body);
  const { metadata } = body;
  if (metadata !== null && metadata !== undefined && !isRecord(metadata)) {
    throw badRequest(
      `${resource.kind} in version "${version.name}" cannot be handled as a ${resource.kind}: json: cannot unmarshal ${jsonType(metadata)} into Go struct field ${resource.kind}.metadata of type v1.ObjectMeta`,
    );
  }
  // What every object has comes first.
  const sent = { kind: '', apiVersion: '', metadata: {}, ...body } as KubeObject;
  sent.kind = resource.kind;
  sent.apiVersion = apiVersionOf({ group: resource.group, version: version.name });
  sent.metadata = { ...metadata };
  checkShape(sent.metadata as Record<string, unknown>, resource.kind, version.name, owned);
  const object = admit(context, sent, owned, options);
  return version.decode ? version.decode(object) : object;
}

function unrecognized(kind: string, why: string): StatusError {
  return badRequest(
    `the object provided is unrecognized (must be of type ${kind}): couldn't get version/kind; json parse error: ${why}`,
  );
}

function notAnObject(body: unknown): string {
  if (body === undefined) return 'unexpected end of JSON input (<empty>)';
  return `json: cannot unmarshal ${jsonType(body)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`;
}

function checkKind(context: RequestContext, body: Record<string, unknown>): void {
  const { resource, version } = context;
  if (resource.custom) {
    checkCustomKind(context, body);
    return;
  }
  const kind = body['kind'] || resource.kind;
  const expected = apiVersionOf({ group: resource.group, version: version.name });
  const apiVersion = textOf(body['apiVersion'] || expected);
  if (kind === resource.kind && apiVersion === expected) return;
  const [name = '', group = ''] = apiVersion.split('/').toReversed();
  const known = context.registry.findKind(group, textOf(kind))?.versions.some((served) => served.name === name);
  const why = known
    ? `converting (${name}.${textOf(kind)}) to (${resource.group.split('.')[0] || 'core'}.${resource.kind}): unknown conversion`
    : `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`;
  throw badRequest(`${textOf(kind)} in version "${name}" cannot be handled as a ${resource.kind}: ${why}`);
}

/** Custom kinds have no type to fall back on: their bodies must say what they are. */
function checkCustomKind(context: RequestContext, body: Record<string, unknown>): void {
  const { resource, version } = context;
  const { kind, apiVersion, metadata } = body;
  const expected = apiVersionOf({ group: resource.group, version: version.name });
  if (!kind) throw badRequest(`Object 'Kind' is missing in '${JSON.stringify(body)}'`);
  if (apiVersion !== expected) {
    throw badRequest(
      `the API version in the data (${textOf(apiVersion ?? '')}) does not match the expected API version (${expected})`,
    );
  }
  if (kind === resource.kind) return;
  const name = isRecord(metadata) && typeof metadata['name'] === 'string' ? metadata['name'] : '';
  throw invalid(resource.group, textOf(kind), name, [
    { field: 'kind', type: 'Invalid', value: kind, detail: `must be ${resource.kind}` },
  ]);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

/** Unknown fields: dropped, with a warning or a refusal as the client asked. */
function admit(context: RequestContext, sent: KubeObject, owned: boolean, options: WriteOptions): KubeObject {
  const { resource, version } = context;
  // A client in this process often sends back the very parts it was given.
  const stored = owned || context.info.name === '' || !sharesParts(context) ? undefined : storedObject(context);
  const { object, unknown } = version.admit?.(sent, owned, stored) ?? {
    object: owned ? sent : deepClone(sent),
    unknown: [],
  };
  const { duplicates = [] } = context.request;
  if (unknown.length + duplicates.length === 0 || options.fieldValidation === 'Ignore') return object;
  const sentences = [
    ...duplicates.map((field) => `duplicate field ${JSON.stringify(field)}`),
    ...unknown.map((field) => `unknown field ${JSON.stringify(field)}`),
  ];
  if (options.fieldValidation === 'Warn') {
    context.warnings.push(...sentences);
    return object;
  }
  const message = `strict decoding error: ${sentences.join(', ')}`;
  throw badRequest(`${resource.kind} in version "${version.name}" cannot be handled as a ${resource.kind}: ${message}`);
}

/** Stores a new object and returns it as stored. */
export function createObject(
  context: RequestContext,
  object: KubeObject,
  options: WriteOptions,
  track: (object: KubeObject) => void = (final) => trackManagers(context, final, undefined, options),
): KubeObject {
  const { resource, collection } = context;
  const namespace = placeInNamespace(context, object);
  const metadata = object.metadata;
  const versioned = Boolean(metadata.resourceVersion);
  stripServerFields(metadata);
  const generated = !metadata.name && metadata.generateName !== undefined && metadata.generateName !== '';
  if (generated) metadata.name = generateName(context, namespace, metadata.generateName!);
  metadata.uid = context.random.uuid();
  resource.strategy.default?.(object);
  resource.strategy.prepareCreate?.(object, context);
  refuseInvalid(context, object, [
    ...validateMetadata(resource, metadata),
    ...(resource.strategy.validate?.(object, context) ?? []),
  ]);
  if (namespace !== '') requireNamespace(context, namespace, metadata.name ?? '');
  if (resource.custom) refuseWhileGoing(context, metadata.name ?? '');
  refuseEscalation(context, object);
  // The storage says so, hence last and without a reason.
  if (versioned) throw new StatusError(500, undefined, 'resourceVersion should not be set on objects to be created');
  const name = metadata.name!;
  const existing = collection.get(namespace, name);
  if (existing) throw alreadyExists(resource, name, existing.metadata.deletionTimestamp !== undefined);
  metadata.creationTimestamp = formatTime(context.clock.now());
  if (resource.generation) metadata.generation = 1;
  else delete metadata.generation;
  track(object);
  return options.dryRun ? object : collection.insert(namespace, name, object);
}

function stripServerFields(metadata: ObjectMeta): void {
  delete metadata.resourceVersion;
  delete metadata.uid;
  delete metadata.deletionTimestamp;
  delete metadata.deletionGracePeriodSeconds;
}

function placeInNamespace(context: RequestContext, object: KubeObject): string {
  const namespace = storageNamespace(context);
  const given = object.metadata.namespace;
  if (!context.resource.namespaced) {
    delete object.metadata.namespace;
    return '';
  }
  if (given !== undefined && given !== '' && given !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  object.metadata.namespace = namespace;
  return namespace;
}

function generateName(context: RequestContext, namespace: string, base: string): string {
  const stem = base.slice(0, 58);
  let name = '';
  for (let attempt = 0; attempt < 8; attempt++) {
    name = `${stem}${context.random.suffix(5)}`;
    if (!context.collection.get(namespace, name)) break;
  }
  return name;
}

const namespaces = { group: '', plural: 'namespaces' };

function requireNamespace(context: RequestContext, namespace: string, name: string): void {
  const found = context.store.collection('namespaces').get('', namespace);
  if (!found) throw notFound(namespaces, namespace);
  if (found.metadata.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(context.resource, name, why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ]);
}

/** Nobody gives by a role what it does not have, unless it may escalate. */
function refuseEscalation(context: RequestContext, object: KubeObject): void {
  const { resource, request, info } = context;
  if (resource.group !== 'rbac.authorization.k8s.io' || !/^(Cluster)?Role$/.test(resource.kind)) return;
  const { user } = request;
  const escalate = { apiGroups: [resource.group], resources: [resource.plural], verbs: ['escalate'] };
  if (context.notHeld(user, info.namespace, [escalate]).length === 0) return;
  const { rules = [] } = object as KubeObject & { rules?: PolicyRule[] };
  const missing = context.notHeld(user, info.namespace, rules);
  if (missing.length === 0) return;
  const groups = user.groups.map((group) => JSON.stringify(group)).join(' ');
  throw forbidden(
    resource,
    object.metadata.name ?? '',
    `user ${JSON.stringify(user.username)} (groups=[${groups}]) is attempting to grant RBAC permissions not currently held:\n${describeRules(missing)}`,
  );
}

/** A kind whose definition is going takes no new objects: it would never be rid of them. */
function refuseWhileGoing(context: RequestContext, name: string): void {
  const { resource, store } = context;
  const definition = store.collection('customresourcedefinitions.apiextensions.k8s.io').get('', resource.id);
  if (definition?.metadata.deletionTimestamp === undefined) return;
  throw forbidden(resource, name, 'create not allowed while custom resource definition is terminating');
}

/** Throws when there is something wrong with an object. */
export function refuseInvalid(context: RequestContext, object: KubeObject, errors: readonly FieldError[]): void {
  if (errors.length === 0) return;
  throw invalid(context.resource.group, context.resource.kind, object.metadata.name ?? '', errors);
}

/** Names that would lead elsewhere in a path are refused before anything is looked up. */
function refusePathName(name: string): void {
  let problem: string | undefined;
  if (name === '.' || name === '..') problem = `may not be '${name}'`;
  else if (name.includes('%')) problem = "may not contain '%'";
  if (problem !== undefined) throw badRequest(`Name parameter invalid: ${JSON.stringify(name)}: ${problem}`);
}

/** The stored object of a request, if there is one. */
export function findObject(context: RequestContext): KubeObject | undefined {
  refusePathName(context.info.name);
  return storedObject(context);
}

function storedObject(context: RequestContext): KubeObject | undefined {
  return context.collection.get(storageNamespace(context), context.info.name);
}

/** The stored object of a request, or a refusal. */
export function requireObject(context: RequestContext): KubeObject {
  const { name } = context.info;
  const found = findObject(context);
  if (!found) throw notFound(context.resource, name);
  return found;
}

/**
 * Replaces a stored object by what a client sent (already decoded) and returns what is stored then. An update that
 * changes nothing writes nothing; one that removes the last finalizer of a deleted object removes it.
 */
export function updateObject(
  context: RequestContext,
  old: KubeObject,
  sent: KubeObject,
  options: WriteOptions,
  track: (object: KubeObject) => void = (final) => trackManagers(context, final, old, options),
): KubeObject {
  const { resource } = context;
  const status = context.info.subresource === 'status';
  checkIdentity(context, old, sent);
  keepSystemMetadata(sent.metadata, old.metadata);
  const object = status ? withStatus(context, sent, old) : sent;
  if (!status) {
    if (resource.versions.some((version) => version.status)) keepStatus(object, old);
    resource.strategy.default?.(object);
    resource.strategy.prepareUpdate?.(object, old, context);
  }
  const { metadata } = object;
  if (resource.generation && !status && !sameIntent(object, old, context.version.status))
    metadata.generation = (old.metadata.generation ?? 0) + 1;
  const inMetadata = validateMetadata(resource, metadata, old.metadata);
  refuseInvalid(context, object, [
    // Twice, as the API server does: once for all kinds, once for this one.
    ...inMetadata,
    ...inMetadata,
    ...validateMetadataUpdate(metadata, old.metadata),
    ...updateErrors(context, object, old, status),
  ]);
  refuseEscalation(context, object);
  track(object);
  metadata.resourceVersion = old.metadata.resourceVersion!;
  if (deepEqual(object, old)) return old;
  if (options.dryRun) return object;
  return commitUpdate(context, object);
}

function updateErrors(context: RequestContext, object: KubeObject, old: KubeObject, status: boolean): FieldError[] {
  const { strategy } = context.resource;
  if (status) return strategy.validateStatus?.(object, old) ?? [];
  const errors = strategy.validate?.(object, context, old) ?? [];
  // What is not even complete cannot be compared.
  return errors.length > 0 ? errors : (strategy.validateUpdate?.(object, old, context) ?? []);
}

/** Writes an object that is complete; removes it instead when it only waited for this. */
export function commitUpdate(context: RequestContext, object: KubeObject): KubeObject {
  const { resource, collection } = context;
  const namespace = object.metadata.namespace ?? '';
  const name = object.metadata.name!;
  const { deletionTimestamp, deletionGracePeriodSeconds = 0, finalizers = [] } = object.metadata;
  const done = deletionTimestamp !== undefined && deletionGracePeriodSeconds === 0 && finalizers.length === 0;
  if (done && !resource.strategy.heldBack?.(object)) return collection.remove(namespace, name, object);
  return collection.replace(namespace, name, object);
}

/** Refuses a write to another object than the stored one: other name, other uid, other version. */
export function checkIdentity(context: RequestContext, old: KubeObject, object: KubeObject): void {
  const { resource } = context;
  const { metadata } = object;
  const name = context.info.name;
  if (metadata.name === undefined || metadata.name === '') throw badRequest('name must be provided');
  if (metadata.name !== name) {
    throw badRequest(`the name of the object (${metadata.name}) does not match the name on the URL (${name})`);
  }
  const namespace = storageNamespace(context);
  if (metadata.namespace !== undefined && metadata.namespace !== '' && metadata.namespace !== namespace) {
    throw badRequest('the namespace of the provided object does not match the namespace sent on the request');
  }
  if (metadata.uid !== undefined && metadata.uid !== '' && metadata.uid !== old.metadata.uid) {
    if (context.info.verb === 'patch') {
      throw invalid(resource.group, resource.kind, name, [
        { field: 'metadata.uid', type: 'Invalid', value: metadata.uid, detail: 'field is immutable' },
      ]);
    }
    const key = [resource.group, resource.plural, namespace, name].filter((part) => part !== '').join('/');
    throw conflict(
      resource,
      name,
      `StorageError: invalid object, Code: 4, Key: /registry/${key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${metadata.uid}, UID in object meta: ${old.metadata.uid}`,
    );
  }
  if (metadata.resourceVersion === undefined || metadata.resourceVersion === '') {
    if (resource.unconditionalUpdate || context.info.verb === 'patch') return;
    throw invalid(resource.group, resource.plural, name, [
      { field: 'metadata.resourceVersion', type: 'Invalid', value: 0, detail: 'must be specified for an update' },
    ]);
  }
  if (metadata.resourceVersion === old.metadata.resourceVersion) return;
  const problem = versionProblem(metadata.resourceVersion);
  if (problem !== undefined) throw new StatusError(500, undefined, problem);
  throw modified(resource, name);
}

function keepStatus(object: KubeObject, old: KubeObject): void {
  const target = object as KubeObject & { status?: unknown };
  const source = old as KubeObject & { status?: unknown };
  if (source.status === undefined) delete target.status;
  else target.status = source.status;
}

/** A status write changes the status, and for some kinds labels, annotations and finalizers; nothing else. */
function withStatus(context: RequestContext, sent: KubeObject, old: KubeObject): KubeObject {
  const { status } = sent as KubeObject & { status?: unknown };
  const metadata = statusMetadata(context, sent.metadata, old.metadata);
  if (status !== undefined) return { ...old, metadata, status } as KubeObject;
  const { status: _status, ...rest } = old as KubeObject & { status?: unknown };
  return { ...rest, metadata };
}

function statusMetadata(context: RequestContext, metadata: ObjectMeta, old: ObjectMeta): ObjectMeta {
  const { managedFields } = metadata;
  if (!context.resource.statusKeepsMetadata) return { ...old, ...(managedFields ? { managedFields } : {}) };
  if (old.ownerReferences) return { ...metadata, ownerReferences: old.ownerReferences };
  const { ownerReferences: _ownerReferences, ...rest } = metadata;
  return rest;
}
