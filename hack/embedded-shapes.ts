// SPDX-License-Identifier: Apache-2.0
// Writes src/embedded/shapes/shapes.json: the fields of every built-in kind (name, type, protobuf number), read from the
// struct tags of the Go API modules. Run by hand when the Kubernetes version changes:
//   node hack/run.js node hack/embedded-shapes.ts <folder with k8s.io/api@v…, k8s.io/apimachinery@v…, …>
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const [modules, version = 'v0.36.1'] = process.argv.slice(2);
if (!modules) throw new Error('usage: node hack/embedded-shapes.ts <module cache>/k8s.io [version]');

const packages: Readonly<Record<string, string>> = {
  meta: `apimachinery@${version}/pkg/apis/meta/v1`,
  apiextensions: `apiextensions-apiserver@${version}/pkg/apis/apiextensions/v1`,
  ...Object.fromEntries(
    'core apps batch policy rbac storage scheduling coordination events networking discovery node admissionregistration authentication authorization resource'
      .split(' ')
      .map((name) => [name, `api@${version}/${name}/v1`]),
  ),
  autoscaling: `api@${version}/autoscaling/v2`,
  scale: `api@${version}/autoscaling/v1`,
};

/** Types with a form of their own, by their Go name. */
const special: Readonly<Record<string, string>> = {
  string: 's',
  bool: 'b',
  int: 'i',
  int32: 'i',
  int64: 'i',
  float64: 'd',
  '[]byte': 'y',
  'meta.Time': 'T',
  'meta.MicroTime': 'M',
  'meta.Duration': 'D',
  'meta.FieldsV1': 'R',
  'resource.Quantity': 'Q',
  'intstr.IntOrString': 'I',
  'runtime.RawExtension': 'R',
  'apiextensions.JSON': 'R',
  // Schemas of schemas: checked by the server that compiles them.
  'apiextensions.JSONSchemaProps': 'R',
};

/** How Go files call the packages they import. */
const imported: Readonly<Record<string, string>> = {
  v1: 'core',
  metav1: 'meta',
  corev1: 'core',
  types: 'types',
  autoscalingv1: 'scale',
  apiv1: 'core',
};

const structs = new Map<string, string[]>();
const aliases = new Map<string, string>();

for (const [name, folder] of Object.entries(packages)) {
  const directory = join(modules, folder);
  for (const file of readdirSync(directory).filter(
    (entry) => entry.endsWith('.go') && !/_test|generated/.test(entry),
  )) {
    readGo(name, readFileSync(join(directory, file), 'utf8'));
  }
}

function readGo(pkg: string, text: string): void {
  for (const [, name, body] of text.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm))
    structs.set(`${pkg}.${name}`, body!.split('\n'));
  for (const [, name, type] of text.matchAll(/^type (\w+) ([[\]\w.]+)\s*(?:\/\/.*)?$/gm))
    if (type !== 'struct') aliases.set(`${pkg}.${name}`, type!);
}

function typeOf(pkg: string, go: string): string {
  const type = go.replace(/^\*/, '');
  if (special[type]) return special[type];
  if (type.startsWith('[]')) return `[]${typeOf(pkg, type.slice(2))}`;
  const map = /^map\[[\w.]+\](.+)$/.exec(type);
  if (map) return `{}${typeOf(pkg, map[1]!)}`;
  const [first = '', second] = type.split('.');
  const home = second === undefined ? pkg : (imported[first] ?? first);
  const full = `${home}.${second ?? first}`;
  if (special[full]) return special[full];
  if (home === 'types') return 's';
  const alias = aliases.get(full);
  if (alias !== undefined) return typeOf(home, alias);
  return full;
}

/** name, number, type, and 1 where a zero value means the field is not set, 2 where it is written even so. */
type Field = [string, number, string] | [string, number, string, 1 | 2];

const shapes: Record<string, Field[]> = {};
for (const [name, lines] of [...structs].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const pkg = name.split('.')[0]!;
  const fields: Field[] = [];
  for (const line of lines) {
    const match = /^\s*(?:(\w+)\s+)?([*[\]\w.]+)\s+`([^`]*)`/.exec(line);
    const json = match && /json:"([^"]*)"/.exec(match[3]!)?.[1];
    if (!match || json == null || json.startsWith('-') || match[2]!.endsWith('TypeMeta')) continue;
    const number = Number(/protobuf:"\w+,(\d+)/.exec(match[3]!)?.[1] ?? 0);
    const [jsonName = '', ...options] = json.split(',');
    const type = typeOf(pkg, match[2]!);
    const pointer = match[2]!.startsWith('*');
    const field = [jsonName, number, type] as [string, number, string];
    fields.push(pointer ? field : [...field, options.includes('omitempty') ? 1 : 2]);
  }
  if (fields.length > 0) shapes[name] = fields;
}

// Keep what the kinds reach.
const reached = new Set<string>();
const roots = Object.keys(shapes).filter(
  (name) => shapes[name]!.some(([field]) => field === 'metadata') && !name.endsWith('List'),
);
const queue = [
  ...roots,
  'meta.DeleteOptions',
  'scale.Scale',
  'policy.Eviction',
  'core.Binding',
  'authentication.TokenRequest',
];
while (queue.length > 0) {
  const name = queue.pop()!;
  if (reached.has(name) || !shapes[name]) continue;
  reached.add(name);
  for (const [, , type] of shapes[name]) queue.push(type.replaceAll(/\[\]|\{\}/g, ''));
}
const kept = Object.fromEntries(Object.entries(shapes).filter(([name]) => reached.has(name)));
const lines = Object.entries(kept).map(([name, fields]) => `${JSON.stringify(name)}: ${JSON.stringify(fields)}`);
writeFileSync('src/embedded/shapes/shapes.json', `{\n${lines.join(',\n')}\n}\n`);
console.log(`${lines.length} shapes`);
const missing = new Set(
  Object.values(kept)
    .flatMap((fields) => fields.map(([, , type]) => type.replaceAll(/\[\]|\{\}/g, '')))
    .filter((type) => type.length > 1 && !kept[type]),
);
if (missing.size > 0) console.log('not found:', [...missing].join(' '));
