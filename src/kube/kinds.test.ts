// SPDX-License-Identifier: Apache-2.0
import { expect, expectTypeOf, test } from 'vitest';
import { KubeClient } from './client.ts';
import { kinds, type Node, type Pod } from './kinds.ts';
import { apiVersionOf } from './object.ts';
import { FakeTransport } from './testing/fake-transport.ts';

test('every kind has a place of its own', () => {
  const places = Object.values(kinds).map((type) => `${apiVersionOf(type)}/${type.plural}`);
  expect(new Set(places).size).toBe(places.length);
  for (const [name, type] of Object.entries(kinds)) {
    expect(type.plural).toMatch(/^[a-z]+$/);
    if (name !== 'EventsV1Event') expect(type.kind).toBe(name);
  }
});

test('a kind carries the type of its objects', () => {
  const client = new KubeClient({ transport: new FakeTransport() });
  const pods = client.resource(kinds.Pod);
  expectTypeOf<Awaited<ReturnType<typeof pods.get>>>().toEqualTypeOf<Pod>();
  expect(pods.type).toBe(kinds.Pod);
  expectTypeOf<Pod['metadata']['name']>().toEqualTypeOf<string | undefined>();
  expectTypeOf<NonNullable<Pod['spec']['initContainers']>[number]['restartPolicy']>().toEqualTypeOf<
    string | undefined
  >();
  // What comes from the server may lack a spec only where the server accepts that.
  expectTypeOf<undefined>().not.toExtend<Pod['spec']>();
  expectTypeOf<undefined>().toExtend<Node['spec']>();
});
