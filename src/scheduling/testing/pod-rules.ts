// SPDX-License-Identifier: Apache-2.0
// What Kubernetes reads from a pod: requests, tolerations, node affinity, host ports, selectors. The validator's own reading.
import type { LabelSelector } from '../../kube/labels.ts';
import type { Container, Pod, PodSpec, Taint, Toleration } from '../objects.ts';
import { type Amounts, add, amounts, largest } from './amounts.ts';
import { type Expression, type LabelState, missing, possibly, surely } from './values.ts';

export const zoneLabel = 'topology.kubernetes.io/zone';
export const hostnameLabel = 'kubernetes.io/hostname';
export const capacityTypeLabel = 'karpenter.sh/capacity-type';
export const instanceTypeLabel = 'node.kubernetes.io/instance-type';
export const nodePoolLabel = 'karpenter.sh/nodepool';

/** `namespace/name`: how results name a pod. */
export function podKey(pod: Pod): string {
  return `${pod.metadata.namespace ?? 'default'}/${pod.metadata.name}`;
}

export function namespaceOf(pod: Pod): string {
  return pod.metadata.namespace ?? 'default';
}

function requestsOf(container: Container): Amounts {
  return amounts(container.resources?.requests);
}

/**
 * What the scheduler sets aside for a pod: containers and sidecars together, or the hungriest init step if that is
 * more; pod-level requests replace it for cpu, memory and huge pages; then overhead; one of `pods`.
 */
export function podRequests(spec: PodSpec): Map<string, bigint> {
  let running = add(...(spec.containers ?? []).map(requestsOf));
  let sidecars = new Map<string, bigint>();
  let initPeak = new Map<string, bigint>();
  for (const container of spec.initContainers ?? []) {
    const wants = requestsOf(container);
    if (container.restartPolicy === 'Always') {
      running = add(running, wants);
      sidecars = add(sidecars, wants);
      initPeak = largest(initPeak, sidecars);
    } else {
      initPeak = largest(initPeak, add(wants, sidecars));
    }
  }
  const total = largest(running, initPeak);
  for (const [name, value] of amounts(spec.resources?.requests)) {
    if (name === 'cpu' || name === 'memory' || name.startsWith('hugepages-')) total.set(name, value);
  }
  const sum = add(total, amounts(spec.overhead));
  sum.set('pods', 1_000_000_000n);
  return sum;
}

export function tolerates(tolerations: readonly Toleration[] | undefined, taint: Taint): boolean {
  return (tolerations ?? []).some((t) => {
    if (t.effect && t.effect !== taint.effect) return false;
    if (t.key && t.key !== taint.key) return false;
    switch (t.operator ?? 'Equal') {
      case 'Exists':
        return true;
      case 'Equal':
        return (t.value ?? '') === (taint.value ?? '') && t.key === taint.key;
      default:
        return false;
    }
  });
}

/** The OR terms of what a pod demands of its node: node selector and required affinity, as conjunctions of expressions. */
export function nodeTerms(spec: PodSpec): Expression[][] {
  const selector: Expression[] = Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => ({
    key,
    operator: 'In',
    values: [value],
  }));
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  if (!required) return [selector];
  // A term without expressions matches no node.
  return (required.nodeSelectorTerms ?? [])
    .filter((t) => (t.matchExpressions?.length ?? 0) > 0)
    .map((t) => [...selector, ...(t.matchExpressions ?? [])]);
}

export type LabelLookup = (key: string) => LabelState;

export function surelyMatches(terms: readonly Expression[][], labels: LabelLookup): boolean {
  return terms.some((term) => term.every((e) => surely(labels(e.key), e)));
}

export function possiblyMatches(terms: readonly Expression[][], labels: LabelLookup): boolean {
  return terms.some((term) => term.every((e) => possibly(labels(e.key), e)));
}

export function lookup(labels: ReadonlyMap<string, LabelState>): LabelLookup {
  return (key) => labels.get(key) ?? missing;
}

/** Whether a label selector picks these labels: absent picks nothing, empty everything, a broken one nothing. */
export function selects(
  selector: LabelSelector | null | undefined,
  labels: Readonly<Record<string, string>> = {},
): boolean {
  if (!selector) return false;
  for (const [key, value] of Object.entries(selector.matchLabels ?? {})) if (labels[key] !== value) return false;
  for (const { key, operator, values: listedValues } of selector.matchExpressions ?? []) {
    const values = listedValues ?? [];
    const value = labels[key];
    const listed = value !== undefined && values.includes(value);
    if ((operator === 'In' || operator === 'NotIn') && values.length === 0) return false;
    if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0) return false;
    switch (operator) {
      case 'In':
        if (!listed) return false;
        break;
      case 'NotIn':
        if (listed) return false;
        break;
      case 'Exists':
        if (value === undefined) return false;
        break;
      case 'DoesNotExist':
        if (value !== undefined) return false;
        break;
      default:
        return false;
    }
  }
  return true;
}

export interface HostPort {
  readonly ip: string;
  readonly port: number;
  readonly protocol: string;
}

export function hostPorts(spec: PodSpec): HostPort[] {
  const found: HostPort[] = [];
  for (const container of spec.containers ?? [])
    for (const p of container.ports ?? [])
      if (p.hostPort) found.push({ ip: p.hostIP || '0.0.0.0', port: p.hostPort, protocol: p.protocol ?? 'TCP' });
  return found;
}

const anyAddress = new Set(['0.0.0.0', '::']);

export function portsConflict(a: HostPort, b: HostPort): boolean {
  return (
    a.port === b.port && a.protocol === b.protocol && (a.ip === b.ip || anyAddress.has(a.ip) || anyAddress.has(b.ip))
  );
}
