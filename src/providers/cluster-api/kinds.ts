// SPDX-License-Identifier: Apache-2.0
// The kinds of Cluster API as far as they are looked at, in any version that a management cluster may serve. What the
// versions say differently is read through the functions here and nowhere else.

import type { LabelSelector } from '../../kube/labels.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import type { MachineHealthCheck } from './health-checks.ts';

export const capiGroup = 'cluster.x-k8s.io';
/** Versions we can read, the best first. */
export const readableVersions = ['v1beta2', 'v1beta1'] as const;

/** A reference to a template or to what was made from it: with `apiVersion` in v1beta1, `apiGroup` in v1beta2. */
export interface ObjectReference {
  readonly apiVersion?: string;
  readonly apiGroup?: string;
  readonly kind?: string;
  readonly name?: string;
  readonly namespace?: string;
}

export interface CapiCondition {
  readonly type: string;
  readonly status: string;
  readonly severity?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string;
}

/** Where v1beta2 keeps what v1beta1 said in the status itself. */
interface Deprecated {
  readonly v1beta1?: {
    readonly failureReason?: string;
    readonly failureMessage?: string;
    readonly conditions?: readonly CapiCondition[];
  };
}

export interface MachineTaint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
}

export interface MachineSpec {
  readonly clusterName?: string;
  readonly bootstrap?: { readonly configRef?: ObjectReference; readonly dataSecretName?: string };
  readonly infrastructureRef?: ObjectReference;
  readonly version?: string;
  readonly providerID?: string;
  readonly failureDomain?: string;
  readonly taints?: readonly MachineTaint[];
}

export interface Machine extends KubeObject {
  readonly spec?: MachineSpec;
  readonly status?: {
    readonly phase?: string;
    readonly nodeRef?: { readonly name?: string };
    readonly failureReason?: string;
    readonly failureMessage?: string;
    readonly conditions?: readonly CapiCondition[];
    readonly deprecated?: Deprecated;
  };
}

/** A MachineDeployment or a MachineSet. */
export interface Scalable extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string;
    readonly replicas?: number;
    readonly paused?: boolean;
    readonly selector?: LabelSelector;
    readonly strategy?: { readonly type?: string };
    readonly rollout?: { readonly strategy?: { readonly type?: string } };
    readonly template?: {
      readonly metadata?: {
        readonly labels?: Readonly<Record<string, string>>;
        readonly annotations?: Readonly<Record<string, string>>;
      };
      readonly spec?: MachineSpec;
    };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly replicas?: number;
    readonly updatedReplicas?: number;
    readonly upToDateReplicas?: number;
    readonly conditions?: readonly CapiCondition[];
    readonly deprecated?: Deprecated;
  };
}

/** An infrastructure or bootstrap template. */
export interface Template extends KubeObject {
  readonly spec?: unknown;
  readonly status?: {
    readonly capacity?: Readonly<Record<string, string>>;
    readonly nodeInfo?: { readonly architecture?: string; readonly operatingSystem?: string };
  };
}

export type ScalableKind = 'MachineDeployment' | 'MachineSet';

/** The kinds in the version that the management cluster serves. */
export interface CapiKinds {
  readonly version: string;
  readonly machineDeployment: ResourceType<Scalable>;
  readonly machineSet: ResourceType<Scalable>;
  readonly machine: ResourceType<Machine>;
  readonly machineHealthCheck: ResourceType<MachineHealthCheck>;
}

export function capiKinds(version: string): CapiKinds {
  const type = <T extends KubeObject>(kind: string, plural: string): ResourceType<T> => ({
    group: capiGroup,
    version,
    kind,
    plural,
    namespaced: true,
  });
  return {
    version,
    machineDeployment: type<Scalable>('MachineDeployment', 'machinedeployments'),
    machineSet: type<Scalable>('MachineSet', 'machinesets'),
    machine: type<Machine>('Machine', 'machines'),
    machineHealthCheck: type<MachineHealthCheck>('MachineHealthCheck', 'machinehealthchecks'),
  };
}

/** The group of what a reference names. */
export function groupOf(ref: ObjectReference): string {
  const { apiGroup, apiVersion } = ref;
  if (typeof apiGroup === 'string') return apiGroup;
  return typeof apiVersion === 'string' ? apiVersion.split('/')[0]! : '';
}

/** Whether two references name the same object; a namespace or version that one of them leaves out does not count. */
export function isSameReference(a: ObjectReference | undefined, b: ObjectReference | undefined): boolean {
  if (!a?.name || !b?.name) return !a?.name && !b?.name;
  return a.name === b.name && a.kind === b.kind && groupOf(a) === groupOf(b);
}

/** Set once its infrastructure is there; v1beta2 knows no absent value, only an empty one. */
export function providerIDOf(machine: Machine): string | undefined {
  return machine.spec?.providerID || undefined;
}

export function isDeleting(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

/** `reason: message`; undefined when neither says anything. */
function sentenceOf(...parts: readonly unknown[]): string | undefined {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(': ') || undefined;
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

/** Those of v1beta1 included, which say how grave they are. */
function conditionsOf(status: Machine['status'] | Scalable['status']): readonly CapiCondition[] {
  return [status?.conditions, status?.deprecated?.v1beta1?.conditions].flatMap((conditions) =>
    Array.isArray(conditions) ? (conditions as CapiCondition[]).filter((condition) => isObject(condition)) : [],
  );
}

/** Why a Machine will never become a node by itself, or undefined. */
export function failureOf(machine: Machine): string | undefined {
  const { status } = machine;
  const legacy = status?.deprecated?.v1beta1;
  const reason = status?.failureReason ?? legacy?.failureReason;
  const message = status?.failureMessage ?? legacy?.failureMessage;
  if (reason || message) return sentenceOf(reason, message) ?? 'it failed without a word';
  if (status?.phase === 'Failed') return 'the Machine is in phase Failed';
  // Without an error severity, Cluster API still hopes.
  const failed = conditionsOf(status).find(
    ({ type, status: is, severity }) => type === 'InfrastructureReady' && is === 'False' && severity === 'Error',
  );
  return failed && (sentenceOf(failed.reason, failed.message) ?? 'its infrastructure failed');
}

/** Why a MachineDeployment or MachineSet cannot make Machines, as it says itself. */
export function creationProblemOf(scalable: Scalable): string | undefined {
  const failed = conditionsOf(scalable.status).find(
    ({ type, status, severity }) => type === 'MachinesCreated' && status === 'False' && severity !== 'Info',
  );
  return failed && (sentenceOf(failed.reason, failed.message) ?? 'Machines cannot be created');
}

/** Whether Cluster API leaves it alone on request. */
export function isPaused(scalable: Scalable, pausedAnnotation: string): boolean {
  return scalable.spec?.paused === true || scalable.metadata.annotations?.[pausedAnnotation] !== undefined;
}

/** A MachineSet of a MachineDeployment. Cluster API copies annotations onto it, our record among them: it means nothing there. */
export function isOwnedSet({ metadata }: Scalable): boolean {
  return metadata.ownerReferences?.some(({ kind }) => kind === 'MachineDeployment') ?? false;
}

/** Whether Cluster API replaces Machines by itself when the template changes. */
export function rollsByItself(scalable: Scalable): boolean {
  const { strategy, rollout } = scalable.spec ?? {};
  return (rollout?.strategy?.type ?? strategy?.type) !== 'OnDelete';
}
