// SPDX-License-Identifier: Apache-2.0
// The kinds of the smaller groups: policy, storage, scheduling, coordination, rbac and so on.
import type {
  ClusterRole,
  ClusterRoleBinding,
  CustomResourceDefinition,
  EndpointSlice,
  HorizontalPodAutoscaler,
  Ingress,
  Lease,
  NetworkPolicy,
  PodDisruptionBudget,
  PriorityClass,
  Role,
  RoleBinding,
  StorageClass,
} from '../../kube/kinds.ts';
import { compileLabelSelector, SelectorError } from '../../kube/labels.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { definitionStrategy } from '../custom/definition-strategy.ts';
import * as print from '../printing/other.ts';
import type { Resource, Strategy } from '../resource.ts';
import { pathSegmentProblems } from '../rest/names.ts';
import { forbidden } from '../status.ts';
import { define } from './define.ts';
import { newEvents } from './events.ts';
import { roleRefErrors, ruleErrors } from './roles.ts';
import { immutable, notNegative } from './workloads.ts';

const budgets = define<PodDisruptionBudget>({
  group: 'policy',
  kind: 'PodDisruptionBudget',
  namespaced: true,
  shortNames: ['pdb'],
  status: true,
  generation: true,
  unconditionalUpdate: false,
  columns: print.budgetColumns,
  strategy: {
    prepareCreate: (budget) => {
      budget.status = { currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 };
    },
    validate: ({ spec }) => {
      const errors: FieldError[] = [];
      if (spec?.minAvailable !== undefined && spec.maxUnavailable !== undefined) {
        errors.push({
          field: 'spec',
          type: 'Invalid',
          value: spec,
          detail: 'minAvailable and maxUnavailable cannot be both set',
        });
      }
      for (const field of ['minAvailable', 'maxUnavailable'] as const)
        errors.push(...amountErrors(`spec.${field}`, spec?.[field]));
      try {
        compileLabelSelector(spec?.selector);
      } catch (error) {
        if (!(error instanceof SelectorError)) throw error;
        errors.push({ field: 'spec.selector', type: 'Invalid', value: spec?.selector, detail: error.message });
      }
      return errors;
    },
  },
});

function amountErrors(field: string, value: number | string | undefined): FieldError[] {
  if (typeof value === 'number') return notNegative(field, value);
  if (value === undefined) return [];
  if (!/^\d+%$/.test(value)) {
    const detail =
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    return [{ field, type: 'Invalid', value, detail }];
  }
  return Number(value.slice(0, -1)) > 100
    ? [{ field, type: 'Invalid', value, detail: 'must not be greater than 100%' }]
    : [];
}

const priorityClasses = define<PriorityClass>({
  group: 'scheduling.k8s.io',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
  shortNames: ['pc'],
  generation: true,
  columns: print.priorityClassColumns,
  strategy: {
    default: (priority) => {
      priority.preemptionPolicy ??= 'PreemptLowerPriority';
    },
    refuseDelete: (priority) => {
      if (!priority.metadata.name!.startsWith('system-')) return;
      throw forbidden(
        { group: 'scheduling.k8s.io', plural: 'priorityclasses' },
        priority.metadata.name!,
        'this is a system priority class and cannot be deleted',
      );
    },
    validate: (priority) => {
      const system = priority.metadata.name?.startsWith('system-') === true;
      const detail = 'maximum allowed value of a user defined priority is 1000000000';
      if (!system && priority.value > 1_000_000_000) return [{ field: 'value', type: 'Forbidden', detail }];
      return [];
    },
    validateUpdate: (priority, old) => [
      ...(priority.value === old.value
        ? []
        : [{ field: 'value', type: 'Forbidden' as const, detail: 'may not be changed in an update.' }]),
      ...immutable('preemptionPolicy', priority.preemptionPolicy, old.preemptionPolicy),
    ],
  },
});

const storageClasses = define<StorageClass>({
  group: 'storage.k8s.io',
  kind: 'StorageClass',
  plural: 'storageclasses',
  namespaced: false,
  shortNames: ['sc'],
  columns: print.storageClassColumns,
  strategy: {
    default: (storage) => {
      storage.reclaimPolicy ??= 'Delete';
      storage.volumeBindingMode ??= 'Immediate';
    },
    validate: (storage) => (storage.provisioner ? [] : [{ field: 'provisioner', type: 'Required', detail: '' }]),
    validateUpdate: (storage, old) => {
      const forbid = (field: string): FieldError => ({
        field,
        type: 'Forbidden',
        detail: 'updates to ' + field + ' are forbidden.',
      });
      return storage.provisioner === old.provisioner ? [] : [forbid('provisioner')];
    },
  },
});

const leases = define<Lease>({
  group: 'coordination.k8s.io',
  kind: 'Lease',
  namespaced: true,
  createOnUpdate: true,
  sharesParts: true,
  columns: print.leaseColumns,
  strategy: {
    validate: ({ spec }) => {
      const seconds = spec?.leaseDurationSeconds;
      return seconds !== undefined && seconds <= 0
        ? [{ field: 'spec.leaseDurationSeconds', type: 'Invalid', value: seconds, detail: 'must be greater than 0' }]
        : [];
    },
  },
});

const definitions = define<CustomResourceDefinition>({
  group: 'apiextensions.k8s.io',
  kind: 'CustomResourceDefinition',
  namespaced: false,
  shortNames: ['crd', 'crds'],
  categories: ['api-extensions'],
  status: true,
  generation: true,
  unconditionalUpdate: false,
  columns: print.createdAtColumns,
  strategy: definitionStrategy,
});

/** Fields of kinds that get little more than defaults. */
type Fields = Record<string, unknown>;

const roleStrategy: Strategy = {
  validateName: pathSegmentProblems,
  default: (object) => {
    const { roleRef, subjects } = object as unknown as { roleRef?: Fields; subjects?: Fields[] };
    if (roleRef) roleRef['apiGroup'] ||= 'rbac.authorization.k8s.io';
    for (const subject of subjects ?? []) {
      if (subject['kind'] !== 'ServiceAccount') subject['apiGroup'] ||= 'rbac.authorization.k8s.io';
    }
  },
};

const autoscalerStrategy: Strategy<HorizontalPodAutoscaler> = {
  default: ({ spec }) => {
    if (!spec) return;
    spec.minReplicas ??= 1;
    if ((spec.metrics ?? []).length > 0) return;
    const target = { type: 'Utilization', averageUtilization: 80 };
    spec.metrics = [{ type: 'Resource', resource: { name: 'cpu', target } }];
  },
  prepareCreate: (autoscaler) => {
    autoscaler.status = { desiredReplicas: 0, currentMetrics: [] };
  },
};

const policyStrategy: Strategy<NetworkPolicy> = {
  default: ({ spec }) => {
    if (spec && !spec.policyTypes) spec.policyTypes = spec.egress ? ['Ingress', 'Egress'] : ['Ingress'];
  },
};

const sliceStrategy: Strategy<EndpointSlice> = {
  default: (slice) => {
    for (const port of slice.ports ?? []) {
      port.name ??= '';
      port.protocol ??= 'TCP';
    }
    for (const endpoint of slice.endpoints ?? []) endpoint.conditions ??= {};
  },
};

const rbac = {
  group: 'rbac.authorization.k8s.io',
  createOnUpdate: true,
  strategy: roleStrategy,
};
const storage = { group: 'storage.k8s.io', namespaced: false };
const networking = { group: 'networking.k8s.io' };
const admission = {
  group: 'admissionregistration.k8s.io',
  namespaced: false,
  categories: ['api-extensions'],
  generation: true,
};
const devices = { group: 'resource.k8s.io', namespaced: false };

export const otherResources: readonly Resource[] = [
  budgets,
  priorityClasses,
  storageClasses,
  leases,
  definitions,
  newEvents,
  define({ ...storage, kind: 'CSIDriver', columns: print.csiDriverColumns }),
  define({ ...storage, kind: 'CSINode', columns: print.csiNodeColumns }),
  define({
    ...storage,
    kind: 'CSIStorageCapacity',
    plural: 'csistoragecapacities',
    namespaced: true,
    columns: print.createdAtColumns,
  }),
  define({ ...storage, kind: 'VolumeAttachment', status: true, columns: print.volumeAttachmentColumns }),
  define({
    ...storage,
    kind: 'VolumeAttributesClass',
    plural: 'volumeattributesclasses',
    shortNames: ['vac'],
    columns: print.volumeAttributesColumns,
  }),
  define<ClusterRole>({
    ...rbac,
    kind: 'ClusterRole',
    namespaced: false,
    columns: print.createdAtColumns,
    strategy: { ...rbac.strategy, validate: ({ rules }) => ruleErrors(rules, false) },
  }),
  define<Role>({
    ...rbac,
    kind: 'Role',
    namespaced: true,
    columns: print.createdAtColumns,
    strategy: { ...rbac.strategy, validate: ({ rules }) => ruleErrors(rules, true) },
  }),
  define<ClusterRoleBinding>({
    ...rbac,
    kind: 'ClusterRoleBinding',
    namespaced: false,
    columns: print.roleBindingColumns,
    strategy: { ...rbac.strategy, validateUpdate: (binding, old) => roleRefErrors(binding, old) },
  }),
  define<RoleBinding>({
    ...rbac,
    kind: 'RoleBinding',
    namespaced: true,
    columns: print.roleBindingColumns,
    strategy: { ...rbac.strategy, validateUpdate: (binding, old) => roleRefErrors(binding, old) },
  }),
  define({
    group: 'discovery.k8s.io',
    kind: 'EndpointSlice',
    strategy: sliceStrategy,
    namespaced: true,
    generation: true,
    columns: print.endpointSliceColumns,
  }),
  define({
    group: 'node.k8s.io',
    kind: 'RuntimeClass',
    plural: 'runtimeclasses',
    namespaced: false,
    unconditionalUpdate: false,
    columns: print.runtimeClassColumns,
  }),
  define({
    ...networking,
    kind: 'Ingress',
    strategy: { prepareCreate: (ingress: Ingress) => void (ingress.status = { loadBalancer: {} }) },
    plural: 'ingresses',
    namespaced: true,
    shortNames: ['ing'],
    status: true,
    generation: true,
    columns: print.ingressColumns,
  }),
  define({
    ...networking,
    kind: 'IngressClass',
    plural: 'ingressclasses',
    namespaced: false,
    generation: true,
    columns: print.ingressClassColumns,
  }),
  define({
    ...networking,
    kind: 'NetworkPolicy',
    strategy: policyStrategy,
    plural: 'networkpolicies',
    namespaced: true,
    shortNames: ['netpol'],
    generation: true,
    columns: print.networkPolicyColumns,
  }),
  define({ ...admission, kind: 'MutatingWebhookConfiguration', columns: print.webhookColumns }),
  define({ ...admission, kind: 'ValidatingWebhookConfiguration', columns: print.webhookColumns }),
  define({
    ...admission,
    kind: 'ValidatingAdmissionPolicy',
    plural: 'validatingadmissionpolicies',
    status: true,
    columns: print.admissionPolicyColumns,
  }),
  define({ ...admission, kind: 'ValidatingAdmissionPolicyBinding', columns: print.admissionBindingColumns }),
  define({
    ...admission,
    kind: 'MutatingAdmissionPolicy',
    plural: 'mutatingadmissionpolicies',
    columns: print.mutatingPolicyColumns,
  }),
  define({ ...admission, kind: 'MutatingAdmissionPolicyBinding', columns: print.admissionBindingColumns }),
  define({
    group: 'autoscaling',
    version: 'v2',
    kind: 'HorizontalPodAutoscaler',
    strategy: autoscalerStrategy,
    namespaced: true,
    shortNames: ['hpa'],
    categories: ['all'],
    status: true,
    columns: print.autoscalerColumns,
  }),
  define({ ...devices, kind: 'DeviceClass', plural: 'deviceclasses', generation: true }),
  define({ ...devices, kind: 'ResourceClaim', namespaced: true, status: true, columns: print.resourceClaimColumns }),
  define({ ...devices, kind: 'ResourceClaimTemplate', namespaced: true }),
  define({
    ...devices,
    kind: 'ResourceSlice',
    generation: true,
    columns: print.resourceSliceColumns,
    fields: {
      'spec.nodeName': (slice) => print.text(slice, 'spec', 'nodeName'),
      'spec.driver': (slice) => print.text(slice, 'spec', 'driver'),
    },
  }),
];
