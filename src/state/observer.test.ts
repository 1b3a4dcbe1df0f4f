// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { testWorld } from '../controllers/testing/world.ts';
import { stateObserver } from './observer.ts';
import { launchedClaim } from './testing/objects.ts';

test('a state that is out of step shows in the metrics, and after half a minute in the log', async () => {
  const world = await testWorld();
  world.run(stateObserver(world));
  expect(await world.metrics.value('karpenter_cluster_state_synced')).toBe(1);

  await world.apply(launchedClaim('stuck', { providerID: '' }), launchedClaim('fine'));
  await world.advance(30_000);
  expect(await world.metrics.value('karpenter_cluster_state_synced')).toBe(0);
  expect(await world.metrics.value('karpenter_cluster_state_node_count')).toBe(1);
  expect(world.log.messages('error')).toEqual([]);

  await world.advance(20_000);
  expect(world.log.messages('error')).toContain('cluster state is not synced');
  expect(world.log.lines.at(-1)?.fields).toMatchObject({ 'unlaunched-nodeclaims': 'stuck' });

  await world.apply(launchedClaim('stuck'));
  await world.settle();
  expect(await world.metrics.value('karpenter_cluster_state_unsynced_time_seconds')).toBe(0);
  await world.close();
});
