// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import type { StateNode } from '../../state/state-node.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';
import { DisruptionMarks } from './marks.ts';
import { contextOf, machine, marksOf, openPool, unmarked } from './testing/machines.ts';

let world: TestWorld;
afterEach(() => world.close());

test('marks are taken off by somebody who has not been told of them yet', async () => {
  world = await testWorld();
  await openPool(world);
  await machine(world, 'a');
  const marks = new DisruptionMarks(contextOf(world));
  const [{ node, nodeClaim }] = [...world.state.nodes()] as [StateNode];
  const asItWas = { node, nodeClaim } as StateNode;
  await marks.put(asItWas, 'Drifted', world.signal);
  expect(await marksOf(world, 'a')).toEqual({ tainted: true, reason: 'Drifted' });
  await marks.clear(asItWas, world.signal);
  expect(await marksOf(world, 'a')).toEqual(unmarked);
});
