// SPDX-License-Identifier: Apache-2.0
// The charts on a real API server, and the controller under the ServiceAccount they make: everything it does is allowed,
// and it is allowed nothing that it does not do.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AuditLog, grantedBy } from './audit.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';
import { helm, objectsIn } from './helm.ts';
import { apply, kubectl } from './kubectl.ts';
import { freePort, RunningProgram } from './processes.ts';

const namespace = 'kube-system';
const account = 'karpenter';

/** Granted, and not to be seen in a run where nothing goes wrong. */
const reasons: Readonly<Record<string, string>> = {
  'get nodepools.karpenter.sh': 'read again after a conflict',
  'update nodepools.karpenter.sh/finalizers': 'looked up by an admission plugin, without a request of its own',
  'update nodeclaims.karpenter.sh/finalizers': 'looked up by an admission plugin, without a request of its own',
  'patch events': 'an event that happens again is counted, minutes later',
};

let folder: string;
let plane: ControlPlane | undefined;
let audit: AuditLog;
const controllers: RunningProgram[] = [];
let manifests: string;
let own: string;

const admin = (line: string, input?: string): Promise<string> => kubectl(plane!.kubeconfig, line.split(' '), input);
const count = async (what: string): Promise<number> =>
  (await admin(`get ${what} -o name`)).split('\n').filter(Boolean).length;

async function install(chart: string, ...args: string[]): Promise<void> {
  const line = ['upgrade', '--install', '--namespace', namespace, '--create-namespace', chart, `charts/${chart}`];
  const { code, stdout, stderr } = await helm([...line, ...args], plane!.kubeconfig);
  expect(code, stdout + stderr).toBe(0);
}

/** The ServiceAccount's own way to the cluster, with a token of the kind a pod gets. */
async function kubeconfigOf(serviceAccount: string): Promise<string> {
  const token = (await admin(`create token ${serviceAccount} -n ${namespace}`)).trim();
  const config = JSON.parse(await admin('config view --raw -o json')) as { users: { user: object }[] };
  config.users[0]!.user = { token };
  const path = join(folder, 'controller.kubeconfig');
  writeFileSync(path, JSON.stringify(config));
  return path;
}

/** The environment that the Deployment gives its container, and nothing of ours but the way to the cluster. */
async function environment(): Promise<Record<string, string>> {
  const env = '{.spec.template.spec.containers[0].env}';
  const text = await admin(`get deployment karpenter -n ${namespace} -o jsonpath=${env}`);
  const given = (JSON.parse(text) as { name: string; value?: string }[]).flatMap(({ name, value }) =>
    value === undefined ? [] : [[name, value] as const],
  );
  return { ...Object.fromEntries(given), SYSTEM_NAMESPACE: namespace, KUBECONFIG: own, PATH: process.env['PATH']! };
}

async function startReplica(): Promise<RunningProgram> {
  const [metrics, health] = [await freePort(), await freePort()];
  const program = new RunningProgram('controller', process.execPath, ['bin/karpenter.js', 'controller'], {
    env: { ...(await environment()), METRICS_PORT: String(metrics), HEALTH_PROBE_PORT: String(health) },
  });
  controllers.push(program);
  await program.until(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok);
  return program;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'karpenter-rights-'));
  audit = new AuditLog(folder, `system:serviceaccount:${namespace}:${account}`);
  plane = await startControlPlane({
    workloads: true,
    kwok: true,
    // Some distributions have the plugin on: who sets an owner must be allowed to hold it back.
    apiServer: [...audit.flags, '--enable-admission-plugins=OwnerReferencesPermissionEnforcement'],
  });
  await install('karpenter-crd');
  await install('karpenter', '--set', 'settings.providers={kwok}');
  manifests = (await helm(['get', 'manifest', 'karpenter', '--namespace', namespace], plane.kubeconfig)).stdout;
  own = await kubeconfigOf(account);
}, 240_000);

afterAll(async () => {
  for (const controller of controllers) await controller.stop();
  await plane?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const nodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'kwok' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['4'] },
        ],
        terminationGracePeriod: '6s',
      },
    },
    disruption: { consolidateAfter: '0s', budgets: [{ nodes: '100%' }] },
  },
};

const deployment = (name: string, replicas: number, annotations: Record<string, string> = {}): object => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace: 'default' },
  spec: {
    replicas,
    selector: { matchLabels: { app: name } },
    template: {
      metadata: { labels: { app: name }, annotations },
      spec: {
        terminationGracePeriodSeconds: 0,
        containers: [{ name, image: 'pause', resources: { requests: { cpu: '1' } } }],
      },
    },
  },
});

const budget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'inflate', namespace: 'default' },
  spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'inflate' } } },
};

const attachment = (nodeName: string): object => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'VolumeAttachment',
  metadata: { name: 'disk' },
  spec: { attacher: 'disk.example.com', nodeName, source: { persistentVolumeName: 'disk' } },
});

test('a whole life of a cluster under the rights of the chart', async () => {
  const first = await startReplica();
  await startReplica();
  expect(first.output).not.toContain('setting ignored');

  await apply(plane!.kubeconfig, [
    { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: { name: 'default' } },
    nodePool,
    budget,
    deployment('inflate', 5),
    deployment('stubborn', 1, { 'karpenter.sh/do-not-disrupt': 'true' }),
  ]);
  for (const name of ['inflate', 'stubborn']) await admin(`rollout status deployment/${name} --timeout=60s`);
  // The controller's own two pods wait for nodes that are not its: it buys none for itself.
  expect(await count('nodeclaims')).toBe(2);

  // A node with a volume and a pod that does not want to go: evictions, a volume that is detached, a pod that is deleted.
  const node = (await admin('get pods -l app=stubborn -o jsonpath={.items[0].spec.nodeName}')).trim();
  await apply(plane!.kubeconfig, [attachment(node)]);
  await admin(`delete node ${node} --wait=false`);
  await admin('delete volumeattachment disk');
  await admin(`wait --for=delete node/${node} --timeout=60s`);
  for (const name of ['inflate', 'stubborn']) await admin(`rollout status deployment/${name} --timeout=60s`);

  // The leader goes, the other one takes over; what is not needed is removed.
  expect(await first.stop(), first.output.slice(-4000)).toBe(0);
  await admin('delete deployment inflate stubborn');
  await controllers[1]!.until(async () => (await count('nodeclaims')) === 0, 60_000);
  expect(await count('nodes')).toBe(0);
  expect(await controllers[1]!.stop(), controllers[1]!.output.slice(-4000)).toBe(0);
}, 240_000);

test('nothing it asked for was refused', () => {
  expect(audit.entries().length).toBeGreaterThan(100);
  expect(audit.refusals()).toEqual([]);
});

test('it holds no right that it did not use, but for those with a reason', () => {
  const used = audit.used();
  // The hook that cleans up is somebody else.
  const granted = grantedBy(objectsIn(manifests), (subject) => subject.endsWith('-cleanup'));
  const unused = [...granted].filter((right) => !used.has(right));
  expect(unused.filter((right) => !(right in reasons))).toEqual([]);
});

test('the API server takes the manifests of every set of values as they are', async () => {
  // Its hook would wait for a kubelet, and there is none.
  const line = ['uninstall', 'karpenter', '--namespace', namespace, '--no-hooks'];
  const { code, stderr } = await helm(line, plane!.kubeconfig);
  expect(code, stderr).toBe(0);
  for (const name of ['default', 'guide', 'everything', 'cluster-api-names', 'linode']) {
    const objects = objectsIn(readFileSync(`test/real/golden/${name}.yaml`, 'utf8'));
    // Its kind is the Prometheus operator's, which is not here.
    const items = objects.filter(({ kind }) => kind !== 'ServiceMonitor');
    const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
    await admin('create --dry-run=server --validate=strict -f -', list);
  }
});
