// SPDX-License-Identifier: Apache-2.0
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Machine } from './kinds.ts';
import {
  baselineOf,
  cameFor,
  claimsOf,
  type Entry,
  emptyLedger,
  formatLedger,
  type LedgerState,
  parseLedger,
  planEntries,
  sizeOf,
} from './ledger.ts';

function machine(
  name: string,
  options: { at?: string; claim?: string; marked?: boolean; deleting?: boolean; node?: boolean } = {},
): Machine {
  const { at = '2026-01-01T00:00:00Z', claim, marked, deleting, node } = options;
  return {
    metadata: {
      name,
      uid: name,
      creationTimestamp: at,
      ...(deleting ? { deletionTimestamp: at } : {}),
      annotations: {
        ...(claim ? { 'karpenter.cluster.x-k8s.io/nodeclaim-uid': claim } : {}),
        ...(marked ? { 'cluster.x-k8s.io/delete-machine': 'now' } : {}),
      },
    },
    ...(node ? { status: { nodeRef: { name } } } : {}),
  };
}

const empty: LedgerState = { ledger: emptyLedger, replicas: 0, min: 0, max: Number.POSITIVE_INFINITY, machines: [] };
const raise = (uid: string): Entry => ({ kind: 'raise', uid });
const release = (uid: string, lost = false): Entry => ({ kind: 'release', uid, lost });

describe('a ledger', () => {
  test('raises replicas once for each NodeClaim, however often it is asked', () => {
    const first = planEntries(empty, [raise('a'), raise('b'), raise('a')]);
    expect(first.replicas).toBe(2);
    const again = planEntries({ ...empty, ledger: first.ledger, replicas: 2 }, [raise('a'), raise('b')]);
    expect(again).toMatchObject({ replicas: 2, changed: false });
  });

  test('lowers them once for each, and never for one it does not hold', () => {
    const held = planEntries(empty, [raise('a')]);
    const state = { ...empty, ledger: held.ledger, replicas: 5 };
    const released = planEntries(state, [release('a'), release('a'), release('stranger')]);
    expect(released.replicas).toBe(4);
    expect(formatLedger(released.ledger)).toBeUndefined();
    expect(planEntries({ ...state, ledger: released.ledger, replicas: 4 }, [release('a')]).changed).toBe(false);
  });

  test('§5 BUG: refuses what does not fit under the maximum, inside one batch', () => {
    const plan = planEntries({ ...empty, replicas: 1, max: 3 }, [raise('a'), raise('b'), raise('c')]);
    expect(plan.replicas).toBe(3);
    expect([...plan.refused]).toEqual(['c']);
    expect(claimsOf(plan.ledger)).toEqual(['a', 'b']);
  });

  test('raises nothing that the annotation has no room for, and goes on when there is', () => {
    const uids = Array.from({ length: 100 }, (_, i) => `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`);
    const machines = [machine('a'), machine('b')];
    const state = { ...empty, machines, room: 2000 };
    const plan = planEntries(state, uids.map(raise));
    expect(plan.isOverfull).toBe(true);
    expect(plan.replicas).toBe(sizeOf(plan.ledger));
    expect(plan.refused.size).toBe(100 - plan.replicas);
    expect(formatLedger(plan.ledger)!.length).toBeLessThanOrEqual(2000);
    expect(plan.replicas).toBeGreaterThan(40);
    const held = claimsOf(plan.ledger);
    const going = held.slice(0, 10).map((uid) => release(uid));
    const after = planEntries({ ...state, ledger: plan.ledger, replicas: plan.replicas }, going);
    const next = planEntries({ ...state, ledger: after.ledger, replicas: after.replicas }, [raise(uids[99]!)]);
    expect([after.replicas, next.replicas, next.isOverfull]).toEqual([plan.replicas - 10, plan.replicas - 9, false]);
  });

  test('§2 GAP: never goes below the minimum', () => {
    const { ledger } = planEntries(empty, [raise('a')]);
    expect(planEntries({ ...empty, ledger, replicas: 2, min: 2 }, [release('a')])).toMatchObject({
      replicas: 2,
      changed: true,
    });
  });

  test('reads what it wrote, and takes nonsense for nothing', () => {
    const { ledger } = planEntries({ ...empty, machines: [machine('m')] }, [raise('a')]);
    expect(parseLedger(formatLedger(ledger))).toEqual(ledger);
    for (const text of ['', '{', '[]', 'null', '{"bound":7,"pending":[{}]}']) expect(sizeOf(parseLedger(text))).toBe(0);
  });

  test('§6.2 TRAP: keeps Machines apart that were there before, also those of the same second', () => {
    const old = machine('old');
    const before = baselineOf([machine('older', { at: '2025-01-01T00:00:00Z' }), old]);
    expect(cameFor(old, before)).toBe(false);
    expect(cameFor(machine('twin'), before)).toBe(true);
    expect(cameFor(machine('new', { at: '2026-01-01T00:00:01Z' }), before)).toBe(true);
    expect(cameFor(machine('older', { at: '2025-01-01T00:00:00Z' }), before)).toBe(false);
  });

  test('adopts what is there when it may, and only as much as is free', () => {
    const machines = [machine('free'), machine('taken', { claim: 'x' }), machine('going', { marked: true })];
    const adopt = (uid: string): Entry => ({ kind: 'raise', uid, adopt: true });
    expect(planEntries({ ...empty, replicas: 3, machines }, [adopt('a'), adopt('b')]).replicas).toBe(4);
  });

  test('marks the replacement of a Machine that was taken away, and nobody else', () => {
    const { ledger } = planEntries(empty, [raise('a'), raise('b')]);
    const machines = [
      machine('of-b', { claim: 'b', node: true }),
      machine('base', { node: true }),
      machine('replacement'),
    ];
    const plan = planEntries({ ...empty, ledger, replicas: 3, machines }, [release('a', true)]);
    expect(plan.replicas).toBe(2);
    expect(plan.marks.map(({ metadata }) => metadata.name)).toEqual(['replacement']);
  });

  test('gives the replacement to whoever is raised for in the same moment: nobody waits for another', () => {
    const { ledger } = planEntries(empty, [raise('a')]);
    const machines = [machine('stranger'), machine('replacement', { at: '2026-01-02T00:00:00Z' })];
    const state = { ...empty, ledger, replicas: 2, machines };
    const plan = planEntries(state, [release('a', true), raise('b')]);
    expect(plan).toMatchObject({ replicas: 2, marks: [] });
    const [batch] = parseLedger(formatLedger(plan.ledger)).pending;
    expect(batch).toMatchObject({ claims: ['b'], given: ['replacement'] });
    expect(machines.map((one) => cameFor(one, batch!))).toEqual([false, true]);
  });

  test('gives the replacement to whoever waits when the one that lost its Machine gives up later', () => {
    // Cluster API replaces the Machine of `a`; `b` is raised for, and before its Machine is made `a` gives up.
    const { ledger } = planEntries(empty, [raise('a')]);
    const machines = [machine('of-a', { claim: 'a', deleting: true }), machine('replacement')];
    const raised = planEntries({ ...empty, ledger, replicas: 1, machines }, [raise('b')]);
    expect(raised.replicas).toBe(2);
    const released = planEntries({ ...empty, ledger: raised.ledger, replicas: 2, machines }, [release('a', true)]);
    expect(released).toMatchObject({ replicas: 1, marks: [] });
    expect(machines.filter((one) => cameFor(one, released.ledger.pending[0]!))).toEqual([machines[1]]);
    // Asking again changes nothing.
    const state = { ...empty, ledger: released.ledger, replicas: 1, machines };
    expect(planEntries(state, [raise('b')])).toMatchObject({ changed: false });
  });

  test('gives nothing of what others want, and nothing to those whose Machine is still to come', () => {
    const machines = [machine('theirs'), machine('of-a', { claim: 'a', deleting: true }), machine('replacement')];
    const { ledger } = planEntries({ ...empty, replicas: 1, machines: machines.slice(0, 1) }, [raise('a')]);
    const waits = planEntries({ ...empty, ledger, replicas: 2, machines }, [raise('b')]);
    expect(waits.ledger.pending.flatMap(({ given = [] }) => given)).toEqual([]);
    const { pending } = planEntries({ ...empty, ledger: waits.ledger, replicas: 3, machines }, [
      release('a', true),
    ]).ledger;
    expect(pending.flatMap(({ given = [] }) => given)).toHaveLength(1);
    // Who lowers what others want takes it from them, not from those who wait.
    const lowered = planEntries({ ...empty, ledger: waits.ledger, replicas: 2, machines }, [raise('b')]).ledger;
    expect(lowered.pending.flatMap(({ given = [] }) => given)).toHaveLength(1);
  });

  test('marks no Machine that came for somebody who waits for it', () => {
    const { ledger } = planEntries(empty, [raise('a')]);
    const old = [machine('of-a', { claim: 'a', deleting: true }), machine('replacement', { node: true })];
    const raised = planEntries({ ...empty, ledger, replicas: 1, machines: old }, [raise('b')]);
    const machines = [...old, machine('for-b', { at: '2026-01-02T00:00:00Z' })];
    const plan = planEntries({ ...empty, ledger: raised.ledger, replicas: 2, machines }, [release('a', true)]);
    expect(plan.replicas).toBe(1);
    expect(plan.marks.map(({ metadata }) => metadata.name)).toEqual(['replacement']);
  });

  test('does not lower again what somebody lowered already', () => {
    const { ledger } = planEntries(empty, [raise('a'), raise('b'), raise('c')]);
    // Somebody set 1 instead of 3; two Machines went with it.
    const machines = [machine('of-c', { claim: 'c' })];
    const plan = planEntries({ ...empty, ledger, replicas: 1, machines }, [release('a', true), release('b', true)]);
    expect(plan).toMatchObject({ replicas: 1, marks: [] });
  });

  test('whatever comes, replicas are what others want plus what it holds', () => {
    const entry = fc.record({
      kind: fc.constantFrom('raise', 'release', 'others'),
      uid: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
      by: fc.integer({ min: 0, max: 3 }),
    });
    fc.assert(
      fc.property(fc.array(entry, { maxLength: 60 }), fc.integer({ min: 0, max: 4 }), (entries, base) => {
        let others = base;
        let state: LedgerState = { ...empty, replicas: base };
        for (const { kind, uid, by } of entries) {
          if (kind === 'others') {
            // Somebody scales what is theirs.
            state = { ...state, replicas: state.replicas + by };
            others += by;
            continue;
          }
          const plan = planEntries(state, [kind === 'raise' ? raise(uid) : release(uid)]);
          state = { ...state, replicas: plan.replicas, ledger: parseLedger(formatLedger(plan.ledger)) };
          expect(state.replicas).toBe(others + sizeOf(state.ledger));
          expect(new Set(claimsOf(state.ledger)).size).toBe(sizeOf(state.ledger));
        }
      }),
    );
  });
});
