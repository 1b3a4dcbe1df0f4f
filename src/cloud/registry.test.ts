// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { commonLabelSet, labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import type { NodePool } from '../api/node-pool.ts';
import { VirtualClock } from '../base/clock.ts';
import { Metrics } from '../runtime/metrics.ts';
import { InsufficientCapacityError, isInsufficientCapacity } from './errors.ts';
import { metered } from './metered-provider.ts';
import type { CloudProvider } from './provider.ts';
import { CloudRegistry } from './registry.ts';
import { withoutReserved } from './reserved-capacity.ts';

const signal = new AbortController().signal;

function provider(name: string, overrides: Partial<CloudProvider> = {}): CloudProvider {
  const gone = (): Promise<never> => Promise.reject(new InsufficientCapacityError('sold out'));
  return {
    name,
    nodeClasses: [{ group: `${name}.sh`, version: 'v1', kind: 'NodeClass', plural: 'nodeclasses', namespaced: false }],
    labels: commonLabelSet,
    repairPolicies: [],
    create: gone,
    delete: gone,
    get: gone,
    list: () => Promise.resolve([]),
    instanceTypes: () => Promise.resolve([]),
    driftReason: () => Promise.resolve(''),
    ...overrides,
  };
}

describe('the registry of clouds', () => {
  const [a, b] = [provider('a'), provider('b')];
  const registry = new CloudRegistry([a, b]);

  test('routes by group and kind of the NodeClass', () => {
    expect(registry.find({ group: 'b.sh', kind: 'NodeClass' })).toBe(b);
    expect(registry.find({ group: 'b.sh', kind: 'Other' })).toBeUndefined();
    expect(registry.manages({ group: 'a.sh', kind: 'NodeClass' })).toBe(true);
  });

  test('knows a Node by the label of its NodeClass', () => {
    expect(registry.ofNode({ metadata: { labels: { 'a.sh/nodeclass': 'default' } } })).toBe(a);
    expect(registry.ofNode({ metadata: {} })).toBeUndefined();
  });

  test('says which NodeClasses there are when asked for another', () => {
    expect(() => registry.serving({ group: 'c.sh', kind: 'NodeClass' })).toThrow(
      'no provider serves NodeClass NodeClass.c.sh (served here: NodeClass.a.sh, NodeClass.b.sh)',
    );
  });

  test('refuses two providers for one NodeClass or under one name', () => {
    expect(() => new CloudRegistry([a, provider('a')])).toThrow('two providers are called a');
    expect(() => new CloudRegistry([a, provider('x', { nodeClasses: a.nodeClasses })])).toThrow(
      'a and x both serve NodeClass NodeClass.a.sh',
    );
  });
});

describe('a metered provider', () => {
  test('counts calls, durations and kinds of errors, and changes nothing else', async () => {
    const metrics = new Metrics();
    const clock = new VirtualClock();
    const counted = metered(provider('a'), { metrics, clock, controller: 'nodeclaim.lifecycle' });
    const failure = counted.create({} as NodeClaim, signal).catch((error: unknown) => error);
    expect(isInsufficientCapacity(await failure)).toBe(true);
    expect(await counted.list(signal)).toEqual([]);
    const text = await metrics.render();
    expect(text).toContain(
      'karpenter_cloudprovider_errors_total{controller="nodeclaim.lifecycle",method="Create",provider="a",error="InsufficientCapacityError"} 1',
    );
    expect(text).toContain(
      'karpenter_cloudprovider_duration_seconds_count{controller="nodeclaim.lifecycle",method="List",provider="a"} 1',
    );
  });

  test('ends a call that never ends, and a call that does not listen to its signal', async () => {
    const clock = new VirtualClock();
    const silent = provider('a', { list: () => new Promise(() => undefined) });
    const counted = metered(silent, { metrics: new Metrics(), clock, controller: 'test' });
    const late = counted.list(signal).catch((error: unknown) => error);
    await clock.step(60_000);
    expect(await late).toMatchObject({ code: 'KRP_CLOUD_TIMEOUT', message: 'List of a did not answer within 1m0s' });
    const stop = new AbortController();
    const stopped = counted.list(stop.signal).catch((error: unknown) => error);
    stop.abort(new Error('the program ends'));
    expect(await stopped).toMatchObject({ message: 'the program ends' });
    expect(clock.nextDue()).toBeUndefined();
  });
});

test('without the gate ReservedCapacity nobody sees what is reserved', async () => {
  const offering = (capacityType: string) => ({
    requirements: [{ key: labels.capacityType, operator: 'In', values: [capacityType] }],
    price: 1,
  });
  const types = [{ name: 'm', requirements: [], capacity: {}, offerings: [offering('reserved'), offering('spot')] }];
  const seen = withoutReserved(provider('a', { instanceTypes: () => Promise.resolve(types) }));
  const [type] = await seen.instanceTypes({} as NodePool, signal);
  expect(type?.offerings).toEqual([offering('spot')]);
  expect(await seen.instanceTypes({} as NodePool, signal)).toBe(await seen.instanceTypes({} as NodePool, signal));
  await expect(seen.create({} as NodeClaim, signal)).rejects.toThrow('sold out');
});
