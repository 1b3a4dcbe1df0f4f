// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import { kinds, type Pod } from '../../../kube/kinds.ts';
import { contextOf, machine, runningPod } from '../../disruption/testing/machines.ts';
import { type TestWorld, testWorld } from '../../testing/world.ts';
import { largestFirst, Turns } from './turns.ts';

let world: TestWorld;
afterEach(() => world.close());

function sized(name: string, node: string, cpu: string): Promise<Pod> {
  const containers = [{ name: 'main', image: 'app', resources: { requests: { cpu } } }];
  return runningPod(world, name, node, { spec: { containers } });
}

/** Machines that are being deleted. */
async function leaving(...names: string[]): Promise<void> {
  world = await testWorld();
  for (const name of names) await machine(world, name);
}

async function drain(...names: string[]): Promise<Turns> {
  for (const name of names) await world.workload.resource(kinds.Node).delete(name);
  world.state.markForDeletion([...world.state.nodes()].map(({ key }) => key));
  await world.settle();
  return new Turns(contextOf(world));
}

test('of several nodes the largest pods leave at once, the others after them within a second', async () => {
  await leaving('a', 'b');
  const [small, large] = [await sized('small', 'a', '250m'), await sized('large', 'b', '2')];
  const turns = await drain('a', 'b');
  expect(turns.delayOf(large)).toBe(0);
  expect(turns.delayOf(small)).toBeGreaterThan(500);
  expect(turns.delayOf(small)).toBeLessThanOrEqual(1000);
});

test('pods of a node that goes by itself do not wait, and leave in the order of their size', async () => {
  await leaving('a');
  const pods = [await sized('small', 'a', '250m'), await sized('large', 'a', '2'), await sized('odd', 'a', '1')];
  const turns = await drain('a');
  expect(pods.map((pod) => turns.delayOf(pod))).toEqual([0, 0, 0]);
  expect(largestFirst(pods).map(({ metadata }) => metadata.name)).toEqual(['large', 'odd', 'small']);
});
