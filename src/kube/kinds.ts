// SPDX-License-Identifier: Apache-2.0
// The built-in kinds: their static types and, in `kinds`, where the API server serves them.
import type { KubeObject, ResourceType } from './object.ts';
import type * as cluster from './types/cluster.ts';
import type * as core from './types/core.ts';
import type * as devices from './types/devices.ts';
import type * as workloads from './types/workloads.ts';

export type * from './types/cluster.ts';
export type * from './types/core.ts';
export type * from './types/devices.ts';
export type * from './types/workloads.ts';

type Scope = 'namespaced' | 'cluster';

function define(group: string, version: string) {
  return <T extends KubeObject>(kind: string, plural: string, scope: Scope): ResourceType<T> =>
    Object.freeze({ group, version, kind, plural, namespaced: scope === 'namespaced' });
}

const v1 = define('', 'v1');
const apps = define('apps', 'v1');
const batch = define('batch', 'v1');
const storage = define('storage.k8s.io', 'v1');
const rbac = define('rbac.authorization.k8s.io', 'v1');
const networking = define('networking.k8s.io', 'v1');
const admission = define('admissionregistration.k8s.io', 'v1');
const authentication = define('authentication.k8s.io', 'v1');
const authorization = define('authorization.k8s.io', 'v1');
const resource = define('resource.k8s.io', 'v1');

/** Every built-in kind we know, by name. `EventsV1Event` is the Event of events.k8s.io; `Event` is core/v1's. */
export const kinds = Object.freeze({
  Binding: v1<core.Binding>('Binding', 'bindings', 'namespaced'),
  ConfigMap: v1<core.ConfigMap>('ConfigMap', 'configmaps', 'namespaced'),
  Endpoints: v1<core.Endpoints>('Endpoints', 'endpoints', 'namespaced'),
  Event: v1<core.Event>('Event', 'events', 'namespaced'),
  LimitRange: v1<core.LimitRange>('LimitRange', 'limitranges', 'namespaced'),
  Namespace: v1<core.Namespace>('Namespace', 'namespaces', 'cluster'),
  Node: v1<core.Node>('Node', 'nodes', 'cluster'),
  PersistentVolume: v1<core.PersistentVolume>('PersistentVolume', 'persistentvolumes', 'cluster'),
  PersistentVolumeClaim: v1<core.PersistentVolumeClaim>(
    'PersistentVolumeClaim',
    'persistentvolumeclaims',
    'namespaced',
  ),
  Pod: v1<core.Pod>('Pod', 'pods', 'namespaced'),
  PodTemplate: v1<core.PodTemplate>('PodTemplate', 'podtemplates', 'namespaced'),
  ReplicationController: v1<core.ReplicationController>(
    'ReplicationController',
    'replicationcontrollers',
    'namespaced',
  ),
  ResourceQuota: v1<core.ResourceQuota>('ResourceQuota', 'resourcequotas', 'namespaced'),
  Secret: v1<core.Secret>('Secret', 'secrets', 'namespaced'),
  Service: v1<core.Service>('Service', 'services', 'namespaced'),
  ServiceAccount: v1<core.ServiceAccount>('ServiceAccount', 'serviceaccounts', 'namespaced'),

  ControllerRevision: apps<workloads.ControllerRevision>('ControllerRevision', 'controllerrevisions', 'namespaced'),
  DaemonSet: apps<workloads.DaemonSet>('DaemonSet', 'daemonsets', 'namespaced'),
  Deployment: apps<workloads.Deployment>('Deployment', 'deployments', 'namespaced'),
  ReplicaSet: apps<workloads.ReplicaSet>('ReplicaSet', 'replicasets', 'namespaced'),
  StatefulSet: apps<workloads.StatefulSet>('StatefulSet', 'statefulsets', 'namespaced'),

  CronJob: batch<workloads.CronJob>('CronJob', 'cronjobs', 'namespaced'),
  Job: batch<workloads.Job>('Job', 'jobs', 'namespaced'),

  HorizontalPodAutoscaler: define('autoscaling', 'v2')<workloads.HorizontalPodAutoscaler>(
    'HorizontalPodAutoscaler',
    'horizontalpodautoscalers',
    'namespaced',
  ),
  PodDisruptionBudget: define('policy', 'v1')<workloads.PodDisruptionBudget>(
    'PodDisruptionBudget',
    'poddisruptionbudgets',
    'namespaced',
  ),
  PriorityClass: define('scheduling.k8s.io', 'v1')<workloads.PriorityClass>(
    'PriorityClass',
    'priorityclasses',
    'cluster',
  ),

  CSIDriver: storage<cluster.CSIDriver>('CSIDriver', 'csidrivers', 'cluster'),
  CSINode: storage<cluster.CSINode>('CSINode', 'csinodes', 'cluster'),
  CSIStorageCapacity: storage<cluster.CSIStorageCapacity>('CSIStorageCapacity', 'csistoragecapacities', 'namespaced'),
  StorageClass: storage<cluster.StorageClass>('StorageClass', 'storageclasses', 'cluster'),
  VolumeAttachment: storage<cluster.VolumeAttachment>('VolumeAttachment', 'volumeattachments', 'cluster'),
  VolumeAttributesClass: storage<cluster.VolumeAttributesClass>(
    'VolumeAttributesClass',
    'volumeattributesclasses',
    'cluster',
  ),

  Lease: define('coordination.k8s.io', 'v1')<cluster.Lease>('Lease', 'leases', 'namespaced'),
  EventsV1Event: define('events.k8s.io', 'v1')<cluster.EventsV1Event>('Event', 'events', 'namespaced'),
  EndpointSlice: define('discovery.k8s.io', 'v1')<cluster.EndpointSlice>(
    'EndpointSlice',
    'endpointslices',
    'namespaced',
  ),
  RuntimeClass: define('node.k8s.io', 'v1')<cluster.RuntimeClass>('RuntimeClass', 'runtimeclasses', 'cluster'),
  CustomResourceDefinition: define('apiextensions.k8s.io', 'v1')<cluster.CustomResourceDefinition>(
    'CustomResourceDefinition',
    'customresourcedefinitions',
    'cluster',
  ),

  ClusterRole: rbac<cluster.ClusterRole>('ClusterRole', 'clusterroles', 'cluster'),
  ClusterRoleBinding: rbac<cluster.ClusterRoleBinding>('ClusterRoleBinding', 'clusterrolebindings', 'cluster'),
  Role: rbac<cluster.Role>('Role', 'roles', 'namespaced'),
  RoleBinding: rbac<cluster.RoleBinding>('RoleBinding', 'rolebindings', 'namespaced'),

  Ingress: networking<cluster.Ingress>('Ingress', 'ingresses', 'namespaced'),
  IngressClass: networking<cluster.IngressClass>('IngressClass', 'ingressclasses', 'cluster'),
  NetworkPolicy: networking<cluster.NetworkPolicy>('NetworkPolicy', 'networkpolicies', 'namespaced'),

  MutatingWebhookConfiguration: admission<cluster.MutatingWebhookConfiguration>(
    'MutatingWebhookConfiguration',
    'mutatingwebhookconfigurations',
    'cluster',
  ),
  ValidatingAdmissionPolicy: admission<cluster.ValidatingAdmissionPolicy>(
    'ValidatingAdmissionPolicy',
    'validatingadmissionpolicies',
    'cluster',
  ),
  ValidatingAdmissionPolicyBinding: admission<cluster.ValidatingAdmissionPolicyBinding>(
    'ValidatingAdmissionPolicyBinding',
    'validatingadmissionpolicybindings',
    'cluster',
  ),
  ValidatingWebhookConfiguration: admission<cluster.ValidatingWebhookConfiguration>(
    'ValidatingWebhookConfiguration',
    'validatingwebhookconfigurations',
    'cluster',
  ),

  SelfSubjectReview: authentication<cluster.SelfSubjectReview>('SelfSubjectReview', 'selfsubjectreviews', 'cluster'),
  TokenReview: authentication<cluster.TokenReview>('TokenReview', 'tokenreviews', 'cluster'),
  LocalSubjectAccessReview: authorization<cluster.LocalSubjectAccessReview>(
    'LocalSubjectAccessReview',
    'localsubjectaccessreviews',
    'namespaced',
  ),
  SelfSubjectAccessReview: authorization<cluster.SelfSubjectAccessReview>(
    'SelfSubjectAccessReview',
    'selfsubjectaccessreviews',
    'cluster',
  ),
  SelfSubjectRulesReview: authorization<cluster.SelfSubjectRulesReview>(
    'SelfSubjectRulesReview',
    'selfsubjectrulesreviews',
    'cluster',
  ),
  SubjectAccessReview: authorization<cluster.SubjectAccessReview>(
    'SubjectAccessReview',
    'subjectaccessreviews',
    'cluster',
  ),

  DeviceClass: resource<devices.DeviceClass>('DeviceClass', 'deviceclasses', 'cluster'),
  ResourceClaim: resource<devices.ResourceClaim>('ResourceClaim', 'resourceclaims', 'namespaced'),
  ResourceClaimTemplate: resource<devices.ResourceClaimTemplate>(
    'ResourceClaimTemplate',
    'resourceclaimtemplates',
    'namespaced',
  ),
  ResourceSlice: resource<devices.ResourceSlice>('ResourceSlice', 'resourceslices', 'cluster'),
});
