// SPDX-License-Identifier: Apache-2.0
// Several clouds in one process: a launch in one of them does not keep the machines of another.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { labels } from '../../api/labels.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { FakeCloud } from '../testing/fake-cloud.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { disruptionControllers } from './index.ts';
import { contextOf, going, machine, openPool } from './testing/machines.ts';

const otherClass: ResourceType<KubeObject> = {
  group: 'other.example.com',
  version: 'v1',
  kind: 'OtherNodeClass',
  plural: 'othernodeclasses',
  namespaced: false,
};
const ours = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };
const theirs = { group: otherClass.group, kind: otherClass.kind, name: 'default' };

let world: TestWorld;
beforeEach(async () => {
  world = await testWorld({
    providers: (clients) => [new FakeCloud({ ...clients, name: 'other', nodeClass: otherClass })],
  });
  await openPool(world);
  await openPool(world, { name: 'other', template: { nodeClassRef: theirs } });
});
afterEach(() => world.close());

/** A NodeClaim that is not launched, of a pool. */
async function unlaunched(pool: string, nodeClassRef: typeof ours): Promise<void> {
  await world.apply({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: `${pool}-new`, labels: { [labels.nodePool]: pool } },
    spec: { nodeClassRef, requirements: [] },
  } as KubeObject);
}

async function disrupt(): Promise<void> {
  world.run(...disruptionControllers(contextOf(world), world));
  await world.advance(30_000);
}

test('an empty node goes while another cloud launches', async () => {
  await machine(world, 'a');
  await unlaunched('other', theirs);
  await disrupt();
  expect(await going(world)).toEqual(['a']);
});

test('one of the cloud that launches stays, and nobody is told that it is blocked', async () => {
  await machine(world, 'a');
  await machine(world, 'b', { pool: 'other', spec: { nodeClassRef: theirs } });
  await unlaunched('default', ours);
  await disrupt();
  expect(await going(world)).toEqual(['b']);
  expect(await world.events('DisruptionBlocked')).not.toContainEqual(expect.stringContaining('/a:'));
});

test('where all clouds launch, everything waits', async () => {
  await machine(world, 'a');
  await unlaunched('default', ours);
  await unlaunched('other', theirs);
  await disrupt();
  expect(await going(world)).toEqual([]);
});
