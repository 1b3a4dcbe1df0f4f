// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { type LinodeNodeClass, linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { nodePoolKind } from '../../api/node-pool.ts';
import { LinodeWorld } from './testing/world.ts';

const folder = new URL('../../../examples/v1/', import.meta.url);
let world: LinodeWorld;
afterEach(() => world.stop());

test.each(readdirSync(folder))('the API server takes examples/v1/%s', async (file) => {
  world = await LinodeWorld.start({ withControllers: true });
  const documents = parseAllDocuments(readFileSync(new URL(file, folder), 'utf8')).map((one) => one.toJS() as object);
  expect(documents.length).toBeGreaterThan(0);
  for (const object of documents as LinodeNodeClass[]) {
    const isClass = object.kind === 'LinodeNodeClass';
    if (isClass && object.metadata.name === 'default')
      await world.client.resource(linodeNodeClassKind).delete('default');
    await world.pass(2000);
    await world.client.resource(isClass ? linodeNodeClassKind : (nodePoolKind as never)).create(object);
  }
});

test('an object of v1alpha1 is one of v1', async () => {
  world = await LinodeWorld.start();
  const old = { ...linodeNodeClassKind, version: 'v1alpha1' };
  const apiVersion = 'karpenter.k8s.linode/v1alpha1';
  await world.client
    .resource(old)
    .create({ apiVersion, kind: 'LinodeNodeClass', metadata: { name: 'old' }, spec: { swap_size: 512 } } as never);
  const found = await world.client.resource(linodeNodeClassKind).get('old');
  expect(found.apiVersion).toBe('karpenter.k8s.linode/v1');
  expect(found.spec?.swap_size).toBe(512);
});
