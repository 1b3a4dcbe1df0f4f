// SPDX-License-Identifier: Apache-2.0
import { afterEach, beforeEach, expect, test } from 'vitest';
import { commonLabelSet, extendLabelSet } from '../../api/labels.ts';
import { type NodeOverlay, type NodeOverlaySpec, nodeOverlayKind } from '../../api/node-overlay.ts';
import { kinds } from '../../kube/kinds.ts';
import type { ResourceType } from '../../kube/object.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import { registerControllers } from '../index.ts';
import { deployment } from '../testing/deployment.ts';
import { type TestWorld, testWorld } from '../testing/world.ts';

const { featureGates } = defaultSettings(coreSettings);
const overlayType = nodeOverlayKind as ResourceType<NodeOverlay>;

let world: TestWorld;
beforeEach(async () => {
  world = await testWorld({ live: true, settings: { featureGates: { ...featureGates, NodeOverlay: true } } });
});
afterEach(() => world.close());

const write = (name: string, spec: Partial<NodeOverlaySpec>): Promise<unknown> =>
  world.karpenter.resource(overlayType).create({
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name },
    spec: { requirements: [], ...spec },
  } as never);

async function verdict(name: string): Promise<string | undefined> {
  const { status } = await world.karpenter.resource(overlayType).get(name);
  const { status: ready } = status?.conditions?.find(({ type }) => type === 'Ready') ?? {};
  const { reason } = status?.conditions?.find(({ type }) => type === 'ValidationSucceeded') ?? {};
  return `${ready} ${reason}`;
}

const types = (...values: string[]) => [{ key: 'node.kubernetes.io/instance-type', operator: 'In' as const, values }];

test('an overlay is ready, or says what is wrong with it or whom it contradicts', async () => {
  await world.pool();
  world.cloud.labels = extendLabelSet(commonLabelSet, { restrictedDomains: ['fake.sh'] });
  registerControllers(world.manager, world);
  await write('fine', { requirements: types('c-1x'), price: '1' });
  await write('heavier', { requirements: types('c-1x'), price: '2', weight: 10 });
  await write('contradicts', { requirements: types('c-1x', 'c-2x'), priceAdjustment: '+1' });
  await write('elsewhere', { requirements: types('c-4x'), price: '1' });
  await write('gpu', { requirements: types('c-1x'), capacity: { 'example.com/gpu': '1' } });
  await write('broken', { requirements: [{ key: 'fake.sh/x', operator: 'In', values: ['y'] }], price: '1' });
  await world.advance(5000);
  expect(await verdict('fine')).toBe('True ValidationSucceeded');
  expect(await verdict('heavier')).toBe('True ValidationSucceeded');
  expect(await verdict('contradicts')).toBe('False Conflict');
  expect(await verdict('elsewhere')).toBe('True ValidationSucceeded');
  expect(await verdict('gpu')).toBe('True ValidationSucceeded');
  expect(await verdict('broken')).toBe('False RuntimeValidation');
  // The one it contradicted has gone.
  await world.karpenter.resource(overlayType).delete('fine');
  await world.advance(5000);
  expect(await verdict('contradicts')).toBe('True ValidationSucceeded');
});

test('what is bought follows it: a resource that only an overlay knows, and the type it makes cheapest', async () => {
  await world.pool();
  await write('cards', { requirements: types('c-8x'), capacity: { 'example.com/card': '4' } });
  registerControllers(world.manager, world);
  const pods = deployment('cards', 2, '1');
  const container = (pods.spec!.template.spec as { containers: { resources: object }[] }).containers[0]!;
  container.resources = { requests: { cpu: '1', 'example.com/card': '2' }, limits: { 'example.com/card': '2' } };
  await world.apply(pods);
  await world.advance(30_000);
  const claims = await world.claims();
  expect(claims.map(({ metadata }) => metadata.labels?.['node.kubernetes.io/instance-type'])).toEqual(['c-8x']);
  expect(claims[0]?.status?.capacity).toMatchObject({ 'example.com/card': '4' });
  await world.karpenter.resource(overlayType).patch('cards', { spec: { requirements: types('c-4x') } });
  await world.advance(5000);
  await world.apply({ ...pods, metadata: { ...pods.metadata, name: 'more' } });
  await world.advance(30_000);
  const bought = (await world.claims()).map(({ metadata }) => metadata.labels?.['node.kubernetes.io/instance-type']);
  expect(new Set(bought)).toEqual(new Set(['c-4x', 'c-8x']));
  expect(bought).toHaveLength(2);
});

test('without overlays, and without their kind, everything goes on', async () => {
  await world.karpenter.resource(kinds.CustomResourceDefinition).delete('nodeoverlays.karpenter.sh');
  await world.pool();
  registerControllers(world.manager, world);
  await world.apply(deployment('inflate', 1, '3'));
  await world.advance(10_000);
  expect(await world.claims()).toHaveLength(1);
});
