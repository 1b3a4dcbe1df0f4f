// SPDX-License-Identifier: Apache-2.0
// What the Linode API may answer, to everything that asks it: client, catalogue, validation, and both ways to have machines.
import type { LinodeNodeClass } from '../../src/api/linode-node-class.ts';
import type { NodeClaim } from '../../src/api/node-claim.ts';
import { VirtualClock } from '../../src/base/clock.ts';
import { KarpenterError } from '../../src/base/errors.ts';
import { SeededRandom } from '../../src/base/random.ts';
import { makeCertificate } from '../../src/embedded/certificates.ts';
import { KubeClient } from '../../src/kube/client.ts';
import type { Transport, TransportRequest } from '../../src/kube/transport.ts';
import { Account } from '../../src/providers/linode/account.ts';
import {
  isBusy,
  isDenied,
  isGone,
  isLabelTaken,
  isTagLimit,
  isTemporary,
  isUncertain,
  shortageOf,
} from '../../src/providers/linode/api-errors.ts';
import { ClusterInfoReader } from '../../src/providers/linode/bootstrap/cluster-info.ts';
import { BootstrapTokens } from '../../src/providers/linode/bootstrap/tokens.ts';
import { Catalog } from '../../src/providers/linode/catalog.ts';
import { LinodeClient } from '../../src/providers/linode/client.ts';
import type { LinodeDoor } from '../../src/providers/linode/door.ts';
import { InstanceMachines } from '../../src/providers/linode/instances.ts';
import { LkeMachines } from '../../src/providers/linode/lke.ts';
import type { Machines } from '../../src/providers/linode/machines.ts';
import { UnavailablePlans } from '../../src/providers/linode/unavailable.ts';
import { Validator } from '../../src/providers/linode/validation.ts';
import { Cluster } from '../../src/runtime/clusters.ts';
import { silentLogger } from '../../src/runtime/logging.ts';
import { Metrics } from '../../src/runtime/metrics.ts';
import { isRecord, json, type Parser } from './reader.ts';

const uid = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const bareUid = uid.replaceAll('-', '');
const clusterUid = '11111111-2222-3333-4444-555555555555';
const startedAt = Date.UTC(2026, 0, 1);
/** Longer than any call goes on repeating itself. */
const longestMs = 30 * 60_000;

const page = (...data: object[]): object => ({ data, page: 1, pages: 1, results: data.length });
const region = {
  id: 'us-east',
  label: 'Newark',
  status: 'ok',
  capabilities: ['Linodes', 'Kubernetes', 'Metadata', 'VPCs', 'Linode Interfaces', 'GPU Linodes', 'Cloud Firewall'],
};
const plan = {
  id: 'g6-standard-2',
  label: 'Linode 4GB',
  class: 'standard',
  disk: 81920,
  memory: 4096,
  vcpus: 2,
  gpus: 0,
  transfer: 4000,
  network_out: 4000,
  price: { hourly: 0.036, monthly: 24 },
  region_prices: [{ id: 'id-cgk', hourly: 0.043, monthly: 28.8 }],
};
const pool = {
  id: 11,
  type: 'g6-standard-2',
  count: 1,
  nodes: [{ id: '11-abc', instance_id: 101, status: 'ready' }],
  tags: [`karpenter.sh/uid=${bareUid}`, 'karpenter.sh/nodepool=default'],
  labels: { 'karpenter.sh/nodepool': 'default' },
  taints: [{ key: 'karpenter.sh/unregistered', value: 'true', effect: 'NoExecute' }],
  disk_encryption: 'enabled',
  k8s_version: null,
};
const shared = {
  ...pool,
  id: 12,
  count: 2,
  nodes: [{ id: '12-abc', instance_id: 102, status: 'ready' }],
  tags: [...pool.tags, 'karpenter.k8s.linode/shared=0123456789abcdef', 'karpenter.sh/node=00c04fd430c8.102'],
};
const linode = {
  id: 101,
  label: 'default-x-00c04fd430c8',
  type: 'g6-standard-2',
  region: 'us-east',
  image: 'linode/ubuntu22.04',
  status: 'running',
  tags: [`karpenter-cluster=${clusterUid.replaceAll('-', '')}`, `karpenter.sh/uid=${bareUid}`],
  created: '2026-01-01T00:00:00',
  lke_cluster_id: 7,
  placement_group: null,
  specs: { disk: 81920 },
};
const common = {
  'regions/us-east': region,
  'regions/us-east/availability': [{ region: 'us-east', plan: 'g6-nanode-1', available: false }],
  'linode/types': page(plan),
  'linode/instances/101': linode,
  'linode/instances/101/firewalls': page({ id: 5 }),
  'networking/firewalls/5': { id: 5, status: 'enabled' },
};
const lke = (tier: string) => ({
  mode: 'lke',
  answers: {
    ...common,
    'lke/clusters': page({ id: 7, label: 'mine', region: 'us-east', k8s_version: '1.34', tier }),
    'lke/clusters/7/pools': page(pool, shared),
    'lke/clusters/7/pools/11': pool,
    'lke/clusters/7/pools/12': shared,
    'linode/instances': page(linode),
    'POST lke/clusters/7/pools': pool,
    'PUT lke/clusters/7/pools/11': pool,
    'PUT linode/instances/101': linode,
    'POST networking/firewalls/5/devices': {},
    'PUT lke/clusters/7/pools/12': shared,
  },
});
const instance = {
  mode: 'instance',
  answers: {
    ...common,
    'linode/instances': page(linode),
    'POST linode/instances': { ...linode, id: 102, status: 'offline' },
    'linode/instances/102': { ...linode, id: 102, status: 'offline' },
    'linode/instances/102/disks': page({ id: 1, label: 'root', size: 81920, filesystem: 'ext4' }),
    'linode/instances/102/configs': page({ id: 2, devices: { sda: { disk_id: 1 }, sdb: null } }),
    'POST linode/instances/102/disks/1/resize': {},
    'POST linode/instances/102/boot': {},
    'PUT linode/instances/102/configs/2': {},
    'PUT linode/instances/101': linode,
    'POST linode/instances/102/disks': { id: 3, label: 'data', size: 10240, filesystem: 'ext4' },
    'vpcs/9': { id: 9, region: 'us-east', subnets: [{ id: 4 }] },
    'placement/groups/8': { id: 8, region: 'us-east' },
    'images/linode%2Fubuntu22.04': { id: 'linode/ubuntu22.04', status: 'available', capabilities: ['cloud-init'] },
  },
};

const claim = (status: NodeClaim['status'] = {}): NodeClaim => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: {
    name: 'default-x',
    uid,
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { 'karpenter.sh/nodepool': 'default' },
  },
  spec: { nodeClassRef: { group: 'karpenter.k8s.linode', kind: 'LinodeNodeClass', name: 'default' }, requirements: [] },
  status,
});
const otherClaim: NodeClaim = { ...claim(), metadata: { ...claim().metadata, uid: uid.replace('6', '7') } };
const nodeClass = {
  apiVersion: 'karpenter.k8s.linode/v1',
  kind: 'LinodeNodeClass',
  metadata: { name: 'default' },
  spec: {
    firewallID: 5,
    vpcID: 9,
    placementGroup: { id: 8 },
    osDisk: { size: '20Gi' },
    dataDisks: { sdc: { size: '10Gi' } },
  },
} as unknown as LinodeNodeClass;

const { authority } = makeCertificate(new VirtualClock(), new SeededRandom(1), ['kubernetes'], ['10.0.0.1']);

/** A cluster that has what machines need to join it, and says nothing else. */
function workload(kubeconfig?: string): Transport {
  const known: Readonly<Record<string, object>> = {
    '/api/v1/namespaces/kube-system': { metadata: { name: 'kube-system', uid: clusterUid } },
    '/version': { gitVersion: 'v1.34.1' },
    ...(kubeconfig === undefined
      ? {
          '/api/v1/namespaces/kube-system/configmaps/kube-root-ca.crt': { metadata: {}, data: { 'ca.crt': authority } },
        }
      : { '/api/v1/namespaces/kube-public/configmaps/cluster-info': { metadata: {}, data: { kubeconfig } } }),
  };
  const missing = { kind: 'Status', status: 'Failure', code: 404, reason: 'NotFound', message: 'not found' };
  const request = ({ method, path, body }: TransportRequest) => {
    const found = method === 'POST' ? body : known[path];
    return Promise.resolve(found === undefined ? { status: 404, body: missing } : { status: 200, body: found });
  };
  return { request, watch: request, close: () => Promise.resolve() };
}

/** Answers by path, as told; where nothing is told there is nothing. */
function doorTo(told: Record<string, unknown>): LinodeDoor {
  const missing = { status: 404, headers: {}, body: '{"errors":[{"reason":"Not found"}]}' };
  return {
    handle: ({ method, path }) => {
      const route = path.replace(/^\/v4beta\//, '').split('?', 1)[0]!;
      const key = method === 'GET' ? route : `${method} ${route}`;
      if (method === 'DELETE') return Promise.resolve({ status: 200, headers: {}, body: '{}' });
      if (!Object.hasOwn(told, key)) return Promise.resolve(missing);
      const answer = told[key];
      return Promise.resolve({
        status: 200,
        headers: {},
        body: typeof answer === 'string' ? answer : JSON.stringify(answer),
      });
    },
  };
}

/** Everything that is ever asked of the API. Throws what no caller is prepared for. */
async function askAll(mode: 'lke' | 'instance', told: Record<string, unknown>): Promise<void> {
  const clock = new VirtualClock(startedAt);
  const random = new SeededRandom(1);
  const { log, metrics } = { log: silentLogger, metrics: new Metrics() };
  const { signal } = new AbortController();
  const client = new LinodeClient({ door: doorTo(told), token: 'secret', clock, metrics });
  const configuration = {
    mode,
    clusterName: 'mine',
    region: mode === 'instance' ? 'us-east' : '',
    createDeadlineMs: 10_000,
    retryDelayMs: 2000,
    sharePools: false,
  } as const;
  const account = new Account({ client, configuration, clock });
  const unavailable = new UnavailablePlans(clock);
  const cluster = new Cluster({ name: 'c', transport: workload(), clock, random, log, metrics });
  const parts = { client, account, unavailable, clock, log };
  const catalog = new Catalog({ ...parts, workload: cluster, mode, memoryOverhead: 0.075, metrics });
  const clusterInfo = new ClusterInfoReader({ workload: cluster.client, endpoint: 'https://10.0.0.1:6443', clock });
  const machinesOf = (sharePools: boolean): Machines =>
    mode === 'lke'
      ? new LkeMachines({ ...parts, configuration: { ...configuration, sharePools } })
      : new InstanceMachines({
          ...parts,
          configuration,
          random,
          workload: cluster.client,
          clusterInfo,
          tokens: new BootstrapTokens({ workload: cluster.client, clock, random }),
        });
  const validator = new Validator({ client, account, mode, lookUp: true, clusterInfo });
  const ours = async (work: () => Promise<unknown>): Promise<void> => {
    try {
      await clock.finish(work(), longestMs);
    } catch (error) {
      if (!(error instanceof KarpenterError)) throw error;
    }
  };
  const planner = {
    nodeClass,
    plan: async () => ({ nodeClass, choices: await catalog.types(nodeClass) }),
  };
  const launched = claim({ providerID: 'linode://101' });
  await ours(() => catalog.types(undefined));
  await ours(() => validator.check(nodeClass, signal));
  for (const machines of [machinesOf(false), ...(mode === 'lke' ? [machinesOf(true)] : [])]) {
    await ours(() => machines.list(signal));
    await ours(() => machines.get('linode://101', signal));
    await ours(() => machines.create(claim(), planner, signal));
    await ours(() => machines.create(otherClaim, planner, signal));
    await ours(() => machines.drift(launched, nodeClass, signal));
    await ours(() => machines.tag(launched, { add: ['a'], remove: ['b'] }, signal));
    await ours(() => machines.settle(launched, signal));
    await ours(() => machines.delete(launched, signal));
  }
}

const questions = [isBusy, isDenied, isGone, isLabelTaken, isTagLimit, isTemporary, isUncertain, shortageOf];

/** A refusal, and all the questions that are asked about one. */
async function judgeRefusal(status: number, headers: Record<string, string>, body: string): Promise<void> {
  const clock = new VirtualClock(startedAt);
  const door: LinodeDoor = { handle: () => Promise.resolve({ status, headers, body }) };
  const client = new LinodeClient({ door, token: 'secret', clock, metrics: new Metrics() });
  const { signal } = new AbortController();
  const error: unknown = await clock.finish(client.post('x', {}, signal), longestMs).catch((thrown: unknown) => thrown);
  for (const ask of questions) ask(error);
  if (error instanceof Error) throw error;
}

const text = (value: unknown): string => JSON.stringify(value);

export const linodeAnswers: readonly Parser[] = [
  {
    name: 'answers of the Linode API',
    structured: true,
    seeds: [text(lke('standard')), text(lke('enterprise')), text(instance)],
    parse: json((value) => {
      if (!isRecord(value) || !isRecord(value['answers'])) return undefined;
      return askAll(value['mode'] === 'instance' ? 'instance' : 'lke', value['answers']);
    }),
  },
  {
    name: 'refusal of the Linode API',
    seeds: [
      text({ errors: [{ reason: 'Linode busy.' }, { field: 'tags', reason: 'at most 10 tags' }] }),
      text({ errors: [{ field: 'label', reason: 'Label must be unique among your linodes' }] }),
      text({ errors: [{ reason: 'exceeds the limit of maximum number of node pools not currently available in' }] }),
    ],
    words: [
      'exceeds ',
      'maximum ',
      'reached the ',
      'limit ',
      'not enough ',
      'capacity ',
      '{"errors":[{"reason":"',
      '"}]}',
    ],
    parse: async (body) => {
      for (const status of [400, 429, 503]) await judgeRefusal(status, {}, body).catch(onlyOurs);
    },
  },
  {
    name: 'Retry-After of the Linode API',
    seeds: ['5', 'Wed, 21 Oct 2026 07:28:00 GMT'],
    words: ['9', '0', '-', '.', 'e', ' ', 'GMT', 'Wed, '],
    parse: (header) => judgeRefusal(429, { 'retry-after': header }, '').catch(onlyOurs),
  },
  {
    name: 'what a cluster publishes for those who join',
    seeds: [
      'apiVersion: v1\nclusters:\n- cluster:\n    server: https://10.0.0.1:6443\n    certificate-authority-data: YQ==\n',
      text({
        clusters: [
          { cluster: { server: 'https://x', 'certificate-authority-data': Buffer.from(authority).toString('base64') } },
        ],
      }),
    ],
    parse: (kubeconfig) => {
      const clock = new VirtualClock(startedAt);
      const client = new KubeClient({ transport: workload(kubeconfig), clock });
      return new ClusterInfoReader({ workload: client, endpoint: '', clock }).read(new AbortController().signal);
    },
  },
];

function onlyOurs(error: unknown): void {
  if (!(error instanceof KarpenterError)) throw error;
}
