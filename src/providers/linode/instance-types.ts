// SPDX-License-Identifier: Apache-2.0
// From what Linode says about a plan to an instance type: labels, capacity, what is kept from pods, price. Pure functions.
import { capacityTypes, labels } from '../../api/labels.ts';
import type { LinodeKubelet } from '../../api/linode-node-class.ts';
import { compareStrings } from '../../base/order.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import { Quantity } from '../../kube/quantity.ts';
import type { LinodeType } from './api-types.ts';
import { linodeLabels } from './names.ts';

type Resources = Readonly<Record<string, string>>;

/** What real Nodes of a type have shown, in bytes: it goes before what is reckoned. */
export interface Observed {
  /** The smallest memory that such a Node had. */
  readonly memory: bigint;
}

export interface InstanceTypeOptions {
  readonly mode: 'lke' | 'instance';
  readonly region: string;
  readonly kubelet: LinodeKubelet | undefined;
  /** The part of the memory that a Node does not show. */
  readonly memoryOverhead: number;
  /** How many of the MB of a plan's storage the first disk gets: all of them, unless told. */
  readonly rootDiskMb?: (planMb: number) => number;
  readonly observed: (type: string) => Observed | undefined;
  readonly available: (type: string) => boolean;
}

const mib = 1024n * 1024n;
const gpuResource = 'nvidia.com/gpu';
/** Linode's accelerated plans have NETINT Quadra cards; this is what their device plugin calls them. */
const acceleratorResource = 'netint.ca/Quadra';
const usualPods = 110;
/** What the kubelet evicts at unless told: LKE's nodes reserve nothing else. */
const usualMemoryEviction = 100n * mib;
const usualStorageEviction = 0.1;
const hoursOfMonth = 730;

/** The instance types that plans make, in order of name. Plans that leave nothing to pods are left out. */
export function instanceTypesOf(plans: readonly LinodeType[], options: InstanceTypeOptions): InstanceType[] {
  return plans
    .filter((plan) => isUsable(plan, options))
    .map((plan) => instanceTypeOf(plan, options))
    .filter(leavesSomething)
    .sort((a, b) => compareStrings(a.name, b.name));
}

function isUsable(plan: LinodeType, { mode, rootDiskMb }: InstanceTypeOptions): boolean {
  const isSane = [plan.vcpus, plan.memory, plan.disk].every((amount) => Number.isSafeInteger(amount) && amount > 0);
  // LKE does not take Nanodes.
  return isSane && !(mode === 'lke' && plan.class === 'nanode') && (rootDiskMb?.(plan.disk) ?? plan.disk) > 0;
}

function instanceTypeOf(plan: LinodeType, options: InstanceTypeOptions): InstanceType {
  const { region, available } = options;
  const is = (key: string, value: string | number) => ({ key, operator: 'In', values: [String(value)] }) as const;
  const price = priceIn(plan, region);
  const capacity = capacityOf(plan, options);
  const generation = generationOf(plan.id);
  const gpu = gpuNameOf(plan.id);
  // Said to be missing: a type that is silent about a label would serve pods that ask for any value of it.
  const maybe = (key: string, value: string | undefined) =>
    value === undefined ? ({ key, operator: 'DoesNotExist' } as const) : is(key, value);
  return {
    name: plan.id,
    requirements: [
      is(labels.instanceType, plan.id),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      is(labels.region, region),
      is(labels.zone, region),
      is(labels.capacityType, capacityTypes.onDemand),
      is(linodeLabels.cpu, plan.vcpus),
      is(linodeLabels.memory, plan.memory),
      is(linodeLabels.disk, plan.disk),
      is(linodeLabels.transfer, plan.transfer ?? 0),
      is(linodeLabels.networkOut, plan.network_out ?? 0),
      is(linodeLabels.class, plan.class),
      is(linodeLabels.gpuCount, plan.gpus ?? 0),
      is(linodeLabels.acceleratedDevices, plan.accelerated_devices ?? 0),
      maybe(linodeLabels.generation, generation),
      maybe(linodeLabels.gpuName, gpu),
    ],
    offerings: [
      {
        requirements: [is(labels.zone, region), is(labels.capacityType, capacityTypes.onDemand)],
        price: price ?? 0,
        // What has no price cannot be compared, so it is not for sale.
        available: price !== undefined && available(plan.id),
      },
    ],
    capacity,
    overhead: overheadOf(plan, capacity, options),
  };
}

/** The price per hour in a region, rounded as Linode writes it; undefined where Linode names none. */
export function priceIn(plan: LinodeType, region: string): number | undefined {
  const price = plan.region_prices?.find(({ id }) => id === region) ?? plan.price;
  const { hourly, monthly } = price ?? {};
  if (typeof hourly === 'number' && hourly > 0) return hourly;
  return typeof monthly === 'number' && monthly > 0 ? monthly / hoursOfMonth : undefined;
}

/** `6` of `g6-standard-4`. */
export function generationOf(id: string): string | undefined {
  const [first = '', second] = id.split('-');
  return second === undefined ? undefined : first.replace(/^g/, '') || undefined;
}

/** `rtx6000` of `g1-gpu-rtx6000-4`. */
export function gpuNameOf(id: string): string | undefined {
  const [, second, third] = id.split('-');
  return second === 'gpu' ? third : undefined;
}

/** How many pods a machine takes. */
export function podsOf(plan: Pick<LinodeType, 'vcpus'>, kubelet: LinodeKubelet | undefined): number {
  const { maxPods = usualPods, podsPerCore = 0 } = kubelet ?? {};
  return podsPerCore > 0 ? Math.min(maxPods, podsPerCore * plan.vcpus) : maxPods;
}

function capacityOf(plan: LinodeType, options: InstanceTypeOptions): Resources {
  const { kubelet, memoryOverhead, rootDiskMb } = options;
  const reckoned = BigInt(plan.memory - Math.ceil(plan.memory * memoryOverhead)) * mib;
  const memory = options.observed(plan.id)?.memory ?? reckoned;
  return {
    cpu: String(plan.vcpus),
    memory: bytes(memory),
    pods: String(podsOf(plan, kubelet)),
    'ephemeral-storage': bytes(BigInt(rootDiskMb?.(plan.disk) ?? plan.disk) * mib),
    ...(plan.gpus ? { [gpuResource]: String(plan.gpus) } : {}),
    ...(plan.accelerated_devices ? { [acceleratorResource]: String(plan.accelerated_devices) } : {}),
  };
}

/** What the kubelet of a machine of ours is told to reserve; LKE's own kubelets reserve nothing. */
export function kubeReservedOf(plan: Pick<LinodeType, 'vcpus'>, kubelet: LinodeKubelet | undefined): Resources {
  return {
    cpu: `${reservedMilliCpu(plan.vcpus)}m`,
    memory: `${11 * podsOf(plan, kubelet) + 255}Mi`,
    'ephemeral-storage': '1Gi',
    ...kubelet?.kubeReserved,
  };
}

/** 6 % of the first CPU, 1 % of the second, half a percent of the next two, a quarter of the rest; each band cut off. */
export function reservedMilliCpu(cpus: number): number {
  const bands = [
    [1, 60],
    [1, 10],
    [2, 5],
    [Number.POSITIVE_INFINITY, 2.5],
  ] as const;
  let left = cpus;
  let sum = 0;
  for (const [wide, milli] of bands) {
    sum += Math.floor(Math.min(left, wide) * milli);
    left = Math.max(0, left - wide);
  }
  return sum;
}

function overheadOf(plan: LinodeType, capacity: Resources, options: InstanceTypeOptions) {
  const { kubelet, mode } = options;
  const of = (resource: string): bigint => Quantity.parse(capacity[resource] ?? '0').value();
  const eviction = {
    memory: bytes(evictionOf(kubelet, 'memory.available', of('memory'), usualMemoryEviction)),
    'ephemeral-storage': bytes(
      evictionOf(
        kubelet,
        'nodefs.available',
        of('ephemeral-storage'),
        share(of('ephemeral-storage'), usualStorageEviction),
      ),
    ),
  };
  return {
    kubeReserved: mode === 'instance' ? kubeReservedOf(plan, kubelet) : { ...kubelet?.kubeReserved },
    systemReserved: { ...kubelet?.systemReserved },
    evictionThreshold: eviction,
  };
}

/** The larger of the hard and the soft threshold; a percentage of all, rounded up; 100 % switches a signal off. */
function evictionOf(kubelet: LinodeKubelet | undefined, signal: string, all: bigint, usual: bigint): bigint {
  const given = [kubelet?.evictionHard?.[signal], kubelet?.evictionSoft?.[signal]].filter((text) => text !== undefined);
  if (given.length === 0) return usual;
  return given
    .map((text) => {
      const percent = /^([\d.]+)%$/.exec(text)?.[1];
      if (percent === undefined) return Quantity.tryParse(text)?.value() ?? 0n;
      return Number(percent) >= 100 ? 0n : share(all, Number(percent) / 100);
    })
    .reduce((most, each) => (each > most ? each : most), 0n);
}

function share(all: bigint, part: number): bigint {
  return BigInt(Math.ceil(Number(all) * part - 1e-6));
}

/** As people write it: the largest unit that leaves no rest. */
function bytes(amount: bigint): string {
  if (amount % mib === 0n) return `${amount / mib}Mi`;
  return amount % 1024n === 0n ? `${amount / 1024n}Ki` : String(amount);
}

function leavesSomething(type: InstanceType): boolean {
  const left = allocatableOf(type);
  return ['cpu', 'memory', 'pods'].every((name) => Quantity.parse(left[name] ?? '0').sign() > 0);
}
