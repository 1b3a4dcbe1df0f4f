// SPDX-License-Identifier: Apache-2.0
// Custom kinds from definition to objects.
import { expect, test } from 'vitest';
import { VirtualClock } from '../../base/clock.ts';
import { SeededRandom } from '../../base/random.ts';
import type { PatchType } from '../../kube/transport.ts';
import { ApiServer } from '../api-server.ts';

const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions';
const widgets = '/apis/example.com/v1/namespaces/default/widgets';

const schema = {
  type: 'object',
  properties: {
    spec: {
      type: 'object',
      required: ['size'],
      properties: {
        size: { type: 'integer', minimum: 1 },
        color: { type: 'string', default: 'red' },
        replicas: { type: 'integer' },
      },
      'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'widgets do not shrink' }],
    },
    status: { type: 'object', properties: { replicas: { type: 'integer' }, ready: { type: 'string' } } },
  },
};

function definition(extra: object = {}, names: object = {}) {
  const version = {
    name: 'v1',
    served: true,
    storage: true,
    schema: { openAPIV3Schema: schema },
    subresources: { status: {}, scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
    additionalPrinterColumns: [
      { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
      { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 },
    ],
  };
  return {
    metadata: { name: 'widgets.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'], ...names },
      versions: [version, { ...version, name: 'v1beta1', storage: false }],
      ...extra,
    },
  };
}

function world() {
  const clock = new VirtualClock();
  const server = new ApiServer({ clock, random: new SeededRandom(1) });
  const transport = server.transport();
  const call = async (
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    body?: unknown,
    options: { contentType?: PatchType; accept?: string; query?: Record<string, string> } = {},
  ) => {
    const answer = await transport.request({ method, path, body, ...options });
    // oxlint-disable-next-line typescript/no-explicit-any -- tests look at answers of any kind
    return { status: answer.status, body: answer.body as any, headers: answer.headers };
  };
  return { call, clock };
}

const merge = { contentType: 'application/merge-patch+json' as const };
const widget = (name: string, spec: object, extra: object = {}): object => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
  ...extra,
});

test('a kind is served as soon as its definition is stored', async () => {
  const { call } = world();
  expect((await call('GET', widgets)).status).toBe(404);
  await call('POST', definitions, definition());
  const { body } = await call('GET', `${definitions}/widgets.example.com`);
  expect(body.status.conditions.map((item: { type: string; status: string }) => `${item.type}=${item.status}`)).toEqual(
    ['NamesAccepted=True', 'Established=True'],
  );
  expect(body.status.acceptedNames.kind).toBe('Widget');
  expect((await call('GET', widgets)).body).toMatchObject({ kind: 'WidgetList', items: [] });
  expect((await call('GET', '/apis/example.com/v1')).body.resources.map((item: { name: string }) => item.name)).toEqual(
    ['widgets', 'widgets/scale', 'widgets/status'],
  );
});

test('a status with a default is there from the start', async () => {
  const { call } = world();
  const properties = { ...schema.properties, status: { ...schema.properties.status, default: { ready: 'maybe' } } };
  const own = definition();
  const versions = own.spec.versions.map((v) => ({ ...v, schema: { openAPIV3Schema: { ...schema, properties } } }));
  await call('POST', definitions, { ...own, spec: { ...own.spec, versions } });
  const created = await call('POST', widgets, widget('a', { size: 3 }, { status: { ready: 'no' } }));
  expect(created.body.status).toEqual({ ready: 'maybe' });
});

test('objects are defaulted, pruned and validated', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  const created = await call('POST', widgets, widget('a', { size: 3, extra: true }, { status: { ready: 'no' } }));
  expect(created.body.spec).toEqual({ size: 3, color: 'red' });
  expect(created.body.status).toBeUndefined();
  expect(created.headers?.['warning']).toContain('unknown field');
  const strict = await call('POST', widgets, widget('b', { size: 3, extra: true }), {
    query: { fieldValidation: 'Strict' },
  });
  expect(strict.body).toMatchObject({
    code: 400,
    message: 'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.extra"',
  });
  const wrong = await call('POST', widgets, widget('c', { size: 0 }));
  expect(wrong.body).toMatchObject({
    code: 422,
    details: { kind: 'Widget', group: 'example.com', causes: [{ field: 'spec.size' }] },
  });
});

test('a body must say what it is', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  const { status, body } = await call('POST', widgets, { kind: 'Widget', metadata: { name: 'a' }, spec: { size: 1 } });
  expect([status, body.message]).toEqual([
    400,
    'the API version in the data () does not match the expected API version (example.com/v1)',
  ]);
  const other = await call('POST', widgets, { ...widget('a', { size: 1 }), kind: 'Gadget' });
  expect(other.body).toMatchObject({
    code: 422,
    message: 'Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget',
  });
});

test('rules compare with what was there', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  await call('POST', widgets, widget('a', { size: 3 }));
  expect((await call('PATCH', `${widgets}/a`, { spec: { size: 4 } }, merge)).status).toBe(200);
  const shrunk = await call('PATCH', `${widgets}/a`, { spec: { size: 2 } }, merge);
  expect(shrunk.body.message).toContain('widgets do not shrink');
});

test('what a schema no longer knows goes with the next write, changed or not', async () => {
  const { call } = world();
  const { body: stored } = await call('POST', definitions, definition());
  const { body: created } = await call('POST', widgets, widget('a', { size: 3, color: 'blue' }));
  const before = await call('PATCH', `${widgets}/a/status`, { status: { ready: 'yes' } }, merge);
  expect(before.body.spec).toBe(created.spec);
  const { color: _color, ...properties } = schema.properties.spec.properties;
  const spec = { ...schema.properties.spec, properties };
  const narrower = { openAPIV3Schema: { ...schema, properties: { ...schema.properties, spec } } };
  const versions = stored.spec.versions.map((version: object) => ({ ...version, schema: narrower }));
  const revised = await call('PATCH', `${definitions}/widgets.example.com`, { spec: { versions } }, merge);
  expect(revised.status).toBe(200);
  const after = await call('PATCH', `${widgets}/a`, { metadata: { labels: { x: 'y' } } }, merge);
  expect(after.body.spec).toEqual({ size: 3 });
});

test('status and spec are written apart; only spec moves the generation', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  await call('POST', widgets, widget('a', { size: 3 }));
  const status = await call(
    'PATCH',
    `${widgets}/a/status`,
    { spec: { size: 9 }, status: { ready: 'yes' }, metadata: { labels: { x: 'y' } } },
    merge,
  );
  expect(status.body).toMatchObject({ metadata: { generation: 1 }, spec: { size: 3 }, status: { ready: 'yes' } });
  expect(status.body.metadata.labels).toBeUndefined();
  const spec = await call('PATCH', `${widgets}/a`, { spec: { size: 5 }, status: { ready: 'no' } }, merge);
  expect(spec.body).toMatchObject({ metadata: { generation: 2 }, spec: { size: 5 }, status: { ready: 'yes' } });
  expect((await call('GET', `${widgets}/a/scale`)).body.message).toContain('does not exist');
  await call('PATCH', `${widgets}/a`, { spec: { replicas: 1 } }, merge);
  await call('PATCH', `${widgets}/a/scale`, { spec: { replicas: 4 } }, merge);
  expect((await call('GET', `${widgets}/a`)).body.spec.replicas).toBe(4);
});

test('several versions of one schema show the same object', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  await call('POST', widgets, widget('a', { size: 3 }));
  const other = await call('GET', '/apis/example.com/v1beta1/namespaces/default/widgets/a');
  expect(other.body).toMatchObject({ apiVersion: 'example.com/v1beta1', spec: { size: 3 } });
});

test('columns are those of the definition', async () => {
  const { call, clock } = world();
  await call('POST', definitions, definition());
  await call('POST', widgets, widget('a', { size: 3 }));
  await clock.step(90_000);
  const table = await call('GET', widgets, undefined, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
  expect(
    table.body.columnDefinitions.map((item: { name: string; priority: number }) => `${item.name}:${item.priority}`),
  ).toEqual(['Name:0', 'Size:0', 'Age:0', 'Color:1']);
  expect(table.body.rows[0].cells).toEqual(['a', 3, '90s', 'red']);
});

test('names that are taken are not served', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  const rival = definition({}, { plural: 'gadgets', kind: 'Gadget', shortNames: ['wd'] });
  await call('POST', definitions, { ...rival, metadata: { name: 'gadgets.example.com' } });
  const { body } = await call('GET', `${definitions}/gadgets.example.com`);
  expect(body.status.conditions[0]).toMatchObject({
    type: 'NamesAccepted',
    status: 'False',
    reason: 'ShortNamesConflict',
  });
  expect((await call('GET', '/apis/example.com/v1/namespaces/default/gadgets')).status).toBe(404);
});

test('a definition that goes takes its objects with it, but waits for their finalizers', async () => {
  const { call } = world();
  await call('POST', definitions, definition());
  await call('POST', widgets, widget('free', { size: 1 }));
  await call('POST', widgets, {
    ...widget('held', { size: 1 }),
    metadata: { name: 'held', finalizers: ['example.com/hold'] },
  });
  await call('DELETE', `${definitions}/widgets.example.com`);
  expect((await call('GET', `${widgets}/free`)).status).toBe(404);
  expect((await call('GET', `${widgets}/held`)).body.metadata.deletionTimestamp).toBeDefined();
  await call('PATCH', `${widgets}/held`, { metadata: { finalizers: [] } }, merge);
  expect((await call('GET', `${definitions}/widgets.example.com`)).status).toBe(404);
  expect((await call('GET', widgets)).status).toBe(404);
});

test('schemas that cannot work are refused', async () => {
  const { call } = world();
  const bad = definition({
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', 'x-kubernetes-validations': [{ rule: 'self.(' }] } },
          },
        },
      },
    ],
  });
  expect((await call('POST', definitions, bad)).status).toBe(422);
  expect((await call('POST', definitions, definition({ versions: [] }))).body.message).toContain(
    'must have exactly one version marked as storage version',
  );
});
