// SPDX-License-Identifier: Apache-2.0
// A kind of ours from end to end: names, columns and schemas in, the CRD object and the static type out.
import type { OpenApiSchema, Schema, TypeOf } from './schema.ts';

/** What every object carries. Times are RFC 3339 strings as on the wire. */
export interface ObjectMeta {
  name?: string;
  generateName?: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  generation?: number;
  creationTimestamp?: string | null;
  deletionTimestamp?: string;
  deletionGracePeriodSeconds?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: {
    apiVersion: string;
    kind: string;
    name: string;
    uid: string;
    controller?: boolean;
    blockOwnerDeletion?: boolean;
  }[];
  managedFields?: unknown[];
}

/** An object of a kind with the given spec and status. */
export interface ApiObject<Spec, Status> {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: Spec;
  status?: Status;
}

/** An object of a kind whose spec may be left out. */
export type SpecOptional<T extends { spec: unknown }> = Omit<T, 'spec'> & Partial<Pick<T, 'spec'>>;

/** One column of `kubectl get`. Priority 1 shows only in wide output. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: 'string' | 'integer' | 'date';
  readonly jsonPath: string;
  readonly priority?: number;
  readonly description?: string;
}

interface KindOptions<Spec extends Schema, Status extends Schema, SpecRequired extends boolean> {
  readonly group: string;
  /** The version that is stored, and that we speak. */
  readonly version: string;
  /** More versions under which the same schema is served, for manifests that name them. */
  readonly alsoServed?: readonly string[];
  readonly kind: string;
  readonly plural: string;
  readonly shortNames?: readonly string[];
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  readonly description: string;
  readonly spec: Spec;
  /** False where the API server accepts an object without a spec. */
  readonly specRequired?: SpecRequired;
  readonly status: Status;
  readonly columns: readonly PrinterColumn[];
  readonly scale?: { readonly specReplicasPath: string; readonly statusReplicasPath: string };
}

/**
 * A kind as the API server serves it: fits wherever a resource type of `src/kube` is asked for, and carries what its
 * CRD and its reference page are made of.
 */
export interface Kind<T = unknown> extends Omit<KindOptions<Schema, Schema, boolean>, 'specRequired'> {
  readonly specRequired: boolean;
  /** Never present: carries the type of the objects through inference. */
  readonly object?: T;
}

/** Defines a kind; the type of its objects follows from the schemas of spec and status. */
export function defineKind<Spec extends Schema, Status extends Schema, const SpecRequired extends boolean = true>(
  options: KindOptions<Spec, Status, SpecRequired>,
): Kind<
  SpecRequired extends true
    ? ApiObject<TypeOf<Spec>, TypeOf<Status>>
    : SpecOptional<ApiObject<TypeOf<Spec>, TypeOf<Status>>>
> {
  return { ...options, specRequired: options.specRequired ?? true };
}

/** The static type of the objects of a kind. */
export type ObjectOf<K extends Kind> = K extends Kind<infer T> ? T : never;

/** A CustomResourceDefinition (`apiextensions.k8s.io/v1`) as plain JSON. */
export interface CustomResourceDefinition {
  apiVersion: 'apiextensions.k8s.io/v1';
  kind: 'CustomResourceDefinition';
  metadata: { name: string };
  spec: {
    group: string;
    names: {
      kind: string;
      listKind: string;
      plural: string;
      singular: string;
      shortNames?: string[];
      categories?: string[];
    };
    scope: 'Cluster' | 'Namespaced';
    versions: {
      name: string;
      served: boolean;
      storage: boolean;
      additionalPrinterColumns?: PrinterColumn[];
      schema: { openAPIV3Schema: OpenApiSchema };
      subresources: { status: object; scale?: { specReplicasPath: string; statusReplicasPath: string } };
    }[];
  };
}

const apiVersionField: OpenApiSchema = {
  description: 'The group and version of this object, such as karpenter.sh/v1.',
  type: 'string',
};
const kindField: OpenApiSchema = { description: 'The kind of this object, such as NodePool.', type: 'string' };

/** The CRD of a kind. A new object every time: the caller may change it. */
export function crdOf(kind: Kind): CustomResourceDefinition {
  return structuredClone({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${kind.plural}.${kind.group}` },
    spec: {
      group: kind.group,
      names: {
        kind: kind.kind,
        listKind: `${kind.kind}List`,
        plural: kind.plural,
        singular: kind.kind.toLowerCase(),
        ...(kind.shortNames && { shortNames: [...kind.shortNames] }),
        categories: [...kind.categories],
      },
      scope: kind.namespaced ? 'Namespaced' : 'Cluster',
      versions: [kind.version, ...(kind.alsoServed ?? [])].map((name) => ({
        name,
        served: true,
        storage: name === kind.version,
        ...(kind.columns.length > 0 && { additionalPrinterColumns: [...kind.columns] }),
        schema: {
          openAPIV3Schema: {
            description: kind.description,
            type: 'object',
            ...(kind.specRequired && { required: ['spec'] }),
            properties: {
              apiVersion: apiVersionField,
              kind: kindField,
              metadata: { type: 'object' },
              spec: kind.spec.openapi,
              status: kind.status.openapi,
            },
          },
        },
        subresources: { status: {}, ...(kind.scale && { scale: { ...kind.scale } }) },
      })),
    },
  });
}
