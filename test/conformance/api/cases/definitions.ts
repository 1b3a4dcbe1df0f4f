// SPDX-License-Identifier: Apache-2.0
// Definitions of kinds: from creation to being served, versions, names, and the end of it all.
import { type ConformanceCase, eventually, has, missing, namesOf, ok, refused, same, sees } from '../case.ts';
import { crd, define, established } from '../objects.ts';

const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
const served = (name: string, storage: boolean, more: object = {}) => ({
  name,
  served: true,
  storage,
  schema: { openAPIV3Schema: anything },
  ...more,
});

interface BadDefinition {
  readonly id: string;
  readonly title: string;
  readonly parts: Parameters<typeof crd>[1];
  readonly field: string;
  readonly message?: string | RegExp;
}

const bad: readonly BadDefinition[] = [
  {
    id: 'no-storage',
    title: 'no version for storage',
    parts: { versions: [served('v1', false)] },
    field: 'spec.versions',
    message: /must have exactly one version marked as storage version/,
  },
  {
    id: 'two-storage',
    title: 'two versions for storage',
    parts: { versions: [served('v1', true), served('v2', true)] },
    field: 'spec.versions',
    message: /must have exactly one version marked as storage version/,
  },
  {
    id: 'no-schema',
    title: 'no schema',
    parts: { versions: [{ name: 'v1', served: true, storage: true }] },
    field: 'spec.versions[0].schema.openAPIV3Schema',
    message: /Required value/,
  },
  {
    id: 'not-structural',
    title: 'a schema without types',
    parts: { spec: { type: '', 'x-kubernetes-preserve-unknown-fields': undefined } },
    field: 'spec.validation.openAPIV3Schema.properties[spec].type',
    message: /Required value: must not be empty for specified object fields/,
  },
  {
    id: 'bad-rule',
    title: 'a rule that does not compile',
    parts: { spec: { 'x-kubernetes-validations': [{ rule: 'self.nope ==' }] } },
    field: 'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule',
    message: /compilation failed: ERROR: <input>:1:\d+: Syntax error/,
  },
  {
    id: 'bad-rule-field',
    title: 'a rule about a field that is not declared',
    parts: {
      spec: {
        'x-kubernetes-preserve-unknown-fields': undefined,
        properties: { a: { type: 'string' } },
        'x-kubernetes-validations': [{ rule: 'self.b == "x"' }],
      },
    },
    field: 'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule',
    message: /compilation failed: ERROR: <input>:1:5: undefined field 'b'/,
  },
  {
    id: 'rule-not-bool',
    title: 'a rule that is not true or false',
    parts: { spec: { 'x-kubernetes-validations': [{ rule: '1 + 1' }] } },
    field: 'spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule',
    message: /must evaluate to a bool/,
  },
  {
    id: 'bad-default',
    title: 'a default that its own schema forbids',
    parts: { spec: { properties: { n: { type: 'integer', default: 'x' } } } },
    field: 'spec.validation.openAPIV3Schema.properties[spec].properties[n].default',
    message: /must be of type integer: "string"/,
  },
  { id: 'bad-kind', title: 'a kind that is no name', parts: { kind: 'Bad Kind' }, field: 'spec.names.kind' },
  {
    id: 'bad-version-name',
    title: 'a version that is no name',
    parts: { versions: [served('V_1', true)] },
    field: 'spec.versions[0].name',
  },
  {
    id: 'duplicate-version',
    title: 'one version twice',
    parts: { versions: [served('v1', true), served('v1', false)] },
    field: 'spec.versions',
    message: /must contain unique version names/,
  },
  {
    id: 'bad-column',
    title: 'a column with no path',
    parts: { version: { additionalPrinterColumns: [{ name: 'A', type: 'string' }] } },
    field: 'spec.additionalPrinterColumns[0].JSONPath',
  },
  {
    id: 'bad-scale',
    title: 'a scale path outside of spec',
    parts: { version: { subresources: { scale: { specReplicasPath: '.status.x', statusReplicasPath: '.status.y' } } } },
    field: 'spec.subresources.scale.specReplicasPath',
    message: /should be a json path under \.spec/,
  },
  {
    id: 'bad-pattern',
    title: 'a pattern that is no regular expression',
    parts: { spec: { properties: { s: { type: 'string', pattern: '(' } } } },
    field: 'spec.validation.openAPIV3Schema.properties[spec].properties[s].pattern',
  },
  {
    id: 'bad-scope',
    title: 'an unknown scope',
    parts: { extra: { scope: 'Universe' } },
    field: 'spec.scope',
    message: /Unsupported value: "Universe": supported values: "Cluster", "Namespaced"/,
  },
  {
    id: 'bad-list-key',
    title: 'a key of a list that is not in its items',
    parts: {
      spec: {
        properties: {
          l: {
            type: 'array',
            'x-kubernetes-list-type': 'map',
            'x-kubernetes-list-map-keys': ['k'],
            items: { type: 'object', properties: {} },
          },
        },
      },
    },
    field: 'spec.validation.openAPIV3Schema.properties[spec].properties[l].x-kubernetes-list-map-keys',
  },
];

const badCases: readonly ConformanceCase[] = bad.map(({ id, title, parts, field, message }) => ({
  id: `definitions/bad-${id}`,
  title: `a definition with ${title} is refused`,
  run: async ({ a, b, namespace, path }) => {
    const group = `${namespace}.example.com`;
    const { details } = await refused(
      a.post(path('customresourcedefinitions'), crd(group, parts)),
      422,
      'Invalid',
      message,
      { name: `gadgets.${group}`, group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition' },
    );
    const fields = (details['causes'] as { field: string }[]).map((cause) => cause.field);
    if (!fields.includes(field)) throw new Error(`no cause for ${field} in ${fields.join(', ')}`);
    await missing(b.get(path('customresourcedefinitions', `gadgets.${group}`)));
  },
}));

export const definitionCases: readonly ConformanceCase[] = [
  ...badCases,
  {
    id: 'definitions/life',
    title: 'a definition is accepted, established and served, with instances until it goes',
    run: async (context) => {
      const { a, b, path } = context;
      const { name, path: gadgets, make } = await define(context);
      await ok(b.post(gadgets, make('x', { spec: { any: 1 } })));
      await ok(a.get(`${gadgets}/x`), { spec: { any: 1 } });
      await ok(b.delete(path('customresourcedefinitions', name)));
      await eventually(() => missing(a.get(path('customresourcedefinitions', name))));
      await eventually(async () => same((await a.get(gadgets)).status, 404));
    },
  },
  {
    id: 'definitions/conditions',
    title: 'the status of a definition says what was accepted, stored and in which conditions',
    run: async (context) => {
      const { name } = await define(context);
      const found = await established(context, name);
      has(found.status, {
        acceptedNames: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
        storedVersions: ['v1'],
      });
      has(found.spec, { conversion: { strategy: 'None' } });
      has(
        (found.status['conditions'] as { type: string; status: string; reason: string }[])
          .map(({ type, status, reason }) => `${type} ${status} ${reason}`)
          .sort(),
        ['Established True InitialNamesAccepted', 'NamesAccepted True NoConflicts'],
      );
    },
  },
  {
    id: 'definitions/names-default',
    title: 'singular and list kind follow from the kind',
    run: async ({ a, b, namespace, path }) => {
      const group = `${namespace}.example.com`;
      await ok(
        a.post(path('customresourcedefinitions'), crd(group, { names: { singular: undefined, listKind: undefined } })),
      );
      await ok(b.get(path('customresourcedefinitions', `gadgets.${group}`)), {
        spec: { names: { singular: 'gadget', listKind: 'GadgetList' } },
      });
    },
  },
  {
    id: 'definitions/wrong-name',
    title: 'a definition is named by its plural and group',
    run: async ({ a, b, namespace, path }) => {
      const group = `${namespace}.example.com`;
      const body = { ...crd(group), metadata: { name: 'something.else' } };
      await refused(
        a.post(path('customresourcedefinitions'), body),
        422,
        'Invalid',
        `CustomResourceDefinition.apiextensions.k8s.io "something.else" is invalid: metadata.name: Invalid value: "something.else": must be spec.names.plural+"."+spec.group`,
      );
      await missing(b.get(path('customresourcedefinitions', 'something.else')));
    },
  },
  {
    id: 'definitions/names-conflict',
    title: 'a second definition with the same kind in its group is not established until the first is gone',
    run: async (context) => {
      const { a, b, path } = context;
      const { group, name } = await define(context);
      const second = `things.${group}`;
      await ok(
        a.post(
          path('customresourcedefinitions'),
          crd(group, { plural: 'things', kind: 'Gadget', names: { singular: 'thing', listKind: 'ThingList' } }),
        ),
      );
      await eventually(async () => {
        const { status } = await ok(b.get(path('customresourcedefinitions', second)));
        has(
          (status['conditions'] as { type: string; status: string; reason: string; message: string }[]).find(
            ({ type }) => type === 'NamesAccepted',
          ),
          { status: 'False', reason: 'KindConflict', message: '"Gadget" is already in use' },
        );
      });
      await ok(b.delete(path('customresourcedefinitions', name)));
      await established(context, second);
    },
  },
  {
    id: 'definitions/versions',
    title: 'one object is served in every version of its kind',
    run: async (context) => {
      const { a, b, namespace } = context;
      const {
        group,
        path: gadgets,
        make,
      } = await define(context, { versions: [served('v1', true), served('v2', false)] });
      await ok(a.post(gadgets, make('x', { spec: { n: 1 } })));
      const other = gadgets.replace('/v1/', '/v2/');
      await ok(b.get(`${other}/x`), { apiVersion: `${group}/v2`, spec: { n: 1 } });
      await ok(b.merge(`${other}/x`, { spec: { n: 2 } }), { apiVersion: `${group}/v2` });
      await ok(a.get(`${gadgets}/x`), { apiVersion: `${group}/v1`, spec: { n: 2 }, metadata: { namespace } });
      const watching = await a.watch(other);
      const [seen] = await sees(watching, 'ADDED x');
      same(seen!.apiVersion, `${group}/v2`);
      watching.close();
    },
  },
  {
    id: 'definitions/not-served',
    title: 'a version that is not served cannot be reached',
    run: async (context) => {
      const { b } = context;
      const { path: gadgets, group } = await define(context, {
        versions: [served('v1', true), served('v2', false, { served: false })],
      });
      same((await b.get(gadgets.replace('/v1/', '/v2/'))).status, 404);
      const versions = await ok(b.get(`/apis/${group}`));
      has(versions, {
        kind: 'APIGroup',
        name: group,
        versions: [{ groupVersion: `${group}/v1`, version: 'v1' }],
        preferredVersion: { version: 'v1' },
      });
    },
  },
  {
    id: 'definitions/deprecated',
    title: 'a deprecated version warns whoever uses it',
    run: async (context) => {
      const { b } = context;
      const { path: gadgets, group } = await define(context, {
        versions: [
          served('v1', true),
          served('v1beta1', false, { deprecated: true }),
          served('v1alpha1', false, { deprecated: true, deprecationWarning: 'do not' }),
        ],
      });
      same(
        (await b.get(gadgets.replace('/v1/', '/v1beta1/'))).headers['warning'],
        `299 - "${group}/v1beta1 Gadget is deprecated; use ${group}/v1 Gadget"`,
      );
      same((await b.get(gadgets.replace('/v1/', '/v1alpha1/'))).headers['warning'], '299 - "do not"');
      same((await b.get(gadgets)).headers['warning'], undefined);
    },
  },
  {
    id: 'definitions/cluster-scoped',
    title: 'a cluster-scoped kind lives outside of namespaces',
    run: async (context) => {
      const { a, b, namespace } = context;
      const { path: gadgets, make, group } = await define(context, { scope: 'Cluster' });
      await ok(a.post(gadgets, make('x')), { metadata: { namespace: undefined } });
      same(namesOf(await ok(b.get(gadgets))), ['x']);
      same((await b.get(`/apis/${group}/v1/namespaces/${namespace}/gadgets`)).status, 404);
    },
  },
  {
    id: 'definitions/no-subresources',
    title: 'without subresources there are none, and status is a plain field',
    run: async (context) => {
      const { a, b } = context;
      const { path: gadgets, make } = await define(context, {
        whole: { properties: undefined, 'x-kubernetes-preserve-unknown-fields': true },
      });
      await ok(a.post(gadgets, make('x', { status: { ready: true } })), { metadata: { generation: 1 } });
      await ok(b.merge(`${gadgets}/x`, { status: { ready: false } }), {
        status: { ready: false },
        metadata: { generation: 2 },
      });
      same([(await b.get(`${gadgets}/x/status`)).status, (await b.get(`${gadgets}/x/scale`)).status], [404, 404]);
    },
  },
  {
    id: 'definitions/schema-changes',
    title: 'a changed schema counts for what is written from then on; what is stored stays',
    run: async (context) => {
      const { a, b, path } = context;
      const limited = (maximum: number) => ({
        'x-kubernetes-preserve-unknown-fields': undefined,
        properties: { n: { type: 'integer', maximum } },
      });
      const { path: gadgets, make, name, group } = await define(context, { spec: limited(10) });
      await ok(a.post(gadgets, make('x', { spec: { n: 10 } })));
      const before = await ok(a.get(path('customresourcedefinitions', name)));
      await ok(
        b.put(path('customresourcedefinitions', name), {
          ...crd(group, { spec: limited(5) }),
          metadata: before.metadata,
        }),
      );
      await eventually(() =>
        refused(b.post(gadgets, make('y', { spec: { n: 7 } }), { dryRun: 'All' }), 422, 'Invalid'),
      );
      await ok(a.get(`${gadgets}/x`), { spec: { n: 10 } });
      // A value that was bad before and does not change is let through.
      await ok(a.merge(`${gadgets}/x`, { metadata: { labels: { l: 'v' } } }));
      await refused(a.merge(`${gadgets}/x`, { spec: { n: 9 } }), 422, 'Invalid');
    },
  },
  {
    id: 'definitions/new-default',
    title: 'a default added later shows in what was stored before',
    run: async (context) => {
      const { a, b, path } = context;
      const { path: gadgets, make, name, group } = await define(context);
      await ok(a.post(gadgets, make('x', { spec: {} })));
      const before = await ok(a.get(path('customresourcedefinitions', name)));
      const changed = crd(group, { spec: { properties: { mode: { type: 'string', default: 'auto' } } } });
      await ok(b.put(path('customresourcedefinitions', name), { ...changed, metadata: before.metadata }));
      await eventually(() => ok(b.get(`${gadgets}/x`), { spec: { mode: 'auto' } }));
    },
  },
  {
    id: 'definitions/deletion-removes-instances',
    title: 'with a definition its instances go, and watchers see them go',
    run: async (context) => {
      const { a, b, c, path } = context;
      const { path: gadgets, make, name } = await define(context);
      await ok(a.post(gadgets, make('x')));
      await ok(a.post(gadgets, make('y')));
      const watching = await c.watch(gadgets);
      await watching.take(2);
      await ok(b.delete(path('customresourcedefinitions', name)));
      same((await watching.take(2)).map(({ type, object }) => `${type} ${object.metadata.name}`).sort(), [
        'DELETED x',
        'DELETED y',
      ]);
      watching.close();
      await eventually(() => missing(b.get(path('customresourcedefinitions', name))));
    },
  },
  {
    id: 'definitions/deletion-waits-for-instances',
    title: 'a definition waits for the finalizers of its instances, and takes no new ones meanwhile',
    run: async (context) => {
      const { a, b, path } = context;
      const { path: gadgets, make, name } = await define(context);
      await ok(a.post(gadgets, make('x', {}, { finalizers: ['example.com/wait'] })));
      await ok(b.delete(path('customresourcedefinitions', name)));
      await eventually(async () => has((await ok(b.get(`${gadgets}/x`))).metadata, { deletionTimestamp: /Z$/ }));
      await eventually(() =>
        refused(
          b.post(gadgets, make('y'), { dryRun: 'All' }),
          403,
          'Forbidden',
          /being terminated|being deleted|terminating/,
        ),
      );
      await ok(a.merge(`${gadgets}/x`, { metadata: { finalizers: null } }));
      await eventually(() => missing(b.get(path('customresourcedefinitions', name))));
    },
  },
  {
    id: 'definitions/immutable',
    title: 'scope and kind of an established definition are fixed',
    run: async (context) => {
      const { a, b, path } = context;
      const { name } = await define(context);
      await refused(
        b.merge(path('customresourcedefinitions', name), { spec: { scope: 'Cluster' } }),
        422,
        'Invalid',
        /spec.scope: Invalid value: "Cluster": field is immutable/,
      );
      await refused(
        b.merge(path('customresourcedefinitions', name), { spec: { names: { kind: 'Other' } } }),
        422,
        'Invalid',
        /spec.names.kind: Invalid value: "Other": field is immutable/,
      );
      await ok(a.get(path('customresourcedefinitions', name)), { spec: { scope: 'Namespaced' } });
    },
  },
  {
    id: 'definitions/discovery',
    title: 'a definition shows in discovery, with short names, categories and verbs',
    run: async (context) => {
      const { b } = context;
      const { group } = await define(context, {
        names: { shortNames: ['gd'], categories: ['all'] },
        version: {
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
        },
      });
      const list = await eventually(async () => {
        const found = await ok(b.get(`/apis/${group}/v1`), { kind: 'APIResourceList', groupVersion: `${group}/v1` });
        same(found.resources.map(({ name }) => String(name)).sort(), ['gadgets', 'gadgets/scale', 'gadgets/status']);
        return found;
      });
      has(
        list.resources.find(({ name }) => name === 'gadgets'),
        {
          singularName: 'gadget',
          namespaced: true,
          kind: 'Gadget',
          shortNames: ['gd'],
          categories: ['all'],
          verbs: ['delete', 'deletecollection', 'get', 'list', 'patch', 'create', 'update', 'watch'],
        },
      );
      has(
        list.resources.find(({ name }) => name === 'gadgets/scale'),
        { kind: 'Scale', group: 'autoscaling', version: 'v1', verbs: ['get', 'patch', 'update'] },
      );
    },
  },
];
