// SPDX-License-Identifier: Apache-2.0
// Several clouds in one process: one that is slow, or broken, does not hold up the others, and nothing is bought twice.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { pendingPod } from '../../state/testing/objects.ts';
import { FakeCloud } from '../testing/fake-cloud.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { registerProvisioning } from './controller.ts';

const otherClass: ResourceType<KubeObject> = {
  group: 'other.example.com',
  version: 'v1',
  kind: 'OtherNodeClass',
  plural: 'othernodeclasses',
  namespaced: false,
};

let world: TestWorld;
let other: FakeCloud;

beforeEach(async () => {
  world = await testWorld({
    providers: (clients) => {
      other = new FakeCloud({ ...clients, name: 'other', nodeClass: otherClass });
      return [other];
    },
  });
  registerProvisioning(world.manager, world);
  await world.pool({ name: 'first' });
  const nodeClassRef = { group: otherClass.group, kind: otherClass.kind, name: 'default' };
  await world.pool({ name: 'second', template: { nodeClassRef } });
});
afterEach(() => world.close());

const only = (pool: string) => ({ nodeSelector: { [labels.nodePool]: pool } });

async function pools(): Promise<string[]> {
  return (await world.claims()).map(({ metadata }) => metadata.labels?.[labels.nodePool] ?? '').sort();
}

test('a NodeClaim that is not launched holds up its own cloud only', async () => {
  await world.apply(pendingPod('a', only('first')));
  await world.advance(1100);
  expect(await pools()).toEqual(['first']);
  // The first cloud takes its time; somebody else wants the second, and more comes for the first.
  await world.apply(pendingPod('b', only('second')), pendingPod('c', only('first')));
  await world.advance(30_000);
  expect(await pools()).toEqual(['first', 'second']);
  await world.launch();
  await world.advance(2000);
  // What waited is bought now; what was bought before is not bought again.
  expect(await pools()).toEqual(['first', 'first', 'second']);
});

test('after a restart, pods that may have a NodeClaim on its way wait for it; newer ones do not', async () => {
  await world.apply(pendingPod('a', only('first')));
  await world.advance(1100);
  world = await world.restart();
  registerProvisioning(world.manager, world);
  await world.advance(2000);
  await world.apply(pendingPod('b', only('second')));
  await world.advance(30_000);
  expect(await pools()).toEqual(['first', 'second']);
});

test('a NodeClaim that a person wrote and no cloud can launch holds up nobody else', async () => {
  await world.apply({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'by-hand' },
    spec: { nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }, requirements: [] },
  } as KubeObject);
  await world.apply(pendingPod('b', only('second')));
  await world.advance(1100);
  expect(await pools()).toEqual(['', 'second']);
});

test('a NodeClaim that goes before it had a machine holds up nobody, however long that takes', async () => {
  await world.apply(pendingPod('a', only('first')));
  await world.advance(1100);
  expect(world.state.isSynced()).toBe(false);
  // Its cloud cannot be asked whether there is a machine after all: the finalizer stays.
  await world.delete((await world.claims())[0]!);
  await world.settle();
  expect(world.state.isSynced()).toBe(true);
  await world.advance(15_000);
  expect(await pools()).toEqual(['first', 'first']);
});

test('a cloud that does not say what it sells holds up nobody else, and its pods are served once it does', async () => {
  const answer = Promise.withResolvers<void>();
  other.tellsTypesAfter = answer.promise;
  await world.apply(pendingPod('a', only('first')), pendingPod('b', only('second')));
  // A second for the window, five for a cloud that is asked for the first time.
  await world.advance(6100);
  expect(await pools()).toEqual(['first']);
  await world.launch();
  await world.apply(pendingPod('c', only('first')));
  await world.advance(1100);
  expect(await pools()).toEqual(['first', 'first']);
  await world.launch();
  // Nobody has to come for its pods: the answer itself is news.
  answer.resolve();
  await world.advance(1100);
  expect(await pools()).toEqual(['first', 'first', 'second']);
});

test('while a cloud does not say what it sells, what it said last counts', async () => {
  await world.apply(pendingPod('a', only('second')));
  await world.advance(1100);
  await world.launch();
  other.tellsTypesAfter = new Promise(() => undefined);
  await world.apply(pendingPod('b', only('second')));
  await world.advance(2200);
  expect(await pools()).toEqual(['second', 'second']);
});
