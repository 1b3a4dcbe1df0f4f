// SPDX-License-Identifier: Apache-2.0
// `docs/reference/{settings,metrics,errors}.md`: what the program can be told, what it measures, how it fails. Metrics
// and errors are found in the sources, so that none can be forgotten.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { compareStrings } from '../../src/base/order.ts';
import { programSettings } from '../../src/cli/program-settings.ts';
import { clusterApiSettings } from '../../src/providers/cluster-api/settings.ts';
import { kwokSettings } from '../../src/providers/kwok/settings.ts';
import type { MetricDeclaration } from '../../src/runtime/metrics.ts';
import { coreSettings, renderSettingsReference, type SettingsGroup } from '../../src/runtime/settings.ts';
import type { Generator } from './generator.ts';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** The paths of all sources, without tests. */
function sources(): string[] {
  return readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((path) => join(root, 'src', path))
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.includes(`${sep}testing${sep}`))
    .toSorted(compareStrings);
}

const declarationPattern = /\b(?:counter|gauge|histogram|summary)\(\{\s*name: '([^']+)'/g;

/** The names of the metrics that a source declares. */
export function metricNamesIn(text: string): string[] {
  return [...text.matchAll(declarationPattern)].map((match) => match[1]!);
}

/**
 * Every metric that a source declares and exports: alone, in a list or in a table. Throws when one is declared but not
 * exported, because the reference would lack it.
 */
export async function declaredMetrics(): Promise<MetricDeclaration[]> {
  const found = new Map<string, MetricDeclaration>();
  for (const path of sources()) {
    const names = metricNamesIn(readFileSync(path, 'utf8'));
    if (names.length === 0) continue;
    const exported = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    for (const value of Object.values(exported).flatMap(declarationsIn)) found.set(value.name, value);
    const hidden = names.filter((name) => !found.has(name));
    if (hidden.length > 0) throw new Error(`${path} declares ${hidden.join(', ')} without exporting it`);
  }
  return [...found.values()].toSorted((a, b) => compareStrings(a.name, b.name));
}

function declarationsIn(exported: unknown): MetricDeclaration[] {
  if (typeof exported !== 'object' || exported === null) return [];
  return [exported, ...Object.values(exported)].filter(isDeclaration);
}

function isDeclaration(value: unknown): value is MetricDeclaration {
  return typeof value === 'object' && value !== null && 'type' in value && 'name' in value && 'help' in value;
}

export function renderMetricsReference(metrics: readonly MetricDeclaration[]): string {
  const rows = metrics.map(({ name, type, labels, stability, help }) => [
    `\`${name}\``,
    type,
    labels.map((label) => `\`${label}\``).join(', ') || '–',
    stability,
    help,
  ]);
  return [
    '<!-- Generated from the metric declarations in src by `npm run generate`. Do not edit. -->',
    '',
    '# Metrics',
    '',
    "Served as `/metrics` on the metrics port, in Prometheus' text format, beside the metrics of the process and of Node",
    '(`process_*`, `nodejs_*`). A metric that is not `stable` may change or go.',
    '',
    ...table(['Metric', 'Type', 'Labels', 'Stability', 'Meaning'], rows),
    '',
  ].join('\n');
}

export interface ErrorCode {
  readonly code: string;
  /** The class that carries it, where it has one of its own. */
  readonly error: string;
  readonly meaning: string;
}

/** The codes in a source, with the class they are in and the first sentence of its comment. */
export function errorCodesOf(text: string): ErrorCode[] {
  const classes = [...text.matchAll(/(?:\/\*\*((?:(?!\*\/)[\s\S])*)\*\/\n)?(?:export )?class (\w+)[^{]*\{/g)].map(
    (match) => ({
      from: match.index,
      name: match[2]!,
      comment: match[1] ?? '',
      isError: /extends \w*Error\b/.test(match[0]),
    }),
  );
  return [...text.matchAll(/'(KRP_[A-Z0-9_]*[A-Z0-9])'(?:,\s*['"`]([^\n]*?)['"`](?:,|\)|\n))?/g)].map((match) => {
    const before = classes.findLast(({ from }) => from < match.index);
    const around = before?.isError && match.index < endOfBlock(text, before.from) ? before : undefined;
    // A table of codes stands outside the class that uses it.
    const owner = around ?? (match[2] ? undefined : classes.find(({ isError }) => isError));
    return {
      code: match[1]!,
      error: owner?.name ?? '',
      meaning: owner ? firstSentence(owner.comment) : (match[2] ?? ''),
    };
  });
}

/** Where the first block after `from` ends. Braces in strings come in pairs in our sources. */
function endOfBlock(text: string, from: number): number {
  let depth = 0;
  for (let i = text.indexOf('{', from); i >= 0 && i < text.length; i++) {
    if (text[i] === '{') depth++;
    if (text[i] === '}' && --depth === 0) return i;
  }
  return text.length;
}

function firstSentence(comment: string): string {
  const text = comment
    .replace(/^\s*\*?\s?/gm, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return /^.*?[.:](?=\s|$)/.exec(text)?.[0].replace(/:$/, '.') ?? text;
}

export function renderErrorsReference(codes: readonly (ErrorCode & { readonly where: string })[]): string {
  const byCode = new Map<string, ErrorCode & { readonly where: string }>();
  for (const entry of codes) {
    const known = byCode.get(entry.code);
    if (!known || (known.meaning === '' && entry.meaning !== '')) byCode.set(entry.code, entry);
  }
  const rows = [...byCode.values()]
    .toSorted((a, b) => compareStrings(a.code, b.code))
    .map(({ code, error, meaning, where }) => [
      `\`${code}\``,
      error === '' ? '–' : `\`${error}\``,
      `\`${where}\``,
      meaning.replace(/\$\{[^}]*(?:\}|$)/g, '…') || '–',
    ]);
  return [
    '<!-- Generated from the sources by `npm run generate`. Do not edit. -->',
    '',
    '# Errors',
    '',
    'Every error that the program throws on purpose has a code that does not change with its wording. A refusal by an API',
    'server has the code `KRP_API_` and its reason: `KRP_API_NOT_FOUND`, `KRP_API_CONFLICT`.',
    '',
    ...table(['Code', 'Class', 'From', 'Meaning'], rows),
    '',
  ].join('\n');
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)];
}

/** The whole table, in parts: what no other part has is about clusters and clouds. */
function settingsGroups(): SettingsGroup[] {
  const known = { ...coreSettings, ...kwokSettings, ...clusterApiSettings };
  const others = Object.entries(programSettings).filter(([key]) => !(key in known));
  return [
    { title: 'Core', table: coreSettings },
    { title: 'Clusters and clouds', table: Object.fromEntries(others) },
    { title: 'KWOK', table: kwokSettings },
    { title: 'Cluster API', table: clusterApiSettings },
  ];
}

export const runtimeReferenceGenerators: readonly Generator[] = [
  { path: 'docs/reference/settings.md', content: () => renderSettingsReference(settingsGroups()) },
  { path: 'docs/reference/metrics.md', content: async () => renderMetricsReference(await declaredMetrics()) },
  {
    path: 'docs/reference/errors.md',
    content: () =>
      renderErrorsReference(
        sources().flatMap((path) =>
          errorCodesOf(readFileSync(path, 'utf8')).map((code) => ({
            ...code,
            where: relative(root, path).split(sep).join('/'),
          })),
        ),
      ),
  },
];
