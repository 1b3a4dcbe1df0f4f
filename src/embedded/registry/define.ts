// SPDX-License-Identifier: Apache-2.0
// How built-in kinds are written down: one short entry each, the rest follows from conventions.

import type { KubeObject } from '../../kube/object.ts';
import { nameAndAge } from '../printing/columns.ts';
import type { Column, Resource, ScalePaths, Strategy, Subresource, Verb } from '../resource.ts';
import { admissionFor } from '../shapes/admit.ts';
import { openApiOf } from '../shapes/open-api.ts';
import type { FieldIndexer } from '../store.ts';

const allVerbs: readonly Verb[] = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'];

export interface Definition<T extends KubeObject> {
  readonly group: string;
  readonly version?: string;
  readonly kind: string;
  readonly plural?: string;
  readonly namespaced: boolean;
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly verbs?: readonly Verb[];
  readonly status?: boolean;
  readonly scale?: ScalePaths;
  readonly subresources?: readonly Subresource[];
  readonly strategy?: Strategy<T>;
  readonly fields?: Readonly<Record<string, (object: T) => string>>;
  readonly indexed?: readonly string[];
  readonly generation?: boolean;
  readonly unconditionalUpdate?: boolean;
  readonly createOnUpdate?: boolean;
  readonly returnsDeleted?: boolean;
  readonly statusKeepsMetadata?: boolean;
  readonly sharesParts?: boolean;
  readonly columns?: readonly Column<T>[];
}

/** What most kinds have. */
const usual = {
  version: 'v1',
  shortNames: [],
  categories: [],
  verbs: allVerbs,
  status: false,
  subresources: [],
  strategy: {},
  fields: {},
  indexed: [],
  generation: false,
  unconditionalUpdate: true,
  createOnUpdate: false,
  returnsDeleted: false,
  statusKeepsMetadata: false,
  sharesParts: false,
  columns: nameAndAge,
};

/** A built-in kind from its entry. Everything left out is what most kinds have. */
export function define<T extends KubeObject>(definition: Definition<T>): Resource {
  const { columns, scale, status, version, ...entry } = { ...usual, ...definition };
  const { group, kind } = entry;
  const plural = definition.plural ?? `${kind.toLowerCase()}s`;
  const admit = admissionFor(group, version, kind);
  const openApi = openApiOf(group, version, kind);
  return {
    ...entry,
    id: group === '' ? plural : `${plural}.${group}`,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    versions: [
      {
        name: version,
        status,
        columns: columns as readonly Column[],
        ...(admit ? { admit } : {}),
        ...(openApi ? { openApi } : {}),
        ...(scale ? { scale } : {}),
      },
    ],
    storageVersion: version,
    strategy: entry.strategy as Strategy,
    fields: entry.fields as Readonly<Record<string, FieldIndexer>>,
    custom: false,
  };
}
