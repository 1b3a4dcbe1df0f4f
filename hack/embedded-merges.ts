// SPDX-License-Identifier: Apache-2.0
// Writes src/embedded/shapes/merges.json: which lists of built-in kinds are maps by which keys, which are sets, and which
// objects are owned as a whole. Read from a real API server's OpenAPI. Run by hand when the Kubernetes version changes:
//   node hack/run.js node hack/embedded-merges.ts
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'undici';
import { parse } from 'yaml';
import { startControlPlane } from '../test/real/control-plane.ts';

interface Schema {
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly items?: Schema;
  readonly allOf?: readonly Schema[];
  readonly $ref?: string;
  readonly 'x-kubernetes-list-type'?: string;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: string;
}

const plane = await startControlPlane();
const { users } = parse(readFileSync(plane.kubeconfig, 'utf8')) as { users: { user: { token: string } }[] };
const dispatcher = new Agent({ connect: { rejectUnauthorized: false } });
const headers = { authorization: `Bearer ${users[0]!.user.token}` };
const read = async (path: string): Promise<unknown> =>
  (await request(`${plane.url}${path}`, { dispatcher, headers })).body.json();

const schemas = new Map<string, Schema>();
const { paths } = (await read('/openapi/v3')) as { paths: Record<string, { serverRelativeURL: string }> };
for (const [path, { serverRelativeURL }] of Object.entries(paths)) {
  if (!/\/v\d+$/.test(path)) continue;
  const { components } = (await read(serverRelativeURL)) as { components: { schemas: Record<string, Schema> } };
  for (const [name, schema] of Object.entries(components.schemas)) schemas.set(name, schema);
}
await dispatcher.close();
await plane.stop();

/** `io.k8s.api.core.v1.PodSpec` is `core.PodSpec`. */
function shortName(name: string): string | undefined {
  const [, group, version, kind] =
    /^io\.k8s\.(?:api|apimachinery\.pkg\.apis|apiextensions-apiserver\.pkg\.apis)\.(\w+)\.(v\d+)\.(\w+)$/.exec(name) ??
    [];
  if (group === undefined || kind === undefined) return undefined;
  if (group === 'autoscaling') return `${version === 'v1' ? 'scale' : 'autoscaling'}.${kind}`;
  return version === 'v1' ? `${group}.${kind}` : undefined;
}

function resolved(schema: Schema | undefined): Schema | undefined {
  const reference = schema?.$ref ?? schema?.allOf?.[0]?.$ref;
  return reference === undefined ? schema : schemas.get(reference.split('/').at(-1)!);
}

/** `set`, `atomic`, or the keys of a map with their defaults: `containerPort,protocol=TCP`. */
function mergeOf(schema: Schema): string | undefined {
  if (schema['x-kubernetes-map-type'] === 'atomic') return 'atomic';
  const listType = schema['x-kubernetes-list-type'];
  if (listType === 'set') return 'set';
  if (listType !== 'map') return undefined;
  const item = resolved(schema.items);
  return schema['x-kubernetes-list-map-keys']!.map((key) => {
    const fallback = item?.properties?.[key]?.default;
    return typeof fallback === 'string' && fallback !== '' ? `${key}=${fallback}` : key;
  }).join(',');
}

const table: Record<string, Record<string, string>> = {};
for (const [name, schema] of [...schemas].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
  const short = shortName(name);
  if (short === undefined) continue;
  const own: Record<string, string> = {};
  if (schema['x-kubernetes-map-type'] === 'atomic') own[''] = 'atomic';
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    const merge = mergeOf(property);
    if (merge !== undefined) own[field] = merge;
  }
  if (Object.keys(own).length > 0) table[short] = own;
}
const rows = Object.entries(table).map(([name, own]) => ` ${JSON.stringify(name)}: ${JSON.stringify(own)}`);
writeFileSync(new URL('../src/embedded/shapes/merges.json', import.meta.url), `{\n${rows.join(',\n')}\n}\n`);
