// SPDX-License-Identifier: Apache-2.0
// Linode in the embedded cluster: an account with an LKE cluster in it, or an empty one whose Linodes join by themselves,
// behind the emulated Linode API; and the provider that speaks to it.
import { durationMs } from '../api/duration.ts';
import { linodeNodeClassKind } from '../api/linode-node-class.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { Clock } from '../base/clock.ts';
import { KarpenterError } from '../base/errors.ts';
import type { Random } from '../base/random.ts';
import type { LinodeApi, MachineHook } from '../embedded/clouds/linode/api.ts';
import { isAlreadyExists } from '../kube/api-error.ts';
import type { KubeClient } from '../kube/client.ts';
import { kinds } from '../kube/kinds.ts';
import { apiVersionOf } from '../kube/object.ts';
import { silentLogger } from '../runtime/logging.ts';
import { inflate } from './demo/inflate.ts';
import type { CloudRun, EmbeddedCloud, RunningCloud } from './embedded-clouds.ts';
import { loadLinodeThrough } from './linode.ts';

const region = 'us-ord';
const clusterName = 'karpenter-embedded';
/** Where the cluster says it is when nobody can reach it but this process. */
const nowhere = 'https://10.0.0.1:6443';

/** Not `default`: that name belongs to the pools in other people's guides. */
const pool: NodePool = {
  apiVersion: apiVersionOf(nodePoolKind),
  kind: nodePoolKind.kind,
  metadata: { name: 'linode' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: linodeNodeClassKind.group, kind: linodeNodeClassKind.kind, name: 'linode' },
        requirements: [
          { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
          { key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] },
        ],
      },
    },
    limits: { cpu: '1000' },
    // What is not needed goes at once, not a tenth of it at a time: somebody is watching.
    disruption: { budgets: [{ nodes: '100%' }] },
  },
};

async function furnish(client: KubeClient): Promise<void> {
  await client.resource(linodeNodeClassKind).create({
    apiVersion: apiVersionOf(linodeNodeClassKind),
    kind: linodeNodeClassKind.kind,
    metadata: { name: 'linode' },
    spec: { image: 'linode/ubuntu22.04' },
  });
  await client.resource(nodePoolKind).create(pool);
}

/** LKE mode: nodes are node pools of an LKE cluster. */
export const linode: EmbeddedCloud = {
  name: 'linode',
  scenarios: [inflate],
  furnish,
  run: (options) => run(options, 'lke'),
  modes: {
    get lke() {
      return linode;
    },
    instance: { name: 'linode', scenarios: [inflate], furnish, run: (options) => run(options, 'instance') },
  },
};

async function run(options: CloudRun, mode: 'lke' | 'instance'): Promise<RunningCloud> {
  const { workload, clock, random, kubeconfig } = options;
  const [{ LinodeApi: Api }, { joinCluster }] = await Promise.all([
    import('../embedded/clouds/linode/api.ts'),
    import('../embedded/clouds/linode/join.ts'),
  ]);
  const token = random.uuid().replaceAll('-', '');
  const joining = joinCluster({ workload, clock, log: silentLogger, initializeMs: 100 });
  const started = { already: 0 };
  const api = new Api({
    clock,
    random,
    tokens: { [token]: { scope: 'write' } },
    delays: swift(options.bootTime),
    machines: newOnly(joining, started),
    ...(kubeconfig === undefined ? {} : { kubeconfig: () => kubeconfig }),
  });
  const listening = kubeconfig === undefined ? undefined : await api.listen();
  if (mode === 'lke') started.already = await createCluster(api, token);
  else await publish(options);
  return {
    stop: () => api.close(),
    settings: {
      linodeToken: token,
      linodeUrl: listening?.url ?? 'http://127.0.0.1',
      linodeMode: mode,
      linodeRegion: region,
      clusterName,
    },
    load: async (parts) => loadLinodeThrough(api, parts, random),
    environment: listening
      ? {
          LINODE_URL: listening.url,
          LINODE_TOKEN: token,
          LINODE_CLI_TOKEN: token,
          LINODE_CLI_API_SCHEME: 'http',
          LINODE_CLI_API_HOST: `127.0.0.1:${listening.port}`,
          CLUSTER_NAME: clusterName,
        }
      : {},
  };
}

/** As real ones, but for people who watch. */
function swift(bootTime: string | undefined) {
  const bootMs = (bootTime === undefined ? undefined : durationMs(bootTime)) ?? 2000;
  return {
    assignMs: 500,
    listMs: 1000,
    provisionMs: 500,
    installMs: 0,
    bootMs,
    readyMs: 500,
    shutdownMs: 500,
    deleteMs: 500,
    replaceMs: 5000,
    kubeconfigMs: 0,
  };
}

/** The nodes that the cluster began with are there already: the first pool stands for them. */
function newOnly(hook: MachineHook, started: { already: number }): MachineHook {
  const isNew = ({ lke }: { readonly lke?: { readonly clusterId: number; readonly poolId: number } }): boolean =>
    lke?.poolId !== started.already;
  return {
    booted: (machine) => (isNew(machine) ? hook.booted(machine) : undefined),
    stopped: (machine) => (isNew(machine) ? hook.stopped?.(machine) : undefined),
    wiped: (machine) => (isNew(machine) ? hook.wiped?.(machine) : undefined),
    gone: (machine) => (isNew(machine) ? hook.gone(machine) : undefined),
  };
}

/** The LKE cluster that the embedded one plays. Returns its first pool. */
async function createCluster(api: LinodeApi, token: string): Promise<number> {
  const ask = async <T>(method: string, path: string, body?: object): Promise<T> => {
    const headers = { authorization: `Bearer ${token}` };
    const answer = await api.handle({ method, path: `/v4beta${path}`, headers, body: JSON.stringify(body) });
    if (answer.status !== 200) throw new KarpenterError('KRP_EMBEDDED_LINODE', `${method} ${path}: ${answer.body}`);
    return JSON.parse(answer.body) as T;
  };
  const cluster = await ask<{ id: number }>('POST', '/lke/clusters', {
    label: clusterName,
    region,
    k8s_version: '1.36',
    node_pools: [{ type: 'g6-standard-2', count: 2 }],
  });
  const pools = await ask<{ data: { id: number }[] }>('GET', `/lke/clusters/${cluster.id}/pools`);
  return pools.data[0]!.id;
}

/** Instance mode: what kubeadm publishes for those who want to join. */
async function publish({ workload, kubeconfig, clock, random }: CloudRun): Promise<void> {
  const config = kubeconfig ?? (await unreachable(clock, random));
  try {
    await workload.resource(kinds.ConfigMap).create({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'cluster-info', namespace: 'kube-public' },
      data: { kubeconfig: withoutUsers(config) },
    });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}

function withoutUsers(kubeconfig: string): string {
  const { apiVersion, kind, clusters } = JSON.parse(kubeconfig) as Record<string, unknown>;
  return JSON.stringify({ apiVersion, kind, clusters, users: [], contexts: [] });
}

/** A cluster without a port has no authority either: machines that only seem to join need one to trust. */
async function unreachable(clock: Clock, random: Random): Promise<string> {
  const { makeCertificate } = await import('../embedded/certificates.ts');
  const { authority } = makeCertificate(clock, random, [], []);
  const data = Buffer.from(authority).toString('base64');
  const clusters = [{ name: '', cluster: { server: nowhere, 'certificate-authority-data': data } }];
  return JSON.stringify({ apiVersion: 'v1', kind: 'Config', clusters });
}
