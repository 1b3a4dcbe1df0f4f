// SPDX-License-Identifier: Apache-2.0
// One list of instance types for many pools and passes: whoever uses it again gets what a fresh list would give.
import { describe, expect, test } from 'vitest';
import type { InstanceTypeSpec, OfferingSpec, Problem } from './problem.ts';
import { solve } from './solve.ts';
import { daemonSet, instanceType, nodePool, oneOf, pod } from './testing/builders.ts';
import { arm, large, offers, place, small } from './testing/place.ts';

const cheapest = (types: readonly InstanceTypeSpec[], more: Partial<Problem> = {}): string | undefined =>
  place([pod('p', { requests: { cpu: '1' } })], { types, ...more }).newNodeClaims[0]?.instanceTypes[0];

describe('a list of instance types that was used before', () => {
  test('gives the same answer as a copy of it', () => {
    const types = [small, large, arm];
    const pods = [pod('p', { requests: { cpu: '3' } })];
    const first = place(pods, { types });
    expect(place(pods, { types })).toEqual(first);
    expect(place(pods, { types: structuredClone(types) })).toEqual(first);
  });

  test('serves pools that want different parts of it', () => {
    const types = [small, arm];
    const arch = (value: string) => nodePool(value, { requirements: [oneOf('kubernetes.io/arch', value)] });
    for (const [value, type] of [
      ['amd64', 'small'],
      ['arm64', 'arm'],
      ['amd64', 'small'],
    ] as const)
      expect(cheapest(types, { nodePools: [arch(value)] })).toBe(type);
    expect(cheapest(types, { nodePools: [arch('s390x')] })).toBeUndefined();
  });

  test('keeps its room for pods when daemons come and go', () => {
    const types = [small, large];
    const daemonSets = [daemonSet('agent', { cpu: '1500m' })];
    expect(cheapest(types)).toBe('small');
    expect(cheapest(types, { daemonSets })).toBe('large');
    expect(cheapest(types, { daemonSets })).toBe('large');
    expect(cheapest(types)).toBe('small');
  });

  test('names its broken types to every pool that they would suit', () => {
    const broken = instanceType('broken', { cpu: 'many' }, offers(0.01));
    const types = [small, broken];
    for (let pass = 0; pass < 2; pass++) {
      const { objectErrors } = place([pod('p')], {
        types,
        nodePools: [
          nodePool('a'),
          nodePool('b'),
          nodePool('c', { requirements: [oneOf('kubernetes.io/arch', 'arm64')] }),
        ],
      });
      expect(
        objectErrors
          .map(({ object }) => object)
          .filter((o) => o.startsWith('InstanceType'))
          .sort(),
      ).toEqual(['InstanceType/a/broken', 'InstanceType/b/broken']);
    }
  });

  test('is read again where somebody changed it all the same', () => {
    const offerings: OfferingSpec[] = offers(0.1).map((o) => ({ ...o }));
    const types = [{ ...small, offerings }, large];
    const problem: Problem = {
      nodePools: [nodePool('default')],
      instanceTypes: { default: types },
      pods: [pod('p', { requests: { cpu: '1' } })],
    };
    const answer = (): unknown => {
      const [claim] = solve(problem).newNodeClaims;
      return [claim?.instanceTypes[0], claim?.price];
    };
    expect(answer()).toEqual(['small', 0.1]);
    for (const [i, o] of offerings.entries()) offerings[i] = { ...o, price: 0.2 };
    expect(answer()).toEqual(['small', 0.2]);
    for (const [i, o] of offerings.entries()) offerings[i] = { ...o, available: false };
    expect(answer()).toEqual(['large', 0.7]);
    types.push({ ...arm, name: 'new' });
    expect(answer()).toEqual(['new', 0.15]);
  });
});
