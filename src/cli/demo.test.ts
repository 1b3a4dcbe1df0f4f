// SPDX-License-Identifier: Apache-2.0
// `karpenter demo` as a command: what it prints, and its exit codes.
import { execFile } from 'node:child_process';
import { expect, test } from 'vitest';
import type { DemoEvent } from './demo/events.ts';

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function demo(...args: string[]): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, ['bin/karpenter.js', 'demo', ...args], (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

test('plays to its end without a terminal, and sums up', async () => {
  const { code, stdout, stderr } = await demo('inflate', '--speed');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toMatch(/^inflate \(kwok\): a deployment grows from 0 to 5 pods/);
  expect(stdout).toMatch(/00:00\.\d {2}> it is scaled to 5\n/);
  expect(stdout).toMatch(/ {2}\+ kwok-\w{5}: [a-z]-\d+x-amd64-linux, spot, test-zone-\w at \$0\.\d{4}\/h\n/);
  expect(stdout).toMatch(/\nThe end\.\n {2}bought {3}\d+ machines?:\n/);
  expect(stdout).toMatch(/\n {2}left {5}0 pods, 0 machines, \$0\.0000\/h\n/);
});

test('tells a program the same as events, a line each, and again the same for the same seed', async () => {
  const [{ code, stdout }, again] = await Promise.all([
    demo('--speed', '-o', 'json', '--seed', '3', '--two-clusters'),
    demo('--speed', '-o', 'json', '--seed', '3', '--two-clusters'),
  ]);
  expect(code).toBe(0);
  const events = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as DemoEvent);
  expect(events[0]).toMatchObject({ type: 'begin', scenario: 'inflate', providers: ['kwok'] });
  expect(events.at(-1)).toMatchObject({ type: 'summary', succeeded: true, left: { machines: 0 } });
  expect(again.stdout).toBe(stdout);
});

test.each([
  ['a scenario nobody knows', ['nope'], /there is no scenario nope for kwok; there are:\n {2}inflate {2}a deployment/],
  ['a cloud nobody knows', ['--provider', 'kwok,moon'], /no such provider: moon; the embedded cluster knows: kwok/],
  ['a pace that is none', ['--pace', 'fast'], /It is a positive number/],
  ['a seed that is none', ['--seed', '1.5'], /A seed is a whole number/],
  ['a format nobody knows', ['-o', 'xml'], /Allowed choices are text, json/],
])('refuses %s', async (_, args, message) => {
  const { code, stderr } = await demo(...args);
  expect(stderr).toMatch(message);
  expect(code).toBe(2);
});

test('lists what it can play', async () => {
  const { code, stdout } = await demo('--list');
  expect(code).toBe(0);
  const names = ['  inflate', '  nginx', '  zones', '  spot'];
  expect(stdout.match(/^ {2}\w+/gm)).toEqual(names);
  const both = await demo('--list', '--provider', 'kwok,cluster-api');
  expect(both.stdout.match(/^ {2}\w+/gm)).toEqual(names);
});
