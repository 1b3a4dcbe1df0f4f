// SPDX-License-Identifier: Apache-2.0
// Cluster API in the embedded cluster: its kinds, three MachineDeployments as the guide writes them, and a model of its
// managers that brings their Machines to life.
import { clusterApiNodeClassKind } from '../api/cluster-api-node-class.ts';
import { durationMs } from '../api/duration.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { KubeClient } from '../kube/client.ts';
import { apiVersionOf, type UnstructuredObject } from '../kube/object.ts';
import { silentLogger } from '../runtime/logging.ts';
import { inflate } from './demo/inflate.ts';
import type { CloudRun, EmbeddedCloud } from './embedded-clouds.ts';

const pool: NodePool = {
  apiVersion: apiVersionOf(nodePoolKind),
  kind: nodePoolKind.kind,
  metadata: { name: 'cluster-api' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: clusterApiNodeClassKind.group, kind: clusterApiNodeClassKind.kind, name: 'default' },
        requirements: [{ key: 'kubernetes.io/arch', operator: 'In', values: ['amd64'] }],
      },
    },
    limits: { cpu: '1000' },
    // What is not needed goes at once, not a tenth of it at a time: somebody is watching.
    disruption: { budgets: [{ nodes: '100%' }] },
  },
};

interface Size {
  readonly name: string;
  readonly cpu: string;
  readonly memory: string;
  readonly price: string;
}

const sizes: readonly Size[] = [
  { name: 'small', cpu: '2', memory: '8Gi', price: '0.096' },
  { name: 'medium', cpu: '8', memory: '32Gi', price: '0.384' },
  { name: 'large', cpu: '16', memory: '64Gi', price: '0.768' },
];

const machineDeployments = {
  group: 'cluster.x-k8s.io',
  version: 'v1beta1',
  kind: 'MachineDeployment',
  plural: 'machinedeployments',
  namespaced: true,
} as const;

function machineDeployment({ name, cpu, memory, price }: Size): UnstructuredObject {
  const capacity = 'capacity.cluster-autoscaler.kubernetes.io';
  const nodeLabels = {
    'kubernetes.io/arch': 'amd64',
    'kubernetes.io/os': 'linux',
    'node.kubernetes.io/instance-type': name,
    'topology.kubernetes.io/zone': 'embedded-a',
  };
  const labels = Object.entries(nodeLabels).map(([key, value]) => `${key}=${value}`);
  return {
    apiVersion: 'cluster.x-k8s.io/v1beta1',
    kind: 'MachineDeployment',
    metadata: {
      name,
      namespace: 'default',
      labels: { 'node.cluster.x-k8s.io/karpenter-member': '' },
      annotations: {
        [`${capacity}/cpu`]: cpu,
        [`${capacity}/memory`]: memory,
        [`${capacity}/maxPods`]: '110',
        [`${capacity}/labels`]: labels.join(','),
        'karpenter.cluster.x-k8s.io/price': price,
      },
    },
    spec: {
      clusterName: 'embedded',
      replicas: 0,
      template: {
        spec: {
          clusterName: 'embedded',
          bootstrap: { dataSecretName: 'user-data' },
          infrastructureRef: {
            apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1',
            kind: 'EmbeddedMachineTemplate',
            name,
          },
        },
      },
    },
  };
}

export const clusterApi: EmbeddedCloud = {
  name: 'cluster-api',
  scenarios: [inflate],
  async furnish(client: KubeClient) {
    const { installClusterApi } = await import('../embedded/clouds/cluster-api/model.ts');
    await installClusterApi(client);
    for (const size of sizes) await client.resource(machineDeployments).create(machineDeployment(size));
    await client.resource(clusterApiNodeClassKind).create({
      apiVersion: apiVersionOf(clusterApiNodeClassKind),
      kind: clusterApiNodeClassKind.kind,
      metadata: { name: 'default' },
      spec: {},
    });
    await client.resource(nodePoolKind).create(pool);
  },
  async run({ karpenter, workload, clock, random, bootTime }: CloudRun) {
    const { startClusterApi } = await import('../embedded/clouds/cluster-api/model.ts');
    const bootMs = durationMs(bootTime) ?? 2000;
    return startClusterApi({
      hub: karpenter,
      workload,
      clock,
      random,
      log: silentLogger,
      behavior: () => ({ provisionMs: 1000, bootMs, settleMs: 500, deleteMs: 500 }),
    });
  },
};
