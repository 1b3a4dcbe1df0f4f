// SPDX-License-Identifier: Apache-2.0
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { allCrds } from '../src/api/crd.ts';
import { crdYaml } from './generate/crds.ts';
import { generate, generators } from './generate.ts';

let root = '';
beforeEach(async () => {
  root = await mkdtemp(join(tmpdir(), 'generate-'));
});
afterEach(() => rm(root, { recursive: true }));

const list = [
  { path: 'a/b.txt', content: () => 'one\n' },
  { path: 'c.txt', content: () => Promise.resolve('two\n') },
];

describe('the generator', () => {
  test('writes what is missing or different, and says what', async () => {
    expect(await generate(root, list, false)).toEqual(['a/b.txt', 'c.txt']);
    expect(await readFile(join(root, 'a/b.txt'), 'utf8')).toBe('one\n');
    expect(await generate(root, list, false)).toEqual([]);
  });

  test('when verifying, names what differs and writes nothing', async () => {
    await generate(root, list, false);
    await writeFile(join(root, 'c.txt'), 'edited by hand\n');
    expect(await generate(root, list, true)).toEqual(['c.txt']);
    expect(await readFile(join(root, 'c.txt'), 'utf8')).toBe('edited by hand\n');
  });

  test('has one entry per file', () => {
    expect(new Set(generators.map(({ path }) => path)).size).toBe(generators.length);
  });
});

test.each(allCrds().map((crd) => [crd.metadata.name, crd] as const))(
  '%s is the same value in YAML 1.1 and 1.2',
  (_, crd) => {
    const text = crdYaml(crd);
    expect(parse(text, { version: '1.1' })).toEqual(crd);
    expect(parse(text)).toEqual(crd);
  },
);
