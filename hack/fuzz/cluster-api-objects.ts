// SPDX-License-Identifier: Apache-2.0
// What a management cluster may hold: MachineDeployments, MachineSets, Machines, templates, checks and prices as somebody
// else's API server keeps them. Their metadata is an API server's own and as it must be; all else may be anything.
import type { ClusterApiNodeClass } from '../../src/api/cluster-api-node-class.ts';
import type { UnstructuredObject } from '../../src/kube/object.ts';
import { ownerKeyOf } from '../../src/providers/cluster-api/binder.ts';
import { catalogOf, readMembers, selectScalables } from '../../src/providers/cluster-api/catalog.ts';
import { templateDrift } from '../../src/providers/cluster-api/drift.ts';
import { type MachineHealthCheck, repairPoliciesOf } from '../../src/providers/cluster-api/health-checks.ts';
import type { HubView } from '../../src/providers/cluster-api/hub.ts';
import { instanceOf, targetOf } from '../../src/providers/cluster-api/instances.ts';
import * as kinds from '../../src/providers/cluster-api/kinds.ts';
import { baselineOf, cameFor, isUnclaimed } from '../../src/providers/cluster-api/ledger.ts';
import { annotations, capacityAnnotations, capi, memberLabel } from '../../src/providers/cluster-api/names.ts';
import { asScalable } from '../../src/providers/cluster-api/orphans.ts';
import type { PriceTable } from '../../src/providers/cluster-api/prices.ts';
import { clusterApiSettings, hubAccess, syncedLabels } from '../../src/providers/cluster-api/settings.ts';
import { parseSettings } from '../../src/runtime/settings.ts';
import { isRecord, json, type Parser } from './reader.ts';

const template = {
  metadata: { labels: { 'node-role.kubernetes.io/worker': '' } },
  spec: {
    clusterName: 'c',
    failureDomain: 'a',
    version: 'v1.34.1',
    infrastructureRef: { apiVersion: 'infrastructure.cluster.x-k8s.io/v1beta1', kind: 'XMachineTemplate', name: 't' },
    bootstrap: { configRef: { apiGroup: 'bootstrap.cluster.x-k8s.io', kind: 'KubeadmConfigTemplate', name: 'b' } },
    taints: [{ key: 'dedicated', value: 'x', effect: 'NoSchedule' }],
  },
};
const deployment = {
  metadata: {
    name: 'd',
    namespace: 'n',
    creationTimestamp: '2026-01-01T00:00:00Z',
    labels: { [memberLabel]: '' },
    annotations: { [capacityAnnotations.cpu]: '4', [capacityAnnotations.memory]: '8Gi', [capi.maxSize]: '3' },
  },
  spec: { clusterName: 'c', replicas: 1, paused: false, strategy: { type: 'RollingUpdate' }, template },
  status: {
    replicas: 1,
    conditions: [{ type: 'MachinesCreated', status: 'False', severity: 'Error', reason: 'r', message: 'm' }],
    deprecated: { v1beta1: { conditions: [{ type: 'InfrastructureReady', status: 'False', severity: 'Error' }] } },
  },
};
const world = {
  deployment,
  silent: { ...deployment, metadata: { ...deployment.metadata, name: 'e', annotations: {} } },
  infrastructure: {
    metadata: {
      name: 't',
      namespace: 'n',
      labels: { [memberLabel]: '', 'cluster.x-k8s.io/cluster-name': 'c' },
      annotations: { [annotations.bootstrapTemplate]: 'Secret/user-data' },
    },
    spec: { template: { metadata: { labels: { a: 'b' } }, spec: { size: 'x' } } },
    status: { capacity: { cpu: '4', memory: '8Gi' }, nodeInfo: { architecture: 'arm64', operatingSystem: 'linux' } },
  },
  machine: {
    metadata: { name: 'm', namespace: 'n', uid: 'u', annotations: { [annotations.claimUid]: 'c' } },
    spec: { ...template.spec, providerID: 'x:///1' },
    status: {
      phase: 'Running',
      nodeRef: { name: 'node' },
      failureReason: '',
      conditions: [{ type: 'InfrastructureReady', status: 'False', severity: 'Error', reason: 'r' }],
      deprecated: { v1beta1: { failureMessage: 'x' } },
    },
  },
  check: {
    spec: {
      clusterName: 'c',
      unhealthyConditions: [{ type: 'Ready', status: 'False', timeout: '5m' }],
      checks: { unhealthyNodeConditions: [{ type: 'Ready', status: 'Unknown', timeoutSeconds: 300 }] },
    },
  },
  prices: { d: '0.1', 'd.spot': '0.05', e: '1' },
  overhead: { memory: '100Mi' },
};

/** As an API server keeps it, whatever was written: names are texts, labels and annotations are maps of texts. */
function kept<T>(value: unknown, kind: string): T {
  const object = isRecord(value) ? value : {};
  const given = isRecord(object['metadata']) ? object['metadata'] : {};
  const words = (map: unknown): Record<string, string> =>
    Object.fromEntries(
      Object.entries(isRecord(map) ? map : {}).flatMap(([key, each]) =>
        typeof each === 'string' ? [[key, each] as const] : [],
      ),
    );
  const { creationTimestamp } = words(given);
  const metadata = {
    name: 'x',
    namespace: 'n',
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
    labels: words(given['labels']),
    annotations: words(given['annotations']),
  };
  return { ...object, apiVersion: 'cluster.x-k8s.io/v1beta1', kind, metadata } as T;
}

function readWorld(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  const scalables = ['deployment', 'silent'].map((name) => kept<kinds.Scalable>(value[name], 'MachineDeployment'));
  const sets = [kept<kinds.Scalable>(value['deployment'], 'MachineSet')];
  const infrastructure = kept<UnstructuredObject>(value['infrastructure'], 'XMachineTemplate');
  const machine = kept<kinds.Machine>(value['machine'], 'Machine');
  const type = {
    group: 'infrastructure.cluster.x-k8s.io',
    version: 'v1',
    kind: 'XMachineTemplate',
    plural: 'x',
    namespaced: true,
  };
  const view = { deployments: { list: () => scalables }, sets: { list: () => sets } } as unknown as HubView;
  const { overhead } = value;
  const nodeClass = {
    ...kept<ClusterApiNodeClass>({}, 'ClusterAPINodeClass'),
    spec: isRecord(overhead) && Object.values(overhead).every((each) => typeof each === 'string') ? { overhead } : {},
  } as ClusterApiNodeClass;
  const selected = selectScalables(nodeClass, view, [
    ['Template:XMachineTemplate/n/t', asScalable(type, infrastructure)],
  ]);
  // A ConfigMap's data are texts.
  const data = Object.entries(isRecord(value['prices']) ? value['prices'] : {}).filter(
    ([, each]) => typeof each === 'string',
  );
  const { valid, invalid } = readMembers(selected, {
    nodeClass,
    prices: Object.fromEntries(data) as PriceTable,
    templates: new Map(selected.map(([key]) => [key, infrastructure])),
  });
  // A bad object costs only itself, and is told what is wrong with it in words that mean something to its owner.
  const blunt = invalid.find(({ problem }) => /^Cannot |is not (?:a function|iterable)/.test(problem));
  if (blunt) throw new TypeError(blunt.problem);
  const { types } = catalogOf(valid, { taints: [], isUnavailable: () => false });
  for (const member of valid) instanceOf(machine, member);
  const [first] = scalables;
  repairPoliciesOf([], [kept<MachineHealthCheck>(value['check'], 'MachineHealthCheck')], scalables);
  return [
    types,
    invalid,
    scalables.map((each) => [
      kinds.creationProblemOf(each),
      kinds.isPaused(each, capi.paused),
      kinds.rollsByItself(each),
      templateDrift(machine.spec ?? {}, each.spec?.template?.spec),
    ]),
    [kinds.failureOf(machine), kinds.providerIDOf(machine), ownerKeyOf(machine), isUnclaimed(machine)],
    cameFor(machine, baselineOf([machine])),
    first && kinds.groupOf(first.spec?.template?.spec?.infrastructureRef ?? {}),
  ];
}

const text = (value: unknown): string => JSON.stringify(value);

export const clusterApiObjects: readonly Parser[] = [
  { name: 'objects of Cluster API', structured: true, seeds: [text(world)], parse: json(readWorld) },
  {
    name: 'provider id of Cluster API',
    seeds: ['cluster-api-machine://n/m', 'cluster-api-nodeclaim://MachineDeployment/n/d/uid', 'x:///1'],
    words: ['cluster-api-nodeclaim://', 'cluster-api-machine://', '/', 'a'],
    parse: targetOf,
  },
  {
    name: 'settings of Cluster API',
    seeds: [
      'CLUSTER_API_ADDITIONAL_SYNC_MACHINE_LABELS=^a.*,(b+)+$',
      'CLUSTER_API_URL=https://x',
      'CLUSTER_API_IN_CLUSTER=true',
    ],
    words: ['(a+)+$', ',', '[', '*', '{1000}', 'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA=-----BEGIN', '='],
    parse: (given) => {
      const [name = '', ...rest] = given.split('=');
      const { settings } = parseSettings(clusterApiSettings, [], { [name]: rest.join('=') });
      return settings && [hubAccess(settings), syncedLabels(settings)('a'.repeat(60))];
    },
  },
];
