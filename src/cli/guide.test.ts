// SPDX-License-Identifier: Apache-2.0
// The commands of the Cluster API provider's guide, word for word: what `make` builds, and what its command line says.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const controllers = ['karpenter-cluster-controller', 'karpenter-clusterapi-controller'];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-guide-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

function run(command: string, args: readonly string[], options: { cwd: string; env?: Record<string, string> }) {
  const { PROVIDERS: _, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd: options.cwd,
    env: { ...env, ...options.env },
    encoding: 'utf8',
    timeout: 30_000,
  });
  return { status, stdout, stderr };
}

/** A clone whose program only says how it was called. */
function cloneThatTells(): void {
  cpSync('Makefile', join(folder, 'Makefile'));
  for (const name of ['bin', 'node_modules']) mkdirSync(join(folder, name));
  const tells = 'console.log(JSON.stringify([process.env.PROVIDERS, ...process.argv.slice(2)]));';
  writeFileSync(join(folder, 'bin/karpenter.js'), tells);
}

describe('make', () => {
  test('build gives both names of the guide, which start the controller with this cloud', () => {
    cloneThatTells();
    expect(run('make', ['build'], { cwd: folder })).toMatchObject({ status: 0, stderr: '' });
    expect(readdirSync(join(folder, 'bin')).sort()).toEqual([...controllers, 'karpenter.js'].sort());
    const line = '--cluster-api-kubeconfig mgmt.kubeconfig --leader-election-namespace kube-system';
    for (const name of controllers) {
      const { stdout } = run(`./bin/${name}`, line.split(' '), { cwd: folder });
      expect(JSON.parse(stdout)).toEqual(['cluster-api', 'controller', ...line.split(' ')]);
    }
    const { stdout } = run(`./bin/${controllers[0]}`, [], { cwd: folder, env: { PROVIDERS: 'kwok' } });
    expect(JSON.parse(stdout)).toEqual(['kwok', 'controller']);
  });

  test('vendor downloads what the program needs', () => {
    cloneThatTells();
    expect(run('make', ['--dry-run', 'vendor'], { cwd: folder })).toMatchObject({ status: 0, stdout: 'npm ci\n' });
  });
});

describe('outside of a cluster', () => {
  const cluster = { name: 'c', cluster: { server: 'https://127.0.0.1:1' } };
  const context = { name: 'c', context: { cluster: 'c' } };
  const config = JSON.stringify({ 'current-context': 'c', clusters: [cluster], contexts: [context] });

  test("without --leader-election-namespace it ends at once and says so: the guide's caution", () => {
    const kubeconfig = join(folder, 'config');
    writeFileSync(kubeconfig, config);
    const args = ['bin/karpenter.js', 'controller', '--cluster-api-kubeconfig', kubeconfig];
    const { status, stderr } = run(process.execPath, args, {
      cwd: process.cwd(),
      env: { KUBECONFIG: kubeconfig, PROVIDERS: 'cluster-api', SYSTEM_NAMESPACE: '' },
    });
    expect(status).not.toBe(0);
    expect(stderr).toContain('set --leader-election-namespace');
  });

  test('the kubeconfig of a management cluster that is not there is named', () => {
    const kubeconfig = join(folder, 'config');
    writeFileSync(kubeconfig, config);
    const args = ['bin/karpenter.js', 'controller', '--cluster-api-kubeconfig', join(folder, 'missing')];
    const { status, stderr } = run(process.execPath, [...args, '--leader-election-namespace', 'kube-system'], {
      cwd: process.cwd(),
      env: { KUBECONFIG: kubeconfig, PROVIDERS: 'cluster-api' },
    });
    expect(status).not.toBe(0);
    expect(stderr).toContain('missing cannot be read');
  });
});
