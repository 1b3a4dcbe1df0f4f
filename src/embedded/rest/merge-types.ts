// SPDX-License-Identifier: Apache-2.0
// How server-side apply looks at a value: which lists are maps by their keys, which are sets, what is one piece.
import type { JsonSchema } from '../../kube/schema/index.ts';
import type { Resource, ServedVersion } from '../resource.ts';
import merges from '../shapes/merges.json' with { type: 'json' };
import { type FieldType, type Shape, shapeOf, shapeOfKind } from '../shapes/shapes.ts';

/** A key of a list's items, and what it is when an item does not say. */
export interface ListKey {
  readonly name: string;
  readonly fallback?: unknown;
}

/** The merge semantics of one place in an object. */
export interface MergeType {
  /** For objects: whether fields are owned one by one. */
  readonly granular: boolean;
  /** For objects: whether their fields are the keys of a map, and not declared. Such entries have owners themselves. */
  readonly map: boolean;
  /** For lists: the keys of a map, [] for a set, undefined for a list that is owned as a whole. */
  readonly listKeys: readonly ListKey[] | undefined;
  /** For objects: fields that Go writes even when they have no value, and what it writes. */
  readonly always: ReadonlyMap<string, unknown>;
  field(name: string): MergeType;
  item(): MergeType;
}

const never: ReadonlyMap<string, unknown> = new Map();

/** A value without parts. */
const leaf: MergeType = {
  granular: false,
  map: false,
  listKeys: undefined,
  always: never,
  field: () => leaf,
  item: () => leaf,
};
/** What no schema describes: objects are maps, lists are one piece. */
const unknown: MergeType = {
  granular: true,
  map: true,
  listKeys: undefined,
  always: never,
  field: () => unknown,
  item: () => unknown,
};

const table = merges as Readonly<Record<string, Readonly<Record<string, string>>>>;
const known = new Map<Shape, MergeType>();

function ofShape(shape: Shape): MergeType {
  let type = known.get(shape);
  if (type === undefined) {
    const fields = new Map<string, MergeType>();
    type = {
      ...leaf,
      granular: table[shape.name]?.[''] !== 'atomic',
      always: new Map([...shape.fields].flatMap(([name, { zero }]) => (zero === undefined ? [] : [[name, zero]]))),
      field: (name) => {
        let field = fields.get(name);
        if (field === undefined) {
          const declared = shape.fields.get(name);
          field = declared ? ofType(declared.type, table[shape.name]?.[name]) : leaf;
          fields.set(name, field);
        }
        return field;
      },
    };
    known.set(shape, type);
  }
  return type;
}

/** `merge` is how the table describes the place: `set`, `atomic`, or keys such as `port,protocol=TCP`. */
function ofType(type: FieldType, merge: string | undefined): MergeType {
  switch (type.form) {
    case 'scalar':
      return type.scalar === 'R' ? unknown : leaf;
    case 'message':
      return merge === 'atomic' ? leaf : ofShape(type.shape);
    case 'map': {
      const value = ofType(type.item, undefined);
      return merge === 'atomic' ? leaf : { ...leaf, granular: true, map: true, field: () => value };
    }
    case 'list': {
      const item = ofType(type.item, undefined);
      return { ...leaf, listKeys: keysOf(merge), item: () => item };
    }
  }
}

function keysOf(merge: string | undefined): readonly ListKey[] | undefined {
  if (merge === undefined || merge === 'atomic') return undefined;
  if (merge === 'set') return [];
  return merge.split(',').map((key) => {
    const [name = '', fallback] = key.split('=');
    return fallback === undefined ? { name } : { name, fallback };
  });
}

const schemas = new WeakMap<JsonSchema, MergeType>();

function ofSchema(schema: JsonSchema | undefined): MergeType {
  if (!schema) return unknown;
  let type = schemas.get(schema);
  if (type === undefined) {
    type = describe(schema);
    schemas.set(schema, type);
  }
  return type;
}

function describe(schema: JsonSchema): MergeType {
  if (schema['x-kubernetes-map-type'] === 'atomic') return leaf;
  if (schema.type === 'array') {
    return { ...leaf, listKeys: schemaKeys(schema), item: () => ofSchema(schema.items) };
  }
  const { properties = {}, additionalProperties: additional } = schema;
  const free = schema['x-kubernetes-preserve-unknown-fields'] === true;
  return {
    ...leaf,
    granular: true,
    map: typeof additional === 'object' || (free && Object.keys(properties).length === 0),
    field: (name) => ofSchema(properties[name] ?? (typeof additional === 'object' ? additional : undefined)),
  };
}

function schemaKeys(schema: JsonSchema): readonly ListKey[] | undefined {
  const listType = schema['x-kubernetes-list-type'];
  if (listType === 'set') return [];
  if (listType !== 'map') return undefined;
  return (schema['x-kubernetes-list-map-keys'] ?? []).map((name) => {
    const fallback = schema.items?.properties?.[name]?.default;
    return fallback === undefined ? { name } : { name, fallback };
  });
}

const metadata = ofShape(shapeOf('meta.ObjectMeta')!);

/** The semantics of a kind's objects. */
export function mergeTypeOf(resource: Resource, version: ServedVersion): MergeType {
  const shape = resource.custom ? undefined : shapeOfKind(resource.group, version.name, resource.kind);
  const body = shape ? ofShape(shape) : ofSchema(version.openApi?.() as JsonSchema | undefined);
  return { ...body, map: false, field: (name) => (name === 'metadata' ? metadata : body.field(name)) };
}
