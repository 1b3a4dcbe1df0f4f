// SPDX-License-Identifier: Apache-2.0
// The members of a NodeClass as instance types: one per kind of machine, with an offering for each member that makes it.
import type { ClusterApiNodeClass } from '../../api/cluster-api-node-class.ts';
import { labels as wellKnown } from '../../api/labels.ts';
import { labelValueProblem } from '../../api/names.ts';
import { messageOf } from '../../base/errors.ts';
import { chain, compareStrings } from '../../base/order.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { compileLabelSelector } from '../../kube/labels.ts';
import { Quantity } from '../../kube/quantity.ts';
import { type HubView, memberKey } from './hub.ts';
import {
  isDeleting,
  isOwnedSet,
  isPaused,
  type MachineTaint,
  type Scalable,
  type ScalableKind,
  type Template,
} from './kinds.ts';
import { capi, memberLabel, providerLabels } from './names.ts';
import { checkTemplate, isTemplateKey } from './orphans.ts';
import { type Price, type PriceTable, priceOf } from './prices.ts';
import type { IsSynced } from './settings.ts';
import { type Shape, shapeOf } from './shape.ts';

type Resources = Readonly<Record<string, string>>;
export type Offering = InstanceType['offerings'][number];

/** A MachineDeployment or MachineSet that may be scaled. */
export interface Member {
  readonly key: string;
  readonly object: Scalable;
  readonly shape: Shape;
  readonly price: Price;
  /** The instance type its machines are of. */
  readonly typeName: string;
  readonly allocatable: Resources;
}

/** A resource that should be a member and cannot be one. */
export interface InvalidMember {
  readonly key: string;
  readonly object: Scalable;
  readonly problem: string;
}

export interface Members {
  readonly valid: readonly Member[];
  readonly invalid: readonly InvalidMember[];
  /** Why the NodeClass's price table cannot be used, where it names one. */
  readonly priceProblem?: string;
}

/** What a kubelet keeps free of memory unless told otherwise. */
const defaultOverhead: Resources = { memory: '100Mi' };

/**
 * The resources that a NodeClass selects: they carry the member label (with any value) and its selector, namespace and
 * Cluster fit. Those that are going away are left out. Throws SelectorError for a selector that is none.
 */
export function selectScalables(
  nodeClass: ClusterApiNodeClass,
  view: HubView,
  templates: readonly [key: string, template: Scalable][] = [],
): [key: string, object: Scalable][] {
  const { scalableResourceSelector, namespace, clusterName } = nodeClass.spec ?? {};
  const selector = scalableResourceSelector && compileLabelSelector(scalableResourceSelector as never);
  const isMember = (object: Scalable): boolean =>
    object.metadata.labels?.[memberLabel] !== undefined &&
    !isDeleting(object) &&
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (clusterName === undefined || object.spec?.clusterName === clusterName) &&
    (selector === undefined || selector.matches(object.metadata.labels));
  const sets = view.sets.list().filter((set) => !isOwnedSet(set));
  const keyed = (kind: ScalableKind, objects: readonly Scalable[]): [string, Scalable][] =>
    objects.filter(isMember).map((object) => [memberKey(kind, object), object]);
  const found = [
    ...keyed('MachineDeployment', view.deployments.list()),
    ...keyed('MachineSet', sets),
    ...templates.filter(([, template]) => isMember(template)),
  ];
  return found.sort(([a], [b]) => compareStrings(a, b));
}

export interface ReadOptions {
  readonly nodeClass: ClusterApiNodeClass;
  readonly prices: PriceTable;
  /** The infrastructure template of each resource that needs it, by member key. */
  readonly templates: ReadonlyMap<string, Template>;
  /** Labels that Cluster API copies to Nodes besides the usual ones. */
  readonly isSynced?: IsSynced | undefined;
}

/** Reads the selected resources. One that cannot be read costs only itself. */
export function readMembers(selected: readonly [key: string, object: Scalable][], options: ReadOptions): Members {
  const invalid: InvalidMember[] = [];
  const read: { key: string; object: Scalable; shape: Shape }[] = [];
  for (const [key, object] of selected) {
    try {
      if (isTemplateKey(key)) checkTemplate(object);
      read.push({ key, object, shape: shapeOf(object, options.templates.get(key), options.isSynced) });
    } catch (error) {
      invalid.push({ key, object, problem: messageOf(error) });
    }
  }
  const names = typeNames(read);
  const valid: Member[] = [];
  for (const { key, object, shape } of read) {
    try {
      const typeName = names.get(key)!;
      const problem = labelValueProblem(typeName);
      if (problem) throw new Error(`instance type ${typeName}: ${problem}`);
      const price = priceOf(object, typeName, shape, options.prices);
      const overhead = shape.overhead ?? textsOf(options.nodeClass.spec?.overhead) ?? defaultOverhead;
      valid.push({ key, object, shape, price, typeName, allocatable: less(shape.capacity, overhead) });
    } catch (error) {
      invalid.push({ key, object, problem: messageOf(error) });
    }
  }
  return { valid, invalid };
}

/** What tells kinds of machines apart, besides zone and capacity type. */
function kindOf({ labels, capacity, devices, taints, overhead }: Shape): string {
  const { [wellKnown.zone]: _, [wellKnown.capacityType]: __, [wellKnown.region]: ___, ...own } = labels;
  const sorted = (given: Resources = {}): unknown => Object.entries(given).sort(([a], [b]) => compareStrings(a, b));
  return JSON.stringify([sorted(own), sorted(capacity), devices, taints, sorted(overhead)]);
}

/**
 * The instance type of each member: its instance-type label, else its own name. Members of equal machines share one; of
 * different machines under one name the oldest keeps it, and the others get their own name added, so that no newcomer
 * ever renames what runs.
 */
function typeNames(members: readonly { key: string; object: Scalable; shape: Shape }[]): Map<string, string> {
  const byAge = [...members].sort(
    chain(
      (a, b) => compareStrings(a.object.metadata.creationTimestamp ?? '', b.object.metadata.creationTimestamp ?? ''),
      (a, b) => compareStrings(a.key, b.key),
    ),
  );
  const takenBy = new Map<string, string>();
  const names = new Map<string, string>();
  for (const { key, object, shape } of byAge) {
    const { name = '', namespace = '' } = object.metadata;
    const label = shape.labels[wellKnown.instanceType];
    const kind = kindOf(shape);
    const candidates = label
      ? [label, `${label}.${name}`, `${label}.${namespace}.${name}`]
      : [name, `${namespace}.${name}`, key.replaceAll(/[/:]/g, '.')];
    const free = candidates.find((candidate) => (takenBy.get(candidate) ?? kind) === kind) ?? candidates.at(-1)!;
    takenBy.set(free, kind);
    names.set(key, free);
  }
  return names;
}

export interface CatalogOptions {
  /** The taints that nodes of the pool are known to have: machines with others are not for sale there. */
  readonly taints: readonly MachineTaint[];
  /** Whether a member has been found unable to make machines lately. */
  readonly isUnavailable: (key: string) => boolean;
}

/** One machine that can be had: of which member, as which offering, and whether now. */
export interface Choice {
  readonly member: Member;
  readonly type: InstanceType;
  readonly offering: Offering;
  readonly available: boolean;
}

export interface Catalog {
  readonly types: InstanceType[];
  readonly choices: Choice[];
}

/** The instance types of members, and which members stand behind each offering. */
export function catalogOf(members: readonly Member[], options: CatalogOptions): Catalog {
  const types: InstanceType[] = [];
  const choices: Choice[] = [];
  for (const [name, group] of Map.groupBy(members, ({ typeName }) => typeName)) {
    const places = [...Map.groupBy(group, ({ shape }) => `${shape.zone ?? ''} ${shape.capacityType}`).values()];
    const offerings = places.map((makers) => offeringOf(makers, options));
    const type = instanceTypeOf(name, group, offerings);
    types.push(type);
    for (const [i, makers] of places.entries()) {
      for (const member of makers) {
        choices.push({ member, type, offering: offerings[i]!, available: isAvailable(member, options) });
      }
    }
  }
  types.sort((a, b) => compareStrings(a.name, b.name));
  return { types, choices };
}

/** What several members that make the same machine in the same place sell together: at the price of the next one. */
function offeringOf(makers: readonly Member[], options: CatalogOptions): Offering {
  const { shape } = makers[0]!;
  const selling = makers.filter((member) => isAvailable(member, options));
  const prices = (selling.length > 0 ? selling : makers).map(({ price }) => price);
  return {
    price: Math.min(...prices.map(({ amount }) => amount)),
    ...(prices.some(({ source }) => source === 'estimate') ? { estimated: true } : {}),
    available: selling.length > 0,
    requirements: [is(wellKnown.zone, shape.zone ?? ''), is(wellKnown.capacityType, shape.capacityType)],
  };
}

function isAvailable({ key, object, shape }: Member, { taints, isUnavailable }: CatalogOptions): boolean {
  return !isPaused(object, capi.paused) && hasRoom(object) && !isUnavailable(key) && knowsTaints(shape.taints, taints);
}

/** Below its maximum. What is no number is no maximum. */
function hasRoom(object: Scalable): boolean {
  return replicasOf(object) < sizeLimit(object, capi.maxSize, Number.POSITIVE_INFINITY);
}

/** How many replicas are asked for now. */
export function replicasOf(object: Scalable): number {
  const told: unknown = object.spec?.replicas ?? object.status?.replicas;
  return typeof told === 'number' ? told : 0;
}

/** The minimum or maximum size that a member asks for. */
export function sizeLimit(object: Scalable, annotation: string, otherwise: number): number {
  const text = object.metadata.annotations?.[annotation]?.trim() ?? '';
  return /^\d+$/.test(text) ? Number(text) : otherwise;
}

/** Whether each taint that keeps pods away is one that the scheduler was told about. */
export function knowsTaints(machine: readonly MachineTaint[], known: readonly MachineTaint[]): boolean {
  return machine
    .filter(({ effect }) => effect !== 'PreferNoSchedule')
    .every(({ key, value = '', effect }) =>
      known.some((taint) => taint.key === key && taint.effect === effect && (taint.value ?? '') === value),
    );
}

function instanceTypeOf(name: string, members: readonly Member[], offerings: readonly Offering[]): InstanceType {
  const { shape, allocatable } = members[0]!;
  const all = (key: string): string[] => [
    ...new Set(offerings.flatMap((o) => o.requirements.find((r) => r.key === key)?.values ?? [])),
  ];
  const sources = [...new Set(members.map(({ price }) => price.source))].sort(compareStrings);
  const reserved: [string, string][] = [];
  for (const [resource, total] of Object.entries(shape.capacity)) {
    const kept = Quantity.parse(total).sub(Quantity.parse(allocatable[resource] ?? total));
    if (!kept.isZero()) reserved.push([resource, kept.toString()]);
  }
  const own = nodeLabels(members[0]!);
  return {
    name,
    requirements: [
      ...Object.entries(own)
        .filter(
          ([key]) => !(key === wellKnown.zone || key === wellKnown.capacityType || key === providerLabels.priceSource),
        )
        .map(([key, value]) => is(key, value)),
      is(wellKnown.zone, ...all(wellKnown.zone)),
      is(wellKnown.capacityType, ...all(wellKnown.capacityType)),
      is(providerLabels.priceSource, ...sources),
    ],
    offerings,
    capacity: shape.capacity,
    ...(reserved.length > 0 ? { overhead: { kubeReserved: Object.fromEntries(reserved) } } : {}),
  };
}

/** Every label that a machine of a member is known to get. */
export function nodeLabels({ shape, typeName, price }: Member): Record<string, string> {
  const { cpu = '0', memory = '0' } = shape.capacity;
  const mebibytes = String(Quantity.parse(memory).value() / 1048576n);
  const all: Record<string, string> = {
    [wellKnown.arch]: 'amd64',
    [wellKnown.os]: 'linux',
    ...shape.labels,
    [wellKnown.instanceType]: typeName,
    [wellKnown.capacityType]: shape.capacityType,
    ...(shape.zone ? { [wellKnown.zone]: shape.zone } : {}),
    [providerLabels.instanceSize]: sizeOf(typeName, cpu),
    [providerLabels.instanceFamily]: typeName.split(/[.-]/, 1)[0]!,
    [providerLabels.instanceCpu]: String(Quantity.parse(cpu).value()),
    [providerLabels.instanceMemory]: mebibytes,
    [providerLabels.capacityCpu]: String(Quantity.parse(cpu).value()),
    [providerLabels.capacityMemory]: mebibytes,
    [providerLabels.priceSource]: price.source,
  };
  return Object.fromEntries(Object.entries(all).sort(([a], [b]) => compareStrings(a, b)));
}

/** What stands after the first dot of a name like `m5.large`; else its CPUs. */
function sizeOf(typeName: string, cpu: string): string {
  return /^\w+\.(\w+)$/.exec(typeName)?.[1] ?? String(Quantity.parse(cpu).value());
}

function is(key: string, ...values: string[]) {
  return { key, operator: 'In', values } as const;
}

/** Capacity less overhead, never below nothing. */
function less(capacity: Resources, overhead: Resources): Record<string, string> {
  return Object.fromEntries(
    Object.entries(capacity).map(([name, amount]) => {
      const kept = overhead[name];
      if (kept === undefined) return [name, amount];
      const left = Quantity.parse(amount).sub(Quantity.parse(kept));
      return [name, left.sign() < 0 ? '0' : left.toString()];
    }),
  );
}

function textsOf(given: Readonly<Record<string, string | number>> | undefined): Resources | undefined {
  return given && Object.fromEntries(Object.entries(given).map(([name, amount]) => [name, String(amount)]));
}
