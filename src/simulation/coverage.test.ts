// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { CoverageCounts, neverExercised, sumOfCounts } from './coverage.ts';

describe('what was exercised', () => {
  test('is counted by kind and name, and summed up over runs', () => {
    const counts = new CoverageCounts();
    counts.count('fault', 'api/slow');
    counts.count('fault', 'api/slow', 2);
    counts.count('invariant', 'pods/run', 0);
    expect(sumOfCounts([Object.fromEntries(counts.counts()), { 'fault/api/slow': 4 }])).toEqual({
      'fault/api/slow': 7,
      'invariant/pods/run': 0,
    });
  });

  test('tells what never was: faults, happenings, invariants, and controllers whatever their results', () => {
    const counts = {
      'fault/api/slow': 3,
      'fault/api/error': 0,
      'happening/user/drain': 0,
      'invariant/pods/run': 0,
      'path/log/created nodeclaim': 0,
      'path/reconcile/disruption/error': 0,
      'path/reconcile/disruption/success': 5,
      'path/reconcile/nodepool.hash/error': 0,
      'path/reconcile/nodepool.hash/success': 0,
    };
    expect(neverExercised(counts)).toEqual([
      'fault/api/error',
      'happening/user/drain',
      'invariant/pods/run',
      'path/reconcile/nodepool.hash',
    ]);
  });
});
