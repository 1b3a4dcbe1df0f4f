// SPDX-License-Identifier: Apache-2.0
// What an API server with our CRDs would say to a manifest.
import type { Manifest } from '../api/convert.ts';
import { allCrds } from '../api/crd.ts';
import { type JsonSchema, StructuralSchema } from '../kube/schema/index.ts';

/** One sentence for each fault of an object of ours; none for kinds that are not. */
export function problemsOf(object: Manifest): string[] {
  const [group = '', version = ''] = object.apiVersion.split('/');
  const crd = allCrds().find(({ spec }) => spec.group === group && spec.names.kind === object.kind);
  if (!crd) return [];
  const served = crd.spec.versions.find(({ name }) => name === version);
  if (!served) return [`${group}/${version} is not served; ${crd.spec.versions.map(({ name }) => name).join(', ')} is`];
  const schema = new StructuralSchema(served.schema.openAPIV3Schema as JsonSchema);
  const { value, unknown } = schema.prune(object);
  return [
    ...unknown.map((field) => `there is no field ${field}`),
    ...schema.validate(schema.default(value)).map(({ field, detail }) => `${field}: ${detail}`),
  ];
}
