// SPDX-License-Identifier: Apache-2.0
// `npm run generate` writes every generated file; `npm run verify` (`--verify`) writes nothing and fails, naming the
// files that differ from what would be written. A new kind of generated file is one more entry in `generators`.
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { apiReferenceGenerators } from './generate/api-reference.ts';
import { chartGenerators } from './generate/chart/chart.ts';
import { crdGenerators } from './generate/crds.ts';
import { eventsReferenceGenerators } from './generate/events-reference.ts';
import type { Generator } from './generate/generator.ts';
import { pictureGenerators } from './generate/pictures.ts';
import { providersReferenceGenerators } from './generate/providers-reference.ts';
import { runtimeReferenceGenerators } from './generate/runtime-reference.ts';

/** Every generated file of the repo. */
export const generators: readonly Generator[] = [
  ...crdGenerators,
  ...apiReferenceGenerators,
  ...runtimeReferenceGenerators,
  ...eventsReferenceGenerators,
  ...pictureGenerators,
  ...providersReferenceGenerators,
  ...chartGenerators,
];

/** The paths whose content differs from what their generator gives; writes them unless `verify`. */
export async function generate(root: string, list: readonly Generator[], verify: boolean): Promise<string[]> {
  const changed: string[] = [];
  for (const { path, content } of list) {
    const file = join(root, path);
    const wanted = await content();
    // A missing file differs from anything.
    const found = await readFile(file, 'utf8').catch(() => undefined);
    if (found === wanted) continue;
    changed.push(path);
    if (verify) continue;
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, wanted);
  }
  return changed;
}

if (import.meta.main) {
  const verify = process.argv.includes('--verify');
  const root = dirname(dirname(fileURLToPath(import.meta.url)));
  const changed = await generate(root, generators, verify);
  for (const path of changed) console.error(verify ? `out of date: ${path}` : `wrote ${path}`);
  console.error(`generate: ${generators.length} files, ${changed.length} ${verify ? 'out of date' : 'written'}`);
  if (verify && changed.length > 0) {
    console.error('Run npm run generate and commit the result.');
    process.exit(1);
  }
}
