// SPDX-License-Identifier: Apache-2.0
// How server-side apply looks at a value: which lists are maps by a key, which are sets, which are one piece.
import { patchSchemaFor } from '../../kube/patch-schemas.ts';
import type { JsonSchema } from '../../kube/schema/index.ts';
import type { PatchField, PatchSchema } from '../../kube/strategic-merge-patch.ts';
import type { Resource, ServedVersion } from '../resource.ts';

/** The merge semantics of one place in an object. */
export interface MergeType {
  /** For objects: whether fields are owned one by one. */
  readonly granular: boolean;
  /** For lists: the keys of a map, [] for a set, undefined for a list that is owned as a whole. */
  readonly listKeys: readonly string[] | undefined;
  field(name: string): MergeType;
  item(): MergeType;
}

/** Anything we know nothing of: objects field by field, lists as a whole. */
const plain: MergeType = { granular: true, listKeys: undefined, field: () => plain, item: () => plain };

function fromPatchSchema(schema: PatchSchema | undefined, place: PatchField | undefined): MergeType {
  if (!schema && !place) return plain;
  const inner = schema ?? place?.schema;
  const merges = place?.strategy === 'merge';
  return {
    granular: place?.strategy !== 'replace',
    listKeys: merges ? (place.mergeKey === undefined ? [] : [place.mergeKey]) : undefined,
    field: (name) => fromPatchSchema(undefined, inner?.get(name)),
    item: () => fromPatchSchema(place?.schema, undefined),
  };
}

function fromJsonSchema(schema: JsonSchema | undefined): MergeType {
  if (!schema) return plain;
  const listType = schema['x-kubernetes-list-type'];
  return {
    granular: schema['x-kubernetes-map-type'] !== 'atomic',
    listKeys: listType === 'map' ? (schema['x-kubernetes-list-map-keys'] ?? []) : listType === 'set' ? [] : undefined,
    field: (name) => {
      const additional = schema.additionalProperties;
      return fromJsonSchema(schema.properties?.[name] ?? (typeof additional === 'object' ? additional : undefined));
    },
    item: () => fromJsonSchema(schema.items as JsonSchema | undefined),
  };
}

/** Metadata is the same for all kinds. */
const metadata: MergeType = {
  granular: true,
  listKeys: undefined,
  field: (name) => {
    if (name === 'finalizers') return { ...plain, listKeys: [] };
    return name === 'ownerReferences' ? { ...plain, listKeys: ['uid'] } : plain;
  },
  item: () => plain,
};

/** The semantics of a kind's objects. */
export function mergeTypeOf(resource: Resource, version: ServedVersion): MergeType {
  const body = resource.custom
    ? fromJsonSchema(version.openApi?.() as JsonSchema | undefined)
    : fromPatchSchema(patchSchemaFor(resource.group, version.name, resource.kind), undefined);
  return { ...body, field: (name) => (name === 'metadata' ? metadata : body.field(name)) };
}
