// SPDX-License-Identifier: Apache-2.0
// What the package exports can be used where only its dependencies are installed: a type from anywhere else would be `any`
// there, or an error.
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

interface Manifest {
  readonly exports: Readonly<Record<string, string | { readonly types: string }>>;
  readonly dependencies: Readonly<Record<string, string>>;
}

const manifest = JSON.parse(read('package.json')) as Manifest;
const entries = Object.values(manifest.exports).flatMap((entry) =>
  typeof entry === 'string' ? [] : [entry.types.replace('./dist/', 'src/').replace(/\.d\.ts$/, '.ts')],
);

test.each(entries)('%s and all it imports, types included, need nothing but dependencies', (entry) => {
  const seen = new Set([entry]);
  const strange = new Set<string>();
  for (const path of seen) {
    for (const [, , name = ''] of read(path).matchAll(/(?:\bfrom|^import|\bimport\()\s*(['"])([^'"\n]+)\1/gm)) {
      if (name.startsWith('.')) {
        if (name.endsWith('.ts')) seen.add(join(dirname(path), name).replaceAll('\\', '/'));
      } else if (!name.startsWith('node:')) {
        const dependency = name.split('/', name.startsWith('@') ? 2 : 1).join('/');
        if (!(dependency in manifest.dependencies)) strange.add(`${path}: ${name}`);
      }
    }
  }
  expect(seen.size).toBeGreaterThan(3);
  expect([...strange]).toEqual([]);
});
