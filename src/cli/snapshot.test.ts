// SPDX-License-Identifier: Apache-2.0
// `karpenter snapshot` as a command, against `karpenter up`.
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Problem } from '../scheduling/problem.ts';

let folder: string;
let cluster: ChildProcess;
let kubeconfig: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-snapshot-'));
  kubeconfig = join(folder, 'config');
  const args = ['bin/karpenter.js', 'up', '--port', '0', '--kubeconfig-out', kubeconfig, '-o', 'json'];
  cluster = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  await new Promise((resolve) => cluster.stdout!.once('data', resolve));
});

afterAll(() => {
  cluster.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

function snapshot(...args: string[]): Promise<Ended> {
  const env = { ...process.env, KUBECONFIG: kubeconfig };
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ['bin/karpenter.js', 'snapshot', ...args],
      { env, maxBuffer: 1e8 },
      (error, stdout, stderr) => resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });
}

test('writes the problem to standard output or to a file, and takes the settings of the controller', async () => {
  const types = join(folder, 'types.json');
  const offering = {
    Price: 0.5,
    Available: true,
    Requirements: [
      { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
      { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['moon-1'] },
    ],
  };
  const entry = {
    name: 'rover',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '4', memory: '8Gi', pods: '20' },
    offerings: [offering],
  };
  writeFileSync(types, JSON.stringify([entry]));
  const file = join(folder, 'problem.yaml');
  const told = ['--instance-types-file-path', types, '--preference-policy', 'Ignore'];
  const [plain, special] = await Promise.all([snapshot(), snapshot('-o', 'yaml', ...told, '-f', file)]);
  expect([plain.code, plain.stderr]).toEqual([0, '']);
  const problem = JSON.parse(plain.stdout) as Problem;
  expect(problem.instanceTypes['kwok']).toHaveLength(144);
  expect(problem.nodes?.map(({ metadata }) => metadata.name)).toEqual(['base-1', 'base-2']);
  expect(problem.settings).toMatchObject({ preferencePolicy: 'Respect' });
  expect([special.code, special.stdout, special.stderr]).toEqual([0, '', `wrote 1 pods and 2 nodes to ${file}\n`]);
  const other = parse(readFileSync(file, 'utf8')) as Problem;
  expect(other.instanceTypes['kwok']!.map(({ name }) => name)).toEqual(['rover']);
  expect(other.settings).toMatchObject({ preferencePolicy: 'Ignore' });
});

test.each([
  ['a setting nobody knows', ['--preference-polcy', 'Ignore'], 2, /preference-policy/],
  ['a time that is none', ['--timeout', '0'], 2, /--timeout must be a positive number of seconds/],
  ['a file of instance types that is not there', ['--instance-types-file-path', '/nowhere'], 1, /no such file/],
])('refuses %s', async (_, args, expected, message) => {
  const { code, stderr } = await snapshot(...args);
  expect(stderr).toMatch(message);
  expect(code).toBe(expected);
});
