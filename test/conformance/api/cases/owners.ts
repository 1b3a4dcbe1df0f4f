// SPDX-License-Identifier: Apache-2.0
// The owners of fields to the letter: lists by keys, sets, maps, whole pieces, statuses, and how fields change hands.
import type { Thing } from '../caller.ts';
import { type ConformanceCase, has, ok, refused, same } from '../case.ts';
import { configMap, define, deployment } from '../objects.ts';

/** `manager operation/subresource` → what it owns, in the server's own order. */
function owners(thing: Thing): [string, unknown][] {
  return (thing.metadata.managedFields ?? []).map(({ manager, operation, subresource, fieldsV1 }) => [
    `${String(manager)} ${String(operation)}${subresource === undefined ? '' : `/${subresource as string}`}`,
    fieldsV1,
  ]);
}

/** A kind with every way to merge. */
const mergeable = {
  'x-kubernetes-preserve-unknown-fields': undefined,
  properties: {
    text: { type: 'string' },
    keyed: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['port', 'protocol'],
      items: {
        type: 'object',
        required: ['port'],
        properties: {
          port: { type: 'integer' },
          protocol: { type: 'string', default: 'TCP' },
          note: { type: 'string' },
          inner: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
        },
      },
    },
    set: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    whole: { type: 'array', items: { type: 'string' } },
    piece: { type: 'object', 'x-kubernetes-map-type': 'atomic', properties: { a: { type: 'string' } } },
    table: {
      type: 'object',
      additionalProperties: { type: 'object', properties: { a: { type: 'string' }, b: { type: 'string' } } },
    },
    nested: { type: 'object', properties: { deep: { type: 'object', properties: { x: { type: 'integer' } } } } },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  },
};

export const ownerCases: readonly ConformanceCase[] = [
  {
    id: 'owners/built-in-create',
    title: 'who creates a Deployment owns its fields, its containers by name and its ports by number and protocol',
    run: async ({ a, b, path }) => {
      const container = {
        name: 'main',
        image: 'i',
        ports: [{ containerPort: 80 }, { containerPort: 53, protocol: 'UDP' }],
        env: [{ name: 'A', value: '1' }],
        resources: { requests: { cpu: '1' } },
      };
      const template = {
        metadata: { labels: { app: 'x' } },
        spec: { containers: [container], nodeSelector: { a: 'b' }, tolerations: [{ operator: 'Exists' }] },
      };
      await ok(
        a.post(path('deployments'), deployment('x', { template }, { labels: { l: '1' } }), { fieldManager: 'maker' }),
      );
      const found = await ok(b.get(path('deployments', 'x')));
      await ok(b.merge(path('deployments', 'x'), { metadata: { annotations: { n: '1' } } }, { fieldManager: 'noter' }));
      same(owners(found), [
        [
          'maker Update',
          {
            'f:metadata': { 'f:labels': { '.': {}, 'f:l': {} } },
            'f:spec': {
              'f:progressDeadlineSeconds': {},
              'f:replicas': {},
              'f:revisionHistoryLimit': {},
              'f:selector': {},
              'f:strategy': { 'f:rollingUpdate': { '.': {}, 'f:maxSurge': {}, 'f:maxUnavailable': {} }, 'f:type': {} },
              'f:template': {
                'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
                'f:spec': {
                  'f:containers': {
                    'k:{"name":"main"}': {
                      '.': {},
                      'f:env': { '.': {}, 'k:{"name":"A"}': { '.': {}, 'f:name': {}, 'f:value': {} } },
                      'f:image': {},
                      'f:imagePullPolicy': {},
                      'f:name': {},
                      'f:ports': {
                        '.': {},
                        'k:{"containerPort":53,"protocol":"UDP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
                        'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {}, 'f:protocol': {} },
                      },
                      'f:resources': { '.': {}, 'f:requests': { '.': {}, 'f:cpu': {} } },
                      'f:terminationMessagePath': {},
                      'f:terminationMessagePolicy': {},
                    },
                  },
                  'f:dnsPolicy': {},
                  'f:nodeSelector': {},
                  'f:restartPolicy': {},
                  'f:schedulerName': {},
                  'f:securityContext': {},
                  'f:terminationGracePeriodSeconds': {},
                  'f:tolerations': {},
                },
              },
            },
          },
        ],
      ]);
    },
  },
  {
    id: 'owners/custom-apply',
    title: 'an apply owns leaves, items by their keys with defaults, members of sets, and entries of maps',
    run: async (context) => {
      const { a, b } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const spec = {
        text: 't',
        keyed: [
          { port: 80, note: 'n', inner: { a: '1' } },
          { port: 80, protocol: 'UDP' },
        ],
        set: ['x', 'y'],
        whole: ['p', 'q'],
        piece: { a: '1' },
        table: { one: { a: '1' }, two: {} },
        nested: { deep: { x: 1 } },
        free: { any: { thing: [1], other: {} } },
      };
      await ok(a.apply(`${gadgets}/x`, make('x', { spec }), 'one'));
      same(owners(await ok(b.get(`${gadgets}/x`))), [
        [
          'one Apply',
          {
            'f:spec': {
              'f:free': { 'f:any': { '.': {}, 'f:other': {}, 'f:thing': {} } },
              'f:keyed': {
                'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:inner': { 'f:a': {} }, 'f:note': {}, 'f:port': {} },
                'k:{"port":80,"protocol":"UDP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
              },
              'f:nested': { 'f:deep': { 'f:x': {} } },
              'f:piece': {},
              'f:set': { 'v:"x"': {}, 'v:"y"': {} },
              'f:table': { 'f:one': { '.': {}, 'f:a': {} }, 'f:two': {} },
              'f:text': {},
              'f:whole': {},
            },
          },
        ],
      ]);
    },
  },
  {
    id: 'owners/custom-create',
    title: 'a create owns what it made, maps and lists included',
    run: async (context) => {
      const { a, b } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const spec = {
        keyed: [{ port: 80, note: 'n' }],
        set: ['x'],
        whole: ['p'],
        piece: { a: '1' },
        table: { one: { a: '1' }, two: {} },
        free: { any: { thing: [1] } },
      };
      await ok(a.post(gadgets, make('x', { spec }), { fieldManager: 'maker' }));
      same(owners(await ok(b.get(`${gadgets}/x`))), [
        [
          'maker Update',
          {
            'f:spec': {
              '.': {},
              'f:free': { '.': {}, 'f:any': { '.': {}, 'f:thing': {} } },
              'f:keyed': {
                '.': {},
                'k:{"port":80,"protocol":"TCP"}': { '.': {}, 'f:note': {}, 'f:port': {}, 'f:protocol': {} },
              },
              'f:piece': {},
              'f:set': { '.': {}, 'v:"x"': {} },
              'f:table': { '.': {}, 'f:one': { '.': {}, 'f:a': {} }, 'f:two': {} },
              'f:whole': {},
            },
          },
        ],
      ]);
    },
  },
  {
    id: 'owners/custom-shared',
    title: 'two managers own parts of one list, one set and one map, and take only their own away',
    run: async (context) => {
      const { a, b, c } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const x = `${gadgets}/x`;
      await ok(
        a.apply(
          x,
          make('x', {
            spec: { keyed: [{ port: 1 }, { port: 2, note: 'a' }], set: ['s', 't'], table: { one: { a: '1' } } },
          }),
          'one',
        ),
      );
      await ok(
        b.apply(
          x,
          make('x', {
            spec: { keyed: [{ port: 2 }, { port: 3 }], set: ['t', 'u'], table: { one: { b: '2' }, two: { a: '3' } } },
          }),
          'two',
        ),
      );
      const together = await ok(c.get(x));
      same(together.spec, {
        keyed: [
          { port: 1, protocol: 'TCP' },
          { note: 'a', port: 2, protocol: 'TCP' },
          { port: 3, protocol: 'TCP' },
        ],
        set: ['s', 't', 'u'],
        table: { one: { a: '1', b: '2' }, two: { a: '3' } },
      });
      const left = await ok(a.apply(x, make('x', { spec: { set: ['s'] } }), 'one'));
      same(left.spec, {
        keyed: [
          { port: 2, protocol: 'TCP' },
          { port: 3, protocol: 'TCP' },
        ],
        set: ['s', 't', 'u'],
        table: { one: { b: '2' }, two: { a: '3' } },
      });
      same(owners(left), [
        ['one Apply', { 'f:spec': { 'f:set': { 'v:"s"': {} } } }],
        [
          'two Apply',
          {
            'f:spec': {
              'f:keyed': {
                'k:{"port":2,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
                'k:{"port":3,"protocol":"TCP"}': { '.': {}, 'f:port': {} },
              },
              'f:set': { 'v:"t"': {}, 'v:"u"': {} },
              'f:table': { 'f:one': { '.': {}, 'f:b': {} }, 'f:two': { '.': {}, 'f:a': {} } },
            },
          },
        ],
      ]);
      const last = await ok(b.apply(x, make('x', { spec: {} }), 'two'));
      same(last.spec, { set: ['s'] });
      same(owners(last), [
        ['one Apply', { 'f:spec': { 'f:set': { 'v:"s"': {} } } }],
        ['two Apply', { 'f:spec': {} }],
      ]);
    },
  },
  {
    id: 'owners/custom-conflicts',
    title: 'conflicts name pieces, items and entries by their whole path',
    run: async (context) => {
      const { a, b, c } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const x = `${gadgets}/x`;
      const spec = (value: string) => ({
        keyed: [{ port: 1, note: value }],
        whole: [value],
        piece: { a: value },
        table: { one: { a: value } },
        nested: { deep: { x: value.length } },
      });
      await ok(a.apply(x, make('x', { spec: spec('a') }), 'one'));
      const { details } = await refused(b.apply(x, make('x', { spec: spec('bb') }), 'two'), 409, 'Conflict');
      same(
        (details['causes'] as { field: string }[]).map(({ field }) => field),
        [
          '.spec.piece',
          '.spec.whole',
          '.spec.keyed[port=1,protocol="TCP"].note',
          '.spec.nested.deep.x',
          '.spec.table.one.a',
        ],
      );
      await ok(b.apply(x, make('x', { spec: spec('bb') }), 'two', { force: 'true' }));
      same(owners(await ok(c.get(x))), [
        [
          'one Apply',
          {
            'f:spec': {
              'f:keyed': { 'k:{"port":1,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
              'f:table': { 'f:one': {} },
            },
          },
        ],
        [
          'two Apply',
          {
            'f:spec': {
              'f:keyed': { 'k:{"port":1,"protocol":"TCP"}': { '.': {}, 'f:note': {}, 'f:port': {} } },
              'f:nested': { 'f:deep': { 'f:x': {} } },
              'f:piece': {},
              'f:table': { 'f:one': { '.': {}, 'f:a': {} } },
              'f:whole': {},
            },
          },
        ],
      ]);
      // What it lost by force, the first one may apply again only with the same values.
      await ok(a.apply(x, make('x', { spec: spec('bb') }), 'one'));
      await refused(
        a.apply(x, make('x', { spec: spec('ccc') }), 'one'),
        409,
        'Conflict',
        /Apply failed with 5 conflicts/,
      );
    },
  },
  {
    id: 'owners/removal-of-parents',
    title: 'what is no longer applied goes, and what it was in stays or goes as on the real server',
    run: async (context) => {
      const { a, b } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const x = `${gadgets}/x`;
      await ok(
        a.apply(
          x,
          make('x', {
            spec: {
              text: 't',
              nested: { deep: { x: 1 } },
              table: { one: { a: '1' } },
              set: ['x'],
              free: { a: { b: 1 } },
            },
          }),
          'one',
        ),
      );
      await ok(a.apply(x, make('x', { spec: { text: 't' } }), 'one'));
      same((await ok(b.get(x))).spec, { text: 't' });
    },
  },
  {
    id: 'owners/update-takes-and-drops',
    title: 'an update takes what it changes, and what it removes nobody owns any more',
    run: async (context) => {
      const { a, b, c } = context;
      const { path: gadgets, make } = await define(context, { spec: mergeable });
      const x = `${gadgets}/x`;
      await ok(
        a.apply(
          x,
          make('x', {
            spec: { text: 't', keyed: [{ port: 1 }, { port: 2, note: 'n' }], set: ['x', 'y'], whole: ['p'] },
          }),
          'one',
        ),
      );
      const live = await ok(b.get(x));
      await ok(
        b.put(
          x,
          {
            ...live,
            spec: {
              text: 'u',
              keyed: [
                { port: 2, protocol: 'TCP', note: 'm' },
                { port: 3, protocol: 'TCP' },
              ],
              set: ['y', 'z'],
              whole: ['p'],
            },
          },
          { fieldManager: 'two' },
        ),
      );
      same(owners(await ok(c.get(x))), [
        [
          'one Apply',
          {
            'f:spec': {
              'f:keyed': { 'k:{"port":2,"protocol":"TCP"}': { '.': {}, 'f:port': {} } },
              'f:set': { 'v:"y"': {} },
              'f:whole': {},
            },
          },
        ],
        [
          'two Update',
          {
            'f:spec': {
              'f:keyed': {
                'k:{"port":2,"protocol":"TCP"}': { 'f:note': {} },
                'k:{"port":3,"protocol":"TCP"}': { '.': {}, 'f:port': {}, 'f:protocol': {} },
              },
              'f:set': { 'v:"z"': {} },
              'f:text': {},
            },
          },
        ],
      ]);
    },
  },
  {
    id: 'owners/many-updaters',
    title: 'of more than ten who update, the oldest lose their names',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', { k: '0' }), { fieldManager: 'm00' }));
      for (let i = 1; i <= 12; i++) {
        const name = `m${String(i).padStart(2, '0')}`;
        await ok(b.merge(path('configmaps', 'x'), { data: { [name]: '1' } }, { fieldManager: name }));
      }
      const found = owners(await ok(c.get(path('configmaps', 'x'))));
      same(found.length, 10);
      same(found.filter(([who]) => who === 'ancient-changes Update').length, 1);
      has(found.map(([who]) => who).filter((who) => who.startsWith('m')).length, 9);
    },
  },
  {
    id: 'owners/status-conditions',
    title: 'two managers apply conditions of one status, each its own',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('deployments'), deployment('x'), { fieldManager: 'maker' }));
      const condition = (type: string, status: string) => ({
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'x' },
        status: { conditions: [{ type, status }] },
      });
      const status = path('deployments', 'x', 'status');
      await ok(b.apply(status, condition('One', 'True'), 'one'));
      await ok(c.apply(status, condition('Two', 'True'), 'two'));
      await refused(
        c.apply(status, { ...condition('One', 'False') }, 'two'),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "one" with subresource "status": .status.conditions[type="One"].status',
      );
      const found = await ok(a.get(path('deployments', 'x')));
      same(owners(found).slice(0, 2), [
        [
          'one Apply/status',
          { 'f:status': { 'f:conditions': { 'k:{"type":"One"}': { '.': {}, 'f:status': {}, 'f:type': {} } } } },
        ],
        [
          'two Apply/status',
          { 'f:status': { 'f:conditions': { 'k:{"type":"Two"}': { '.': {}, 'f:status': {}, 'f:type': {} } } } },
        ],
      ]);
      // Without its condition, the second one takes it away again.
      await ok(c.apply(status, { ...condition('Two', 'True'), status: {} }, 'two'));
      has((await ok(a.get(path('deployments', 'x')))).status, { conditions: [{ type: 'One', status: 'True' }] });
    },
  },
  {
    id: 'owners/metadata',
    title: 'labels, finalizers and owners of an object have owners of their own',
    run: async ({ a, b, c, path }) => {
      const owner = await ok(a.post(path('configmaps'), configMap('owner')));
      const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata.uid };
      const x = path('configmaps', 'x');
      const body = (metadata: object) => ({
        apiVersion: 'v1',
        kind: 'ConfigMap',
        metadata: { name: 'x', ...metadata },
      });
      await ok(a.apply(x, body({ labels: { a: '1' }, finalizers: ['example.com/a'] }), 'one'));
      await ok(
        b.apply(x, body({ labels: { b: '1' }, finalizers: ['example.com/b'], ownerReferences: [reference] }), 'two'),
      );
      const found = await ok(c.get(x));
      same(
        owners(found).map(([who, fields]) => [who, JSON.stringify(fields).replaceAll(owner.metadata.uid, 'UID')]),
        [
          ['one Apply', '{"f:metadata":{"f:finalizers":{"v:\\"example.com/a\\"":{}},"f:labels":{"f:a":{}}}}'],
          [
            'two Apply',
            '{"f:metadata":{"f:finalizers":{"v:\\"example.com/b\\"":{}},"f:labels":{"f:b":{}},"f:ownerReferences":{"k:{\\"uid\\":\\"UID\\"}":{}}}}',
          ],
        ],
      );
      const less = await ok(b.apply(x, body({}), 'two'));
      has(less.metadata, { labels: { a: '1' }, finalizers: ['example.com/a'], ownerReferences: undefined });
      await ok(a.merge(x, { metadata: { finalizers: null } }));
    },
  },
];
