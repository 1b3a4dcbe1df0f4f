// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { clusterApiNodeClassKind } from '../../api/cluster-api-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { StoreEvent } from '../../embedded/store.ts';
import type { Node, Pod } from '../../kube/kinds.ts';
import { collections } from '../collections.ts';
import type { Facts, Report } from '../contract.ts';
import { type BookedMachine, type ClusterApiBooks, capiCollections } from './cluster-api-books.ts';
import { clusterApiInvariants } from './cluster-api-invariants.ts';

const minute = 60_000;
const [kept, lost] = ['cluster-api/replicas', 'cluster-api/none-lost'] as const;
const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };

interface Story {
  readonly node?: Node;
  readonly pods?: readonly Pod[];
  readonly claims?: readonly NodeClaim[];
  readonly machines?: readonly Partial<BookedMachine>[];
}

const orphan = { deployment: 'web', providerID: 'machine-1', set: 's', claim: { name: 'c', uid: 'gone' } };

/** The promises, and what they have said so far; each minute tells another story. */
function judge(replicas: number): {
  minute(story: Story): void;
  quiet(story: Story): void;
  change(collection: string, event: StoreEvent, story: Story): void;
  readonly said: Set<string>;
} {
  let told: Story = {};
  const books = {
    accounts: () => new Map([['web', { wantedByPeople: 0, replicas }]]),
    machines: () => told.machines ?? [orphan],
  } as unknown as ClusterApiBooks;
  const invariants = clusterApiInvariants(books);
  const said = new Set<string>();
  let now = -minute;
  const factsOf = (story: Story): Facts => {
    told = story;
    const lists: Record<string, readonly object[]> = {
      [collections.nodes]: story.node ? [story.node] : [],
      [collections.claims]: story.claims ?? [],
    };
    return {
      now,
      calmSince: 0,
      list: (collection: string) => lists[collection] ?? [],
      podsOn: () => story.pods ?? [],
    } as unknown as Facts;
  };
  const reportOf = (name: string): Report => ({ violated: () => void said.add(name), checked: () => undefined });
  return {
    said,
    minute(story) {
      now += minute;
      for (const invariant of invariants) invariant.onMinute?.(factsOf(story), reportOf(invariant.name));
    },
    quiet(story) {
      for (const invariant of invariants) void invariant.onQuiet?.(factsOf(story), reportOf(invariant.name));
    },
    change(collection, event, story) {
      const written = { at: now, collection, event, by: 'karpenter-1', request: '' };
      for (const invariant of invariants) invariant.onChange?.(written, factsOf(story), reportOf(invariant.name));
    },
  };
}

/** What is said of a MachineDeployment with one replica that nobody wants, after so many minutes and then at rest. */
function judged(minutes: number, story: Story): string[] {
  const bench = judge(1);
  for (let at = 0; at <= minutes; at++) bench.minute(story);
  bench.quiet(story);
  return [kept, lost].filter((name) => bench.said.has(name));
}

const node = { metadata: { name: 'n', ...going }, spec: { providerID: 'machine-1' } } as Node;
const pod = (annotations: Record<string, string>): Pod =>
  ({ metadata: { name: 'p', annotations }, spec: {}, status: { phase: 'Running' } }) as unknown as Pod;

test('a Machine that nobody has is given back within a quarter of an hour, and at rest at the latest', () => {
  expect(judged(15, { node })).toEqual([kept]);
  expect(judged(16, { node, pods: [pod({})] })).toEqual([kept, lost]);
  expect(judged(16, {})).toEqual([kept, lost]);
});

test('but not while pods that nobody may move run on its Node, which is being drained', () => {
  const pods = [pod({ 'karpenter.sh/do-not-disrupt': 'true' })];
  expect(judged(60, { node, pods })).toEqual([]);
  const stays = { metadata: { name: 'n' }, spec: { providerID: 'machine-1' } } as Node;
  expect(judged(16, { node: stays, pods })).toEqual([kept, lost]);
});

const claimOf = (uid: string): NodeClaim =>
  ({ metadata: { name: uid, uid }, spec: { nodeClassRef: { kind: clusterApiNodeClassKind.kind } } }) as NodeClaim;

test('nor one that is there in place of a Machine that somebody took and that nobody may be moved off, while its NodeClaim stays', () => {
  const taken = { ...orphan, claim: { name: 'c', uid: 'c' }, deletingAt: 1, marked: false };
  const spare = { deployment: 'web', providerID: 'machine-2', set: 's' };
  const story = {
    node: { metadata: { name: 'n' }, spec: { providerID: 'machine-1' } } as Node,
    pods: [pod({ 'karpenter.sh/do-not-disrupt': 'true' })],
    claims: [claimOf('c')],
    machines: [taken, spare],
  };
  expect(judged(60, story)).toEqual([]);
  expect(judged(16, { ...story, pods: [pod({})] })).toEqual([lost]);
  expect(judged(16, { ...story, machines: [taken, spare, { ...spare, providerID: 'machine-3' }] })).toEqual([lost]);
  // Whoever marked it lowered replicas for it: nothing comes in its place.
  expect(judged(16, { ...story, machines: [{ ...taken, marked: true }, spare] })).toEqual([lost]);
  expect(judged(16, { ...story, claims: [] })).toEqual([kept, lost]);
});

/**
 * Whether replicas may be raised for a second NodeClaim after the first was taken away by force: so many minutes its Machine was held,
 * and so many it no longer is.
 */
function mayRaise(heldMinutes: number, minutesAfter: number): boolean {
  const bench = judge(2);
  const held = { node, pods: [pod({ 'karpenter.sh/do-not-disrupt': 'true' })] };
  const released = { node, pods: [pod({})] };
  const deleted = { type: 'DELETED', object: claimOf('gone') } as unknown as StoreEvent;
  bench.minute(held);
  bench.change(collections.claims, deleted, held);
  for (let at = 0; at < heldMinutes; at++) bench.minute(held);
  for (let at = 0; at < minutesAfter; at++) bench.minute(released);
  const [previous, object] = [1, 2].map((replicas) => ({ metadata: { name: 'web' }, spec: { replicas } }));
  const scaled = { type: 'MODIFIED', previous, object } as unknown as StoreEvent;
  bench.change(capiCollections.deployments, scaled, { ...released, claims: [claimOf('new')] });
  return !bench.said.has(kept);
}

test('a NodeClaim that was taken away has its replica for a while, and as long as its Machine is held', () => {
  expect(mayRaise(0, 20)).toBe(true);
  expect(mayRaise(0, 21)).toBe(false);
  expect(mayRaise(60, 0)).toBe(true);
  expect(mayRaise(60, 20)).toBe(true);
  expect(mayRaise(60, 21)).toBe(false);
});
