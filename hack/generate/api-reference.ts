// SPDX-License-Identifier: Apache-2.0
// `docs/reference/<kind>.md`: a page per kind with a table for every object in it, from the same schemas as the CRDs.
import { apiKinds } from '../../src/api/crd.ts';
import type { Kind } from '../../src/api/kind.ts';
import type { OpenApiSchema } from '../../src/api/schema.ts';
import type { Generator } from './generator.ts';

interface Section {
  readonly path: string;
  readonly schema: OpenApiSchema;
}

/** The reference page of a kind. */
export function referencePage(kind: Kind): string {
  const sections = [...sectionsOf('spec', kind.spec.openapi), ...sectionsOf('status', kind.status.openapi)];
  return [
    '<!-- Generated from src/api by `npm run generate`. Do not edit. -->',
    '',
    `# ${kind.kind}`,
    '',
    kind.description,
    '',
    ...resourceTable(kind),
    '',
    ...columnTable(kind),
    ...sections.flatMap((section) => [...renderSection(section), '']),
    'How these checks differ from upstream Karpenter: [differences](differences.md).',
    '',
  ].join('\n');
}

function resourceTable(kind: Kind): string[] {
  const rows: [string, string][] = [
    [
      'apiVersion',
      [kind.version, ...(kind.alsoServed ?? [])].map((version) => code(`${kind.group}/${version}`)).join(', '),
    ],
    ['kind', code(kind.kind)],
    ['resource', code(kind.plural)],
    ['short names', kind.shortNames?.map(code).join(', ') ?? 'none'],
    ['categories', kind.categories.map(code).join(', ')],
    ['scope', kind.namespaced ? 'namespaced' : 'cluster'],
    [
      'subresources',
      kind.scale
        ? `\`status\`, \`scale\` (${code(kind.scale.specReplicasPath)}, ${code(kind.scale.statusReplicasPath)})`
        : '`status`',
    ],
  ];
  return table(['', ''], rows);
}

function columnTable(kind: Kind): string[] {
  if (kind.columns.length === 0) return [];
  const rows = kind.columns.map((column) => [column.name, code(column.jsonPath), column.priority ? 'wide' : 'always']);
  return ['## Columns of `kubectl get`', '', ...table(['column', 'shows', 'when'], rows), ''];
}

/** The objects with named fields at and below `path`, each with the path by which a manifest reaches it. */
function* sectionsOf(path: string, schema: OpenApiSchema): IterableIterator<Section> {
  if (schema.properties) {
    yield { path, schema };
    for (const [name, field] of Object.entries(schema.properties)) yield* sectionsOf(`${path}.${name}`, field);
  }
  if (schema.items) yield* sectionsOf(`${path}[]`, schema.items);
}

function renderSection({ path, schema }: Section): string[] {
  const required = new Set(schema.required ?? []);
  const fields = Object.entries(schema.properties ?? {});
  const rows = fields.map(([name, field]) => [
    code(name),
    typeName(field),
    required.has(name) && field.default === undefined ? 'required' : defaultText(field),
    [field.description ?? '', ...limitsOf(field)].filter((part) => part !== '').join('<br>'),
  ]);
  const rules = [
    ...messagesOf(schema),
    // The rules of an object stand in its own section.
    ...fields.flatMap(([name, field]) => (field.properties ? [] : messagesOf(field).map((m) => `${code(name)}: ${m}`))),
  ];
  return [
    `## ${path}`,
    '',
    ...(schema.description ? [schema.description, ''] : []),
    ...table(['field', 'type', 'default', 'meaning'], rows),
    ...(rules.length > 0 ? ['', 'Rules:', '', ...rules.map((rule) => `- ${rule}`)] : []),
  ];
}

function typeName(schema: OpenApiSchema): string {
  if (schema['x-kubernetes-int-or-string']) return 'quantity';
  if (schema.enum) return schema.enum.map((word) => code(String(word))).join(', ');
  if (schema.items) return `list of ${schema.items.properties ? 'objects' : typeName(schema.items)}`;
  if (schema.additionalProperties) return `map to ${typeName(schema.additionalProperties)}`;
  if (schema.format === 'date-time') return 'time';
  return schema.format ?? schema.type ?? 'any';
}

function defaultText(schema: OpenApiSchema): string {
  if (schema.default === undefined) return '–';
  return code(typeof schema.default === 'string' ? schema.default : JSON.stringify(schema.default));
}

/** What the schema alone says about the values of a field, one sentence each. */
function limitsOf(schema: OpenApiSchema): string[] {
  const lines = [
    range(schema.minimum, schema.maximum, ''),
    range(schema.minLength, schema.maxLength, ' characters'),
    range(undefined, schema.maxItems, ' items'),
    range(undefined, schema.maxProperties, ' entries'),
  ].filter((line) => line !== '');
  if (schema.pattern) lines.push(`Pattern: ${code(schema.pattern)}`);
  if (schema.additionalProperties && !schema.additionalProperties['x-kubernetes-int-or-string'])
    lines.push(...limitsOf(schema.additionalProperties).map((line) => `Of each value: ${line}`));
  if (schema['x-kubernetes-list-type'] === 'set') lines.push('No value may appear twice.');
  if (schema['x-kubernetes-list-type'] === 'map')
    lines.push(`No two items may share ${schema['x-kubernetes-list-map-keys']?.map(code).join(', ')}.`);
  return lines;
}

function range(least: number | undefined, most: number | undefined, unit: string): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${unit}.`;
  if (least !== undefined) return `At least ${least}${unit}.`;
  return most === undefined ? '' : `At most ${most}${unit}.`;
}

function messagesOf(schema: OpenApiSchema): string[] {
  return (schema['x-kubernetes-validations'] ?? []).map(({ message }) => `${message}.`);
}

function code(text: string): string {
  return `\`${text}\``;
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---').join('|')}|`, ...rows.map(line)];
}

/** One page per kind, named by the kind in lower case. */
export const apiReferenceGenerators: readonly Generator[] = apiKinds.map((kind) => ({
  path: `docs/reference/${kind.kind.toLowerCase()}.md`,
  content: () => referencePage(kind),
}));
