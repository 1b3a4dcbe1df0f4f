// SPDX-License-Identifier: Apache-2.0
// The kinds of the core group.
import type {
  ConfigMap,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  ReplicationController,
  Secret,
  Service,
} from '../../kube/kinds.ts';
import { formatTime } from '../../kube/time.ts';
import * as print from '../printing/core.ts';
import type { Resource, Subresource } from '../resource.ts';
import { labelProblems } from '../rest/names.ts';
import { forbidden } from '../status.ts';
import { dropEmptyData, frozenErrors, keyErrors, sizeErrors } from './data.ts';
import { define } from './define.ts';
import { coreEvents } from './events.ts';
import { nodeStrategy } from './node.ts';
import { podStrategy } from './pod.ts';
import { defaultPodSpec } from './pod-defaults.ts';
import { serviceStrategy } from './service.ts';
import { immutable, selectorMatchesTemplate } from './workloads.ts';

const proxy: Subresource = {
  name: 'proxy',
  kind: 'NodeProxyOptions',
  verbs: ['create', 'delete', 'get', 'patch', 'update'],
};

const podSubresources: readonly Subresource[] = [
  { name: 'attach', kind: 'PodAttachOptions', verbs: ['create', 'get'] },
  { name: 'binding', kind: 'Binding', verbs: ['create'] },
  { name: 'ephemeralcontainers', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
  { name: 'eviction', kind: 'Eviction', group: 'policy', version: 'v1', verbs: ['create'] },
  { name: 'exec', kind: 'PodExecOptions', verbs: ['create', 'get'] },
  { name: 'log', kind: 'Pod', verbs: ['get'] },
  { name: 'portforward', kind: 'PodPortForwardOptions', verbs: ['create', 'get'] },
  { ...proxy, kind: 'PodProxyOptions' },
  { name: 'resize', kind: 'Pod', verbs: ['get', 'patch', 'update'] },
];

const immortal = new Set(['default', 'kube-system', 'kube-public']);
const namespaces = { group: '', plural: 'namespaces' };

const pods = define<Pod>({
  group: '',
  kind: 'Pod',
  namespaced: true,
  shortNames: ['po'],
  categories: ['all'],
  status: true,
  generation: true,
  returnsDeleted: true,
  statusKeepsMetadata: true,
  subresources: podSubresources,
  strategy: podStrategy,
  columns: print.podColumns,
  fields: {
    'spec.nodeName': (pod) => pod.spec?.nodeName ?? '',
    'spec.restartPolicy': (pod) => pod.spec?.restartPolicy ?? '',
    'spec.schedulerName': (pod) => pod.spec?.schedulerName ?? '',
    'spec.serviceAccountName': (pod) => pod.spec?.serviceAccountName ?? '',
    'spec.hostNetwork': (pod) => String(pod.spec?.hostNetwork ?? false),
    'status.phase': (pod) => pod.status?.phase ?? '',
    'status.podIP': (pod) => pod.status?.podIP ?? '',
    'status.nominatedNodeName': (pod) => pod.status?.nominatedNodeName ?? '',
  },
  indexed: ['spec.nodeName'],
});

const namespaceKind = define<Namespace>({
  group: '',
  kind: 'Namespace',
  namespaced: false,
  shortNames: ['ns'],
  verbs: ['create', 'delete', 'get', 'list', 'patch', 'update', 'watch'],
  status: true,
  subresources: [{ name: 'finalize', kind: 'Namespace', verbs: ['update'] }],
  columns: print.namespaceColumns,
  fields: { 'status.phase': (namespace) => namespace.status?.phase ?? '' },
  strategy: {
    validateName: labelProblems,
    default: (namespace) => {
      if (!namespace.metadata.name) return;
      namespace.metadata.labels = {
        ...namespace.metadata.labels,
        'kubernetes.io/metadata.name': namespace.metadata.name,
      };
    },
    prepareCreate: (namespace) => {
      namespace.spec = { finalizers: [...new Set([...(namespace.spec?.finalizers ?? []), 'kubernetes'])] };
      namespace.status = { phase: 'Active' };
    },
    prepareUpdate: (namespace, old) => {
      namespace.spec = { finalizers: [...(old.spec?.finalizers ?? [])] };
    },
    refuseDelete: (namespace) => {
      if (!immortal.has(namespace.metadata.name!)) return;
      throw forbidden(namespaces, namespace.metadata.name!, 'this namespace may not be deleted');
    },
    heldBack: (namespace) => (namespace.spec?.finalizers ?? []).length > 0,
    onDeleting: (namespace) => {
      namespace.status = { ...namespace.status, phase: 'Terminating' };
    },
  },
});

const nodes = define<Node>({
  group: '',
  kind: 'Node',
  namespaced: false,
  shortNames: ['no'],
  status: true,
  statusKeepsMetadata: true,
  sharesParts: true,
  subresources: [proxy],
  strategy: nodeStrategy,
  columns: print.nodeColumns,
  fields: { 'spec.unschedulable': (node) => String(node.spec?.unschedulable ?? false) },
});

const volumes = define<PersistentVolume>({
  group: '',
  kind: 'PersistentVolume',
  namespaced: false,
  shortNames: ['pv'],
  status: true,
  returnsDeleted: true,
  columns: print.volumeColumns,
  strategy: {
    default: (volume) => {
      if (!volume.spec) return;
      volume.spec.persistentVolumeReclaimPolicy ??= 'Retain';
      volume.spec.volumeMode ??= 'Filesystem';
      if (volume.spec.hostPath) volume.spec.hostPath.type ??= '';
    },
    prepareCreate: (volume, { clock }) => {
      volume.status = { phase: 'Pending', lastPhaseTransitionTime: formatTime(clock.now()) };
      const finalizers = volume.metadata.finalizers ?? [];
      if (!finalizers.includes('kubernetes.io/pv-protection')) {
        volume.metadata.finalizers = [...finalizers, 'kubernetes.io/pv-protection'];
      }
    },
    validate: (volume) => {
      const errors = [];
      if (!volume.spec?.accessModes?.length)
        errors.push({ field: 'spec.accessModes', type: 'Required' as const, detail: '' });
      if (!volume.spec?.capacity?.['storage'])
        errors.push({ field: 'spec.capacity', type: 'Required' as const, detail: '' });
      return errors;
    },
  },
});

const claims = define<PersistentVolumeClaim>({
  group: '',
  kind: 'PersistentVolumeClaim',
  namespaced: true,
  shortNames: ['pvc'],
  status: true,
  returnsDeleted: true,
  columns: print.claimColumns,
  strategy: {
    default: (claim) => {
      if (claim.spec) claim.spec.volumeMode ??= 'Filesystem';
    },
    prepareCreate: (claim, context) => {
      claim.status = { phase: 'Pending' };
      const finalizers = claim.metadata.finalizers ?? [];
      if (!finalizers.includes('kubernetes.io/pvc-protection')) {
        claim.metadata.finalizers = [...finalizers, 'kubernetes.io/pvc-protection'];
      }
      if (!claim.spec || claim.spec.storageClassName !== undefined) return;
      const chosen = context.store
        .collection('storageclasses.storage.k8s.io')
        .list()
        .items.find((item) => item.metadata.annotations?.['storageclass.kubernetes.io/is-default-class'] === 'true');
      if (chosen) claim.spec.storageClassName = chosen.metadata.name!;
    },
    validate: (claim) => {
      const errors = [];
      if (!claim.spec?.accessModes?.length) {
        errors.push({
          field: 'spec.accessModes',
          type: 'Required' as const,
          detail: 'at least 1 access mode is required',
        });
      }
      if (!claim.spec?.resources?.requests?.['storage']) {
        errors.push({ field: 'spec.resources[storage]', type: 'Required' as const, detail: '' });
      }
      return errors;
    },
  },
});

const secrets = define<Secret>({
  group: '',
  kind: 'Secret',
  namespaced: true,
  columns: print.secretColumns,
  fields: { type: (secret) => secret.type ?? '' },
  strategy: {
    default: (secret) => {
      secret.type ??= 'Opaque';
      if (!secret.stringData) return;
      secret.data = { ...secret.data };
      for (const key in secret.stringData) secret.data[key] = Buffer.from(secret.stringData[key]!).toString('base64');
      delete secret.stringData;
    },
    validate: ({ data }) => [...keyErrors('data', data), ...sizeErrors(data)],
    validateUpdate: (secret, old) => [
      ...immutable('type', secret.type, old.type),
      ...frozenErrors(secret, old, ['data']),
    ],
  },
});

const configMaps = define<ConfigMap>({
  group: '',
  kind: 'ConfigMap',
  namespaced: true,
  shortNames: ['cm'],
  columns: print.configMapColumns,
  strategy: {
    default: dropEmptyData,
    validate: ({ data, binaryData }) => [
      ...keyErrors('data', data),
      ...keyErrors('binaryData', binaryData),
      ...sizeErrors(data, binaryData),
    ],
    validateUpdate: (map, old) => frozenErrors(map, old, ['data', 'binaryData']),
  },
});

const replicationControllers = define<ReplicationController>({
  group: '',
  kind: 'ReplicationController',
  namespaced: true,
  shortNames: ['rc'],
  categories: ['all'],
  status: true,
  generation: true,
  scale: { specReplicas: '.spec.replicas', statusReplicas: '.status.replicas' },
  columns: print.replicationControllerColumns,
  strategy: {
    orphansByDefault: true,
    default: (controller) => {
      if (!controller.spec) return;
      controller.spec.replicas ??= 1;
      if (controller.spec.template?.spec) defaultPodSpec(controller.spec.template.spec);
      controller.spec.selector ??= { ...controller.spec.template?.metadata?.labels };
    },
    prepareCreate: (controller) => {
      controller.status = { replicas: 0 };
    },
    validate: (controller) =>
      selectorMatchesTemplate({ matchLabels: controller.spec?.selector ?? {} }, controller.spec?.template),
  },
});

/** The core group, in no particular order. */
export const coreResources: readonly Resource[] = [
  pods,
  namespaceKind,
  nodes,
  volumes,
  claims,
  secrets,
  replicationControllers,
  define<Service>({
    group: '',
    kind: 'Service',
    namespaced: true,
    createOnUpdate: true,
    shortNames: ['svc'],
    categories: ['all'],
    status: true,
    returnsDeleted: true,
    subresources: [{ ...proxy, kind: 'ServiceProxyOptions' }],
    strategy: { ...serviceStrategy, validateName: labelProblems },
    columns: print.serviceColumns,
    fields: {
      'spec.clusterIP': (service) => service.spec?.clusterIP ?? '',
      'spec.type': (service) => service.spec?.type ?? '',
    },
  }),
  coreEvents,
  configMaps,
  define({ group: '', kind: 'Binding', namespaced: true, verbs: ['create'] }),
  define({
    group: '',
    kind: 'Endpoints',
    plural: 'endpoints',
    namespaced: true,
    createOnUpdate: true,
    shortNames: ['ep'],
    columns: print.endpointsColumns,
  }),
  define({
    group: '',
    kind: 'LimitRange',
    namespaced: true,
    createOnUpdate: true,
    shortNames: ['limits'],
    columns: print.createdAtColumns,
  }),
  define({ group: '', kind: 'PodTemplate', namespaced: true, returnsDeleted: true, columns: print.podTemplateColumns }),
  define({
    group: '',
    kind: 'ResourceQuota',
    namespaced: true,
    shortNames: ['quota'],
    status: true,
    returnsDeleted: true,
    columns: print.quotaColumns,
  }),
  define({
    group: '',
    kind: 'ServiceAccount',
    namespaced: true,
    shortNames: ['sa'],
    returnsDeleted: true,
    subresources: [
      { name: 'token', kind: 'TokenRequest', group: 'authentication.k8s.io', version: 'v1', verbs: ['create'] },
    ],
  }),
];
