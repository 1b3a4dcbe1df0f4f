// SPDX-License-Identifier: Apache-2.0
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

let folder: string;
const started: ChildProcess[] = [];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-up-'));
});
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  readonly child: ChildProcess;
  readonly firstLine: Promise<string>;
  readonly ended: Promise<{ code: number | null; output: string }>;
}

function up(...args: string[]): Run {
  const child = spawn(process.execPath, ['bin/karpenter.js', 'up', ...args]);
  started.push(child);
  let output = '';
  let stdout = '';
  const firstLine = new Promise<string>((resolve) => {
    child.stdout.on('data', (chunk: Buffer) => {
      stdout += String(chunk);
      output += String(chunk);
      if (stdout.includes('\n')) resolve(stdout.slice(0, stdout.indexOf('\n')));
    });
  });
  child.stderr.on('data', (chunk: Buffer) => (output += String(chunk)));
  const ended = new Promise<{ code: number | null; output: string }>((resolve) =>
    child.on('close', (code) => resolve({ code, output })),
  );
  return { child, firstLine, ended };
}

interface Kubeconfig {
  clusters: { cluster: { server: string; 'certificate-authority-data': string } }[];
  users: { user: { token: string } }[];
}

function get(path: string, config: Kubeconfig, token = config.users[0]!.user.token): Promise<number> {
  const { server, 'certificate-authority-data': ca } = config.clusters[0]!.cluster;
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}` };
    request(`${server}${path}`, { ca: Buffer.from(ca, 'base64'), headers }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on('error', reject)
      .end();
  });
}

describe('karpenter up', () => {
  test('serves a cluster behind the kubeconfig it writes, for its owner only, until it is asked to stop', async () => {
    const path = join(folder, 'config');
    const run = up('--port', '0', '--kubeconfig-out', path, '-o', 'json');
    const ready = JSON.parse(await run.firstLine) as { ready: boolean; server: string; kubeconfig: string };
    expect(ready).toMatchObject({ ready: true, kubeconfig: path });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const config = JSON.parse(readFileSync(path, 'utf8')) as Kubeconfig;
    expect(config.clusters[0]!.cluster.server).toBe(ready.server);
    expect(await get('/apis/karpenter.sh/v1/nodepools', config)).toBe(200);
    expect(await get('/api/v1/nodes', config, 'wrong')).toBe(401);
    run.child.kill('SIGTERM');
    expect(await run.ended).toMatchObject({ code: 0 });
  });

  test('says what to try next, and stops on Ctrl-C even when the signal comes twice', async () => {
    const path = join(folder, 'config');
    const run = up('--port', '0', '--kubeconfig-out', path);
    expect(await run.firstLine).toMatch(/^A Kubernetes cluster is ready at https:\/\/127\.0\.0\.1:\d+/);
    run.child.kill('SIGINT');
    run.child.kill('SIGINT');
    const { code, output } = await run.ended;
    expect(code).toBe(0);
    expect(output).toContain(`export KUBECONFIG=${path}`);
    expect(output).toContain('kubectl get nodes');
  });

  test('says so when the port is taken', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const { code, output } = await up('--port', String(port), '--kubeconfig-out', join(folder, 'c')).ended;
    other.close();
    expect(code).toBe(1);
    expect(output).toBe(
      `karpenter: port ${port} is in use; choose another with --port, or --port 0 for any free one\n`,
    );
  });

  test('never replaces a kubeconfig of somebody else', async () => {
    const path = join(folder, 'config');
    writeFileSync(path, 'apiVersion: v1\nclusters: []\n');
    const { code, output } = await up('--port', '0', '--kubeconfig-out', path).ended;
    expect(code).toBe(1);
    expect(output).toContain('is not a kubeconfig of ours');
    expect(readFileSync(path, 'utf8')).toBe('apiVersion: v1\nclusters: []\n');
  });

  test.each([
    ['a folder that is not there', ['--kubeconfig-out', '/does/not/exist/config'], 1, 'cannot write the kubeconfig'],
    ['a port that is none', ['--port', '70000'], 2, 'A port is a number from 0 to 65535'],
    ['a format nobody knows', ['-o', 'xml'], 2, 'It is either text or json'],
    ['an option nobody knows', ['--prot', '1'], 2, "unknown option '--prot'"],
  ])('refuses %s', async (_, args, expected, message) => {
    const { code, output } = await up(...args).ended;
    expect(output).toContain(message);
    expect(code).toBe(expected);
  });
});
