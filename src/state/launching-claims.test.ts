// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import type { NodeClaim } from '../api/node-claim.ts';
import type { Pod } from '../kube/kinds.ts';
import { LaunchingClaims } from './launching-claims.ts';
import { launchedClaim, pendingPod } from './testing/objects.ts';

const at = (time: string) => ({ creationTimestamp: `2026-01-01T00:00:${time}Z` });

function claim(name: string, time: string): NodeClaim {
  const one = launchedClaim(name, { providerID: '' });
  return { ...one, metadata: { ...one.metadata, ...at(time) } };
}

function pod(name: string, time = '30'): Pod {
  const one = pendingPod(name);
  return { ...one, metadata: { ...one.metadata, ...at(time) } };
}

describe('NodeClaims that have no machine yet', () => {
  test('hold nothing when there are none', () => {
    expect(new LaunchingClaims().hold()).toBeUndefined();
  });

  test('hold the pods they were made for, and their cloud', () => {
    const claims = new LaunchingClaims();
    claims.put(claim('a', '10'), 'one');
    claims.plan('a', ['default/mine']);
    const hold = claims.hold();
    expect([...hold!.clouds]).toEqual(['one']);
    expect(hold?.holds(pod('mine', '05'))).toBe(true);
    expect(hold?.holds(pod('other', '05'))).toBe(false);
  });

  test('of a process before this one hold every pod that was there before them', () => {
    const claims = new LaunchingClaims();
    claims.put(claim('a', '10'), 'one');
    claims.put(claim('b', '20'), 'two');
    const hold = claims.hold();
    expect([...hold!.clouds]).toEqual(['one', 'two']);
    expect(hold?.holds(pod('older', '20'))).toBe(true);
    expect(hold?.holds(pod('newer', '21'))).toBe(false);
  });

  test('that a person wrote hold their cloud, and no pod', () => {
    const claims = new LaunchingClaims();
    const one = claim('a', '10');
    claims.put({ ...one, metadata: { ...one.metadata, labels: {} } }, 'one');
    expect([...claims.hold()!.clouds]).toEqual(['one']);
    expect(claims.hold()?.holds(pod('older', '05'))).toBe(false);
  });

  test('of a static pool hold nothing', () => {
    const claims = new LaunchingClaims();
    claims.put(claim('a', '10'), 'one');
    expect(claims.hold(() => true)).toBeUndefined();
    claims.put(claim('b', '20'), 'two');
    const hold = claims.hold(({ metadata }) => metadata.name === 'b');
    expect([...hold!.clouds]).toEqual(['one']);
    expect(hold?.holds(pod('older', '15'))).toBe(false);
  });

  test('let go when they have their machine', () => {
    const claims = new LaunchingClaims();
    claims.put(claim('a', '10'), 'one');
    claims.plan('a', ['default/mine']);
    claims.remove('a');
    expect(claims.hold()).toBeUndefined();
    claims.plan('a', ['default/mine']);
    claims.put(claim('a', '10'), 'one');
    expect(claims.hold()?.holds(pod('mine', '40'))).toBe(false);
  });
});
