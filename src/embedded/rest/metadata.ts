// SPDX-License-Identifier: Apache-2.0
// The rules of `metadata`, the same for every kind.
import { deepEqual } from '../../base/freeze.ts';
import { isQualifiedName, isValidLabelValue } from '../../kube/labels.ts';
import type { KubeObject, ObjectMeta } from '../../kube/object.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import type { Resource } from '../resource.ts';
import { badRequest } from '../status.ts';
import { subdomainProblems } from './names.ts';

/** The fields of metadata and the types they must have: a body that breaks them cannot be understood at all. */
const shapes: Readonly<Record<string, 'string' | 'number' | 'strings' | 'map' | 'objects'>> = {
  name: 'string',
  generateName: 'string',
  namespace: 'string',
  uid: 'string',
  resourceVersion: 'string',
  generation: 'number',
  creationTimestamp: 'string',
  deletionTimestamp: 'string',
  deletionGracePeriodSeconds: 'number',
  labels: 'map',
  annotations: 'map',
  finalizers: 'strings',
  ownerReferences: 'objects',
  managedFields: 'objects',
};

/**
 * Refuses metadata of the wrong shape and drops what is null, as decoding into typed fields does. What is frozen in metadata of a
 * body of our own was stored before: it has its shape.
 */
export function checkShape(metadata: Record<string, unknown>, kind: string, version: string, owned = false): void {
  for (const field in metadata) {
    const value = metadata[field];
    const isStored = owned && typeof value === 'object' && value !== null && Object.isFrozen(value);
    const shape = !isStored && Object.hasOwn(shapes, field) ? shapes[field] : undefined;
    const fits = value === null || value === undefined || shape === undefined || hasShape(value, shape);
    if (fits) {
      if (value === null || value === undefined || field === 'selfLink' || isEmpty(value)) delete metadata[field];
      continue;
    }
    const type = goTypes[shape!];
    throw badRequest(
      `${kind} in version "${version}" cannot be handled as a ${kind}: json: cannot unmarshal ${jsonType(value)} into Go struct field ObjectMeta.metadata.${field} of type ${type}`,
    );
  }
}

/** An empty map or list is as good as none: neither is written. */
function isEmpty(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  for (const _ in value) return false;
  return true;
}

const goTypes = {
  string: 'string',
  number: 'int64',
  strings: '[]string',
  map: 'map[string]string',
  objects: '[]v1.OwnerReference',
} as const;

function hasShape(value: unknown, shape: keyof typeof goTypes): boolean {
  switch (shape) {
    case 'string':
      return typeof value === 'string';
    case 'number':
      return Number.isInteger(value);
    case 'strings':
      return Array.isArray(value) && value.every((item) => typeof item === 'string');
    case 'objects':
      return Array.isArray(value) && value.every((item) => typeof item === 'object' && item !== null);
    case 'map':
      return isRecord(value) && Object.values(value).every((item) => typeof item === 'string');
  }
}

/** The JSON type of a value as Go's decoder calls it. */
export function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'boolean') return 'bool';
  return typeof value;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What is wrong with the metadata of an object that is complete. The very parts of what it replaces were in order. */
export function validateMetadata(resource: Resource, metadata: ObjectMeta, old?: ObjectMeta): FieldError[] {
  const errors = nameErrors(resource, metadata, old);
  const { labels, annotations, finalizers, ownerReferences } = metadata;
  if (labels && labels !== old?.labels) errors.push(...labelErrors(labels));
  if (annotations && annotations !== old?.annotations) errors.push(...annotationErrors(annotations));
  if (finalizers && finalizers !== old?.finalizers) errors.push(...finalizerErrors(resource, finalizers));
  if (ownerReferences && ownerReferences !== old?.ownerReferences) errors.push(...ownerErrors(ownerReferences));
  return errors;
}

function nameErrors(resource: Resource, { name = '', generateName = '' }: ObjectMeta, old?: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (name === '') {
    errors.push({ field: 'metadata.name', type: 'Required', detail: 'name or generateName is required' });
  } else if (name !== old?.name) {
    const problems = (resource.strategy.validateName ?? subdomainProblems)(name);
    for (const detail of problems) errors.push({ field: 'metadata.name', type: 'Invalid', value: name, detail });
  }
  if (generateName.length > 253) {
    errors.push(invalid('metadata.generateName', generateName, 'must be no more than 253 characters'));
  }
  return errors;
}

function labelErrors(labels: Readonly<Record<string, string>>): FieldError[] {
  const errors: FieldError[] = [];
  for (const key in labels) {
    const value = labels[key]!;
    for (const detail of keyProblems(key)) errors.push(invalid('metadata.labels', key, detail));
    for (const detail of isValidLabelValue(value)) errors.push(invalid('metadata.labels', value, detail));
  }
  return errors;
}

function finalizerErrors(resource: Resource, finalizers: readonly string[]): FieldError[] {
  const errors: FieldError[] = [];
  const isFree = resource.custom || resource.group === 'apiextensions.k8s.io';
  for (const finalizer of finalizers) {
    const field = 'metadata.finalizers';
    for (const detail of isQualifiedName(finalizer)) errors.push(invalid(field, finalizer, detail));
    if (isFree || finalizer.includes('/') || standardFinalizers.has(finalizer)) continue;
    errors.push(invalid(field, finalizer, 'name is neither a standard finalizer name nor is it fully qualified'));
  }
  return errors;
}

/** Keys that were found in order: the same few come with every object. */
const goodKeys = new Set<string>();
const noProblems: readonly string[] = [];

function keyProblems(key: string): readonly string[] {
  if (goodKeys.has(key)) return noProblems;
  const problems = isQualifiedName(key);
  if (problems.length === 0) {
    if (goodKeys.size > 10_000) goodKeys.clear();
    goodKeys.add(key);
  }
  return problems;
}

const standardFinalizers = new Set(['kubernetes', 'orphan', 'foregroundDeletion']);

function annotationErrors(annotations: Readonly<Record<string, string>>): FieldError[] {
  const errors: FieldError[] = [];
  let size = 0;
  for (const key in annotations) {
    size += key.length + annotations[key]!.length;
    for (const detail of keyProblems(key.toLowerCase())) errors.push(invalid('metadata.annotations', key, detail));
  }
  if (size > 256 * 1024) {
    errors.push({ field: 'metadata.annotations', type: 'Too long', detail: 'may not be more than 262144 bytes' });
  }
  return errors;
}

function ownerErrors(owners: NonNullable<ObjectMeta['ownerReferences']>): FieldError[] {
  const errors: FieldError[] = [];
  let controller: string | undefined;
  owners.forEach((owner) => {
    const at = 'metadata.ownerReferences';
    const required = (field: string, detail: string): FieldError => ({
      field: `${at}.${field}`,
      type: 'Invalid',
      value: '',
      detail,
    });
    if (!owner.apiVersion) errors.push(required('apiVersion', 'version must not be empty'));
    if (!owner.kind) errors.push(required('kind', 'must not be empty'));
    if (!owner.name) errors.push(required('name', 'must not be empty'));
    if (!owner.uid) errors.push(required('uid', 'must not be empty'));
    if (owner.controller !== true) return;
    if (controller !== undefined) {
      errors.push({
        field: at,
        type: 'Invalid',
        value: owners,
        detail: `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${owner.kind}/${owner.name}`,
      });
    }
    controller = `${owner.kind}/${owner.name}`;
  });
  return errors;
}

/** What an update may not do to metadata. */
export function validateMetadataUpdate(metadata: ObjectMeta, old: ObjectMeta): FieldError[] {
  if (old.deletionTimestamp === undefined) return [];
  const added = (metadata.finalizers ?? []).filter((finalizer) => !old.finalizers?.includes(finalizer));
  if (added.length === 0) return [];
  const listed = added.map((finalizer) => JSON.stringify(finalizer)).join(', ');
  return [
    {
      field: 'metadata.finalizers',
      type: 'Forbidden',
      detail: `no new finalizers can be added if the object is being deleted, found new finalizers []string{${listed}}`,
    },
  ];
}

/** Carries over what only the server sets. */
export function keepSystemMetadata(metadata: ObjectMeta, old: ObjectMeta): void {
  for (const field of systemFields) {
    const value = old[field];
    // Mostly it is there already: whoever writes has read it.
    if (metadata[field] === value && value !== undefined) continue;
    if (value !== undefined) (metadata as Record<string, unknown>)[field] = value;
    else if (field in metadata) delete metadata[field];
  }
}

const systemFields = [
  'name',
  'namespace',
  'generateName',
  'uid',
  'creationTimestamp',
  'deletionTimestamp',
  'deletionGracePeriodSeconds',
  'generation',
] as const;

/** Whether two objects want the same: everything but metadata, and the status where that is kept apart. */
export function sameIntent(a: KubeObject, b: KubeObject, statusApart: boolean): boolean {
  const left = a as unknown as Record<string, unknown>;
  const right = b as unknown as Record<string, unknown>;
  const keys = new Set([...Object.keys(left), ...Object.keys(right)]);
  for (const key of keys) {
    if (key === 'metadata' || (key === 'status' && statusApart)) continue;
    if (!deepEqual(left[key], right[key])) return false;
  }
  return true;
}

function invalid(field: string, value: unknown, detail: string): FieldError {
  return { field, type: 'Invalid', value, detail };
}
