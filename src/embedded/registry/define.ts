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
  readonly columns?: readonly Column<T>[];
}

/** A built-in kind from its entry. Everything left out is what most kinds have. */
export function define<T extends KubeObject>(definition: Definition<T>): Resource {
  const { group, kind, version = 'v1' } = definition;
  const plural = definition.plural ?? `${kind.toLowerCase()}s`;
  const admit = admissionFor(group, version, kind);
  const openApi = openApiOf(group, version, kind);
  return {
    id: group === '' ? plural : `${plural}.${group}`,
    group,
    kind,
    listKind: `${kind}List`,
    plural,
    singular: kind.toLowerCase(),
    namespaced: definition.namespaced,
    shortNames: definition.shortNames ?? [],
    categories: definition.categories ?? [],
    verbs: definition.verbs ?? allVerbs,
    versions: [
      {
        name: version,
        status: definition.status ?? false,
        columns: (definition.columns ?? nameAndAge) as readonly Column[],
        ...(admit ? { admit } : {}),
        ...(openApi ? { openApi } : {}),
        ...(definition.scale ? { scale: definition.scale } : {}),
      },
    ],
    storageVersion: version,
    subresources: definition.subresources ?? [],
    strategy: (definition.strategy ?? {}) as Strategy,
    fields: (definition.fields ?? {}) as Readonly<Record<string, FieldIndexer>>,
    indexed: definition.indexed ?? [],
    generation: definition.generation ?? false,
    unconditionalUpdate: definition.unconditionalUpdate ?? true,
    createOnUpdate: definition.createOnUpdate ?? false,
    returnsDeleted: definition.returnsDeleted ?? false,
    statusKeepsMetadata: definition.statusKeepsMetadata ?? false,
    custom: false,
  };
}
