// SPDX-License-Identifier: Apache-2.0
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { compileCacheFolder } from '../bin/compile-cache.js';

const scratch = mkdtempSync(join(tmpdir(), 'karpenter-compiled-'));
afterEach(() => rmSync(scratch, { recursive: true, force: true }));
const program = fileURLToPath(new URL('../bin/karpenter.js', import.meta.url));

test('compiled code is kept in the cache directory of the user', () => {
  expect(compileCacheFolder({ XDG_CACHE_HOME: '/caches' })).toBe('/caches/karpenter-ts/compiled');
  expect(compileCacheFolder({ XDG_CACHE_HOME: 'relative' })).toMatch(/\/\.cache\/karpenter-ts\/compiled$/);
});

test('a command leaves its compiled code behind, and starts as well where it cannot', () => {
  const run = (home: string) =>
    spawnSync(process.execPath, [program, 'version'], {
      env: { PATH: process.env['PATH'], XDG_CACHE_HOME: home },
      encoding: 'utf8',
    });
  expect(run(scratch).stdout).toContain('karpenter-ts');
  expect(readdirSync(join(scratch, 'karpenter-ts', 'compiled')).length).toBeGreaterThan(0);
  const file = join(scratch, 'a-file');
  writeFileSync(file, '');
  const blocked = run(join(file, 'below'));
  expect(blocked).toMatchObject({ status: 0, stderr: '' });
});
