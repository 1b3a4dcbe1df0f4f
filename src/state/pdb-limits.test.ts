// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { Pod, PodDisruptionBudget } from '../kube/kinds.ts';
import { PdbLimits } from './pdb-limits.ts';
import { boundPod } from './testing/objects.ts';

const now = Date.parse('2026-01-01T00:00:00Z');

function budget(name: string, spec: PodDisruptionBudget['spec'], disruptionsAllowed = 1): PodDisruptionBudget {
  return {
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    status: { disruptionsAllowed, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  };
}

function web(parts: Partial<Pod['metadata']> = {}): Pod {
  const pod = boundPod('web', 'node-1');
  return { ...pod, metadata: { ...pod.metadata, labels: { app: 'web' }, ...parts } };
}

const unready: Pod = { ...web(), status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] } };

describe('a budget', () => {
  test('blocks the pods it selects while it allows no disruption', () => {
    const limits = new PdbLimits([budget('pdb', { minAvailable: 1 }, 0)]);
    expect(limits.blocking(web(), now)).toEqual(['default/pdb']);
    expect(limits.blocking(web({ labels: { app: 'other' } }), now)).toEqual([]);
    expect(limits.blocking(web({ namespace: 'other' }), now)).toEqual([]);
    expect(limits.firstBlocked([boundPod('db', 'node-1'), web()], now)?.budgets).toEqual(['default/pdb']);
  });

  test('is asked again about pods that it was asked about: what protects them ends', () => {
    const annotations = { 'karpenter.sh/do-not-disrupt': '1h' };
    const timed = { ...web({ annotations }), status: { phase: 'Running', startTime: '2026-01-01T00:00:00Z' } };
    const pods = Object.freeze([boundPod('db', 'node-1'), timed]);
    const limits = new PdbLimits([budget('pdb', { minAvailable: 1 }, 0)]);
    expect(limits.firstBlocked(pods, now)).toBeUndefined();
    expect(limits.firstBlocked(pods, now + 3_600_000)?.pod).toBe(timed);
    expect(new PdbLimits([budget('pdb', { minAvailable: 1 })]).firstBlocked(pods, now + 3_600_000)).toBeUndefined();
  });

  test('blocks nobody while it allows some', () => {
    expect(new PdbLimits([budget('pdb', { minAvailable: 1 })]).blocking(web(), now)).toEqual([]);
  });

  test('beside another one blocks always: the eviction API refuses to choose', () => {
    const limits = new PdbLimits([budget('one', {}), budget('two', {})]);
    expect(limits.blocking(web(), now)).toEqual(['default/one', 'default/two']);
    expect(limits.fullyBlocking(web(), now)).toHaveLength(2);
  });

  test('is found whatever its selector is made of', () => {
    const exists = { matchExpressions: [{ key: 'app', operator: 'Exists' }] };
    const oneOf = { matchExpressions: [{ key: 'app', operator: 'In', values: ['db', 'web', 'web'] }] };
    const not = { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['db'] }] };
    const both = { matchLabels: { app: 'web', tier: 'front' } };
    const selectors = { exists, oneOf, not, both, all: {}, none: { matchLabels: { app: 'nobody' } } };
    const blocking = (labels: Record<string, string>): string[] =>
      Object.entries(selectors)
        .filter(([name, selector]) => {
          const limits = new PdbLimits([budget(name, { selector }, 0)]);
          return limits.blocking(web({ labels }), now).length > 0;
        })
        .map(([name]) => name);
    expect(blocking({ app: 'web' })).toEqual(['exists', 'oneOf', 'not', 'all']);
    expect(blocking({ app: 'web', tier: 'front' })).toEqual(['exists', 'oneOf', 'not', 'both', 'all']);
    expect(blocking({ app: 'db' })).toEqual(['exists', 'oneOf', 'all']);
    expect(blocking({})).toEqual(['not', 'all']);
    const all = new PdbLimits(Object.entries(selectors).map(([name, selector]) => budget(name, { selector }, 0)));
    expect(all.blocking(web(), now)).toEqual(['exists', 'oneOf', 'not', 'all'].map((name) => `default/${name}`));
  });

  test('that always allows unhealthy pods to go does not block one', () => {
    const limits = new PdbLimits([
      budget('pdb', { minAvailable: '100%', unhealthyPodEvictionPolicy: 'AlwaysAllow' }, 0),
    ]);
    expect(limits.blocking(unready, now)).toEqual([]);
    expect(limits.blocking(web(), now)).toEqual(['default/pdb']);
  });

  test('does not block what would not be evicted anyway', () => {
    const limits = new PdbLimits([budget('pdb', { maxUnavailable: 0 }, 0)]);
    expect(limits.blocking(web({ deletionTimestamp: '2026-01-01T00:00:00Z' }), now)).toEqual([]);
    expect(limits.blocking(web({ annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }), now)).toEqual([]);
  });

  test.each([[{ maxUnavailable: 0 }], [{ maxUnavailable: '0%' }], [{ minAvailable: '100%' }]])(
    'of %j never gives way: its pods are not planned elsewhere',
    (spec) => {
      const limits = new PdbLimits([budget('pdb', spec)]);
      expect(limits.fullyBlocking(web(), now)).toEqual(['default/pdb']);
      expect(limits.isCurrentlyReschedulable(web(), now)).toBe(false);
    },
  );

  test('that gives way some day lets its pods be planned elsewhere, even if it does not today', () => {
    const limits = new PdbLimits([budget('pdb', { minAvailable: 1 }, 0)]);
    expect(limits.isCurrentlyReschedulable(web(), now)).toBe(true);
  });

  test('with a selector that cannot be read protects nothing', () => {
    const broken = { selector: { matchExpressions: [{ key: 'app', operator: 'Like', values: ['x'] }] } };
    expect(new PdbLimits([budget('pdb', { ...broken, maxUnavailable: 0 }, 0)]).blocking(web(), now)).toEqual([]);
  });

  test('is found anew when the list it is in is another one', () => {
    const closed = Object.freeze([budget('pdb', {}, 0)]);
    expect(new PdbLimits(closed).blocking(web(), now)).toEqual(['default/pdb']);
    expect(new PdbLimits(closed).blocking(web(), now)).toEqual(['default/pdb']);
    expect(new PdbLimits(Object.freeze([budget('pdb', {}, 1)])).blocking(web(), now)).toEqual([]);
    // A list that may still grow is read each time.
    const open = [budget('pdb', {}, 1)];
    expect(new PdbLimits(open).blocking(web(), now)).toEqual([]);
    open[0] = budget('pdb', {}, 0);
    expect(new PdbLimits(open).blocking(web(), now)).toEqual(['default/pdb']);
  });
});
