// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test } from 'vitest';
import { kinds } from '../../../kube/kinds.ts';
import { nodeHydrationController } from '../../node/hydration/controller.ts';
import { type ClaimWorld, claimWorld } from '../testing/claim-world.ts';
import { nodeClaimHydrationController } from './controller.ts';

let w: ClaimWorld;
afterEach(() => w.world.close());

const label = 'karpenter.kwok.sh/kwoknodeclass';

test('NodeClaims and their Nodes get the label of their NodeClass, and get it back', async () => {
  w = await claimWorld({ lifecycle: true });
  await w.run(nodeClaimHydrationController, nodeHydrationController);
  await w.write('a');
  await w.world.advance(1000);
  expect((await w.claim('a'))?.metadata.labels?.[label]).toBe('default');
  const node = (await w.nodeOf('a'))!;
  expect(node.metadata.labels?.[label]).toBe('default');
  await w.world.workload.resource(kinds.Node).patch(node.metadata.name!, { metadata: { labels: { [label]: null } } });
  await w.world.settle();
  expect((await w.nodeOf('a'))?.metadata.labels?.[label]).toBe('default');
});

test('Nodes and NodeClaims of others are left as they are', async () => {
  w = await claimWorld();
  await w.run(nodeClaimHydrationController, nodeHydrationController);
  await w.write('a', { spec: { nodeClassRef: { group: 'other.sh', kind: 'Other', name: 'x' } } });
  await w.world.apply({ apiVersion: 'v1', kind: 'Node', metadata: { name: 'theirs' }, spec: { providerID: 'x://1' } });
  await w.world.settle();
  expect((await w.claim('a'))?.metadata.labels ?? {}).toEqual({});
  expect((await w.world.find(kinds.Node, 'theirs'))?.metadata.labels ?? {}).toEqual({});
});
