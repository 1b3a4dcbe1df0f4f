// SPDX-License-Identifier: Apache-2.0
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { heapFlagsFor, smallYoungSpace } from '../bin/heap.js';

const limit = { MEMORY_LIMIT: String(1024 * 2 ** 20) };

test('a controller with a memory limit gets a heap of nine tenths of it, and a small space for new objects', () => {
  const flags = ['--max-old-space-size=921', smallYoungSpace];
  expect(heapFlagsFor(['controller'], limit, [])).toEqual(flags);
  expect(heapFlagsFor(['controller', '--memory-limit', limit.MEMORY_LIMIT], {}, [])).toEqual(flags);
  expect(heapFlagsFor(['controller', `--memory-limit=${limit.MEMORY_LIMIT}`], {}, [])).toEqual(flags);
});

test('other commands, controllers without a limit and users who chose a heap get what Node gives', () => {
  expect(heapFlagsFor(['up'], limit, [])).toEqual([]);
  expect(heapFlagsFor(['controller'], {}, [])).toEqual([]);
  expect(heapFlagsFor(['controller'], { MEMORY_LIMIT: '-1' }, [])).toEqual([]);
  expect(heapFlagsFor(['controller'], limit, ['--max-old-space-size-percentage=90'])).toEqual([]);
});

test('the image starts the controller in the same way', () => {
  const dockerfile = readFileSync(new URL('../Dockerfile', import.meta.url), 'utf8');
  expect(dockerfile).toContain(`"--max-old-space-size-percentage=90", "${smallYoungSpace}", "/app/bin/karpenter.js"`);
});
