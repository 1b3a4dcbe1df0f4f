// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { programSettings } from '../../../src/cli/program-settings.ts';
import { text } from '../../../src/runtime/setting-types.ts';
import { crdTemplate } from './chart.ts';
import { renderChartReference, renderSettingsTemplate, renderValues, renderValuesSchema } from './render.ts';
import { chartSettings, chartValues } from './values.ts';

const at = (tree: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((node, key) => (node as Record<string, unknown> | undefined)?.[key], tree);

test('no value is listed twice', () => {
  const paths = chartValues.map(({ path }) => path);
  expect(paths).toEqual([...new Set(paths)]);
});

test('values.yaml holds every default, and leaves out what has none', () => {
  const values = parse(renderValues(chartValues)) as unknown;
  for (const { path, default: initial } of chartValues) expect(at(values, path), path).toEqual(initial);
});

test('the schema and the reference know every value, and the schema no other', () => {
  const schema = JSON.parse(renderValuesSchema(chartValues)) as unknown;
  const reference = renderChartReference(chartValues);
  for (const { path } of chartValues) {
    expect(at(schema, `properties.${path.replaceAll('.', '.properties.')}`), path).toBeDefined();
    expect(reference).toContain(`| \`${path}\` |`);
  }
  expect(at(schema, 'additionalProperties')).toBe(false);
  expect(at(schema, 'properties.settings.additionalProperties')).toBe(false);
});

test('every setting with a chart value becomes a variable, and a setting without one does not', () => {
  const template = renderSettingsTemplate(chartSettings);
  for (const { env, chart } of Object.values(programSettings)) {
    expect(template.includes(`- name: ${env}\n`), env).toBe(chart !== undefined);
  }
});

test("another chart's name wins over ours: whoever gives it means it", () => {
  const setting = text({ env: 'WORD', default: '', help: 'A word.', chart: ['settings.word', 'env.word'] });
  const template = renderSettingsTemplate([{ setting, names: ['settings.word', 'env.word'] }]);
  expect(template).toContain('(list .Values.env.word .Values.settings.word)');
});

test('a credential goes into the Secret, and the container is told where', () => {
  const setting = text({ env: 'TOKEN', default: '', help: 'A token.', chart: ['token'], secret: true });
  const template = renderSettingsTemplate([{ setting, names: ['token'] }]);
  expect(template).toContain('- name: TOKEN\n  valueFrom:\n    secretKeyRef:\n');
  expect(template).toContain('TOKEN: {{ . | quote }}');
  expect(template).not.toContain('value: {{');
});

test('a CRD becomes a template with annotations, and one that looks like a template is refused', () => {
  const crd = (description: string): string =>
    `# Generated.\n---\nkind: CustomResourceDefinition\nmetadata:\n  name: things.example.com\nspec:\n  description: ${description}\n`;
  expect(crdTemplate(crd('plain'))).toMatch(
    /name: things.example.com\n {2}\{\{- with include "karpenter-crd.annotations"/,
  );
  expect(() => crdTemplate(crd('"{{ braces }}"'))).toThrow('helm');
});
