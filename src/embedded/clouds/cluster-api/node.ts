// SPDX-License-Identifier: Apache-2.0
// The Node of a Machine: as its kubelet registers it, and as Cluster API leaves it.
import type { Node } from '../../../kube/kinds.ts';
import { fakeNodeAnnotation } from '../../kubelet/fake-node.ts';
import { controllerOf } from '../../workloads/ownership.ts';
import { type Machine, type MachineClass, managedLabels, names } from './objects.ts';

interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

/** What the infrastructure and the kubelet make of it: as the annotations above the Machine, or its template, say. */
export function newNode(
  machine: Machine,
  told: Readonly<Record<string, string>>,
  template: MachineClass | undefined,
  taints: readonly Taint[],
): Node {
  const { name = '' } = machine.metadata;
  const of = (what: string): string | undefined => told[`${names.capacity}${what}`];
  const capacity = capacityOf(of, template);
  const { operatingSystem = 'linux', architecture = 'amd64' } = template?.status?.nodeInfo ?? {};
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: { [fakeNodeAnnotation]: 'fake' },
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': operatingSystem,
        'kubernetes.io/arch': architecture,
        ...(machine.spec?.failureDomain ? { 'topology.kubernetes.io/zone': machine.spec.failureDomain } : {}),
        ...pairsOf(of('labels')),
      },
    },
    spec: { providerID: machine.spec!.providerID!, taints: [...taints, ...taintsOf(of('taints'))] },
    status: { capacity, allocatable: { ...capacity } },
  };
}

function capacityOf(of: (what: string) => string | undefined, template?: MachineClass): Record<string, string> {
  const gpu = of('gpu-type');
  return {
    cpu: of('cpu') ?? '2',
    memory: of('memory') ?? '4Gi',
    pods: of('maxPods') ?? '110',
    'ephemeral-storage': of('ephemeral-disk') ?? '20Gi',
    ...(gpu ? { [gpu]: of('gpu-count') ?? '0' } : {}),
    ...(of('cpu') ? {} : template?.status?.capacity),
  };
}

/** The Node with Cluster API's labels and annotations, and without the taint that waited for them. */
export function initializedNode(machine: Machine, node: Node): Node {
  const owner = controllerOf(machine);
  const annotations = {
    [names.clusterName]: machine.spec?.clusterName ?? '',
    [names.clusterNamespace]: machine.metadata.namespace ?? '',
    [names.machine]: machine.metadata.name ?? '',
    [names.ownerKind]: owner?.kind ?? '',
    [names.ownerName]: owner?.name ?? '',
  };
  const taints = node.spec?.taints?.filter(({ key }) => key !== names.uninitialized);
  return {
    ...node,
    metadata: {
      ...node.metadata,
      labels: { ...node.metadata.labels, ...managedLabels(machine.metadata.labels) },
      annotations: { ...node.metadata.annotations, ...annotations },
    },
    spec: { ...node.spec, ...(taints ? { taints } : {}) },
  };
}

function pairsOf(text = ''): Record<string, string> {
  const pairs = text.split(',').filter((part) => part.includes('='));
  return Object.fromEntries(pairs.map((part) => [part.slice(0, part.indexOf('=')), part.slice(part.indexOf('=') + 1)]));
}

function taintsOf(text = ''): Taint[] {
  return text
    .split(',')
    .filter((part) => part.includes(':'))
    .map((part) => {
      const [left = '', effect = ''] = part.split(':');
      const [key = '', value] = left.split('=');
      return { key, ...(value ? { value } : {}), effect };
    });
}
