// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import { allocatableOf } from '../../cloud/allocatable.ts';
import { conflict, requirementsOf } from '../../scheduling/requirements.ts';
import type { LinodeType } from './api-types.ts';
import {
  generationOf,
  gpuNameOf,
  type InstanceTypeOptions,
  instanceTypesOf,
  priceIn,
  reservedMilliCpu,
} from './instance-types.ts';
import { linodeLabelSet, linodeLabels } from './names.ts';

const plan = (id: string, vcpus: number, memory: number, more: Partial<LinodeType> = {}): LinodeType => ({
  id,
  class: 'standard',
  vcpus,
  memory,
  disk: memory * 20,
  transfer: 4000,
  network_out: 4000,
  gpus: 0,
  accelerated_devices: 0,
  price: { hourly: 0.06, monthly: 40 },
  region_prices: [],
  ...more,
});
const options: InstanceTypeOptions = {
  mode: 'instance',
  region: 'us-east',
  kubelet: undefined,
  memoryOverhead: 0.075,
  observed: () => undefined,
  available: () => true,
};
const one = (of: LinodeType, more: Partial<InstanceTypeOptions> = {}) =>
  instanceTypesOf([of], { ...options, ...more })[0]!;
const six = plan('g6-standard-6', 6, 16384);

describe('what a machine of ours leaves to pods', () => {
  test('of 6 CPUs and 16 GB', () => {
    const type = one(six);
    expect(type.capacity).toMatchObject({ cpu: '6', memory: '15155Mi', pods: '110' });
    expect(type.overhead?.kubeReserved).toMatchObject({ cpu: '85m', memory: '1465Mi', 'ephemeral-storage': '1Gi' });
    expect(allocatableOf(type)).toMatchObject({ cpu: '5915m', memory: '13590Mi', pods: '110' });
  });

  test('of 2 CPUs and 4 GB', () => {
    expect(allocatableOf(one(plan('g6-standard-2', 2, 4096)))).toMatchObject({ cpu: '1930m', memory: '2223Mi' });
  });

  test.each([
    [1, 60],
    [2, 70],
    [4, 80],
    [6, 85],
    [8, 90],
    [24, 130],
  ])('of %i CPUs %i thousandths are kept', (cpus, milli) => expect(reservedMilliCpu(cpus)).toBe(milli));

  test('pods per core limit pods, and what is reserved for them', () => {
    const type = one(plan('g6-standard-2', 2, 4096), { kubelet: { podsPerCore: 10 } });
    expect(type.capacity['pods']).toBe('20');
    expect(type.overhead?.kubeReserved?.['memory']).toBe('475Mi');
    expect(one(six, { kubelet: { podsPerCore: 100, maxPods: 50 } }).capacity['pods']).toBe('50');
  });

  test('eviction thresholds: a percentage of all memory, the larger of hard and soft, 100 % for off', () => {
    const eviction = (kubelet: InstanceTypeOptions['kubelet']) =>
      one(six, { kubelet }).overhead?.evictionThreshold?.['memory'];
    expect(eviction({ evictionHard: { 'memory.available': '5%' } })).toBe('775936Ki');
    expect(eviction({ evictionHard: { 'memory.available': '100%' } })).toBe('0Mi');
    const soft = { evictionSoft: { 'memory.available': '2Gi' }, evictionHard: { 'memory.available': '1Gi' } };
    expect(eviction(soft)).toBe('2048Mi');
  });

  test('what the NodeClass reserves replaces what is reckoned, key by key', () => {
    const kubelet = { kubeReserved: { memory: '1Gi' }, systemReserved: { cpu: '100m' } };
    const { overhead } = one(six, { kubelet });
    expect(overhead?.kubeReserved).toEqual({ cpu: '85m', memory: '1Gi', 'ephemeral-storage': '1Gi' });
    expect(overhead?.systemReserved).toEqual({ cpu: '100m' });
  });
});

// What a real g6-standard-2 of LKE showed: memory 4022024Ki of which 3919624Ki are allocatable, 2 CPUs of 2.
test("[TRAP 5b] LKE's nodes keep what the kubelet evicts at and nothing more", () => {
  const type = one(plan('g6-standard-2', 2, 4096, { disk: 81920 }), {
    mode: 'lke',
    observed: () => ({ memory: 4022024n * 1024n }),
  });
  expect(type.capacity['memory']).toBe('4022024Ki');
  expect(allocatableOf(type)).toMatchObject({ cpu: '2', memory: '3919624Ki', 'ephemeral-storage': '72Gi' });
});

test('[GAP 5a] graphics cards, accelerators and the disk are resources that pods can ask for', () => {
  const gpu = one(plan('g1-gpu-rtx6000-4', 24, 131072, { class: 'gpu', gpus: 4 }));
  expect(gpu.capacity['nvidia.com/gpu']).toBe('4');
  const vpu = one(
    plan('g1-accelerated-netint-vpu-t1u2-s', 12, 24576, { class: 'accelerated', accelerated_devices: 2 }),
  );
  expect(vpu.capacity['netint.ca/Quadra']).toBe('2');
  expect(one(six).capacity).not.toHaveProperty(['nvidia.com/gpu']);
  expect(one(six).capacity['ephemeral-storage']).toBe('327680Mi');
});

test.each([
  ['g6-standard-4', '6', undefined],
  ['g1-gpu-rtx6000-4', '1', 'rtx6000'],
  ['g2-gpu-rtx4000a1-xl', '2', 'rtx4000a1'],
  ['g1-accelerated-netint-vpu-t1u1-m', '1', undefined],
  ['odd', undefined, undefined],
])('%s is of generation %s with card %s', (id, generation, gpu) => {
  expect([generationOf(id), gpuNameOf(id)]).toEqual([generation, gpu]);
});

test('a pod that asks for a card gets no machine without one', () => {
  const asked = requirementsOf([{ key: linodeLabels.gpuName, operator: 'In', values: ['rtx6000'] }], linodeLabelSet);
  const fits = (type: LinodeType): boolean =>
    conflict(asked, requirementsOf(one(type).requirements, linodeLabelSet)) === undefined;
  expect(fits(six)).toBe(false);
  expect(fits(plan('g1-gpu-rtx6000-4', 24, 131072, { gpus: 4 }))).toBe(true);
});

describe('prices', () => {
  const dearer = plan('g6-standard-1', 1, 2048, {
    price: { hourly: 0.018, monthly: 12 },
    region_prices: [{ id: 'br-gru', hourly: 0.025, monthly: 16.8 }],
  });

  test('[BUG 5e] are those of the region', () => {
    expect(priceIn(dearer, 'us-east')).toBe(0.018);
    expect(priceIn(dearer, 'br-gru')).toBe(0.025);
    expect(one(dearer, { region: 'br-gru', mode: 'lke' }).offerings[0]?.price).toBe(0.025);
  });

  test('a plan without a price is not for sale, instead of free', () => {
    const [offering] = one(plan('g6-standard-4', 4, 8192, { price: null })).offerings;
    expect(offering?.available).toBe(false);
  });
});

test('an offering names its zone, which is the region, and on-demand', () => {
  const [offering] = one(six).offerings;
  expect(offering?.requirements).toEqual([
    { key: labels.zone, operator: 'In', values: ['us-east'] },
    { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
  ]);
});

test('plans that leave nothing to pods, and Nanodes in LKE, are not offered', () => {
  const nanode = plan('g6-nanode-1', 1, 1024, { class: 'nanode' });
  expect(instanceTypesOf([nanode], options)).toEqual([]);
  expect(instanceTypesOf([nanode], { ...options, mode: 'lke' })).toEqual([]);
  expect(instanceTypesOf([plan('broken', Number.NaN, 0)], options)).toEqual([]);
});
