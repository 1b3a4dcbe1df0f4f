// SPDX-License-Identifier: Apache-2.0
// The objects of Cluster API as this model knows them.
import type { LabelSelector } from '../../../kube/labels.ts';
import type { KubeObject, ResourceType } from '../../../kube/object.ts';

export const group = 'cluster.x-k8s.io';
export const infrastructureGroup = 'infrastructure.cluster.x-k8s.io';
export type Version = 'v1beta1' | 'v1beta2';

export const names = {
  clusterName: 'cluster.x-k8s.io/cluster-name',
  clusterNamespace: 'cluster.x-k8s.io/cluster-namespace',
  deploymentName: 'cluster.x-k8s.io/deployment-name',
  setName: 'cluster.x-k8s.io/set-name',
  machine: 'cluster.x-k8s.io/machine',
  ownerKind: 'cluster.x-k8s.io/owner-kind',
  ownerName: 'cluster.x-k8s.io/owner-name',
  clonedFromName: 'cluster.x-k8s.io/cloned-from-name',
  deleteMachine: 'cluster.x-k8s.io/delete-machine',
  paused: 'cluster.x-k8s.io/paused',
  templateHash: 'machine-template-hash',
  uninitialized: 'node.cluster.x-k8s.io/uninitialized',
  minSize: 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size',
  maxSize: 'cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size',
  capacity: 'capacity.cluster-autoscaler.kubernetes.io/',
} as const;

export const machineFinalizer = 'machine.cluster.x-k8s.io';

export interface Reference {
  apiVersion?: string;
  apiGroup?: string;
  kind?: string;
  name?: string;
  namespace?: string;
}

export interface Condition {
  type: string;
  status: string;
  severity?: string;
  reason?: string;
  message?: string;
  lastTransitionTime: string;
}

export interface MachineSpec {
  clusterName?: string;
  bootstrap?: { configRef?: Reference; dataSecretName?: string };
  infrastructureRef?: Reference;
  version?: string;
  providerID?: string;
  failureDomain?: string;
  [field: string]: unknown;
}

export interface MachineStatus {
  phase?: string;
  nodeRef?: { kind?: string; name: string };
  failureReason?: string;
  failureMessage?: string;
  infrastructureReady?: boolean;
  conditions?: Condition[];
}

export interface Machine extends KubeObject {
  spec?: MachineSpec;
  status?: MachineStatus;
}

export interface MachineTemplate {
  metadata?: { labels?: Record<string, string>; annotations?: Record<string, string> };
  spec?: MachineSpec;
}

export interface ScaledStatus {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  availableReplicas?: number;
  updatedReplicas?: number;
  upToDateReplicas?: number;
  selector?: string;
  phase?: string;
  conditions?: Condition[];
}

export interface MachineSet extends KubeObject {
  spec?: {
    clusterName?: string;
    replicas?: number;
    deletePolicy?: string;
    selector?: LabelSelector;
    template?: MachineTemplate;
  };
  status?: ScaledStatus;
}

export interface Strategy {
  type?: string;
  rollingUpdate?: { maxSurge?: number | string; maxUnavailable?: number | string; deletePolicy?: string };
}

export interface MachineDeployment extends KubeObject {
  spec?: {
    clusterName?: string;
    replicas?: number;
    paused?: boolean;
    selector?: LabelSelector;
    strategy?: Strategy;
    rollout?: { strategy?: Strategy };
    template?: MachineTemplate;
  };
  status?: ScaledStatus;
}

/** An infrastructure template of this model: how its machines behave, and what they are like. */
export interface MachineClass extends KubeObject {
  spec?: { template?: { spec?: { behavior?: Behavior } } };
  status?: { capacity?: Record<string, string>; nodeInfo?: { architecture?: string; operatingSystem?: string } };
}

/** The infrastructure of a Machine that was made without a MachineSet. */
export interface MachineInfrastructure extends KubeObject {
  spec?: { behavior?: Behavior };
}

/** How a machine comes up. What is left out is as the model's own. */
export interface Behavior {
  /** From the Machine to its provider id. */
  readonly provisionMs?: number;
  /** From the provider id to its Node. */
  readonly bootMs?: number;
  /** From its Node to Cluster API's labels on it. */
  readonly settleMs?: number;
  /** From the deletion to the end. */
  readonly deleteMs?: number;
  readonly neverProvisions?: boolean;
  readonly neverJoins?: boolean;
  /** The infrastructure gives up, with this reason. */
  readonly fails?: string;
}

export interface Types {
  readonly version: Version;
  readonly machineDeployment: ResourceType<MachineDeployment>;
  readonly machineSet: ResourceType<MachineSet>;
  readonly machine: ResourceType<Machine>;
  readonly machineClass: ResourceType<MachineClass>;
  readonly infrastructure: ResourceType<MachineInfrastructure>;
}

export function typesOf(version: Version): Types {
  const type = <T extends KubeObject>(kind: string, plural: string, of: string = group): ResourceType<T> => ({
    group: of,
    version,
    kind,
    plural,
    namespaced: true,
  });
  return {
    version,
    machineDeployment: type('MachineDeployment', 'machinedeployments'),
    machineSet: type('MachineSet', 'machinesets'),
    machine: type('Machine', 'machines'),
    machineClass: type('EmbeddedMachineTemplate', 'embeddedmachinetemplates', infrastructureGroup),
    infrastructure: type('EmbeddedMachine', 'embeddedmachines', infrastructureGroup),
  };
}

export function isPaused({ metadata, spec }: MachineDeployment | MachineSet): boolean {
  return (spec as MachineDeployment['spec'])?.paused === true || metadata.annotations?.[names.paused] !== undefined;
}

/** The labels of a Machine that Cluster API copies to its Node. */
export function managedLabels(labels: Readonly<Record<string, string>> = {}): Record<string, string> {
  const isManaged = (domain: string): boolean =>
    domain === 'node-role.kubernetes.io' ||
    ['node-restriction.kubernetes.io', 'node.cluster.x-k8s.io'].some(
      (managed) => domain === managed || domain.endsWith(`.${managed}`),
    );
  return Object.fromEntries(Object.entries(labels).filter(([key]) => isManaged(key.split('/', 1)[0]!)));
}
