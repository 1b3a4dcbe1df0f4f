// SPDX-License-Identifier: Apache-2.0
// Valid objects to begin with.
import type { Thing } from './caller.ts';
import { type Context, eventually, ok } from './case.ts';

type Fields = Readonly<Record<string, unknown>>;

export function configMap(name: string, data: Readonly<Record<string, string>> = { a: '1' }, metadata: Fields = {}) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, ...metadata }, data };
}

export const container = { name: 'main', image: 'example.com/app:1' };

export function pod(name: string, spec: Fields = {}, metadata: Fields = {}) {
  const base = { containers: [container], automountServiceAccountToken: false };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { ...base, ...spec } };
}

export function deployment(name: string, spec: Fields = {}, metadata: Fields = {}) {
  const labels = { app: name };
  const template = { metadata: { labels }, spec: { containers: [container] } };
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...metadata },
    spec: { replicas: 1, selector: { matchLabels: labels }, template, ...spec },
  };
}

export function budget(name: string, spec: Fields) {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name },
    spec: { selector: { matchLabels: { app: name } }, ...spec },
  };
}

/** What a case says of its own definition; the rest is filled in. */
export interface CrdParts {
  readonly plural?: string;
  readonly kind?: string;
  readonly scope?: 'Namespaced' | 'Cluster';
  readonly names?: Fields;
  /** The schema of `spec`, or with `whole` of everything. */
  readonly spec?: Fields;
  readonly whole?: Fields;
  /** Into the version beside its schema. */
  readonly version?: Fields;
  readonly versions?: readonly Fields[];
  readonly extra?: Fields;
}

/** A definition in a group of the case's own. */
export function crd(group: string, parts: CrdParts = {}) {
  const { plural = 'gadgets', kind = 'Gadget' } = parts;
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true, ...parts.spec } },
      ...parts.whole,
    },
  };
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: parts.scope ?? 'Namespaced',
      names: { plural, kind, singular: kind.toLowerCase(), listKind: `${kind}List`, ...parts.names },
      versions: parts.versions ?? [{ name: 'v1', served: true, storage: true, schema, ...parts.version }],
      ...parts.extra,
    },
  };
}

export interface Defined {
  readonly group: string;
  readonly name: string;
  /** The collection in the case's namespace, or of the cluster. */
  readonly path: string;
  /** An instance. */
  readonly make: (name: string, fields?: Fields, metadata?: Fields) => Fields;
}

/** Creates a definition and waits until its kind is served. */
export async function define(context: Context, parts: CrdParts = {}): Promise<Defined> {
  const { a, namespace } = context;
  const group = `${namespace}.example.com`;
  const { plural = 'gadgets', kind = 'Gadget' } = parts;
  const created = await ok(a.post(context.path('customresourcedefinitions'), crd(group, parts)));
  const where = parts.scope === 'Cluster' ? '' : `/namespaces/${namespace}`;
  const path = `/apis/${group}/v1${where}/${plural}`;
  await established(context, created.metadata.name);
  await eventually(() => ok(a.get(path)));
  return {
    group,
    name: created.metadata.name,
    path,
    make: (name, fields = {}, metadata = {}) => ({
      apiVersion: `${group}/v1`,
      kind,
      metadata: { name, ...metadata },
      ...fields,
    }),
  };
}

export function established({ a, path }: Context, name: string): Promise<Thing> {
  return eventually(async () => {
    const found = await ok(a.get(path('customresourcedefinitions', name)));
    const conditions = (found.status?.['conditions'] ?? []) as { type: string; status: string }[];
    if (!conditions.some(({ type, status }) => type === 'Established' && status === 'True')) {
      throw new Error(`${name} is not established: ${JSON.stringify(conditions)}`);
    }
    return found;
  });
}
