// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { NodeClaim } from '../../api/node-claim.ts';
import { isConflict } from '../../kube/api-error.ts';
import { type ClaimWorld, claimType, claimWorld } from './testing/claim-world.ts';

let w: ClaimWorld;
const { signal } = new AbortController();
beforeEach(async () => {
  w = await claimWorld();
  await w.write('a', { labels: { one: '1' } });
  await w.world.settle();
});
afterEach(() => w.world.close());

function labelled(labels: Record<string, string>) {
  const before = w.context.claims.get('a')!;
  return [before, { ...before, metadata: { ...before.metadata, labels } }] as const;
}

test('what was written is read back before the informer has seen it', async () => {
  const [before, after] = labelled({ one: '1', two: '2' });
  const seen: unknown[] = [];
  const { claims } = w.context;
  const writing = claims.patch(before, after, { signal }).then(() => seen.push(claims.get('a')?.metadata.labels));
  await writing;
  expect(seen).toEqual([{ one: '1', two: '2' }]);
  await w.world.settle();
  // And from then on the informer's copy is the one that counts.
  expect(claims.get('a')).toBe(claims.informer.get('a'));
});

test('only what changed is sent: what others changed meanwhile stays', async () => {
  const [before, after] = labelled({ one: '1', two: '2' });
  await w.world.karpenter.resource(claimType).patch('a', { metadata: { labels: { one: 'theirs', three: '3' } } });
  const stored = await w.context.claims.patch(before, after, { signal });
  expect(stored?.metadata.labels).toEqual({ one: 'theirs', two: '2', three: '3' });
});

test('lists are only replaced in the version that was read', async () => {
  const before = w.context.claims.get('a')!;
  const after = { ...before, metadata: { ...before.metadata, finalizers: ['example.com/mine'] } };
  await w.world.karpenter.resource(claimType).patch('a', { metadata: { finalizers: ['example.com/theirs'] } });
  const refused = await w.context.claims.patch(before, after, { signal }).catch((error: unknown) => error);
  expect(isConflict(refused)).toBe(true);
});

test('after a conflict the next try knows what the others wrote', async () => {
  const before = w.context.claims.get('a')!;
  const held = (own: NodeClaim) => ({
    ...own,
    metadata: { ...own.metadata, finalizers: [...(own.metadata.finalizers ?? []), 'example.com/mine'] },
  });
  await w.world.karpenter.resource(claimType).patch('a', { metadata: { finalizers: ['example.com/theirs'] } });
  await w.context.claims.patch(before, held(before), { signal }).catch(() => undefined);
  const newest = w.context.claims.get('a')!;
  const stored = await w.context.claims.patch(newest, held(newest), { signal });
  expect(stored?.metadata.finalizers).toEqual(['example.com/theirs', 'example.com/mine']);
});

test('nothing is sent when nothing changed', async () => {
  const before = w.context.claims.get('a')!;
  expect(await w.context.claims.patch(before, { ...before }, { signal })).toBe(before);
});

test('an object that is gone is no failure', async () => {
  const [before, after] = labelled({ two: '2' });
  await w.world.delete(before);
  expect(await w.context.claims.patch(before, after, { signal })).toBeUndefined();
  expect(await w.context.claims.delete(before, signal)).toBe(false);
});

test('another object of the same name is not deleted', async () => {
  const before = w.context.claims.get('a')!;
  await w.world.delete(before);
  await w.write('a');
  const refused = await w.context.claims.delete(before, signal).catch((error: unknown) => error);
  expect(isConflict(refused)).toBe(true);
  expect(await w.claim('a')).toBeDefined();
});
