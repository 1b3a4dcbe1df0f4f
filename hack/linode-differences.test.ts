// SPDX-License-Identifier: Apache-2.0
// docs/reference/linode-differences.md against the tests: every mark has a test that names it, every name has a row.
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const markPattern = /\b(?:BUG|TRAP|GAP) \d+(?:\.\d+)?[a-z]?\b/g;

/** The marks in the titles of tests: what follows `test(`, `describe(` or `each(…)(`, up to the end of the line. */
function marksOf(text: string): string[] {
  const titles = text.split('\n').filter((line) => /['"`]\[(?:BUG|TRAP|GAP) /.test(line));
  return titles.flatMap((line) => [...line.matchAll(/\[((?:BUG|TRAP|GAP) [\d.]+[a-z]?)\]/g)].map(([, mark]) => mark!));
}

test('every defect of the existing Linode provider has a test that names it', () => {
  const table = readFileSync('docs/reference/linode-differences.md', 'utf8');
  const rows = table.split('\n').flatMap((line) => /^\| ((?:BUG|TRAP|GAP) \S+) \|/.exec(line)?.[1] ?? []);
  expect(rows).toHaveLength(37);
  expect(new Set(rows).size).toBe(rows.length);
  expect(rows.filter((row) => !row.match(markPattern))).toEqual([]);
  const files = globSync(['src/providers/linode/**/*.test.ts', 'test/real/charts.test.ts']);
  const named = new Set(files.flatMap((file) => marksOf(readFileSync(file, 'utf8'))));
  expect(rows.filter((row) => !named.has(row))).toEqual([]);
  expect([...named].filter((mark) => !rows.includes(mark))).toEqual([]);
});
