// SPDX-License-Identifier: Apache-2.0
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { heapFlagsFor, quickYoungSpace, smallYoungSpace } from '../bin/heap.js';

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

test('V8 knows the flag by which the space for new objects grows, and takes it while it runs', () => {
  const script = `import { growYoungSpaceQuickly } from ${JSON.stringify(new URL('../bin/heap.js', import.meta.url).href)};
    growYoungSpaceQuickly();
    const kept = [];
    for (let i = 0; i < 200_000; i++) kept.push({ i });
    console.log(kept.length);`;
  const grown = (args: readonly string[]): number =>
    execFileSync(process.execPath, ['--trace-gc', ...args], { encoding: 'utf8' }).match(/Scavenge/g)?.length ?? 0;
  const quick = grown(['--input-type=module', '-e', script]);
  const usual = grown(['--input-type=module', '-e', script.replace('growYoungSpaceQuickly();', '')]);
  expect(quick).toBeLessThan(usual);
  expect(grown([quickYoungSpace, '--input-type=module', '-e', script])).toBeLessThan(usual);
});
