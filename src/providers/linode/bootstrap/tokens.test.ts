// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { SeededRandom } from '../../../base/random.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { LinodeWorld } from '../testing/world.ts';
import { worldsPerTest } from '../testing/worlds.ts';
import { BootstrapTokens } from './tokens.ts';

const start = worldsPerTest();
const minute = 60_000;

/** Asks for the token of the NodeClaim `a`. */
function minting(world: LinodeWorld): () => Promise<string> {
  const tokens = new BootstrapTokens({ workload: world.client, clock: world.clock, random: new SeededRandom(1) });
  const claim = world.claim('a');
  return () => tokens.mint(claim, 'kubeadm', world.signal);
}

test('who asks again gets the same token, as long as a machine has time enough to join by it', async () => {
  const world = await start();
  const mint = minting(world);
  const first = await mint();
  await world.pass(15 * minute);
  expect(await mint()).toBe(first);
  await world.pass(minute);
  const second = await mint();
  expect(second).not.toBe(first);
  expect(second.split('.')[0]).toBe(first.split('.')[0]);
});

test('what is no token, or does not say how long it lives, is replaced', async () => {
  const world = await start();
  const mint = minting(world);
  const first = await mint();
  const secrets = world.client.resource(kinds.Secret);
  const at = { namespace: 'kube-system' };
  const name = `bootstrap-token-${first.split('.')[0]}`;
  await secrets.patch(name, { data: { expiration: null } } as never, at);
  const second = await mint();
  expect(second).not.toBe(first);
  const { type: _, ...rest } = await secrets.get(name, at);
  await secrets.delete(name, at);
  await secrets.create({ ...rest, type: 'Opaque', metadata: { name, ...at } });
  expect(await mint()).not.toBe(second);
});
