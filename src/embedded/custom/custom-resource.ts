// SPDX-License-Identifier: Apache-2.0
// A custom kind from its definition: schema, defaults, pruning, columns, subresources.
import { deepClone, deepFreeze } from '../../base/freeze.ts';
import { compareStrings } from '../../base/order.ts';
import type { CustomResourceDefinition } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { type JsonSchema, StructuralSchema } from '../../kube/schema/index.ts';
import { nameColumn } from '../printing/columns.ts';
import { age } from '../printing/human-duration.ts';
import { compareVersions } from '../registry.ts';
import type { Column, Resource, ScalePaths, ServedVersion, Strategy, Verb } from '../resource.ts';
import { compileJsonPath, scalarText } from './json-path.ts';
import { scaleSpecErrors, scaleStatusErrors } from './scale-errors.ts';

type DefinitionVersion = CustomResourceDefinition['spec']['versions'][number];

const verbs: readonly Verb[] = ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'];

/** Fields that every object has; schemas neither describe nor prune them. */
const envelope = ['apiVersion', 'kind', 'metadata'] as const;

/** What a definition that has been accepted serves. Throws when its schemas cannot be compiled. */
export function customResource(definition: CustomResourceDefinition): Resource {
  const { spec } = definition;
  const { names, group } = spec;
  const storage = spec.versions.find((version) => version.storage)!;
  const schemas = new Map(spec.versions.map((version) => [version.name, schemaOf(version)]));
  const hasStatus = spec.versions.some((version) => version.subresources?.status !== undefined);
  const versions = spec.versions
    .filter((version) => version.served)
    .sort((a, b) => compareVersions(a.name, b.name))
    .map((version) => servedVersion(definition, version, schemas.get(version.name)!, storage.name));
  return {
    id: `${names.plural}.${group}`,
    group,
    kind: names.kind,
    listKind: names.listKind ?? `${names.kind}List`,
    plural: names.plural,
    singular: names.singular ?? names.kind.toLowerCase(),
    namespaced: spec.scope === 'Namespaced',
    shortNames: names.shortNames ?? [],
    categories: names.categories ?? [],
    verbs,
    versions,
    storageVersion: storage.name,
    subresources: [],
    strategy: customStrategy(schemas.get(storage.name)!, hasStatus, scalePaths(storage)),
    fields: selectableFields(storage),
    indexed: [],
    generation: true,
    unconditionalUpdate: false,
    createOnUpdate: false,
    returnsDeleted: false,
    statusKeepsMetadata: false,
    sharesParts: true,
    custom: true,
  };
}

function schemaOf(version: DefinitionVersion): StructuralSchema {
  return new StructuralSchema((version.schema?.openAPIV3Schema ?? {}) as JsonSchema);
}

function scalePaths({ subresources }: DefinitionVersion): ScalePaths | undefined {
  const scale = subresources?.scale;
  return (
    scale && {
      specReplicas: scale.specReplicasPath,
      statusReplicas: scale.statusReplicasPath,
      ...(scale.labelSelectorPath === undefined ? {} : { selector: scale.labelSelectorPath }),
    }
  );
}

function servedVersion(
  definition: CustomResourceDefinition,
  version: DefinitionVersion,
  schema: StructuralSchema,
  storageVersion: string,
): ServedVersion {
  const { group } = definition.spec;
  const paths = scalePaths(version);
  const apiVersion = `${group}/${version.name}`;
  // What is frozen in a body of our own was stored before; nothing is left to prune unless it was by another schema.
  const isPruned = version.name === storageVersion && (definition.metadata.generation ?? 1) <= 1;
  const isStored = isPruned ? Object.isFrozen : () => false;
  return {
    name: version.name,
    status: version.subresources?.status !== undefined,
    columns: columnsOf(version),
    openApi: () => version.schema?.openAPIV3Schema ?? {},
    ...(paths ? { scale: paths } : {}),
    ...(version.deprecated ? { deprecated: version.deprecationWarning ?? deprecation(definition, apiVersion) } : {}),
    admit: (sent, owned) => {
      const object = owned ? sent : deepClone(sent);
      return { object, unknown: prune(schema, object, isStored) };
    },
    ...conversion(definition, schema, apiVersion, `${group}/${storageVersion}`),
  };
}

/** The words for a version that has none of its own: what to use instead, if there is something. */
function deprecation({ spec }: CustomResourceDefinition, apiVersion: string): string {
  const { kind } = spec.names;
  const better = spec.versions
    .filter(({ served, deprecated }) => served && !deprecated)
    .sort((a, b) => compareVersions(a.name, b.name))[0];
  const advice = better ? `; use ${spec.group}/${better.name} ${kind}` : '';
  return `${apiVersion} ${kind} is deprecated${advice}`;
}

/**
 * Between what is stored and what is shown. Versions of one schema differ in their name only; a default that a
 * definition got later shows in what was stored before.
 */
function conversion(
  definition: CustomResourceDefinition,
  schema: StructuralSchema,
  apiVersion: string,
  stored: string,
): Pick<ServedVersion, 'decode' | 'encode'> {
  const revised = (definition.metadata.generation ?? 1) > 1;
  const shown = revised ? (object: KubeObject): KubeObject => schema.default(object) as KubeObject : undefined;
  if (apiVersion !== stored) return converted(apiVersion, stored, shown);
  return shown ? { encode: remembered(shown) } : {};
}

/** The same frozen answer for the same stored object. */
function remembered(show: (object: KubeObject) => KubeObject): (object: KubeObject) => KubeObject {
  const known = new WeakMap<KubeObject, KubeObject>();
  return (object) => {
    let found = known.get(object);
    if (!found) {
      found = show(object);
      if (Object.isFrozen(object)) known.set(object, deepFreeze(found));
    }
    return found;
  };
}

function converted(
  apiVersion: string,
  stored: string,
  shown: (object: KubeObject) => KubeObject = (object) => object,
): Pick<ServedVersion, 'decode' | 'encode'> {
  return {
    decode: (object) => {
      object.apiVersion = stored;
      return object;
    },
    encode: remembered((object) => ({ ...shown(object), apiVersion })),
  };
}

type Fields = Record<string, unknown>;

/** Drops what the schema does not know, in place; returns the paths of what was dropped. */
function prune(schema: StructuralSchema, object: KubeObject, isStored: (part: object) => boolean): string[] {
  const fields = object as unknown as Fields;
  const { value, unknown } = schema.prune(object, isStored);
  if (value !== object) replaceBody(fields, value as Fields);
  return [...unknown].sort(compareStrings);
}

function replaceBody(fields: Fields, body: Fields): void {
  for (const key of Object.keys(fields)) {
    if ((envelope as readonly string[]).includes(key) || key in body) continue;
    delete fields[key];
  }
  for (const key of Object.keys(body)) if (!(envelope as readonly string[]).includes(key)) fields[key] = body[key];
}

function customStrategy(schema: StructuralSchema, hasStatus: boolean, scale: ScalePaths | undefined): Strategy {
  const check = (object: KubeObject, old?: KubeObject): FieldError[] => schema.validate(object, old);
  const applyDefaults = (object: KubeObject): void => {
    const value = schema.default(object) as unknown as Fields;
    if (value !== (object as unknown as Fields)) replaceBody(object as unknown as Fields, value);
  };
  return {
    default: applyDefaults,
    prepareCreate: (object) => {
      if (!hasStatus) return;
      delete (object as unknown as Fields)['status'];
      // The real server reads what it stored with defaults: a status that has one is there from the start.
      applyDefaults(object);
    },
    validate: (object, _context, old) =>
      beforeRules(check(object, old), [...scaleSpecErrors(object, scale), ...scaleStatusErrors(object, scale)]),
    validateStatus: (object, old) => beforeRules(check(object, old).map(inStatus), scaleStatusErrors(object, scale)),
  };
}

/** More errors; the remark that rules were not checked stays the last. */
function beforeRules(errors: FieldError[], more: readonly FieldError[]): FieldError[] {
  if (more.length === 0) return errors;
  const remarks = errors.filter(({ field }) => field === '<nil>');
  return [...errors.filter(({ field }) => field !== '<nil>'), ...more, ...remarks];
}

/** Errors of a status write name their place from within the status. */
function inStatus(error: FieldError): FieldError {
  return { ...error, detail: error.detail.replace(/^status\.(?=\S+ in body)/, '') };
}

function columnsOf(version: DefinitionVersion): readonly Column[] {
  const printed = version.additionalPrinterColumns ?? [];
  if (printed.length === 0) {
    return [
      nameColumn,
      dateColumn('Age', '.metadata.creationTimestamp', 'How long ago the server created the object.', 0),
    ];
  }
  return [
    nameColumn,
    ...printed.map(({ name, type, format, description = '', priority = 0, jsonPath }) =>
      type === 'date'
        ? dateColumn(name, jsonPath, description, priority)
        : plainColumn(name, type as Column['type'], format, description, priority, jsonPath),
    ),
  ];
}

function dateColumn(name: string, path: string, description: string, priority: number): Column {
  const read = compileJsonPath(path);
  return {
    name,
    type: 'date',
    description,
    priority,
    cell: (object, now) => {
      const value = read(object)[0];
      return value === undefined || value === null ? '<unknown>' : age(value, now);
    },
  };
}

function plainColumn(
  name: string,
  type: Column['type'],
  format: string | undefined,
  description: string,
  priority: number,
  path: string,
): Column {
  const read = compileJsonPath(path);
  const cell = (object: KubeObject): unknown => {
    const found = read(object);
    if (found.length === 0) return null;
    if (type === 'string') return found.map(cellText).join(',');
    const value = found[0];
    if (type === 'integer') return typeof value === 'number' ? Math.trunc(value) : null;
    if (type === 'number') return typeof value === 'number' ? value : null;
    return typeof value === 'boolean' ? value : null;
  };
  return { name, type, ...(format === undefined ? {} : { format }), description, priority, cell };
}

function cellText(value: unknown): string {
  if (value === null || value === undefined) return '<none>';
  return typeof value === 'object' ? JSON.stringify(value) : scalarText(value);
}

function selectableFields(version: DefinitionVersion): Resource['fields'] {
  const fields: Record<string, (object: KubeObject) => string> = {};
  for (const { jsonPath } of version.selectableFields ?? []) {
    const read = compileJsonPath(jsonPath);
    fields[jsonPath.replace(/^\./, '')] = (object) => scalarText(read(object)[0]);
  }
  return fields;
}
