// SPDX-License-Identifier: Apache-2.0
// What the machines of a MachineDeployment or MachineSet will be like, before there is one: from its scale-from-zero
// annotations, else from its infrastructure template; labels and taints as Cluster API propagates them.
import { capacityTypes, labels as wellKnown } from '../../api/labels.ts';
import { labelKeyProblem, labelValueProblem } from '../../api/names.ts';
import { KarpenterError } from '../../base/errors.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { MachineTaint, Scalable, Template } from './kinds.ts';
import { annotations, capi, capacityAnnotations as from } from './names.ts';
import type { IsSynced } from './settings.ts';

/** Something about a member cannot be used; the sentence says what. */
export class MemberError extends KarpenterError {
  constructor(message: string) {
    super('KRP_MEMBER_INVALID', message);
  }
}

/** One machine of a member. */
export interface Shape {
  /** On the Node, from its first moment or as soon as Cluster API has seen it. */
  readonly labels: Readonly<Record<string, string>>;
  readonly taints: readonly MachineTaint[];
  readonly capacity: Readonly<Record<string, string>>;
  /** How many devices pods get through a driver (dynamic resource allocation) and not as a resource: they have their price. */
  readonly devices?: string;
  /** What the system keeps for itself, where the member says so. */
  readonly overhead?: Readonly<Record<string, string>>;
  readonly zone?: string;
  readonly capacityType: string;
}

/** Where a kubelet's own limit is not told. */
const defaultMaxPods = '110';
const effects = new Set(['NoSchedule', 'PreferNoSchedule', 'NoExecute']);

/** Whether the annotations leave open what the machine is like. */
export function needsTemplate(scalable: Scalable): boolean {
  const own = scalable.metadata.annotations ?? {};
  if (own[from.cpu] === undefined || own[from.memory] === undefined) return true;
  return toldLabels(scalable)[wellKnown.arch] === undefined;
}

/**
 * The shape of a member's machines. Throws MemberError, naming the annotation that is wrong. `isSynced` says which more
 * labels Cluster API was told to copy to Nodes.
 */
export function shapeOf(scalable: Scalable, template?: Template, isSynced?: IsSynced): Shape {
  const own = scalable.metadata.annotations ?? {};
  const labels = labelsOf(scalable, template, isSynced);
  const zone = labels[wellKnown.zone] || scalable.spec?.template?.spec?.failureDomain;
  if (zone && typeof zone !== 'string') throw new MemberError('spec.template.spec.failureDomain is no text');
  const overhead = own[annotations.overhead];
  const devices = devicesOf(own);
  return {
    labels,
    taints: taintsOf(scalable),
    capacity: capacityOf(own, template),
    ...(devices ? { devices } : {}),
    ...(overhead === undefined ? {} : { overhead: quantities(parsePairs(overhead, annotations.overhead)) }),
    ...(zone ? { zone } : {}),
    capacityType: capacityTypeOf(scalable, labels),
  };
}

function labelsOf(scalable: Scalable, template?: Template, isSynced?: IsSynced): Record<string, string> {
  const { architecture, operatingSystem } = template?.status?.nodeInfo ?? {};
  const labels: Record<string, string> = {
    ...(architecture ? { [wellKnown.arch]: architecture } : {}),
    ...(operatingSystem ? { [wellKnown.os]: operatingSystem } : {}),
    ...propagatedLabels(scalable.spec?.template?.metadata?.labels, isSynced),
    ...toldLabels(scalable),
  };
  for (const [key, value] of Object.entries<unknown>(labels)) {
    const problem = labelKeyProblem(key) ?? (typeof value === 'string' ? labelValueProblem(value) : 'is no text');
    if (problem) throw new MemberError(`label ${key}=${JSON.stringify(value)}: ${problem}`);
  }
  return labels;
}

/** The labels of a template that Cluster API copies to Nodes. */
export function propagatedLabels(
  given: Readonly<Record<string, string>> | undefined,
  isSynced: IsSynced = () => false,
): Record<string, string> {
  return Object.fromEntries(Object.entries(given ?? {}).filter(([key]) => isPropagated(key) || isSynced(key)));
}

function isPropagated(key: string): boolean {
  const domain = key.split('/', 1)[0]!;
  return (
    domain === 'node-role.kubernetes.io' ||
    isIn(domain, 'node-restriction.kubernetes.io') ||
    isIn(domain, 'node.cluster.x-k8s.io')
  );
}

function isIn(domain: string, parent: string): boolean {
  return domain === parent || domain.endsWith(`.${parent}`);
}

/** Annotations go before what the infrastructure provider says of its template. */
function capacityOf(own: Readonly<Record<string, string>>, template?: Template): Record<string, string> {
  const capacity: Record<string, string> = { pods: defaultMaxPods };
  for (const [resource, amount] of Object.entries(template?.status?.capacity ?? {})) {
    capacity[resource] = quantity(amount, `status.capacity.${resource} of the infrastructure template`);
  }
  const simple = { cpu: from.cpu, memory: from.memory, 'ephemeral-storage': from.ephemeralDisk, pods: from.maxPods };
  for (const [resource, annotation] of Object.entries(simple)) {
    const told = own[annotation];
    if (told !== undefined) capacity[resource] = quantity(told, annotation);
  }
  const [count, type] = [own[from.gpuCount], own[from.gpuType]];
  if (count !== undefined && type !== undefined) {
    const problem = labelKeyProblem(type);
    if (problem) throw new MemberError(`${from.gpuType}: ${JSON.stringify(type)}: ${problem}`);
    capacity[type] = quantity(count, from.gpuCount);
  }
  for (const needed of ['cpu', 'memory'] as const) {
    if (capacity[needed] === undefined) {
      throw new MemberError(
        `${needed} is not known: neither the annotation ${from[needed]} nor status.capacity of the infrastructure template says it`,
      );
    }
  }
  return capacity;
}

/** Either a device plugin offers devices, as a resource of the Node, or a driver does. */
function devicesOf(own: Readonly<Record<string, string>>): string | undefined {
  const count = own[from.gpuCount];
  if (own[from.draDriver] === undefined || own[from.gpuType] !== undefined || count === undefined) return undefined;
  return quantity(count, from.gpuCount);
}

function capacityTypeOf(scalable: Scalable, labels: Readonly<Record<string, string>>): string {
  const told = scalable.metadata.annotations?.[annotations.capacityType] ?? labels[wellKnown.capacityType];
  if (told !== undefined) {
    if (!Object.values<string>(capacityTypes).includes(told)) {
      throw new MemberError(
        `capacity type ${JSON.stringify(told)} is none of ${Object.values(capacityTypes).join(', ')}`,
      );
    }
    return told;
  }
  const marked = { ...scalable.metadata.labels, ...scalable.spec?.template?.metadata?.labels, ...labels };
  return marked[capi.interruptible] === undefined ? capacityTypes.onDemand : capacityTypes.spot;
}

/** From the annotation (`key=value:Effect,…`) and from the Machine template itself. */
function taintsOf(scalable: Scalable): MachineTaint[] {
  const text = scalable.metadata.annotations?.[from.taints] ?? '';
  const told = text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .map(parseTaint);
  const taints = new Map<string, MachineTaint>();
  const own: unknown = scalable.spec?.template?.spec?.taints ?? [];
  if (!Array.isArray(own) || !own.every(isTaint))
    throw new MemberError('spec.template.spec.taints is no list of taints');
  for (const { key, value, effect } of [...own, ...told]) {
    taints.set(`${key}:${effect}`, { key, ...(value ? { value } : {}), effect });
  }
  return [...taints.values()];
}

function isTaint(value: unknown): value is MachineTaint {
  const { key, value: of = '', effect } = (value ?? {}) as Record<string, unknown>;
  return typeof key === 'string' && typeof of === 'string' && typeof effect === 'string';
}

function parseTaint(text: string): MachineTaint {
  const colon = text.lastIndexOf(':');
  const effect = text.slice(colon + 1);
  const [key = '', value] = text.slice(0, Math.max(colon, 0)).split('=', 2);
  if (colon < 0 || !effects.has(effect) || labelKeyProblem(key) || labelValueProblem(value ?? '')) {
    throw new MemberError(`${from.taints}: ${JSON.stringify(text)} is not key=value:Effect`);
  }
  return { key, ...(value ? { value } : {}), effect };
}

/** The labels that the annotation tells, `k=v,k2=v2` as cluster-autoscaler reads it: what is no pair is left out. */
export function toldLabels({ metadata }: Scalable): Record<string, string> {
  const parts = (metadata.annotations?.[from.labels] ?? '').split(',');
  return parsePairs(parts.filter((part) => part.trim().indexOf('=') > 0).join(','), from.labels);
}

/** `k=v,k2=v2`. Blanks around the parts do not count, nor do empty parts. */
function parsePairs(text: string | undefined, where: string): Record<string, string> {
  const pairs: Record<string, string> = {};
  for (const part of (text ?? '').split(',')) {
    const trimmed = part.trim();
    if (trimmed === '') continue;
    const equals = trimmed.indexOf('=');
    if (equals <= 0) throw new MemberError(`${where}: ${JSON.stringify(trimmed)} is not key=value`);
    pairs[trimmed.slice(0, equals).trim()] = trimmed.slice(equals + 1).trim();
  }
  return pairs;
}

function quantities(given: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(given).map(([name, amount]) => [name, quantity(amount, `${annotations.overhead} (${name})`)]),
  );
}

/** Templates are of any kind: what their status says need not be text. */
function quantity(text: unknown, where: string): string {
  const amount = Quantity.tryParse(typeof text === 'string' ? text.trim() : text);
  if (!amount || amount.sign() < 0) throw new MemberError(`${where}: ${JSON.stringify(text)} is not an amount`);
  return amount.toString();
}
