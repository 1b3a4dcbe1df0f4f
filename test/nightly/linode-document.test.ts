// SPDX-License-Identifier: Apache-2.0
// The guide of the Linode provider, step by step, in both modes: the lines that people type with helm, kubectl and
// linode-cli, on a real control plane whose nodes are Linodes of the emulated API. The controller runs as the chart's
// Deployment says, under the chart's ServiceAccount.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { LkePool } from '../../src/providers/linode/api-types.ts';
import { AuditLog, grantedBy } from '../real/audit.ts';
import { type ControlPlane, startControlPlane } from '../real/control-plane.ts';
import { helm, objectsIn } from '../real/helm.ts';
import { kubectl } from '../real/kubectl.ts';
import { joiningTo, type LinodeAccount, publishCluster, startAccount } from '../real/linode-account.ts';
import { execute, freePort, RunningProgram } from '../real/processes.ts';

const namespace = 'kube-system';
const region = 'us-ord';
const clusterName = 'walk-through';

const inflate = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'inflate' },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'inflate' } },
    template: {
      metadata: { labels: { app: 'inflate' } },
      spec: {
        terminationGracePeriodSeconds: 0,
        securityContext: { runAsUser: 1000, runAsGroup: 3000, fsGroup: 2000 },
        containers: [
          {
            name: 'inflate',
            image: 'public.ecr.aws/eks-distro/kubernetes/pause:3.7',
            resources: { requests: { cpu: 1 } },
            securityContext: { allowPrivilegeEscalation: false },
          },
        ],
      },
    },
  },
};

/** Given for Linode, and not to be seen in a walk where nothing goes wrong. */
const reasons: Readonly<Record<string, string>> = {
  'get linodenodeclasses.karpenter.k8s.linode': 'read again after a conflict',
  'get secrets': 'a launch that is tried again takes the bootstrap token it made before',
};

type Mode = 'lke' | 'instance';

/** One walk through the guide: a cluster, an account, and the controller that the chart describes. */
class Walk {
  readonly mode: Mode;
  readonly folder = mkdtempSync(join(tmpdir(), 'karpenter-guide-'));
  readonly audit = new AuditLog(this.folder, `system:serviceaccount:${namespace}:karpenter`);
  plane!: ControlPlane;
  account!: LinodeAccount;
  /** The pools that the cluster had before. */
  basePools = new Set<number>();
  baseMachines = 0;
  clusterId = 0;
  controller: RunningProgram | undefined;
  /** Everything that a controller said. */
  said = '';

  constructor(mode: Mode) {
    this.mode = mode;
  }

  async start(): Promise<void> {
    this.plane = await startControlPlane({
      workloads: true,
      kwok: true,
      authority: true,
      apiServer: this.audit.flags,
    });
    this.account = await startAccount(
      joiningTo(this.plane.kubeconfig),
      await this.kubectl('config view --raw -o json'),
    );
    if (this.mode === 'lke') await this.#createCluster();
    else await this.#createNodes();
    await this.until(async () => (await this.names('nodes')).length === 2);
    await this.kubectl('wait --for=condition=Ready nodes --all --timeout=60s');
    this.baseMachines = this.account.api.ledger.living().length;
  }

  /** “Create a new LKE cluster with any amount of nodes”, and its kubeconfig when it is ready. */
  async #createCluster(): Promise<void> {
    const line = `lke cluster-create --label ${clusterName} --region ${region} --k8s_version 1.36`;
    const [cluster] = await this.account.cli<{ id: number }>(
      `${line} --node_pools.type g6-standard-2 --node_pools.count 2`,
    );
    this.clusterId = cluster!.id;
    type Answer = { kubeconfig: string };
    const [answer] = await this.cliUntil<Answer>(`lke kubeconfig-view ${cluster!.id}`);
    expect(Buffer.from(answer!.kubeconfig, 'base64').toString('utf8')).toContain(this.plane.url);
    this.basePools = new Set(this.account.api.ledger.pools(cluster!.id).map(({ id }) => id));
  }

  /** A cluster takes its time. */
  async cliUntil<T>(line: string): Promise<T[]> {
    let answer: T[] = [];
    await this.until(async () => {
      answer = await this.account.cli<T>(line);
      return answer.length > 0;
    });
    return answer;
  }

  /** A cluster of kubeadm's with two nodes that nobody here manages. */
  async #createNodes(): Promise<void> {
    await publishCluster(this.plane, this.folder);
    const items = ['one', 'two'].map((name) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name },
        annotations: { 'kwok.x-k8s.io/node': 'fake' },
      },
      status: {
        allocatable: { cpu: '2', memory: '4Gi', pods: '110' },
        capacity: { cpu: '2', memory: '4Gi', pods: '110' },
      },
    }));
    await this.kubectl('create -f -', JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  }

  kubectl(line: string, input?: string): Promise<string> {
    return kubectl(this.plane.kubeconfig, line.split(' '), input);
  }

  async names(what: string): Promise<string[]> {
    return (await this.kubectl(`get ${what} -o name`)).split('\n').filter(Boolean);
  }

  async helm(line: string): Promise<string> {
    const { code, stdout, stderr } = await helm(line.split(' '), this.plane.kubeconfig);
    expect(code, `helm ${line}\n${stdout}${stderr}`).toBe(0);
    return stdout;
  }

  async until(ready: () => Promise<boolean>, timeoutMs = 90_000): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    while (!(await ready().catch(() => false))) {
      if (performance.now() > deadline) {
        const seen = await this.kubectl('get nodes,nodepools,nodeclaims,pods -A').catch(String);
        throw new Error(`it took too long\n${seen}\n${this.controller?.output.slice(-4000)}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  }

  /** The program in the container of the Deployment, with the environment and the rights it has there. */
  async runController(): Promise<void> {
    const [metrics, health] = [await freePort(), await freePort()];
    const env = {
      ...(await this.#environment()),
      PATH: process.env['PATH'],
      SYSTEM_NAMESPACE: namespace,
      KUBECONFIG: await this.#kubeconfigOf('karpenter'),
      METRICS_PORT: String(metrics),
      HEALTH_PROBE_PORT: String(health),
    };
    const program = new RunningProgram('controller', process.execPath, ['bin/karpenter.js', 'controller'], { env });
    this.controller = program;
    await program.until(async () => (await fetch(`http://127.0.0.1:${health}/readyz`)).ok);
  }

  /** What the hook of the chart runs before a release goes, with the rights it has. */
  async cleanUp(): Promise<void> {
    const env = { PATH: process.env['PATH'], KUBECONFIG: await this.#kubeconfigOf('karpenter-cleanup') };
    const args = ['bin/karpenter.js', 'cleanup', '--timeout', '100', '-o', 'json'];
    const { code, stdout, stderr } = await execute(process.execPath, args, { env, timeoutMs: 110_000 });
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ done: true, left: [] });
  }

  async #environment(): Promise<Record<string, string>> {
    const path = '{.spec.template.spec.containers[0].env}';
    const text = await this.kubectl(`get deployment karpenter -n ${namespace} -o jsonpath=${path}`);
    const env: Record<string, string> = {};
    for (const { name, value, valueFrom } of JSON.parse(text) as {
      name: string;
      value?: string;
      valueFrom?: { secretKeyRef?: { name: string; key: string; optional?: boolean } };
    }[]) {
      const secret = valueFrom?.secretKeyRef;
      if (value !== undefined) env[name] = value;
      else if (secret) {
        const found = await this.kubectl(
          `get secret ${secret.name} -n ${namespace} -o jsonpath={.data.${secret.key}} --ignore-not-found`,
        );
        if (found === '' && !secret.optional) throw new Error(`the Secret ${secret.name} lacks ${secret.key}`);
        if (found !== '') env[name] = Buffer.from(found, 'base64').toString('utf8');
      }
    }
    return env;
  }

  async #kubeconfigOf(serviceAccount: string): Promise<string> {
    const token = (await this.kubectl(`create token ${serviceAccount} -n ${namespace}`)).trim();
    const config = JSON.parse(await this.kubectl('config view --raw -o json')) as { users: { user: object }[] };
    config.users[0]!.user = { token };
    const path = join(this.folder, `${serviceAccount}.kubeconfig`);
    writeFileSync(path, JSON.stringify(config));
    return path;
  }

  /** The machines that Karpenter made. */
  machines(): number {
    return this.account.api.ledger.living().length - this.baseMachines;
  }

  pools(): LkePool[] {
    if (this.clusterId === 0) return [];
    return this.account.api.ledger.pools(this.clusterId).filter(({ id }) => !this.basePools.has(id)) as never;
  }

  /** Each machine is there once: as a NodeClaim, as a Node, as a Linode, and in LKE mode as a pool of one. */
  async expectMachines(count: number): Promise<void> {
    const seen = {
      claims: (await this.names('nodeclaims')).length,
      nodes: (await this.names('nodes -l karpenter.sh/nodepool')).length,
      linodes: this.machines(),
      pools: this.mode === 'lke' ? this.pools().length : count,
    };
    expect(seen).toEqual({ claims: count, nodes: count, linodes: count, pools: count });
  }

  async stopController(): Promise<void> {
    this.said += this.controller?.output ?? '';
    expect(await this.controller?.stop(), this.controller?.output.slice(-4000)).toBe(0);
    this.controller = undefined;
  }

  async stop(): Promise<void> {
    await this.controller?.stop();
    await this.account?.close();
    await this.plane?.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }
}

describe.each<[Mode]>([['lke'], ['instance']])('the guide, in mode %s', (mode) => {
  let walk: Walk;
  let refusals: string[] | undefined;
  let manifests = '';
  beforeAll(async () => {
    walk = new Walk(mode);
    await walk.start();
  }, 240_000);
  afterAll(() => walk?.stop());

  test('install Karpenter', async () => {
    const flags = `upgrade --install --namespace ${namespace} --create-namespace`;
    await walk.helm(`${flags} karpenter-crd charts/karpenter-crd`);
    const { url, token } = walk.account;
    const optional = mode === 'instance' ? ` --set region=${region} --set settings.mode=instance` : '';
    await walk.helm(
      `${flags} karpenter charts/karpenter --set settings.clusterName=${clusterName} --set apiToken=${token}` +
        ` --set apiURL=${url}${optional} --wait --timeout 100s`,
    );
    // Two that run, on two nodes, though no node has a zone.
    const pods = await walk.kubectl(`get pods --namespace ${namespace} -l app.kubernetes.io/name=karpenter`);
    expect(pods.match(/\b1\/1\s+Running\b/g)).toHaveLength(2);
    const manifest = await walk.kubectl(`get deployments,configmaps -n ${namespace} -o yaml`);
    expect(manifest).not.toContain(token);
    await walk.runController();
    await walk.controller!.until(() => /"providers":"[^"]*\blinode\b/.test(walk.controller!.output));
  }, 200_000);

  test('create a NodePool', async () => {
    await walk.kubectl('apply -f examples/v1/linode.yaml');
    await walk.kubectl('wait --for=condition=Ready linodenodeclass/default nodepool/default --timeout=60s');
  });

  test('scale up the deployment', async () => {
    await walk.kubectl('apply -f -', JSON.stringify(inflate));
    await walk.kubectl('scale deployment inflate --replicas 5');
    await walk.kubectl('rollout status deployment/inflate --timeout=100s');
    const claims = (await walk.names('nodeclaims')).length;
    expect(claims).toBeGreaterThan(0);
    await walk.kubectl('wait --for=condition=Ready nodeclaims --all --timeout=60s');
    await walk.expectMachines(claims);
    const zones = '{.items[*].metadata.labels.topology\\.kubernetes\\.io/zone}';
    const found = await walk.kubectl(`get nodes -l karpenter.sh/nodepool=default -o jsonpath=${zones}`);
    expect(new Set(found.split(' '))).toEqual(new Set([region]));
  }, 200_000);

  test('delete a node by hand: it drains, its machine goes, its pods find another', async () => {
    const where = 'get pods -l app=inflate -o jsonpath={.items[0].spec.nodeName}';
    const nodes = await walk.names('nodes -l karpenter.sh/nodepool');
    const node = nodes[0]!.slice('node/'.length);
    expect(await walk.kubectl(where)).not.toBe('');
    const id = await walk.kubectl(`get node ${node} -o jsonpath={.spec.providerID}`);
    await walk.kubectl(`delete node ${node} --timeout=90s`);
    await walk.kubectl('rollout status deployment/inflate --timeout=100s');
    await walk.until(async () => !walk.account.api.ledger.living().some((linode) => `linode://${linode.id}` === id));
    const count = (await walk.names('nodeclaims')).length;
    await walk.until(async () => (await walk.names('nodes -l karpenter.sh/nodepool')).length === count);
    await walk.expectMachines(count);
  }, 240_000);

  test('scale down: empty nodes go', async () => {
    await walk.kubectl('delete deployment inflate');
    await walk.until(async () => (await walk.names('nodeclaims')).length === 0, 150_000);
    await walk.until(async () => walk.machines() === 0);
    await walk.expectMachines(0);
    if (mode === 'instance') {
      const secrets = await walk.names(`secrets -n ${namespace} -l app.kubernetes.io/managed-by=karpenter`);
      expect(secrets).toEqual([]);
    }
  }, 240_000);

  test('clean up with machines still there: nothing is left that costs money', async () => {
    await walk.kubectl('apply -f -', JSON.stringify({ ...inflate, spec: { ...inflate.spec, replicas: 6 } }));
    await walk.kubectl('rollout status deployment/inflate --timeout=100s');
    expect(walk.machines()).toBeGreaterThan(0);
    const cmdline = readFileSync(`/proc/${walk.controller!.pid}/cmdline`, 'utf8');
    expect(cmdline).not.toContain(walk.account.token);
    // No kubelet would run the hook: it is run here as its manifest says, under its own ServiceAccount.
    await walk.cleanUp();
    expect(await walk.names('nodepools,nodeclaims')).toEqual([]);
    await walk.until(async () => walk.machines() === 0);
    // Its rights go with the release, maybe a moment before it does.
    refusals = walk.audit.refusals();
    manifests = await walk.helm(`get manifest karpenter --namespace ${namespace}`);
    await walk.helm(`uninstall karpenter --namespace ${namespace} --wait --no-hooks`);
    await walk.stopController();
    const left = `deployments,secrets,serviceaccounts -n ${namespace} -l app.kubernetes.io/name=karpenter`;
    expect(await walk.names(left)).toEqual([]);
    if (mode === 'lke') {
      // Its node pools go with the cluster, whoever made them.
      const [cluster] = await walk.account.cli<{ id: number }>(`lke clusters-list --label ${clusterName}`);
      await walk.account.cli(`lke cluster-delete ${cluster!.id}`);
    }
    await walk.until(async () => walk.account.api.ledger.living().length === 0);
  }, 240_000);

  test('nothing it asked for was refused, and nobody was told the token', async () => {
    expect(walk.audit.entries().length).toBeGreaterThan(50);
    expect(refusals).toEqual([]);
    expect(walk.said).not.toContain(walk.account.token);
    expect(await walk.kubectl('get events -A -o yaml')).not.toContain(walk.account.token);
  });

  // For the other parts of the program the chart's roles are held against a run in test/real/least-privilege.test.ts.
  test('the rights for Linode were all used, but for those with a reason', () => {
    const used = walk.audit.used();
    const roles = objectsIn(manifests).filter(({ metadata }) => metadata.name?.endsWith('-linode'));
    const granted = [...grantedBy(roles)];
    expect(granted.length).toBeGreaterThan(4);
    expect(granted.filter((right) => !used.has(right) && !(right in reasons))).toEqual([]);
  });
});
