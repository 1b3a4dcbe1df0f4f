// SPDX-License-Identifier: Apache-2.0
// A copy of the repository that may be broken.
import { cpSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Candidate } from './choose.ts';
import { withAll } from './mutate.ts';

/** Makes the copy anew: sources are its own, packages are shared. */
export function copyOf(root: string, copy: string): string {
  rmSync(copy, { recursive: true, force: true });
  const left = new Set([...['node_modules', '.git', 'dist'].map((name) => join(root, name)), dirname(copy)]);
  cpSync(root, copy, { recursive: true, filter: (path) => !left.has(path) });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  return copy;
}

/** Writes all mutants into the sources, so that the environment alone says which one is made. */
export function plantAll(copy: string, candidates: readonly Candidate[]): void {
  for (const [path, mutants] of Map.groupBy(candidates, (candidate) => candidate.path)) {
    const target = join(copy, path);
    const ids = new Map(mutants.map((mutant) => [mutant, mutant.id] as const));
    const source = withAll(
      readFileSync(target, 'utf8'),
      mutants,
      (mutant) => `isMade('${ids.get(mutant as Candidate)}')`,
    );
    const active = relative(dirname(target), join(copy, 'hack/mutants/active.ts'));
    writeFileSync(target, `import { isMade } from '${active}';\n${source}`);
  }
}
