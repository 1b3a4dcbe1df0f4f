// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Random } from '../base/random.ts';
import { registerControllers } from '../controllers/index.ts';
import { testWorld } from '../controllers/testing/world.ts';
import { Controller } from '../runtime/controller.ts';
import type { Runnable } from '../runtime/manager.ts';
import { CoverageCounts, expectedControllers, neverExercised, sumOfCounts } from './coverage.ts';
import { gatesOf } from './gates.ts';

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
      ...Object.fromEntries(expectedControllers.map((name) => [`path/reconcile/${name}/success`, 1])),
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

  test('a controller that no world has is told as well', () => {
    const all = expectedControllers.map((name) => [`path/reconcile/${name}/success`, 1] as const);
    expect(neverExercised(Object.fromEntries(all))).toEqual([]);
    const without = all.filter(([name]) => !name.includes('node.health'));
    expect(neverExercised(Object.fromEntries(without))).toEqual(['path/reconcile/node.health']);
  });

  test('every controller of the core is expected, whatever gate it is behind', async () => {
    const featureGates = gatesOf({ next: () => 0, int: () => 0 } as unknown as Random);
    expect(Object.values(featureGates)).not.toContain(false);
    const world = await testWorld({ settings: { featureGates } });
    const added: Runnable[] = [];
    registerControllers({ add: (runnable) => added.push(runnable) }, world);
    const names = added.filter((runnable) => runnable instanceof Controller).map(({ name }) => name);
    expect(names).toContain('node.health');
    expect(names.filter((name) => !expectedControllers.includes(name))).toEqual([]);
    await world.close();
  });
});
