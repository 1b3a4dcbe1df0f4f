// SPDX-License-Identifier: Apache-2.0
// `npm run soak` as a command, with worlds of a few minutes, and what it takes for a run to be complete.
import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { completeness } from './soak.ts';

function soak(...args: string[]): { code: number | null; lines: string[]; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['hack/soak.ts', ...args], { encoding: 'utf8' });
  return { code: status, lines: stdout.trim().split('\n'), stderr };
}

// One world: whoever comes first takes all the hours there are.
const tiny = ['--scenario', 'small', '--hours', '0.1', '--cluster-hours', '0.1', '--minutes', '1'];

test('kept promises end with 0, with --complete not unless the worlds were lively: the sum says how they were', () => {
  const plain = soak(...tiny);
  expect(plain.code, plain.lines.join('\n')).toBe(0);
  expect(plain.lines).toEqual([
    expect.stringMatching(
      /^soak: 0\.1 cluster-hours in 1 worlds \(median \d+ nodes, \d+ pods, 0\.00 changes a minute\), .* 0 violations$/,
    ),
  ]);
  const complete = soak(...tiny, '--complete');
  expect(complete.code).toBe(1);
  expect(complete.lines.at(-1)).toBe('soak: too idle: 30 nodes, 300 pods and 1 change a minute wanted');
  expect(complete.lines.some((line) => /^never exercised: .*fault\/api\/slow/.test(line))).toBe(true);
  expect(complete.lines.some((line) => /^ +\d+ invariant\/machines\/owned$/.test(line))).toBe(true);
}, 30_000);

test('each world is told when that is asked for, by the line that runs it again', () => {
  const { code, lines } = soak(...tiny, '--seed', '5', '--verbose');
  expect(code).toBe(0);
  expect(lines[0]).toMatch(
    /^small --seed 5 --hours 0\.1: [0-9a-f]{32}, \d+\.\d CPU s\/h, \d+ nodes, \d+ pods, 0 changes/,
  );
}, 30_000);

test.each([
  [['--minutes', 'x'], '--minutes x is not a positive number'],
  [['--hours', '0'], '--hours 0 is not a positive number'],
  [['--cluster-hours', '-1'], "'--cluster-hours' argument is ambiguous"],
  [['--seed', '1.5'], '--seed 1.5 is not a whole number'],
  [['--scenario', 'nowhere'], 'no scenario is named nowhere'],
  [['--compleat'], "Unknown option '--compleat'"],
])('%j is asked wrongly, and does not pass for a run without violations', (args, message) => {
  const { code, stderr } = soak(...args);
  expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
  expect(stderr).toContain('usage: npm run soak');
});

describe('a complete run', () => {
  const full = { nodes: 30, pods: 300, changes: 1, never: [], done: 10, wanted: 10 };

  test('has lively worlds that tried everything', () => {
    expect(completeness(full)).toEqual({ ok: true, complaints: [] });
  });

  test.each([{ nodes: 29 }, { pods: 299 }, { changes: 0.99 }])('is none with %j at the median', (idle) => {
    expect(completeness({ ...full, ...idle })).toEqual({ ok: false, complaints: [expect.stringMatching(/^too idle/)] });
  });

  test('is none when something was never tried, unless time ended before the hours were over', () => {
    const never = ['fault/api/slow'];
    expect(completeness({ ...full, never }).ok).toBe(false);
    expect(completeness({ ...full, never, done: 9 })).toEqual({
      ok: true,
      complaints: [expect.stringMatching(/^9 of 10 cluster-hours .* too few to judge/)],
    });
  });
});
