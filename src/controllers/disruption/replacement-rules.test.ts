// SPDX-License-Identifier: Apache-2.0
// Which machine may take the place of which: prices of several clouds count only where all of them are known.
import { describe, expect, test } from 'vitest';
import type { NodePool } from '../../api/node-pool.ts';
import type { InstanceType } from '../../cloud/provider.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { instanceType } from '../testing/fake-cloud.ts';
import type { Candidate } from './candidates.ts';
import { cheaperReplacements, notComparable, whyNotPaidSo } from './replacement-rules.ts';

const pool = (name: string, kind: string): NodePool =>
  ({
    metadata: { name },
    spec: { template: { spec: { nodeClassRef: { group: 'example.com', kind, name: 'default' } } } },
  }) as NodePool;
const guessed = (type: InstanceType): InstanceType => ({
  ...type,
  offerings: type.offerings.map((offering) => ({ ...offering, estimated: true })),
});
const [here, there] = [pool('here', 'A'), pool('there', 'B')];

/** What becomes of a node of `here` with 8 CPUs when a pool sells a machine with 2. */
function replaced(by: NodePool, large: InstanceType, small: InstanceType): readonly NewNodeClaim[] | string {
  const candidate = { nodePool: here, instanceType: large, price: 0.8, machine: { labels: {} } } as Candidate;
  const name = by.metadata.name ?? '';
  const claim: NewNodeClaim = {
    nodePool: name,
    requirements: [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] }],
    instanceTypes: [small.name],
    price: 0.2,
    requests: {},
    pods: [],
  };
  const catalog = { pools: [here, there], instanceTypes: { [name]: [small] }, failures: [], labels: {} };
  return cheaperReplacements([candidate], [claim], { catalog, spotToSpot: false } as never);
}

describe('a machine of another cloud', () => {
  test('takes the place of one where both prices are known', () => {
    expect(replaced(there, instanceType(8), instanceType(2))).toHaveLength(1);
  });

  test.each([
    ['its own price is', instanceType(8), guessed(instanceType(2))],
    ['that of the node is', guessed(instanceType(8)), instanceType(2)],
  ])('does not where %s a guess', (_, large, small) => {
    expect(replaced(there, large, small)).toBe(notComparable);
  });

  test('does not where it has no price', () => {
    const free = instanceType(2);
    const without = { ...free, offerings: free.offerings.map((offering) => ({ ...offering, price: 0 })) };
    expect(replaced(there, instanceType(8), without)).toBe(notComparable);
  });
});

test('guesses of one cloud are compared with each other', () => {
  expect(replaced(here, guessed(instanceType(8)), guessed(instanceType(2)))).toHaveLength(1);
});

describe('without its gate', () => {
  const why = (isPaid: string, mayBePaid: string[], spotToSpot = false): string | undefined => {
    const machine = { labels: { 'karpenter.sh/capacity-type': isPaid } };
    const requirements = [{ key: 'karpenter.sh/capacity-type', operator: 'In', values: mayBePaid }];
    const claim = { nodePool: 'here', requirements, instanceTypes: ['c-2x'] } as never;
    const catalog = { pools: [here], instanceTypes: { here: [instanceType(2)] }, failures: [], labels: {} };
    return whyNotPaidSo([{ machine } as unknown as Candidate], [claim], { catalog, spotToSpot } as never);
  };

  test('spot goes for nothing that may be spot again', () => {
    expect(why('spot', ['spot'])).toContain('SpotToSpotConsolidation is disabled');
    expect(why('spot', ['spot', 'on-demand'])).toContain('SpotToSpotConsolidation is disabled');
    expect(why('spot', ['on-demand'])).toBeUndefined();
    expect(why('spot', ['spot'], true)).toBeUndefined();
  });

  test('what is paid by the hour may become spot', () => {
    expect(why('on-demand', ['spot'])).toBeUndefined();
  });
});
