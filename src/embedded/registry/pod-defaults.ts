// SPDX-License-Identifier: Apache-2.0
// What the API server fills into pods and pod templates.
import type { Container, PodSpec, Probe, Volume } from '../../kube/kinds.ts';

/** Fills in a pod's spec, in place. The same for pods and for the templates of workloads. */
export function defaultPodSpec(spec: PodSpec): void {
  spec.restartPolicy ??= 'Always';
  spec.terminationGracePeriodSeconds ??= 30;
  spec.dnsPolicy ??= 'ClusterFirst';
  spec.securityContext ??= {};
  spec.schedulerName ??= 'default-scheduler';
  if (spec.serviceAccountName === undefined && spec.serviceAccount !== undefined) {
    spec.serviceAccountName = spec.serviceAccount;
  }
  if (spec.serviceAccountName !== undefined) spec.serviceAccount = spec.serviceAccountName;
  for (const container of spec.initContainers ?? []) defaultContainer(container, spec.hostNetwork === true);
  for (const container of spec.containers ?? []) defaultContainer(container, spec.hostNetwork === true);
  for (const volume of spec.volumes ?? []) defaultVolume(volume);
}

function defaultContainer(container: Container, hostNetwork: boolean): void {
  container.terminationMessagePath ??= '/dev/termination-log';
  container.terminationMessagePolicy ??= 'File';
  container.imagePullPolicy ??= pullPolicyFor(container.image ?? '');
  container.resources ??= {};
  for (const port of container.ports ?? []) {
    port.protocol ??= 'TCP';
    if (hostNetwork) port.hostPort ??= port.containerPort;
  }
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) defaultProbe(probe);
  }
  for (const variable of container.env ?? []) {
    const reference = variable.valueFrom?.fieldRef;
    if (reference) reference.apiVersion ??= 'v1';
  }
}

/** Who sets a limit and no request asks for the limit. Only in pods: templates stay as they were written. */
export function defaultRequests({ resources }: Container): void {
  if (!resources?.limits) return;
  const requests: Record<string, string> = { ...resources.requests };
  for (const name in resources.limits) requests[name] ??= resources.limits[name]!;
  resources.requests = requests;
}

/** An image without a tag, or with `latest`, is pulled anew. */
function pullPolicyFor(image: string): 'Always' | 'IfNotPresent' {
  const reference = image.slice(image.lastIndexOf('/') + 1);
  if (reference.includes('@')) return 'IfNotPresent';
  const tag = reference.split(':')[1];
  return tag === undefined || tag === 'latest' ? 'Always' : 'IfNotPresent';
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ??= 1;
  probe.periodSeconds ??= 10;
  probe.successThreshold ??= 1;
  probe.failureThreshold ??= 3;
  if (probe.httpGet) {
    probe.httpGet.path ??= '/';
    probe.httpGet.scheme ??= 'HTTP';
  }
  if (probe.grpc) probe.grpc.service ??= '';
}

const ownFields = new Set(['name']);

function defaultVolume(volume: Volume): void {
  const sources = Object.keys(volume).filter((key) => !ownFields.has(key));
  if (sources.length === 0) volume.emptyDir = {};
  for (const source of [volume.secret, volume.configMap, volume.downwardAPI, volume.projected]) {
    if (source) source.defaultMode ??= 420;
  }
  defaultItems(volume);
  if (volume.hostPath) volume.hostPath.type ??= '';
  const claim = volume.ephemeral?.volumeClaimTemplate?.spec;
  if (claim) claim.volumeMode ??= 'Filesystem';
}

function defaultItems({ downwardAPI, projected }: Volume): void {
  for (const { fieldRef } of downwardAPI?.items ?? []) if (fieldRef) fieldRef.apiVersion ??= 'v1';
  for (const { serviceAccountToken } of projected?.sources ?? []) {
    if (serviceAccountToken) serviceAccountToken.expirationSeconds ??= 3600;
  }
}
