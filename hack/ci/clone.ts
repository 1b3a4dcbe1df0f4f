// SPDX-License-Identifier: Apache-2.0
// A newcomer's machine: a clone with nothing beside it, both README commands, under the two
// major versions of npm that people have.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { tryUp } from './up.ts';

// The part `test` runs the tests under this machine's npm already: here once more under the oldest is enough.
for (const { npm, tests } of [
  { npm: 'npm@10.8.2', tests: true },
  { npm: 'npm@11', tests: false },
]) {
  const folder = mkdtempSync(join(tmpdir(), 'karpenter-clone-'));
  try {
    const clone = join(folder, 'karpenter-ts');
    execFileSync('git', ['clone', '--quiet', '--no-hardlinks', process.cwd(), clone], { stdio: 'inherit' });
    const run = (...args: string[]): void => {
      execFileSync('npx', ['--yes', npm, ...args], { cwd: clone, stdio: ['ignore', 'inherit', 'inherit'] });
    };
    console.log(`--- ${npm}`);
    run('ci', '--no-progress');
    if (tests) run('test');
    await tryUp('npx', ['--yes', npm, 'start', '--'], clone, { behindNpm: true });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
