// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { StoreEvent } from '../../embedded/store.ts';
import { collections } from '../collections.ts';
import type { Facts } from '../contract.ts';
import { gatedInvariants } from './gated.ts';
import { poolLabel } from './reading.ts';

const minute = 60_000;
const now = 120 * minute;
const all = { NodeRepair: true, StaticCapacity: true, NodeOverlay: true } as never;

interface Story {
  readonly replicas?: number;
  readonly limit?: string;
  readonly claims?: number;
  /** The first of them is to be replaced. */
  readonly marked?: boolean;
  /** For how long the first of their nodes has been broken, in minutes. */
  readonly broken?: number;
  /** How many of their nodes are. */
  readonly brokenNodes?: number;
  readonly overlay?: string;
}

function judged(name: string, story: Story, when: 'onQuiet' | 'onMinute' | 'onChange'): string[] {
  const { replicas, limit, claims = 0, marked = false, broken, brokenNodes = 1, overlay } = story;
  const labels = { [poolLabel]: 'pool' };
  const mark = { conditions: [{ type: 'DisruptionReason', status: 'True', reason: 'Drifted' }] };
  const made = Array.from({ length: claims }, (_, i) => ({
    metadata: { name: `c${i}`, uid: `c${i}`, labels },
    status: { providerID: `m${i}`, ...(marked && i === 0 ? mark : {}) },
  }));
  const nodes = made.map((_, i) => {
    const lastTransitionTime = new Date(now - (broken ?? 0) * minute).toISOString();
    const status = broken !== undefined && i < brokenNodes ? 'False' : 'True';
    return {
      metadata: { name: `n${i}`, labels },
      spec: { providerID: `m${i}` },
      status: { conditions: [{ type: 'Ready', status, lastTransitionTime }] },
    };
  });
  const pool = {
    metadata: { name: 'pool' },
    spec: { replicas, ...(limit === undefined ? {} : { limits: { nodes: limit } }) },
  };
  const conditions = overlay === undefined ? [] : [{ type: 'Ready', status: overlay }];
  const stored: Readonly<Record<string, readonly object[]>> = {
    [collections.claims]: made,
    [collections.nodes]: nodes,
    [collections.pools]: [pool],
    [collections.overlays]: [{ metadata: { name: 'overlay' }, status: { conditions } }],
  };
  const ledger = { alive: () => made.map((_, i) => ({ providerID: `m${i}` })) };
  const facts = {
    now,
    calmSince: 0,
    clouds: [{ ledger, repairsAfterMs: 3 * minute }],
    get: () => pool,
    list: (of: string) => stored[of] ?? [],
  } as unknown as Facts;
  const said: string[] = [];
  const report = { violated: (message: string) => said.push(message), checked: () => undefined };
  const judge = gatedInvariants({ gates: all }).find((one) => one.name === name)!;
  if (when === 'onChange') {
    const event = { type: 'ADDED', object: made[0] } as unknown as StoreEvent;
    judge.onChange!({ at: now, by: 'karpenter-1', request: '', collection: collections.claims, event }, facts, report);
  } else void judge[when]!(facts, report);
  return said;
}

test('there is nothing to judge without the gates', () => {
  expect(gatedInvariants({ gates: {} as never })).toEqual([]);
});

test('a static pool has as many NodeClaims at rest as it is told to have', () => {
  const at = (story: Story): string[] => judged('static/replicas', story, 'onQuiet');
  expect(at({ replicas: 2, claims: 2 })).toEqual([]);
  expect(at({ replicas: 2, claims: 3 })).toEqual(['NodePool pool has 3 NodeClaims, and is to have 2']);
  expect(at({ replicas: 2, claims: 1 })).toHaveLength(1);
  expect(at({ replicas: 5, limit: '2', claims: 2 })).toEqual([]);
  expect(at({ replicas: 2, claims: 3, marked: true })).toEqual([]);
});

test('a static pool is not given more than it is told to have, but for what is to be replaced', () => {
  const at = (story: Story): string[] => judged('static/never-too-many', story, 'onChange');
  expect(at({ replicas: 2, claims: 2 })).toEqual([]);
  expect(at({ replicas: 2, claims: 3 })).toHaveLength(1);
  expect(at({ replicas: 2, claims: 3, marked: true })).toEqual([]);
});

test('a broken node is replaced in time, unless many are broken', () => {
  const at = (story: Story): string[] => judged('nodes/repaired', story, 'onMinute');
  expect(at({ claims: 3, broken: 13 })).toEqual([]);
  expect(at({ claims: 3, broken: 14 })).toEqual(['node n0 has been broken for 14 minutes']);
  expect(at({ claims: 3, broken: 14, brokenNodes: 2 })).toEqual([]);
});

test('every overlay is told whether it is in force', () => {
  const at = (overlay: string): string[] => judged('overlays/judged', { overlay }, 'onQuiet');
  expect(at('True')).toEqual([]);
  expect(at('False')).toEqual([]);
  expect(at('Unknown')).toHaveLength(1);
});
