// SPDX-License-Identifier: Apache-2.0
// The columns of the core group, as `kubectl get` shows them.
import type {
  ConfigMap,
  Endpoints,
  Event,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PodTemplate,
  ReplicationController,
  ResourceQuota,
  Secret,
  Service,
} from '../../kube/kinds.ts';
import type { Column } from '../resource.ts';
import { ageColumn, column, createdAtColumn, nameColumn } from './columns.ts';
import { age } from './human-duration.ts';
import { containerImages, containerNames, labelText } from './parts.ts';

export { podColumns } from './pod.ts';

export const createdAtColumns: readonly Column[] = [nameColumn, createdAtColumn];

export const namespaceColumns: readonly Column<Namespace>[] = [
  nameColumn,
  column('Status', (namespace) => namespace.status?.phase ?? ''),
  ageColumn,
];

export const configMapColumns: readonly Column<ConfigMap>[] = [
  nameColumn,
  column('Data', (map) => Object.keys(map.data ?? {}).length + Object.keys(map.binaryData ?? {}).length),
  ageColumn,
];

export const secretColumns: readonly Column<Secret>[] = [
  nameColumn,
  column('Type', (secret) => secret.type ?? ''),
  column('Data', (secret) => Object.keys(secret.data ?? {}).length),
  ageColumn,
];

function nodeStatus(node: Node): string {
  const ready = node.status?.conditions?.find((condition) => condition.type === 'Ready');
  const parts = [ready === undefined ? 'Unknown' : ready.status === 'True' ? 'Ready' : 'NotReady'];
  if (node.spec?.unschedulable) parts.push('SchedulingDisabled');
  return parts.join(',');
}

const rolePrefix = 'node-role.kubernetes.io/';

function nodeRoles(node: Node): string {
  const labels = node.metadata.labels ?? {};
  const roles = new Set<string>();
  for (const key in labels) {
    if (key.startsWith(rolePrefix) && key.length > rolePrefix.length) roles.add(key.slice(rolePrefix.length));
    else if (key === 'kubernetes.io/role' && labels[key]) roles.add(labels[key]);
  }
  return roles.size === 0 ? '<none>' : [...roles].sort().join(',');
}

function nodeAddress(type: string): (node: Node) => string {
  return (node) => node.status?.addresses?.find((address) => address.type === type)?.address ?? '<none>';
}

export const nodeColumns: readonly Column<Node>[] = [
  nameColumn,
  column('Status', nodeStatus),
  column('Roles', nodeRoles),
  ageColumn,
  column('Version', (node) => node.status?.nodeInfo?.kubeletVersion ?? ''),
  column('Internal-IP', nodeAddress('InternalIP'), { wide: true }),
  column('External-IP', nodeAddress('ExternalIP'), { wide: true }),
  column('OS-Image', (node) => node.status?.nodeInfo?.osImage || '<unknown>', { wide: true }),
  column('Kernel-Version', (node) => node.status?.nodeInfo?.kernelVersion || '<unknown>', { wide: true }),
  column('Container-Runtime', (node) => node.status?.nodeInfo?.containerRuntimeVersion || '<unknown>', { wide: true }),
];

const shortModes: Readonly<Record<string, string>> = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
};

function accessModes(modes: readonly string[] | undefined): string {
  const present = new Set(modes ?? []);
  return Object.entries(shortModes)
    .filter(([mode]) => present.has(mode))
    .map(([, short]) => short)
    .join(',');
}

export const volumeColumns: readonly Column<PersistentVolume>[] = [
  nameColumn,
  column('Capacity', (volume) => volume.spec?.capacity?.['storage'] ?? ''),
  column('Access Modes', (volume) => accessModes(volume.spec?.accessModes)),
  column('Reclaim Policy', (volume) => volume.spec?.persistentVolumeReclaimPolicy ?? ''),
  column('Status', (volume) => (volume.metadata.deletionTimestamp ? 'Terminating' : (volume.status?.phase ?? ''))),
  column('Claim', (volume) => {
    const claim = volume.spec?.claimRef;
    return claim ? `${claim.namespace}/${claim.name}` : '';
  }),
  column('StorageClass', (volume) => volume.spec?.storageClassName ?? ''),
  column('VolumeAttributesClass', (volume) => volume.spec?.volumeAttributesClassName ?? '<unset>'),
  column('Reason', (volume) => volume.status?.reason ?? ''),
  ageColumn,
  column('VolumeMode', (volume) => volume.spec?.volumeMode ?? '<unset>', { wide: true }),
];

export const claimColumns: readonly Column<PersistentVolumeClaim>[] = [
  nameColumn,
  column('Status', (claim) => (claim.metadata.deletionTimestamp ? 'Terminating' : (claim.status?.phase ?? ''))),
  column('Volume', (claim) => claim.spec?.volumeName ?? ''),
  column('Capacity', (claim) => (claim.spec?.volumeName ? (claim.status?.capacity?.['storage'] ?? '') : '')),
  column('Access Modes', (claim) => (claim.spec?.volumeName ? accessModes(claim.status?.accessModes) : '')),
  column('StorageClass', (claim) => claim.spec?.storageClassName ?? ''),
  column('VolumeAttributesClass', (claim) => claim.spec?.volumeAttributesClassName ?? '<unset>'),
  ageColumn,
  column('VolumeMode', (claim) => claim.spec?.volumeMode ?? '<unset>', { wide: true }),
];

function externalAddress(service: Service): string {
  const ingress = service.status?.loadBalancer?.ingress ?? [];
  const external = [
    ...(service.spec?.type === 'LoadBalancer' ? ingress.map((entry) => entry.ip || entry.hostname || '') : []),
    ...(service.spec?.externalIPs ?? []),
  ].filter((address) => address !== '');
  if (service.spec?.type === 'ExternalName') return service.spec.externalName ?? '';
  if (external.length > 0) return external.join(',');
  return service.spec?.type === 'LoadBalancer' ? '<pending>' : '<none>';
}

function servicePorts(service: Service): string {
  const ports = (service.spec?.ports ?? []).map((port) =>
    port.nodePort ? `${port.port}:${port.nodePort}/${port.protocol}` : `${port.port}/${port.protocol}`,
  );
  return ports.length === 0 ? '<none>' : ports.join(',');
}

export const serviceColumns: readonly Column<Service>[] = [
  nameColumn,
  column('Type', (service) => service.spec?.type ?? ''),
  column('Cluster-IP', (service) => service.spec?.clusterIP || '<none>'),
  column('External-IP', externalAddress),
  column('Port(s)', servicePorts),
  ageColumn,
  column('Selector', (service) => labelText(service.spec?.selector), { wide: true }),
];

export const endpointsColumns: readonly Column<Endpoints>[] = [
  nameColumn,
  column('Endpoints', (endpoints) => {
    const all = (endpoints.subsets ?? []).flatMap((subset) =>
      (subset.addresses ?? []).flatMap((address) =>
        subset.ports?.length ? subset.ports.map((port) => `${address.ip}:${port.port}`) : [address.ip],
      ),
    );
    if (all.length === 0) return '<none>';
    return all.length > 3 ? `${all.slice(0, 3).join(',')} + ${all.length - 3} more...` : all.join(',');
  }),
  ageColumn,
];

function quotaText(quota: ResourceQuota, limits: boolean): string {
  const hard = quota.status?.hard ?? {};
  const used = quota.status?.used ?? {};
  return Object.keys(hard)
    .sort()
    .filter((name) => name.startsWith('limits.') === limits)
    .map((name) => `${name}: ${used[name] ?? '0'}/${hard[name]}`)
    .join(', ');
}

export const quotaColumns: readonly Column<ResourceQuota>[] = [
  nameColumn,
  column('Request', (quota) => quotaText(quota, false)),
  column('Limit', (quota) => quotaText(quota, true)),
  ageColumn,
];

export const podTemplateColumns: readonly Column<PodTemplate>[] = [
  nameColumn,
  column('Containers', (template) => containerNames(template.template)),
  column('Images', (template) => containerImages(template.template)),
  column('Pod Labels', (template) => labelText(template.template?.metadata?.labels)),
];

export const replicationControllerColumns: readonly Column<ReplicationController>[] = [
  nameColumn,
  column('Desired', (controller) => controller.spec?.replicas ?? 0, { type: 'integer' }),
  column('Current', (controller) => controller.status?.replicas ?? 0, { type: 'integer' }),
  column('Ready', (controller) => controller.status?.readyReplicas ?? 0, { type: 'integer' }),
  ageColumn,
  column('Containers', (controller) => containerNames(controller.spec?.template), { wide: true }),
  column('Images', (controller) => containerImages(controller.spec?.template), { wide: true }),
  column('Selector', (controller) => labelText(controller.spec?.selector), { wide: true }),
];

function lastSeen(event: Event, now: number): string {
  const last = event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime;
  const first = event.firstTimestamp ?? event.eventTime;
  const count = event.series?.count ?? event.count ?? 1;
  const ago = age(last, now);
  return count > 1 && first ? `${ago} (x${count} over ${age(first, now)})` : ago;
}

function eventSource(event: Event): string {
  const { component = event.reportingComponent ?? '', host } = event.source ?? {};
  return host ? `${component}, ${host}` : component;
}

export const eventColumns: readonly Column<Event>[] = [
  column('Last Seen', lastSeen),
  column('Type', (event) => event.type ?? ''),
  column('Reason', (event) => event.reason ?? ''),
  column(
    'Object',
    (event) => `${(event.involvedObject?.kind ?? '').toLowerCase()}/${event.involvedObject?.name ?? ''}`,
  ),
  column('Subobject', (event) => event.involvedObject?.fieldPath ?? '', { wide: true }),
  column('Source', eventSource, { wide: true }),
  column('Message', (event) => (event.message ?? '').trim()),
  column('First Seen', (event, now) => age(event.firstTimestamp ?? event.eventTime, now), { wide: true }),
  column('Count', (event) => event.series?.count ?? event.count ?? 1, { wide: true }),
  column('Name', (event) => event.metadata.name ?? '', { wide: true, format: 'name' }),
];
