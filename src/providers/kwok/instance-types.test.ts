// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { defaultInstanceTypes, readInstanceTypes } from './instance-types.ts';

const requirement = (type: ReturnType<typeof defaultInstanceTypes>[number] | undefined, key: string) =>
  type?.requirements.find((r) => r.key === key)?.values;

describe("the pretended cloud's catalogue", () => {
  test('sells 144 machines in four zones, spot at 70 %', () => {
    const types = defaultInstanceTypes();
    expect(new Set(types.map((type) => type.name)).size).toBe(144);
    const small = types.find((type) => type.name === 'c-1x-amd64-linux');
    expect(small?.offerings).toHaveLength(8);
    // Upstream's own numbers, to the last digit.
    expect(small?.offerings.slice(0, 2).map((offering) => offering.price)).toEqual([
      0.019003238553599998, 0.027147483648,
    ]);
    const large = types.find((type) => type.name === 'm-256x-arm64-windows');
    expect(large?.capacity).toEqual({ cpu: '256', memory: '2Ti', pods: '1024', 'ephemeral-storage': '20Gi' });
    expect(requirement(large, 'karpenter.kwok.sh/instance-size')).toEqual(['256']);
    expect(requirement(large, 'karpenter.kwok.sh/instance-memory')).toEqual(['2Ti']);
  });
});

describe('a file of machines', () => {
  const offerings = [
    {
      Price: 1,
      Available: false,
      Requirements: [
        { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['spot'] },
        { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['z'] },
      ],
    },
  ];
  const good = {
    name: 'm5.2xlarge',
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: '8', memory: '32Gi' },
    offerings,
  };

  const zoned = offerings[0]!.Requirements;
  const rack = (operator: string, values: unknown) => ({ key: 'example.com/rack', operator, values });

  test('is read as upstream reads it: 110 pods, everything available, size and family from the name', () => {
    const { types, problems } = readInstanceTypes(JSON.stringify([good]));
    expect(problems).toEqual([]);
    expect(types[0]?.capacity['pods']).toBe('110');
    expect(types[0]?.offerings[0]?.available).toBe(true);
    expect(requirement(types[0], 'karpenter.kwok.sh/instance-size')).toEqual(['2xlarge']);
    expect(requirement(types[0], 'karpenter.kwok.sh/instance-family')).toEqual(['m5']);
  });

  test('loses only its broken entries, and says what is wrong with each', () => {
    const { types, problems } = readInstanceTypes(
      JSON.stringify([
        good,
        good,
        null,
        { ...good, name: '' },
        { ...good, name: 'a', resources: { cpu: 'many', memory: '1Gi' } },
        { ...good, name: 'b', resources: { cpu: '1' } },
        { ...good, name: 'c', offerings: [] },
        { ...good, name: 'd', offerings: [{ ...offerings[0], Price: -1 }] },
        { ...good, name: 'e', offerings: [{ Price: 1, Requirements: [] }] },
        { ...good, name: 'f', resources: { cpu: '-1', memory: '1Gi' } },
        { ...good, name: 'two words' },
        { ...good, name: 'g', architecture: 'x/86' },
        { ...good, name: 'h', offerings: [{ Price: 1, Requirements: [null] }] },
        { ...good, name: 'i', offerings: [{ ...offerings[0], Requirements: [...zoned, rack('Near', ['a'])] }] },
        { ...good, name: 'j', offerings: [{ ...offerings[0], Requirements: [...zoned, rack('In', 'a')] }] },
        { ...good, name: 'k', offerings: [{ ...offerings[0], ReservationCapacity: 'much' }] },
        { ...good, name: 'l', resources: { cpu: '1', memory: '1Gi', pods: null } },
        { ...good, name: 'm', resources: [] },
      ]),
    );
    expect(types.map((type) => type.name)).toEqual(['m5.2xlarge']);
    expect(problems).toEqual([
      '[1] m5.2xlarge: the name is taken',
      '[2]: expected an object',
      '[3] : name is missing',
      '[4] a: resources.cpu: "many" is not an amount',
      '[5] b: resources.memory is missing',
      '[6] c: offerings must be a list with at least one entry',
      '[7] d: offerings[0]: price -1 is not a price',
      '[8] e: offerings[0]: topology.kubernetes.io/zone must be In one value',
      '[9] f: resources.cpu: "-1" is not an amount',
      expect.stringMatching(/^\[10\] two words: name: it must consist of/),
      expect.stringMatching(/^\[11\] g: architecture: it must consist of/),
      '[12] h: offerings[0]: requirements must be a list of objects',
      '[13] i: offerings[0]: operator "Near" of example.com/rack is not known',
      '[14] j: offerings[0]: the values of example.com/rack must be a list of texts',
      '[15] k: offerings[0]: ReservationCapacity "much" is not a number of machines',
      '[16] l: resources.pods: null is not an amount',
      '[17] m: resources.cpu is missing',
    ]);
    const endless = JSON.stringify([good]).replace('"Price":', '"Price":1e999,"was":');
    expect(readInstanceTypes(endless).problems).toEqual([
      '[0] m5.2xlarge: offerings[0]: price Infinity is not a price',
    ]);
    expect(readInstanceTypes('{').problems[0]).toMatch(/^not JSON/);
    expect(readInstanceTypes('{}').problems).toEqual(['expected a list of instance types']);
  });
});
