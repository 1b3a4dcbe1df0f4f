// SPDX-License-Identifier: Apache-2.0
// Which lists of the built-in kinds are sets or maps of items: the patchStrategy and patchMergeKey tags of k8s.io/api v0.36.1.

import type { PatchField, PatchSchema } from './strategic-merge-patch.ts';

/** A list whose items are merged by a key. */
const by = (mergeKey: string, schema?: PatchSchema): PatchField => ({
  strategy: 'merge',
  mergeKey,
  ...(schema === undefined ? {} : { schema }),
});
/** A list of primitives that is a set. */
const set: PatchField = { strategy: 'merge' };
/** An object that is replaced as a whole. */
const replaced: PatchField = { strategy: 'replace' };
/** An object, or an atomic list or a map of them, with something to say inside. */
const object = (fields: Record<string, PatchField>): PatchField => ({ schema: type(fields) });
const type = (fields: Record<string, PatchField>): PatchSchema => new Map(Object.entries(fields));

const metadata = object({ ownerReferences: by('uid'), finalizers: set });
const statusWithConditions = object({ conditions: by('type') });

const container = type({
  ports: by('containerPort'),
  env: by('name'),
  volumeMounts: by('mountPath'),
  volumeDevices: by('devicePath'),
});
const volume = type({ ephemeral: object({ volumeClaimTemplate: object({ metadata }) }) });
const podSpec = object({
  volumes: by('name', volume),
  initContainers: by('name', container),
  containers: by('name', container),
  ephemeralContainers: by('name', container),
  imagePullSecrets: by('name'),
  hostAliases: by('ip'),
  topologySpreadConstraints: by('topologyKey'),
  schedulingGates: by('name'),
  resourceClaims: by('name'),
});
const podStatus = object({
  conditions: by('type'),
  hostIPs: by('ip'),
  podIPs: by('ip'),
  resourceClaimStatuses: by('name'),
});
const podTemplate = object({ metadata, spec: podSpec });
const jobSpec = object({ template: podTemplate });
const workload = { spec: object({ template: podTemplate }), status: statusWithConditions };

/** Kinds with more to say than their metadata, by `group/kind`. The tags do not differ between the versions we serve. */
const kinds: ReadonlyMap<string, PatchSchema> = new Map(
  Object.entries({
    '/ComponentStatus': { conditions: by('type') },
    '/Namespace': { status: statusWithConditions },
    '/Node': { spec: object({ podCIDRs: set }), status: object({ conditions: by('type'), addresses: by('type') }) },
    '/PersistentVolumeClaim': { status: statusWithConditions },
    '/Pod': { spec: podSpec, status: podStatus },
    '/PodTemplate': { template: podTemplate },
    '/ReplicationController': workload,
    '/Service': { spec: object({ ports: by('port') }), status: statusWithConditions },
    '/ServiceAccount': { secrets: by('name') },
    'admissionregistration.k8s.io/MutatingAdmissionPolicy': { spec: object({ matchConditions: by('name') }) },
    'admissionregistration.k8s.io/MutatingWebhookConfiguration': {
      webhooks: by('name', type({ matchConditions: by('name') })),
    },
    'admissionregistration.k8s.io/ValidatingAdmissionPolicy': {
      spec: object({ matchConditions: by('name'), variables: by('name') }),
    },
    'admissionregistration.k8s.io/ValidatingWebhookConfiguration': {
      webhooks: by('name', type({ matchConditions: by('name') })),
    },
    'apiregistration.k8s.io/APIService': { status: statusWithConditions },
    'apps/DaemonSet': workload,
    'apps/Deployment': workload,
    'apps/ReplicaSet': workload,
    'apps/StatefulSet': workload,
    'autoscaling/HorizontalPodAutoscaler': { status: statusWithConditions },
    'batch/CronJob': { spec: object({ jobTemplate: object({ metadata, spec: jobSpec }) }) },
    'batch/Job': { spec: jobSpec, status: statusWithConditions },
    'certificates.k8s.io/PodCertificateRequest': { status: statusWithConditions },
    'flowcontrol.apiserver.k8s.io/FlowSchema': { status: statusWithConditions },
    'flowcontrol.apiserver.k8s.io/PriorityLevelConfiguration': { status: statusWithConditions },
    'networking.k8s.io/ServiceCIDR': { status: statusWithConditions },
    'policy/PodDisruptionBudget': { spec: object({ selector: replaced }), status: statusWithConditions },
    'resource.k8s.io/DeviceTaintRule': { status: statusWithConditions },
    'resource.k8s.io/ResourceClaim': { status: object({ reservedFor: by('uid') }) },
    'resource.k8s.io/ResourceClaimTemplate': { spec: object({ metadata }) },
    'storage.k8s.io/CSINode': { spec: object({ drivers: by('name') }) },
    'storagemigration.k8s.io/StorageVersionMigration': { status: statusWithConditions },
  } satisfies Record<string, Record<string, PatchField>>).map(([kind, fields]) => [
    kind,
    type({ metadata, ...fields }),
  ]),
);

const coreGroups = ['', 'apps', 'autoscaling', 'batch', 'policy'];
const k8sGroups =
  'admissionregistration apiextensions apiregistration authentication authorization certificates coordination discovery events ' +
  'flowcontrol.apiserver internal.apiserver networking node rbac.authorization resource scheduling storage storagemigration';
const groups: ReadonlySet<string> = new Set(coreGroups.concat(k8sGroups.split(' ').map((name) => `${name}.k8s.io`)));
const onlyMetadata = type({ metadata });

/** How objects of a built-in kind are patched; `undefined` for custom resources, which the API server refuses to patch this way. */
export function patchSchemaFor(group: string, _version: string, kind: string): PatchSchema | undefined {
  if (!groups.has(group)) return undefined;
  return kinds.get(`${group}/${kind}`) ?? onlyMetadata;
}
