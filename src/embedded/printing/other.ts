// SPDX-License-Identifier: Apache-2.0
// The columns of the smaller groups.
import type {
  ClusterRoleBinding,
  EndpointSlice,
  HorizontalPodAutoscaler,
  Ingress,
  Lease,
  PodDisruptionBudget,
  PriorityClass,
  RuntimeClass,
  StorageClass,
} from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { Column } from '../resource.ts';
import { ageColumn, column, nameColumn } from './columns.ts';
import { selectorText } from './parts.ts';

export { createdAtColumns } from './core.ts';

/** The value at a path as text; '' where there is none. */
export function text(object: KubeObject, ...path: string[]): string {
  const value = at(object, ...path);
  return typeof value === 'string' ? value : '';
}

function at(object: KubeObject, ...path: string[]): unknown {
  let value: unknown = object;
  for (const key of path) {
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  }
  return value;
}

function count(object: KubeObject, ...path: string[]): number {
  const list = at(object, ...path);
  return Array.isArray(list) ? list.length : 0;
}

const integer = { type: 'integer' } as const;
const boolean = { type: 'boolean' } as const;

export const budgetColumns: readonly Column<PodDisruptionBudget>[] = [
  nameColumn,
  column('Min Available', ({ spec }) => String(spec?.minAvailable ?? 'N/A')),
  column('Max Unavailable', ({ spec }) => String(spec?.maxUnavailable ?? 'N/A')),
  column('Allowed Disruptions', ({ status }) => status?.disruptionsAllowed ?? 0, integer),
  ageColumn,
];

export const priorityClassColumns: readonly Column<PriorityClass>[] = [
  nameColumn,
  column('Value', (priority) => priority.value, integer),
  column('Global-Default', (priority) => priority.globalDefault ?? false, boolean),
  ageColumn,
  column('PreemptionPolicy', (priority) => priority.preemptionPolicy ?? ''),
];

export const storageClassColumns: readonly Column<StorageClass>[] = [
  {
    ...nameColumn,
    cell: (storage) => {
      const isDefault = storage.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true';
      return isDefault ? `${storage.metadata.name} (default)` : storage.metadata.name;
    },
  },
  column('Provisioner', (storage) => storage.provisioner),
  column('ReclaimPolicy', (storage) => storage.reclaimPolicy ?? 'Delete'),
  column('VolumeBindingMode', (storage) => storage.volumeBindingMode ?? 'Immediate'),
  column('AllowVolumeExpansion', (storage) => storage.allowVolumeExpansion ?? false),
  ageColumn,
];

export const leaseColumns: readonly Column<Lease>[] = [
  nameColumn,
  column('Holder', ({ spec }) => spec?.holderIdentity ?? ''),
  ageColumn,
];

export const runtimeClassColumns: readonly Column<RuntimeClass>[] = [
  nameColumn,
  column('Handler', (runtime) => runtime.handler),
  ageColumn,
];

export const csiDriverColumns: readonly Column[] = [
  nameColumn,
  column('AttachRequired', (driver) => at(driver, 'spec', 'attachRequired') ?? true, boolean),
  column('PodInfoOnMount', (driver) => at(driver, 'spec', 'podInfoOnMount') ?? false, boolean),
  column('StorageCapacity', (driver) => at(driver, 'spec', 'storageCapacity') ?? false, boolean),
  column('TokenRequests', (driver) => {
    const requests = at(driver, 'spec', 'tokenRequests');
    return Array.isArray(requests) && requests.length > 0
      ? requests.map((request: { audience?: string }) => request.audience).join(',')
      : '<unset>';
  }),
  column('RequiresRepublish', (driver) => at(driver, 'spec', 'requiresRepublish') ?? false, boolean),
  column('Modes', (driver) => {
    const modes = at(driver, 'spec', 'volumeLifecycleModes');
    return Array.isArray(modes) ? modes.join(',') : '<none>';
  }),
  ageColumn,
];

export const csiNodeColumns: readonly Column[] = [
  nameColumn,
  column('Drivers', (node) => count(node, 'spec', 'drivers'), integer),
  ageColumn,
];

export const volumeAttachmentColumns: readonly Column[] = [
  nameColumn,
  column('Attacher', (attachment) => text(attachment, 'spec', 'attacher'), { format: 'name' }),
  column('PV', (attachment) => text(attachment, 'spec', 'source', 'persistentVolumeName')),
  column('Node', (attachment) => text(attachment, 'spec', 'nodeName')),
  column('Attached', (attachment) => at(attachment, 'status', 'attached') ?? false, boolean),
  ageColumn,
];

export const volumeAttributesColumns: readonly Column[] = [
  nameColumn,
  column('DriverName', (attributes) => text(attributes, 'driverName')),
  ageColumn,
];

function subjects(kind: string): (binding: ClusterRoleBinding) => string {
  return ({ subjects: all = [] }) =>
    all
      .filter((subject) => subject.kind === kind)
      .map((subject) => (subject.namespace ? `${subject.namespace}/${subject.name}` : subject.name))
      .join(', ');
}

export const roleBindingColumns: readonly Column<ClusterRoleBinding>[] = [
  nameColumn,
  column('Role', ({ roleRef }) => `${roleRef?.kind}/${roleRef?.name}`),
  ageColumn,
  column('Users', subjects('User'), { wide: true }),
  column('Groups', subjects('Group'), { wide: true }),
  column('ServiceAccounts', subjects('ServiceAccount'), { wide: true }),
];

export const endpointSliceColumns: readonly Column<EndpointSlice>[] = [
  nameColumn,
  column('AddressType', (slice) => slice.addressType),
  column('Ports', (slice) => (slice.ports ?? []).map((port) => port.port ?? '*').join(',') || '<unset>'),
  column(
    'Endpoints',
    (slice) => (slice.endpoints ?? []).flatMap((endpoint) => endpoint.addresses).join(',') || '<unset>',
  ),
  ageColumn,
];

export const ingressColumns: readonly Column<Ingress>[] = [
  nameColumn,
  column('Class', ({ spec }) => spec?.ingressClassName ?? '<none>'),
  column('Hosts', ({ spec }) => (spec?.rules ?? []).map((rule) => rule.host || '*').join(',') || '*'),
  column('Address', ({ status }) =>
    (status?.loadBalancer?.ingress ?? []).map((entry) => entry.ip || entry.hostname || '').join(','),
  ),
  column('Ports', ({ spec }) => ((spec?.tls ?? []).length > 0 ? '80, 443' : '80')),
  ageColumn,
];

export const ingressClassColumns: readonly Column[] = [
  nameColumn,
  column('Controller', (item) => text(item, 'spec', 'controller')),
  column('Parameters', (item) => {
    const kind = text(item, 'spec', 'parameters', 'kind');
    return kind === '' ? '<none>' : `${kind}/${text(item, 'spec', 'parameters', 'name')}`;
  }),
  ageColumn,
];

export const networkPolicyColumns: readonly Column[] = [
  nameColumn,
  column('Pod-Selector', (policy) => selectorText(at(policy, 'spec', 'podSelector') as object)),
  ageColumn,
];

export const webhookColumns: readonly Column[] = [
  nameColumn,
  column('Webhooks', (configuration) => count(configuration, 'webhooks'), integer),
  ageColumn,
];

function paramKind(policy: KubeObject): string {
  const kind = text(policy, 'spec', 'paramKind', 'kind');
  return kind === '' ? '<unset>' : `${text(policy, 'spec', 'paramKind', 'apiVersion')}/${kind}`;
}

export const admissionPolicyColumns: readonly Column[] = [
  nameColumn,
  column('Validations', (policy) => count(policy, 'spec', 'validations'), integer),
  column('ParamKind', paramKind),
  ageColumn,
];

export const mutatingPolicyColumns: readonly Column[] = [
  nameColumn,
  column('Mutations', (policy) => count(policy, 'spec', 'mutations'), integer),
  column('ParamKind', paramKind),
  ageColumn,
];

export const admissionBindingColumns: readonly Column[] = [
  nameColumn,
  column('PolicyName', (binding) => text(binding, 'spec', 'policyName')),
  column('ParamRef', (binding) => text(binding, 'spec', 'paramRef', 'name') || '<unset>'),
  ageColumn,
];

/** Each metric and what it should come to; nobody measures here, so what it is now is not known. */
function targets({ spec }: HorizontalPodAutoscaler): string {
  const all = (spec?.metrics ?? []).map(({ resource }) => {
    const percent = resource?.target?.averageUtilization;
    return resource ? `${resource.name}: <unknown>/${percent === undefined ? 'auto' : `${percent}%`}` : '<unknown>';
  });
  return all.length === 0 ? '<none>' : all.join(', ');
}

export const autoscalerColumns: readonly Column<HorizontalPodAutoscaler>[] = [
  nameColumn,
  column('Reference', ({ spec }) => `${spec?.scaleTargetRef?.kind}/${spec?.scaleTargetRef?.name}`),
  column('Targets', targets),
  column('MinPods', ({ spec }) => String(spec?.minReplicas ?? '<unset>')),
  column('MaxPods', ({ spec }) => spec?.maxReplicas ?? 0),
  column('Replicas', ({ status }) => status?.currentReplicas ?? 0),
  ageColumn,
];

export const resourceClaimColumns: readonly Column[] = [
  nameColumn,
  column('State', (claim) => {
    const states = [];
    if (claim.metadata.deletionTimestamp) states.push('deleted');
    if (at(claim, 'status', 'allocation')) states.push('allocated');
    if (count(claim, 'status', 'reservedFor') > 0) states.push('reserved');
    return states.length === 0 ? 'pending' : states.join(',');
  }),
  ageColumn,
];

export const resourceSliceColumns: readonly Column[] = [
  nameColumn,
  column('Node', (slice) => text(slice, 'spec', 'nodeName') || '<unset>'),
  column('Driver', (slice) => text(slice, 'spec', 'driver')),
  column('Pool', (slice) => text(slice, 'spec', 'pool', 'name')),
  ageColumn,
];
