// SPDX-License-Identifier: Apache-2.0
// `karpenter controller --workload-kubeconfig`: NodePools and NodeClaims in one cluster, Nodes and Pods in another, as
// processes that speak HTTPS with each other.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { tool } from '../../hack/tools/tools.ts';
import { execute, RunningProgram } from './processes.ts';

let folder: string;
let path: string;
let controller: RunningProgram;
const clusters: RunningProgram[] = [];

const karpenter = (...names: string[]): string[] => ['bin/karpenter.js', ...names];
const config = (cluster: string): string => join(folder, cluster);

async function startCluster(name: string): Promise<void> {
  const args = karpenter('up', '--cluster-only', '--port', '0', '--kubeconfig-out', config(name), '-o', 'json');
  const cluster = new RunningProgram(name, 'node', args);
  clusters.push(cluster);
  await cluster.until(() => cluster.output.includes('"ready":true'), 30_000);
}

async function on(cluster: 'pools' | 'pods', line: string, input = ''): Promise<string> {
  const args = ['--kubeconfig', config(cluster), ...line.split(' ')];
  const done = await execute(path, args, { input, env: { ...process.env, HOME: folder } });
  expect(done.code, `kubectl ${line} on ${cluster}\n${done.stdout}${done.stderr}`).toBe(0);
  return done.stdout;
}

const count = async (cluster: 'pools' | 'pods', what: string): Promise<number> =>
  (await on(cluster, `get ${what} -o name`)).split('\n').filter(Boolean).length;

const manifests = `
apiVersion: karpenter.kwok.sh/v1alpha1
kind: KWOKNodeClass
metadata: { name: default }
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default }
      requirements:
        - { key: kubernetes.io/arch, operator: In, values: [amd64] }
        - { key: kubernetes.io/os, operator: In, values: [linux] }
  disruption: { consolidateAfter: 0s, budgets: [{ nodes: 100% }] }
`;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-apart-'));
  path = await tool('kubectl');
  await Promise.all(['pools', 'pods'].map(startCluster));
  const args = karpenter('controller', '--kubeconfig', config('pools'), '--workload-kubeconfig', config('pods'));
  const ports = ['--metrics-port', '0', '--health-probe-port', '0', '--leader-election-namespace', 'kube-system'];
  controller = new RunningProgram('karpenter controller', 'node', [...args, ...ports]);
});

afterAll(async () => {
  const code = await controller?.stop();
  for (const cluster of clusters) await cluster.stop();
  rmSync(folder, { recursive: true, force: true });
  expect(code, controller?.output.slice(-4000)).toBe(0);
});

test('a whole life: pods of one cluster, NodeClaims of the other', async () => {
  await on('pools', 'apply -f -', manifests);
  await on('pools', 'wait nodepool/default --for=condition=Ready --timeout=30s');
  // Pods where the NodePools are belong to somebody else.
  await on('pools', 'create deployment stranger --image=pause --replicas=100');
  await on('pods', 'create deployment inflate --image=pause --replicas=0');
  await on('pods', 'set resources deployment inflate --requests=cpu=1');
  await on('pods', 'scale deployment inflate --replicas=12');
  await on('pods', 'rollout status deployment/inflate --timeout=60s');
  const claims = await count('pools', 'nodeclaims');
  expect(claims).toBeGreaterThan(0);
  expect(await count('pods', 'nodeclaims')).toBe(0);
  expect(await count('pods', 'nodes')).toBe(2 + claims);
  expect(await count('pools', 'nodes')).toBe(2);
  // Each event is where its object is.
  expect(await on('pods', 'get events --field-selector=reason=Nominated -o name')).not.toBe('');
  expect(await on('pools', 'get events --field-selector=reason=Launched -o name')).not.toBe('');

  // A node that is deleted by hand takes its machine and its NodeClaim along, and its pods find another.
  const bought = (await on('pods', 'get nodes -l karpenter.sh/nodepool=default -o name')).trim().split('\n');
  await on('pods', `delete ${bought[0]} --timeout=60s`);
  await on('pods', 'rollout status deployment/inflate --timeout=60s');
  const after = await on('pods', 'get nodes -l karpenter.sh/nodepool=default -o name');
  expect(after).not.toContain(bought[0]);

  await on('pods', 'delete deployment inflate');
  await controller.until(async () => (await count('pools', 'nodeclaims')) === 0, 120_000);
  expect(await count('pods', 'nodes')).toBe(2);
  expect(await count('pools', 'nodes')).toBe(2);
  expect(controller.output.match(/^.*"level":"ERROR".*$/gm)).toBeNull();
});
