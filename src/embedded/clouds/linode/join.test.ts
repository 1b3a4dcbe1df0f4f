// SPDX-License-Identifier: Apache-2.0
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../base/clock.ts';
import { SeededRandom } from '../../../base/random.ts';
import { KubeClient } from '../../../kube/client.ts';
import { kinds, type Node } from '../../../kube/kinds.ts';
import { ApiServer } from '../../api-server.ts';
import { LinodeApi } from './api.ts';
import { joinCluster } from './join.ts';

let clock: VirtualClock;
let server: ApiServer;
let workload: KubeClient;
let api: LinodeApi;
const warnings: unknown[] = [];
const log = {
  debug: () => undefined,
  info: () => undefined,
  error: (message: string, fields?: unknown) => void warnings.push([message, fields]),
  warn: (_: string, fields?: unknown) => void warnings.push((fields as { reason: string }).reason),
  with: () => log,
};

beforeEach(() => {
  clock = new VirtualClock();
  const random = new SeededRandom(1);
  server = new ApiServer({ clock, random });
  workload = new KubeClient({ transport: server.transport(), clock });
  api = new LinodeApi({ clock, random, log, machines: joinCluster({ workload, clock, log }) });
  warnings.length = 0;
});
afterEach(async () => {
  await api.close();
  await server.close();
});

const ask = async (method: string, path: string, body?: object) => {
  const headers = { authorization: 'Bearer linode-token' };
  const answer = await api.handle({
    method,
    path: `/v4beta${path}`,
    headers,
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  if (answer.status !== 200) throw new Error(answer.body);
  return JSON.parse(answer.body) as { id: number };
};
const nodes = async (): Promise<Node[]> => (await workload.resource(kinds.Node).list()).items;
/** Without what the API server itself puts on a new Node. */
const taints = (node: Node | undefined) =>
  (node?.spec?.taints ?? []).filter(({ key }) => key !== 'node.kubernetes.io/not-ready');
const boot = { region: 'us-east', type: 'g6-standard-2', image: 'linode/ubuntu22.04', root_pass: 'aComplex-P4ss' };
const launch = (userData: string | Buffer, label = 'node-1') =>
  ask('POST', '/linode/instances', {
    ...boot,
    label,
    metadata: { user_data: Buffer.from(userData).toString('base64') },
  });

async function mintToken(data: Record<string, string> = {}): Promise<void> {
  const values = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
    ...data,
  };
  await workload.resource(kinds.Secret).create({
    apiVersion: 'v1',
    kind: 'Secret',
    type: 'bootstrap.kubernetes.io/token',
    metadata: { name: 'bootstrap-token-abcdef', namespace: 'kube-system' },
    data: Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    ),
  });
}

const kubeadm = `#cloud-config
write_files:
  - path: /etc/karpenter/bootstrap.conf
    content: |
      apiVersion: v1
      kind: Config
      clusters: [{name: c, cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: Q0E=}}]
      users: [{name: u, user: {token: abcdef.0123456789abcdef}}]
  - path: /etc/karpenter/join.yaml
    content: |
      apiVersion: kubeadm.k8s.io/v1beta4
      kind: JoinConfiguration
      discovery:
        file: {kubeConfigPath: /etc/karpenter/bootstrap.conf}
        tlsBootstrapToken: abcdef.0123456789abcdef
      nodeRegistration:
        name: worker-7
        taints: [{key: karpenter.sh/unregistered, effect: NoExecute}]
        kubeletExtraArgs:
          - {name: cloud-provider, value: external}
          - {name: node-labels, value: "team=a,karpenter.sh/nodepool=default"}
runcmd:
  - [kubeadm, join, --config, /etc/karpenter/join.yaml]
`;

describe('a node of an LKE pool', () => {
  it('joins with the labels and taints of its pool, is told its Linode, and goes with it', async () => {
    const pool = {
      type: 'g6-standard-2',
      count: 1,
      labels: { team: 'a' },
      taints: [{ key: 'x', value: 'y', effect: 'NoExecute' }],
    };
    const cluster = { label: 'prod', region: 'us-east', k8s_version: '1.35', node_pools: [pool] };
    const { id } = await ask('POST', '/lke/clusters', cluster);
    await clock.until(() => api.ledger.instances()[0]?.status === 'running');
    const [joined] = await nodes();
    expect(joined!.spec?.providerID).toBeUndefined();
    expect(taints(joined).map(({ key }) => key)).toEqual(['x', 'node.cloudprovider.kubernetes.io/uninitialized']);
    await clock.step(1000);
    const [node] = await nodes();
    const [linode] = api.ledger.instances();
    expect(node!.spec?.providerID).toBe(`linode://${linode!.id}`);
    expect(taints(node).map(({ key }) => key)).toEqual(['x']);
    expect(node!.metadata.labels).toMatchObject({
      team: 'a',
      'node.kubernetes.io/instance-type': 'g6-standard-2',
      'topology.kubernetes.io/region': 'us-east',
      'lke.linode.com/pool-id': String(api.ledger.pools(id)[0]!.id),
    });
    expect(node!.metadata.labels).not.toHaveProperty('topology.kubernetes.io/zone');
    // As a real one reports it: 4022024Ki and 3919624Ki.
    expect(node!.status?.capacity?.['memory']).toMatch(/^402\d{4}Ki$/);
    await ask('DELETE', `/lke/clusters/${id}`);
    await clock.step(0);
    expect(await nodes()).toEqual([]);
  });
});

describe('a Linode with user data', () => {
  it('joins by kubeadm, with the name, labels and taints it is told', async () => {
    await mintToken();
    const { id } = await launch(kubeadm);
    await clock.step(52_000);
    const [node] = await nodes();
    expect([node!.metadata.name, node!.spec?.providerID]).toEqual(['worker-7', `linode://${id}`]);
    expect(node!.metadata.labels).toMatchObject({ team: 'a', 'karpenter.sh/nodepool': 'default' });
    expect(taints(node)).toEqual([{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }]);
  });

  it('joins when its user data is compressed, and by k3s', async () => {
    await mintToken();
    const k3s = `#cloud-config
write_files:
  - path: /etc/rancher/k3s/config.yaml
    content: |
      server: https://10.0.0.1:6443
      token: K10${'ab'.repeat(32)}::abcdef.0123456789abcdef
      node-name: worker-8
      node-label: [team=b]
      node-taint: ["karpenter.sh/unregistered=:NoExecute"]
      kubelet-arg: [provider-id=linode://1]
runcmd: ["curl -sfL https://get.k3s.io | sh -s - agent"]
`;
    await launch(gzipSync(k3s));
    await clock.step(52_000);
    const [node] = await nodes();
    expect([node!.metadata.name, node!.spec?.providerID]).toEqual(['worker-8', 'linode://1']);
    expect(node!.metadata.labels?.['team']).toBe('b');
    expect(taints(node)).toEqual([{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }]);
  });

  it.each([
    ['a token that does not exist', kubeadm, undefined, 'does not exist'],
    ['another secret', kubeadm, { 'token-secret': 'ffffffffffffffff' }, 'has another secret'],
    ['an expired token', kubeadm, { expiration: '2025-12-31T00:00:00Z' }, 'has expired'],
    ['a token for something else', kubeadm, { 'usage-bootstrap-authentication': 'false' }, 'not for authentication'],
    ['no join', '#cloud-config\nruncmd: [reboot]\n', {}, 'neither kubeadm join nor k3s'],
    ['a script', '#!/bin/sh\nkubeadm join', {}, 'not a #cloud-config'],
    ['broken YAML', '#cloud-config\n{[', {}, 'not YAML'],
    ['no CA', kubeadm.replace(', certificate-authority-data: Q0E=', ''), {}, 'no CA to trust'],
    [
      'a missing file',
      kubeadm.replace('path: /etc/karpenter/join.yaml', 'path: /etc/elsewhere'),
      {},
      'which nobody writes',
    ],
  ])('does not join with %s', async (_, userData, token, reason) => {
    if (token) await mintToken(token);
    await launch(userData);
    await clock.step(60_000);
    expect(api.ledger.instances()[0]!.status).toBe('running');
    expect(await nodes()).toEqual([]);
    expect(warnings).toEqual([expect.stringContaining(reason)]);
  });

  it('comes back after a reboot although its token is gone, and not after its disks were made anew', async () => {
    await mintToken();
    const { id } = await launch(kubeadm);
    await clock.step(60_000);
    await workload.resource(kinds.Secret).delete('bootstrap-token-abcdef', { namespace: 'kube-system' });
    const isPlayed = async (): Promise<boolean> =>
      (await nodes())[0]!.metadata.annotations?.['kwok.x-k8s.io/node'] === 'fake';
    await ask('POST', `/linode/instances/${id}/reboot`);
    expect(await isPlayed()).toBe(false);
    await clock.step(120_000);
    expect(await isPlayed()).toBe(true);
    await ask('POST', `/linode/instances/${id}/rebuild`, { image: 'linode/debian12', root_pass: 'aComplexP@ssword1' });
    await clock.step(180_000);
    expect(await isPlayed()).toBe(false);
    expect(warnings).toEqual([expect.stringContaining('no user data')]);
  });

  it('joins without saying which Linode it is, when nobody tells its kubelet', async () => {
    await mintToken();
    await launch(kubeadm.replace('{name: cloud-provider, value: external}', '{name: v, value: "2"}'));
    await clock.step(60_000);
    expect((await nodes())[0]!.spec?.providerID).toBeUndefined();
  });
});
