// SPDX-License-Identifier: Apache-2.0
// What follows from the chart's values: values.yaml, values.schema.json, the environment of the container, the page
// about them.
import { Document, isMap, type YAMLMap } from 'yaml';
import type { Setting } from '../../../src/runtime/setting-types.ts';
import { type ChartSetting, type ChartValue, gateName, isGates, type JsonSchema } from './values.ts';

const generated = 'Generated from hack/generate/chart and the settings table by `npm run generate`. Do not edit.';

/** values.yaml: every value with its default, and what it is for. */
export function renderValues(values: readonly ChartValue[]): string {
  const document = new Document({});
  for (const { path, default: initial, help } of values) {
    const keys = path.split('.');
    const parent = keys.slice(0, -1).reduce<YAMLMap>(
      (map, key) => {
        if (!map.has(key)) map.set(key, document.createNode({}));
        const next = map.get(key, true);
        if (!isMap(next)) throw new Error(`${path} is below a value`);
        return next as unknown as YAMLMap;
      },
      document.contents as unknown as YAMLMap,
    );
    if (initial === undefined) continue;
    const pair = document.createPair(keys.at(-1), initial);
    (pair.key as { commentBefore?: string }).commentBefore = wrapped(help, 110 - 2 * keys.length);
    parent.add(pair);
  }
  return `# ${generated}\n# What every value means is in docs/reference/chart.md too.\n\n${document.toString({ lineWidth: 0, flowCollectionPadding: false })}`;
}

function wrapped(text: string, width: number): string {
  const lines = [''];
  for (const word of text.split(' ')) {
    if ((lines.at(-1) + word).length > width) lines.push('');
    lines[lines.length - 1] += ` ${word}`;
  }
  return lines.join('\n');
}

interface SchemaNode {
  type: 'object';
  properties: Record<string, unknown>;
  additionalProperties: false;
}

const newNode = (): SchemaNode => ({ type: 'object', properties: {}, additionalProperties: false });

/** values.schema.json: helm refuses everything else, with the place and what it may be. */
export function renderValuesSchema(values: readonly ChartValue[]): string {
  const root = newNode();
  for (const { path, help, schema } of values) {
    const keys = path.split('.');
    const parent = keys.slice(0, -1).reduce((node, key) => {
      node.properties[key] ??= newNode();
      return node.properties[key] as SchemaNode;
    }, root);
    parent.properties[keys.at(-1)!] = { description: help, ...schema };
  }
  // What a parent chart shares with all of its parts.
  root.properties['global'] = { type: 'object' };
  const document = { $schema: 'http://json-schema.org/draft-07/schema#', $comment: generated, ...root };
  return `${JSON.stringify(document, undefined, 2)}\n`;
}

/** templates/_settings.tpl: the text of each setting, and the environment of the container. */
export function renderSettingsTemplate(settings: readonly ChartSetting[]): string {
  const texts = settings.map(({ setting, names, unless }) => {
    // The other charts' names first: whoever gives one means it.
    const values = [...names.slice(1), names[0]].map((name) => `.Values.${name}`);
    const body = isGates(setting)
      ? gatesText(setting, names[0])
      : `{{- include "karpenter.first" (list ${values.join(' ')}) }}`;
    const told = unless === undefined ? body : `{{- if not .Values.${unless} }}\n${body}\n{{- end }}`;
    return `{{- define "karpenter.setting.${setting.env}" -}}\n${told}\n{{- end }}\n`;
  });
  const given = ({ setting: { env } }: ChartSetting, body: string): string =>
    `{{- with include "karpenter.setting.${env}" . }}\n${body}\n{{- end }}`;
  const secrets = settings.filter(({ setting }) => setting.secret);
  const variables = settings.map((each) => {
    const { env, secret } = each.setting;
    const source = `  valueFrom:\n    secretKeyRef:\n      name: {{ include "karpenter.fullname" $ }}-settings\n      key: ${env}`;
    return given(each, `- name: ${env}\n${secret ? source : '  value: {{ . | quote }}'}`);
  });
  return [
    `{{/* ${generated} */}}`,
    '',
    ...texts,
    '{{/* A variable per setting that has a value; an empty one is left to the program. */}}',
    '{{- define "karpenter.env" -}}',
    ...variables,
    '{{- end }}',
    '',
    '{{/* The credentials among them, for the Secret that holds them. */}}',
    '{{- define "karpenter.credentials" -}}',
    ...secrets.map((each) => given(each, `${each.setting.env}: {{ . | quote }}`)),
    '{{- end }}',
    '',
  ].join('\n');
}

/** `NodeRepair=true,…`: every gate that has a value. */
function gatesText(setting: Setting, name: string): string {
  const gates = Object.keys(setting.default as object);
  const steps = gates.map((gate) => {
    const given = `.Values.${name}.${gateName(gate)}`;
    return `{{- if not (kindIs "invalid" ${given}) }}{{ $gates = append $gates (printf "${gate}=%t" ${given}) }}{{ end }}`;
  });
  return ['{{- $gates := list -}}', ...steps, '{{- join "," $gates }}'].join('\n');
}

/** docs/reference/chart.md. */
export function renderChartReference(values: readonly ChartValue[]): string {
  const rows = values.map(({ path, default: initial, help, schema }) => {
    const shown = initial === undefined || initial === '' || initial === null ? '–' : `\`${JSON.stringify(initial)}\``;
    const cells = [`\`${path}\``, typeName(schema), shown, help].map((cell) => cell.replaceAll('|', '\\|'));
    return `| ${cells.join(' | ')} |`;
  });
  return [
    `<!-- ${generated} -->`,
    '',
    '# Values of the chart',
    '',
    'The values of `charts/karpenter`: the names of upstream’s chart, and at the end the names that the Cluster API',
    'provider’s chart has for some of them. A value that is not here, or not of its type, is refused by helm',
    '(`values.schema.json`). What has no value here is set with `controller.env`; [settings](settings.md) lists all variables.',
    '',
    '| Value | Type | Default | Meaning |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n');
}

function typeName(schema: JsonSchema): string {
  const options = schema['enum'] as readonly string[] | undefined;
  if (options)
    return options
      .filter(Boolean)
      .map((word) => `\`${word}\``)
      .join(', ');
  return [schema['type']].flat().join(' or ');
}
