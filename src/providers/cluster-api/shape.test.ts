// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Scalable, Template } from './kinds.ts';
import { priceOf } from './prices.ts';
import { needsTemplate, propagatedLabels, shapeOf } from './shape.ts';

const prefix = 'capacity.cluster-autoscaler.kubernetes.io/';

function scalable(told: Record<string, string>, spec: Scalable['spec'] = {}): Scalable {
  const annotations = Object.fromEntries(Object.entries(told).map(([key, value]) => [`${prefix}${key}`, value]));
  return { metadata: { name: 'md', namespace: 'default', annotations }, spec };
}

const small = { cpu: '4', memory: '8Gi' };

describe('what a machine will be like', () => {
  test('is what the guide writes on its MachineDeployment', () => {
    const shape = shapeOf(scalable({ maxPods: '100', memory: '128G', cpu: '16', labels: 'kubernetes.io/arch=amd64' }));
    expect(shape.capacity).toEqual({ cpu: '16', memory: '128G', pods: '100' });
    expect(shape.labels).toEqual({ 'kubernetes.io/arch': 'amd64' });
    expect(shape.capacityType).toBe('on-demand');
  });

  test('§2 TRAP: has room for 110 pods when nobody says how many', () => {
    expect(shapeOf(scalable(small)).capacity['pods']).toBe('110');
  });

  test('has devices only when both their count and their type are told', () => {
    expect(shapeOf(scalable({ ...small, 'gpu-count': '2', 'gpu-type': 'nvidia.com/gpu' })).capacity).toMatchObject({
      'nvidia.com/gpu': '2',
    });
    expect(Object.keys(shapeOf(scalable({ ...small, 'gpu-count': '2' })).capacity)).toEqual(['pods', 'cpu', 'memory']);
  });

  test('§2 GAP: has devices of a driver (dynamic resource allocation), which are no resource but have their price', () => {
    const driven = shapeOf(scalable({ ...small, 'gpu-count': '2', 'dra-driver': 'gpu.nvidia.com' }));
    expect(Object.keys(driven.capacity)).toEqual(['pods', 'cpu', 'memory']);
    const plugged = shapeOf(scalable({ ...small, 'gpu-count': '2', 'gpu-type': 'nvidia.com/gpu' }));
    expect(priceOf(scalable({}), 't', driven)).toEqual(priceOf(scalable({}), 't', plugged));
    const both = { 'gpu-count': '2', 'gpu-type': 'nvidia.com/gpu', 'dra-driver': 'gpu.nvidia.com' };
    expect(shapeOf(scalable({ ...small, ...both }))).toEqual(plugged);
    expect(() => shapeOf(scalable({ ...small, 'gpu-count': 'two', 'dra-driver': 'd' }))).toThrow('is not an amount');
  });

  test.each([
    ['cpu', '4 cores'],
    ['memory', '500mb'],
    ['maxPods', 'many'],
    ['ephemeral-disk', '-1Gi'],
  ])('§2 BUG: %s "%s" is named as the problem and stops nothing else', (name, value) => {
    expect(() => shapeOf(scalable({ ...small, [name]: value }))).toThrow(
      `${prefix}${name}: "${value}" is not an amount`,
    );
  });

  test('§2 GAP: has the taints of the annotation and of the Machine template', () => {
    const spec = { template: { spec: { taints: [{ key: 'a', value: '1', effect: 'NoSchedule' }] } } };
    expect(shapeOf(scalable({ ...small, taints: 'b=2:NoExecute, c:PreferNoSchedule' }, spec)).taints).toEqual([
      { key: 'a', value: '1', effect: 'NoSchedule' },
      { key: 'b', value: '2', effect: 'NoExecute' },
      { key: 'c', effect: 'PreferNoSchedule' },
    ]);
    expect(() => shapeOf(scalable({ ...small, taints: 'b=2:Never' }))).toThrow('"b=2:Never" is not key=value:Effect');
  });

  test('§5 GAP: comes from the infrastructure template where annotations do not say it', () => {
    const template: Template = {
      metadata: { name: 't' },
      status: {
        capacity: { cpu: '8', memory: '32Gi', 'nvidia.com/gpu': '1' },
        nodeInfo: { architecture: 'arm64', operatingSystem: 'linux' },
      },
    };
    expect(needsTemplate(scalable({ cpu: '4' }))).toBe(true);
    expect(needsTemplate(scalable({ ...small, labels: 'kubernetes.io/arch=amd64' }))).toBe(false);
    const annotated = shapeOf(scalable(small), template);
    expect([needsTemplate(scalable(small)), annotated.labels['kubernetes.io/arch']]).toEqual([true, 'arm64']);
    const shape = shapeOf(scalable({ cpu: '4' }), template);
    expect(shape.capacity).toEqual({ pods: '110', cpu: '4', memory: '32Gi', 'nvidia.com/gpu': '1' });
    expect(shape.labels).toEqual({ 'kubernetes.io/arch': 'arm64', 'kubernetes.io/os': 'linux' });
    expect(() => shapeOf(scalable({ cpu: '4' }))).toThrow(/^memory is not known/);
  });

  test('has the labels that Cluster API propagates, those of the annotation going before', () => {
    const labels = {
      'node-role.kubernetes.io/worker': '',
      'x.node-role.kubernetes.io/worker': 'not',
      'node-restriction.kubernetes.io/a': '1',
      'x.node-restriction.kubernetes.io/b': '2',
      'node.cluster.x-k8s.io/c': '3',
      'x.node.cluster.x-k8s.io/d': '4',
      'node.cluster.x-k8s.io': 'bare',
      'example.com/e': 'not',
    };
    expect(propagatedLabels(labels)).toEqual({
      'node-role.kubernetes.io/worker': '',
      'node-restriction.kubernetes.io/a': '1',
      'x.node-restriction.kubernetes.io/b': '2',
      'node.cluster.x-k8s.io/c': '3',
      'x.node.cluster.x-k8s.io/d': '4',
      'node.cluster.x-k8s.io': 'bare',
    });
    // §5 GAP: what else the manager is told to copy.
    expect(propagatedLabels(labels, (key) => key.startsWith('example.com/'))).toMatchObject({ 'example.com/e': 'not' });
    const shape = shapeOf(
      scalable(
        { ...small, labels: 'node.cluster.x-k8s.io/c=annotation, example.com/f=g,nonsense' },
        { template: { metadata: { labels } } },
      ),
    );
    expect(shape.labels).toMatchObject({ 'node.cluster.x-k8s.io/c': 'annotation', 'node.cluster.x-k8s.io': 'bare' });
  });

  test('is in the zone of its label, else of its failure domain', () => {
    const spec = { template: { spec: { failureDomain: 'fd-1' } } };
    expect(shapeOf(scalable(small, spec)).zone).toBe('fd-1');
    expect(shapeOf(scalable({ ...small, labels: 'topology.kubernetes.io/zone=z' }, spec)).zone).toBe('z');
    expect(shapeOf(scalable(small)).zone).toBeUndefined();
  });

  test('§14 GAP: is spot by label, by annotation or by the mark of Cluster API', () => {
    expect(shapeOf(scalable({ ...small, labels: 'karpenter.sh/capacity-type=spot' })).capacityType).toBe('spot');
    const marked = { template: { metadata: { labels: { 'cluster.x-k8s.io/interruptible': '' } } } };
    expect(shapeOf(scalable(small, marked)).capacityType).toBe('spot');
    const annotated = scalable(small);
    annotated.metadata.annotations!['karpenter.cluster.x-k8s.io/capacity-type'] = 'spot';
    expect(shapeOf(annotated).capacityType).toBe('spot');
    annotated.metadata.annotations!['karpenter.cluster.x-k8s.io/capacity-type'] = 'free';
    expect(() => shapeOf(annotated)).toThrow('capacity type "free" is none of on-demand, spot, reserved');
  });
});

describe('§14 GAP: the price', () => {
  const shape = shapeOf(scalable(small));
  const priced = (annotations: Record<string, string>): Scalable => ({ metadata: { name: 'md', annotations } });

  test('is what the annotation says, then the table, then an estimate that is marked as one', () => {
    expect(priceOf(priced({ 'karpenter.cluster.x-k8s.io/price': '0.25' }), 't', shape, { t: '0.5' })).toEqual({
      amount: 0.25,
      source: 'annotation',
    });
    expect(priceOf(priced({}), 't', shape, { t: '0.5' })).toEqual({ amount: 0.5, source: 'table' });
    const estimate = priceOf(priced({}), 't', shape, {});
    expect(estimate.source).toBe('estimate');
    const larger = shapeOf(scalable({ cpu: '8', memory: '16Gi' }));
    expect(priceOf(priced({}), 't', larger).amount).toBeCloseTo(2 * estimate.amount, 10);
  });

  test('of spot capacity has its own place in the table', () => {
    const spot = { ...shape, capacityType: 'spot' };
    expect(priceOf(priced({}), 't', spot, { t: '0.5', 't.spot': '0.1' }).amount).toBe(0.1);
    expect(priceOf(priced({}), 't', spot, { t: '0.5' }).amount).toBe(0.5);
  });

  test('must be a number', () => {
    expect(() => priceOf(priced({ 'karpenter.cluster.x-k8s.io/price': '1 EUR' }), 't', shape)).toThrow(
      'is not a price',
    );
    expect(() => priceOf(priced({}), 't', shape, { t: '-1' })).toThrow('price table, t: "-1" is not a price');
  });
});
