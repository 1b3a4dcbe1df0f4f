// SPDX-License-Identifier: Apache-2.0
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Deployment, ReplicaSet } from '../../../kube/kinds.ts';
import { template } from '../../testing/world.ts';
import {
  maxSurge,
  maxUnavailable,
  newSetReplicas,
  replicasOf,
  rescale,
  shrinkOldSets,
  totalReplicas,
} from './arithmetic.ts';

function deployment(
  replicas: number,
  surge: number | string = '25%',
  unavailable: number | string = '25%',
): Deployment {
  const rollingUpdate = { maxSurge: surge, maxUnavailable: unavailable };
  return {
    metadata: { name: 'web' },
    spec: {
      replicas,
      selector: {},
      template: template('web'),
      strategy: { type: 'RollingUpdate', rollingUpdate },
    },
  };
}

function set(
  name: string,
  replicas: number,
  available = replicas,
  before?: { desired: number; max: number },
): ReplicaSet {
  return {
    metadata: {
      name,
      creationTimestamp: `2026-01-01T00:00:0${name.length}Z`,
      ...(before
        ? {
            annotations: {
              'deployment.kubernetes.io/desired-replicas': String(before.desired),
              'deployment.kubernetes.io/max-replicas': String(before.max),
            },
          }
        : {}),
    },
    spec: { replicas, selector: {}, template: template('web') },
    status: { replicas, availableReplicas: available },
  };
}

const sizes = (changes: { set: ReplicaSet; replicas: number }[]): Record<string, number> =>
  Object.fromEntries(changes.map((change) => [change.set.metadata.name!, change.replicas]));

describe('the bounds of a rolling update', () => {
  test.each([
    [10, '25%', '25%', 3, 2],
    [1, '25%', '25%', 1, 0],
    [4, 0, '10%', 0, 1],
    [3, '100%', '100%', 3, 3],
    [0, '25%', '25%', 0, 0],
  ])('%i replicas, surge %s, unavailable %s', (replicas, surge, unavailable, expectedSurge, expectedUnavailable) => {
    expect(maxSurge(deployment(replicas, surge, unavailable))).toBe(expectedSurge);
    expect(maxUnavailable(deployment(replicas, surge, unavailable))).toBe(expectedUnavailable);
  });
});

describe('a rollout', () => {
  test('grows the new set by the surge first', () => {
    expect(newSetReplicas(deployment(10, 3, 2), [set('old', 10)], 0)).toBe(3);
    expect(newSetReplicas(deployment(10, 3, 2), [set('old', 10), set('new', 3)], 3)).toBe(3);
  });

  test('takes what is broken from the old sets before what works', () => {
    const old = [set('o', 8, 5)];
    expect(sizes(shrinkOldSets(deployment(10, 3, 2), old, set('new', 5, 5)))).toEqual({ o: 3 });
  });

  test('waits for the new set when it does not become available', () => {
    expect(shrinkOldSets(deployment(10, 3, 2), [set('o', 8)], set('new', 5, 0))).toEqual([]);
  });

  test('always ends, within its bounds, whatever becomes available when', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 30 }),
        fc.integer({ min: 0, max: 10 }),
        fc.integer({ min: 0, max: 10 }),
        fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })),
        (replicas, surge, unavailable, luck) => {
          const wanted = deployment(replicas, surge, unavailable);
          let old = set('o', replicas);
          let fresh = set('new', 0);
          for (let step = 0; step < 500; step++) {
            // Some of the new replicas become available; the old ones are what they are.
            const available = fresh.status!.availableReplicas!;
            const gain = Math.ceil((replicasOf(fresh) - available) * luck.next().value!);
            fresh = set('new', replicasOf(fresh), Math.min(replicasOf(fresh), available + gain));
            const size = newSetReplicas(wanted, [old, fresh], replicasOf(fresh));
            const shrunk = shrinkOldSets(
              wanted,
              [old].filter((s) => replicasOf(s) > 0),
              fresh,
            );
            if (size !== replicasOf(fresh)) fresh = set('new', size, fresh.status!.availableReplicas!);
            else if (shrunk[0]) old = set('o', shrunk[0].replicas);
            const alive = old.status!.availableReplicas! + fresh.status!.availableReplicas!;
            expect(totalReplicas([old, fresh])).toBeLessThanOrEqual(replicas + maxSurge(wanted));
            expect(alive).toBeGreaterThanOrEqual(replicas - maxUnavailable(wanted));
            if (replicasOf(old) === 0 && replicasOf(fresh) === replicas) return;
          }
          throw new Error('the rollout did not end');
        },
      ),
    );
  });
});

describe('scaling', () => {
  test('a lone set takes the whole change', () => {
    expect(sizes(rescale(deployment(7), [], set('new', 3)))).toEqual({ new: 7 });
    expect(sizes(rescale(deployment(7), [set('o', 0)], set('new', 3)))).toEqual({ new: 7 });
  });

  test('sets in the middle of a rollout share it by their size', () => {
    const before = { desired: 10, max: 13 };
    const changes = rescale(deployment(20, 3, 2), [set('o', 8, 8, before)], set('new', 5, 5, before));
    expect(sizes(changes)).toEqual({ o: 14, new: 9 });
  });

  test('shrinking to nothing takes everything', () => {
    const before = { desired: 10, max: 13 };
    expect(sizes(rescale(deployment(0), [set('o', 8, 8, before)], set('new', 5, 5, before)))).toEqual({ o: 0, new: 0 });
  });
});
