// SPDX-License-Identifier: Apache-2.0
// OpenAPI: enough for kubectl to validate and explain. Custom kinds show their whole schema; built-in ones what the
// server knows of their fields.
import { createHash } from 'node:crypto';
import type { Registry } from './registry.ts';
import type { Resource, ServedVersion } from './resource.ts';
import { versionOf } from './resource.ts';

type Document = Record<string, unknown>;

interface Cached {
  readonly revision: number;
  readonly documents: Map<string, Document>;
}

const caches = new WeakMap<Registry, Cached>();

function cacheOf(registry: Registry): Map<string, Document> {
  let cached = caches.get(registry);
  if (cached?.revision !== registry.revision) {
    cached = { revision: registry.revision, documents: new Map() };
    caches.set(registry, cached);
  }
  return cached!.documents;
}

function groupVersions(registry: Registry): { path: string; group: string; version: string }[] {
  return registry.groups().flatMap((group) =>
    registry.versions(group).map((version) => ({
      path: group === '' ? `api/${version}` : `apis/${group}/${version}`,
      group,
      version,
    })),
  );
}

/** The list of documents, one per group and version. */
export function openApiV3Index(registry: Registry): Document {
  const paths: Document = {};
  for (const { path } of groupVersions(registry)) {
    const hash = createHash('sha256')
      .update(JSON.stringify(openApiV3Document(registry, path)))
      .digest('hex')
      .toUpperCase();
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` };
  }
  return { paths };
}

/** The document of `apis/apps/v1` and the like. */
export function openApiV3Document(registry: Registry, path: string): Document | undefined {
  const documents = cacheOf(registry);
  const known = documents.get(path);
  if (known) return known;
  const found = groupVersions(registry).find((candidate) => candidate.path === path);
  if (!found) return undefined;
  const document = makeDocument(registry, found.group, found.version);
  documents.set(path, document);
  return document;
}

/** The older form, of all groups at once; kept small, for clients that insist on it. */
export function openApiV2(registry: Registry): Document {
  const definitions: Document = {};
  const paths: Document = {};
  for (const { group, version } of groupVersions(registry)) {
    for (const resource of registry.inGroup(group)) {
      const served = versionOf(resource, version);
      if (!served) continue;
      definitions[schemaName(group, version, resource.kind)] = schemaOf(resource, served);
    }
  }
  return { swagger: '2.0', info, paths, definitions };
}

const info = { title: 'Kubernetes', version: 'v1.36.1' };

function makeDocument(registry: Registry, group: string, version: string): Document {
  const paths: Document = {};
  const schemas: Document = {
    'io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta': metadataSchema,
  };
  for (const resource of registry.inGroup(group)) {
    const served = versionOf(resource, version);
    if (!served) continue;
    schemas[schemaName(group, version, resource.kind)] = schemaOf(resource, served);
    addPaths(paths, resource, version);
  }
  return { openapi: '3.0.0', info, paths, components: { schemas } };
}

/** The name of a schema: the group's domain turned around, as the API server does for custom kinds. */
function schemaName(group: string, version: string, kind: string): string {
  if (group === '') return `io.k8s.api.core.${version}.${kind}`;
  if (!group.includes('.')) return `io.k8s.api.${group}.${version}.${kind}`;
  return `${group.split('.').toReversed().join('.')}.${version}.${kind}`;
}

const text = { type: 'string' };
const dateTime = { type: 'string', format: 'date-time' };
const textMap = { type: 'object', additionalProperties: { type: 'string' } };

const metadataSchema = {
  description: 'What every object carries.',
  type: 'object',
  properties: {
    annotations: { ...textMap, description: 'Free-form notes by key, for tools.' },
    creationTimestamp: { ...dateTime, description: 'When the server created the object.' },
    deletionGracePeriodSeconds: {
      type: 'integer',
      format: 'int64',
      description: 'Seconds the object has to wind down.',
    },
    deletionTimestamp: { ...dateTime, description: 'When the object will be gone, once a delete was asked for.' },
    finalizers: { type: 'array', items: text, description: 'Who must agree before the object is removed.' },
    generateName: { ...text, description: 'Prefix of a name the server makes up.' },
    generation: { type: 'integer', format: 'int64', description: 'Counts changes of what is wanted.' },
    labels: { ...textMap, description: 'Keys and values to select objects by.' },
    managedFields: { type: 'array', items: { type: 'object' }, description: 'Who wrote which field last.' },
    name: { ...text, description: 'The name, unique among objects of the kind in the namespace.' },
    namespace: { ...text, description: 'The namespace the object lives in.' },
    ownerReferences: { type: 'array', items: { type: 'object' }, description: 'Objects this one goes with.' },
    resourceVersion: { ...text, description: 'The version of the object, for optimistic concurrency.' },
    uid: { ...text, description: 'Unique in time and space.' },
  },
};

function schemaOf(resource: Resource, served: ServedVersion): Document {
  const own = (served.openApi?.() ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }) as Document;
  const properties = (own['properties'] ?? {}) as Document;
  return {
    ...own,
    properties: {
      apiVersion: { ...text, description: 'Group and version of the kind.' },
      kind: { ...text, description: 'The kind of the object.' },
      ...properties,
      metadata: {
        description: 'Name, labels and the like.',
        allOf: [{ $ref: '#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta' }],
      },
    },
    'x-kubernetes-group-version-kind': [{ group: resource.group, kind: resource.kind, version: served.name }],
  };
}

const parameter = (name: string, type: string, description: string): Document => ({
  name,
  in: 'query',
  description,
  schema: { type, uniqueItems: true },
});

/** kubectl looks here to learn whether the server checks unknown fields and can pretend. */
const writeParameters = [
  parameter('dryRun', 'string', 'All: go through every step but storing.'),
  parameter('fieldManager', 'string', 'Who owns the fields this request sets.'),
  parameter('fieldValidation', 'string', 'What to do about unknown fields: Ignore, Warn or Strict.'),
];

function addPaths(paths: Document, resource: Resource, version: string): void {
  const base = resource.group === '' ? `/api/${version}` : `/apis/${resource.group}/${version}`;
  const collection = `${base}${resource.namespaced ? '/namespaces/{namespace}' : ''}/${resource.plural}`;
  const kind = { group: resource.group, kind: resource.kind, version };
  const operation = (action: string, parameters: readonly Document[] = []): Document => ({
    description: `${action} ${resource.kind}`,
    parameters,
    responses: { '200': { description: 'OK' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': kind,
  });
  const has = (verb: string): boolean => (resource.verbs as readonly string[]).includes(verb);
  paths[collection] = {
    ...(has('list') ? { get: operation('list') } : {}),
    ...(has('create') ? { post: operation('post', writeParameters) } : {}),
  };
  if (!has('get')) return;
  paths[`${collection}/{name}`] = {
    get: operation('get'),
    put: operation('put', writeParameters),
    patch: operation('patch', writeParameters),
    delete: operation('delete', writeParameters.slice(0, 1)),
  };
}
