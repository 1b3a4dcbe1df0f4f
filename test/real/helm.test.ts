// SPDX-License-Identifier: Apache-2.0
// The real helm against the embedded cluster: the lines that people type, and what is left when a release goes.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { helm } from './helm.ts';
import { kubectl } from './kubectl.ts';
import { RunningProgram } from './processes.ts';

let folder: string;
let kubeconfig: string;
let up: RunningProgram;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-helm-test-'));
  kubeconfig = join(folder, 'config');
  const args = ['bin/karpenter.js', 'up', '--cluster-only', '--port', '0', '--kubeconfig-out', kubeconfig];
  up = new RunningProgram('karpenter up', process.execPath, args);
  await up.until(() => kubectl(kubeconfig, ['get', '--raw', '/readyz']), 30_000);
});

afterAll(async () => {
  expect(await up?.stop(), up?.output).toBe(0);
  rmSync(folder, { recursive: true, force: true });
});

async function run(line: string): Promise<string> {
  const { code, stdout, stderr } = await helm(line.split(' '), kubeconfig);
  expect(code, `helm ${line}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

const get = (line: string): Promise<string> => kubectl(kubeconfig, ['get', ...line.split(' ')]);
const names = async (line: string): Promise<string[]> => (await get(`${line} -o name`)).split('\n').filter(Boolean);

test("the guides' lines install both charts, change them and remove them", async () => {
  const flags = '--namespace kube-system --create-namespace';
  await run(`upgrade --install ${flags} karpenter-crd charts/karpenter-crd`);
  const installed = await run(
    `upgrade --install ${flags} karpenter charts/karpenter --set settings.clusterName=blue,webhook.enabled=false --wait --timeout 60s`,
  );
  expect(installed).toContain('STATUS: deployed');
  expect(installed).toContain('helm uninstall --namespace kube-system karpenter --timeout 30m');
  expect(installed).not.toContain('does not know NodePools');
  expect(installed).toContain('without effect here: webhook');
  // Two that are ready, on two nodes.
  const ready = '{range .items[*]}{.spec.nodeName} {.status.containerStatuses[0].ready}{"\\n"}{end}';
  const pods = await kubectl(kubeconfig, [
    ...'get pods -n kube-system -l app.kubernetes.io/name=karpenter -o'.split(' '),
    `jsonpath=${ready}`,
  ]);
  expect(pods.trim().split('\n').toSorted()).toEqual(['base-1 true', 'base-2 true']);

  await run(
    `upgrade --install ${flags} karpenter charts/karpenter --reuse-values --set logLevel=debug --wait --timeout 60s`,
  );
  expect(await run('history karpenter --namespace kube-system')).toMatch(/\n2\s.*\sdeployed/);
  expect(await run('get values karpenter --namespace kube-system')).toContain('clusterName: blue');
  await run('rollback karpenter 1 --namespace kube-system --wait --timeout 60s');
  const level = '{.spec.template.spec.containers[0].env[?(@.name=="LOG_LEVEL")].value}';
  expect(await get(`deployment karpenter -n kube-system -o jsonpath=${level}`)).toBe('info');

  await run('uninstall karpenter --namespace kube-system --wait');
  for (const what of [
    'deployments,services,pdb,serviceaccounts,roles,rolebindings -n kube-system',
    'clusterroles,clusterrolebindings',
  ])
    expect((await names(what)).filter((name) => name.includes('karpenter'))).toEqual([]);
  await run('uninstall karpenter-crd --namespace kube-system');
  // Removing them would remove every machine.
  expect(await names('crd')).toContain('customresourcedefinition.apiextensions.k8s.io/nodepools.karpenter.sh');
});

test('a small chart of anybody’s lives and goes, with its hooks', async () => {
  const chart = join(folder, 'tiny');
  mkdirSync(join(chart, 'templates'), { recursive: true });
  writeFileSync(join(chart, 'Chart.yaml'), 'apiVersion: v2\nname: tiny\nversion: 0.1.0\n');
  writeFileSync(join(chart, 'values.yaml'), 'replicas: 1\nword: hello\n');
  writeFileSync(join(chart, 'templates', 'all.yaml'), tiny);
  await run(
    `upgrade --install tiny ${chart} --namespace small --create-namespace --wait --wait-for-jobs --timeout 60s`,
  );
  expect(await get('configmap tiny -n small -o jsonpath={.data.word}')).toBe('hello');
  expect(await get('job tiny-prepare -n small -o jsonpath={.status.succeeded}')).toBe('1');
  await run(`upgrade tiny ${chart} --namespace small --set replicas=2,word=again --wait --timeout 60s`);
  expect(await get('deployment tiny -n small -o jsonpath={.status.readyReplicas}')).toBe('2');
  expect(await get('configmap tiny -n small -o jsonpath={.data.word}')).toBe('again');
  expect(await run('status tiny --namespace small')).toContain('REVISION: 2');
  await run('uninstall tiny --namespace small --wait');
  expect(await names('deployments,configmaps,services,secrets -n small')).toEqual(['configmap/kube-root-ca.crt']);
});

const tiny = `
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  word: {{ .Values.word }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: { app: {{ .Release.Name }} }
  ports: [{ port: 80 }]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  replicas: {{ .Values.replicas }}
  selector: { matchLabels: { app: {{ .Release.Name }} } }
  template:
    metadata: { labels: { app: {{ .Release.Name }} } }
    spec: { containers: [{ name: web, image: nginx }] }
---
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-prepare
  annotations: { helm.sh/hook: pre-install }
spec:
  template:
    spec: { restartPolicy: Never, containers: [{ name: prepare, image: busybox }] }
`;
