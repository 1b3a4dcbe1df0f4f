// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { parseYaml, parseYamlDocuments, YamlError } from './yaml.ts';

test('reads one document, or all', () => {
  expect(parseYaml('a: 1\nb: [x, y]')).toEqual({ a: 1, b: ['x', 'y'] });
  expect(parseYaml('{"a": 1}')).toEqual({ a: 1 });
  expect(parseYaml('')).toBeNull();
  expect(parseYamlDocuments('a: 1\n---\nb: 2\n')).toEqual([{ a: 1 }, { b: 2 }]);
  expect(() => parseYaml('a: 1\n---\nb: 2\n')).toThrow(new YamlError('holds several documents where one is expected'));
});

test('says where a text is no YAML', () => {
  expect(() => parseYaml('a: 1\nb: [x')).toThrow(/at line 2, column \d+$/);
});

test('a small text that would be a huge value is refused', () => {
  const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
  for (let i = 1; i < 9; i++) lines.push(`a${i}: &a${i} [${`*a${i - 1}, `.repeat(10)}]`);
  expect(() => parseYaml(lines.join('\n'))).toThrow(YamlError);
});

test('nesting beyond all bounds is refused, and many faults cost no more than one each', () => {
  const lines = Array.from({ length: 1000 }, (_, i) => `${' '.repeat(i)}a:`);
  for (const text of ['['.repeat(100_000), '{a: '.repeat(100_000), '- '.repeat(100_000), lines.join('\n')]) {
    expect(() => parseYaml(text)).toThrow(new YamlError('nested too deeply'));
  }
  expect(parseYaml(`${'['.repeat(100)}${']'.repeat(100)}`)).toBeInstanceOf(Array);
  const before = process.cpuUsage();
  expect(() => parseYaml('{"a":[{"b":"c"}]}'.repeat(2000))).toThrow(YamlError);
  expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
});
