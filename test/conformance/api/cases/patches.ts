// SPDX-License-Identifier: Apache-2.0
// JSON, merge and strategic merge patches: one client writes, another patches, the first one looks.
import { type ConformanceCase, has, ok, refused, same } from '../case.ts';
import { configMap, container, deployment, pod } from '../objects.ts';

interface DataPatch {
  readonly id: string;
  readonly title: string;
  readonly type: 'json' | 'merge' | 'strategic';
  readonly before: Readonly<Record<string, string>>;
  readonly patch: unknown;
  readonly after: Readonly<Record<string, string>> | undefined;
}

const dataPatches: readonly DataPatch[] = [
  {
    id: 'json-add',
    title: 'adds a key',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'add', path: '/data/b', value: '2' }],
    after: { a: '1', b: '2' },
  },
  {
    id: 'json-add-replaces',
    title: 'replaces with an add of what is there',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'add', path: '/data/a', value: '2' }],
    after: { a: '2' },
  },
  {
    id: 'json-replace',
    title: 'replaces a key',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'replace', path: '/data/a', value: '2' }],
    after: { a: '2' },
  },
  {
    id: 'json-replace-missing',
    title: 'adds with a replace of what is not there',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'replace', path: '/data/z', value: '2' }],
    after: { a: '1', z: '2' },
  },
  {
    id: 'json-remove',
    title: 'removes a key',
    type: 'json',
    before: { a: '1', b: '2' },
    patch: [{ op: 'remove', path: '/data/a' }],
    after: { b: '2' },
  },
  {
    id: 'json-remove-last',
    title: 'removes the last key and with it the map',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'remove', path: '/data/a' }],
    after: undefined,
  },
  {
    id: 'json-move',
    title: 'moves a key',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'move', from: '/data/a', path: '/data/b' }],
    after: { b: '1' },
  },
  {
    id: 'json-copy',
    title: 'copies a key',
    type: 'json',
    before: { a: '1' },
    patch: [{ op: 'copy', from: '/data/a', path: '/data/b' }],
    after: { a: '1', b: '1' },
  },
  {
    id: 'json-escape',
    title: 'reads ~1 and ~0 in paths',
    type: 'json',
    before: { a: '1' },
    patch: [
      { op: 'add', path: '/metadata/annotations', value: { 'x.io/y~z': 'v' } },
      { op: 'remove', path: '/metadata/annotations/x.io~1y~0z' },
    ],
    after: { a: '1' },
  },
  {
    id: 'json-test-passes',
    title: 'goes on after a test that holds',
    type: 'json',
    before: { a: '1' },
    patch: [
      { op: 'test', path: '/data/a', value: '1' },
      { op: 'replace', path: '/data/a', value: '2' },
    ],
    after: { a: '2' },
  },
  { id: 'json-empty', title: 'accepts no operations', type: 'json', before: { a: '1' }, patch: [], after: { a: '1' } },
  {
    id: 'merge-adds',
    title: 'adds and replaces',
    type: 'merge',
    before: { a: '1', b: '2' },
    patch: { data: { b: '3', c: '4' } },
    after: { a: '1', b: '3', c: '4' },
  },
  {
    id: 'merge-null',
    title: 'deletes with null',
    type: 'merge',
    before: { a: '1', b: '2' },
    patch: { data: { a: null } },
    after: { b: '2' },
  },
  {
    id: 'merge-null-map',
    title: 'deletes a whole map with null',
    type: 'merge',
    before: { a: '1' },
    patch: { data: null },
    after: undefined,
  },
  {
    id: 'merge-null-missing',
    title: 'deletes what is not there',
    type: 'merge',
    before: { a: '1' },
    patch: { data: { z: null } },
    after: { a: '1' },
  },
  {
    id: 'merge-empty',
    title: 'accepts an empty patch',
    type: 'merge',
    before: { a: '1' },
    patch: {},
    after: { a: '1' },
  },
  {
    id: 'strategic-adds',
    title: 'adds and replaces',
    type: 'strategic',
    before: { a: '1', b: '2' },
    patch: { data: { b: '3', c: '4' } },
    after: { a: '1', b: '3', c: '4' },
  },
  {
    id: 'strategic-null',
    title: 'deletes with null',
    type: 'strategic',
    before: { a: '1', b: '2' },
    patch: { data: { a: null } },
    after: { b: '2' },
  },
  {
    id: 'strategic-replace-directive',
    title: 'replaces a map by directive',
    type: 'strategic',
    before: { a: '1', b: '2' },
    patch: { data: { $patch: 'replace', c: '3' } },
    after: { c: '3' },
  },
];

const tables: readonly ConformanceCase[] = dataPatches.map(({ id, title, type, before, patch, after }) => ({
  id: `patches/${id}`,
  title: `a ${type} patch ${title}`,
  run: async ({ a, b, path }) => {
    const made = await ok(a.post(path('configmaps'), configMap('x', before)));
    const patched = await ok(b.patch(type, path('configmaps', 'x'), patch));
    same(patched.data, after);
    const seen = await ok(a.get(path('configmaps', 'x')));
    same(seen, patched);
    const changed = JSON.stringify(before) !== JSON.stringify(after ?? {});
    same(seen.metadata.resourceVersion !== made.metadata.resourceVersion, changed, 'a new version');
  },
}));

interface BadPatch {
  readonly id: string;
  readonly title: string;
  readonly type: 'json' | 'merge' | 'strategic';
  readonly patch: unknown;
  readonly code: number;
  readonly reason: string | undefined;
  readonly message: string | RegExp;
}

const badPatches: readonly BadPatch[] = [
  {
    id: 'json-test-fails',
    title: 'whose test does not hold changes nothing',
    type: 'json',
    patch: [
      { op: 'replace', path: '/data/a', value: '9' },
      { op: 'test', path: '/data/a', value: '1' },
    ],
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
  },
  {
    id: 'json-remove-missing',
    title: 'that removes what is not there is refused',
    type: 'json',
    patch: [{ op: 'remove', path: '/data/zzz' }],
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
  },
  {
    id: 'json-deep-missing',
    title: 'that adds below what is not there is refused',
    type: 'json',
    patch: [{ op: 'add', path: '/nope/deep/er', value: 'v' }],
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
  },
  {
    id: 'json-unknown-op',
    title: 'with an unknown operation is refused',
    type: 'json',
    patch: [{ op: 'frob', path: '/data/a' }],
    code: 422,
    reason: 'Invalid',
    message: 'the server rejected our request due to an error in our request',
  },
  {
    id: 'json-not-a-list',
    title: 'that is no list is a bad request',
    type: 'json',
    patch: { op: 'add' },
    code: 400,
    reason: 'BadRequest',
    message: 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp',
  },
  {
    id: 'merge-list',
    title: 'that is a list is refused',
    type: 'merge',
    patch: [],
    code: 400,
    reason: 'BadRequest',
    message: /./,
  },
  {
    id: 'merge-wrong-type',
    title: 'that gives a field the wrong type is refused',
    type: 'merge',
    patch: { data: { a: 1 } },
    code: 422,
    reason: 'Invalid',
    message:
      /^ "" is invalid: patch: Invalid value: .*: json: cannot unmarshal number into Go struct field ConfigMap\.data of type string$/,
  },
  {
    id: 'merge-breaks-rules',
    title: 'whose result breaks the rules is refused',
    type: 'merge',
    patch: { data: { 'bad key!': 'v' } },
    code: 422,
    reason: 'Invalid',
    message:
      /^ConfigMap "x" is invalid: data\[bad key!\]: Invalid value: "bad key!": a valid config key must consist of alphanumeric characters, '-', '_' or '\.'/,
  },
  {
    id: 'merge-name',
    title: 'that changes the name is refused',
    type: 'merge',
    patch: { metadata: { name: 'y' } },
    code: 400,
    reason: 'BadRequest',
    message: 'the name of the object (y) does not match the name on the URL (x)',
  },
  {
    id: 'merge-namespace',
    title: 'that changes the namespace is refused',
    type: 'merge',
    patch: { metadata: { namespace: 'elsewhere' } },
    code: 400,
    reason: 'BadRequest',
    message: 'the namespace of the provided object does not match the namespace sent on the request',
  },
  {
    id: 'merge-kind',
    title: 'that changes the kind is refused',
    type: 'merge',
    patch: { kind: 'Service' },
    code: 422,
    reason: 'Invalid',
    message: /^ "" is invalid: patch: Invalid value: /,
  },
  {
    id: 'strategic-bad-directive',
    title: 'with an unknown directive is refused',
    type: 'strategic',
    patch: { data: { $patch: 'frobnicate' } },
    code: 500,
    reason: undefined,
    message: 'unknown patch type: frobnicate in map: map[$patch:frobnicate]',
  },
];

const refusals: readonly ConformanceCase[] = badPatches.map(({ id, title, type, patch, code, reason, message }) => ({
  id: `patches/bad-${id}`,
  title: `a ${type} patch ${title}`,
  run: async ({ a, b, path }) => {
    const made = await ok(a.post(path('configmaps'), configMap('x')));
    await refused(b.patch(type, path('configmaps', 'x'), patch), code, reason, message);
    same(await ok(a.get(path('configmaps', 'x'))), made);
  },
}));

const lists: readonly ConformanceCase[] = [
  {
    id: 'patches/strategic-containers-by-name',
    title: 'a strategic patch finds containers by name, changes one and adds another',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      const containers = [
        { name: 'main', image: 'new' },
        { name: 'side', image: 'car' },
      ];
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec: { containers } } } }));
      const { spec } = await ok(a.get(path('deployments', 'x')));
      const found = (spec as { template: { spec: { containers: { name: string; image: string }[] } } }).template.spec;
      same(found.containers.map(({ name, image }) => `${name}=${image}`).sort(), ['main=new', 'side=car']);
    },
  },
  {
    id: 'patches/merge-replaces-containers',
    title: 'a merge patch replaces a list as a whole',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      const containers = [{ name: 'only', image: 'one' }];
      await ok(b.merge(path('deployments', 'x'), { spec: { template: { spec: { containers } } } }));
      await ok(a.get(path('deployments', 'x')), {
        spec: { template: { spec: { containers: [{ name: 'only', image: 'one', imagePullPolicy: 'Always' }] } } },
        metadata: { generation: 2 },
      });
    },
  },
  {
    id: 'patches/strategic-delete-element',
    title: 'a strategic patch deletes a list element by its key',
    run: async ({ a, b, path }) => {
      const template = {
        metadata: { labels: { app: 'x' } },
        spec: { containers: [container, { name: 'side', image: 'car' }] },
      };
      await ok(a.post(path('deployments'), deployment('x', { template })));
      const containers = [{ name: 'side', $patch: 'delete' }];
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec: { containers } } } }));
      await ok(a.get(path('deployments', 'x')), { spec: { template: { spec: { containers: [{ name: 'main' }] } } } });
    },
  },
  {
    id: 'patches/strategic-env',
    title: 'a strategic patch merges environment variables by name, in two levels of keys',
    run: async ({ a, b, path }) => {
      const env = [
        { name: 'A', value: '1' },
        { name: 'B', value: '2' },
      ];
      const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ ...container, env }] } };
      await ok(a.post(path('deployments'), deployment('x', { template })));
      const containers = [
        {
          name: 'main',
          env: [
            { name: 'B', value: '3' },
            { name: 'A', $patch: 'delete' },
          ],
        },
      ];
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec: { containers } } } }));
      await ok(a.get(path('deployments', 'x')), {
        spec: { template: { spec: { containers: [{ env: [{ name: 'B', value: '3' }] }] } } },
      });
    },
  },
  {
    id: 'patches/strategic-finalizers',
    title: 'a strategic patch merges finalizers as a set and deletes from it by directive',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers: ['example.com/one'] })));
      await ok(b.patch('strategic', path('configmaps', 'x'), { metadata: { finalizers: ['example.com/two'] } }));
      const both = await ok(a.get(path('configmaps', 'x')));
      same([...both.metadata.finalizers].sort(), ['example.com/one', 'example.com/two']);
      const away = { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/one'] } };
      await ok(b.patch('strategic', path('configmaps', 'x'), away));
      same((await ok(a.get(path('configmaps', 'x')))).metadata.finalizers, ['example.com/two']);
      await ok(b.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
    },
  },
  {
    id: 'patches/strategic-replace-list',
    title: 'a strategic patch may replace a keyed list as a whole',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      const containers = [{ $patch: 'replace' }, { name: 'only', image: 'one' }];
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec: { containers } } } }));
      await ok(a.get(path('deployments', 'x')), { spec: { template: { spec: { containers: [{ name: 'only' }] } } } });
    },
  },
  {
    id: 'patches/strategic-set-element-order',
    title: 'a strategic patch may say the order of the elements',
    run: async ({ a, b, path }) => {
      const template = {
        metadata: { labels: { app: 'x' } },
        spec: { containers: [container, { name: 'side', image: 'car' }] },
      };
      await ok(a.post(path('deployments'), deployment('x', { template })));
      const spec = {
        '$setElementOrder/containers': [{ name: 'side' }, { name: 'main' }],
        containers: [{ name: 'main', image: 'new' }],
      };
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec } } }));
      await ok(a.get(path('deployments', 'x')), {
        spec: { template: { spec: { containers: [{ name: 'side' }, { name: 'main', image: 'new' }] } } },
      });
    },
  },
  {
    id: 'patches/strategic-retain-keys',
    title: 'a strategic patch with retainKeys changes the strategy of a Deployment',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')), {
        spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: '25%' } } },
      });
      const strategy = { type: 'Recreate', $retainKeys: ['type'] };
      await ok(b.patch('strategic', path('deployments', 'x'), { spec: { strategy } }));
      same((await ok(a.get(path('deployments', 'x')))).spec['strategy'], { type: 'Recreate' });
    },
  },
  {
    id: 'patches/strategic-keyed-list-without-key',
    title: 'an element without its key cannot be merged',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      const containers = [{ image: 'nameless' }];
      const reply = await b.patch('strategic', path('deployments', 'x'), {
        spec: { template: { spec: { containers } } },
      });
      has(
        { status: reply.status, message: reply.body.message },
        { status: 500, message: /map: map\[image:nameless\] does not contain declared merge key: name/ },
      );
      same(await ok(a.get(path('deployments', 'x'))), made);
    },
  },
  {
    id: 'patches/strategic-service-ports',
    title: 'ports of a service are merged by port number',
    run: async ({ a, b, path }) => {
      const ports = [
        { name: 'http', port: 80 },
        { name: 'https', port: 443 },
      ];
      await ok(
        a.post(path('services'), {
          metadata: { name: 'x' },
          spec: { clusterIP: 'None', selector: { app: 'x' }, ports },
        }),
      );
      await ok(b.patch('strategic', path('services', 'x'), { spec: { ports: [{ port: 80, targetPort: 8080 }] } }));
      const { spec } = await ok(a.get(path('services', 'x')));
      same(
        (spec['ports'] as { port: number; name: string; targetPort: number }[])
          .map((p) => `${p.name}:${p.port}:${p.targetPort}`)
          .sort(),
        ['http:80:8080', 'https:443:443'],
      );
    },
  },
  {
    id: 'patches/pod-tolerations-add-only',
    title: 'tolerations of a pod may be added, not taken away',
    run: async ({ a, b, path }) => {
      const tolerations = [{ key: 'k', operator: 'Exists' }];
      await ok(a.post(path('pods'), pod('x', { tolerations })));
      await ok(
        b.patch('json', path('pods', 'x'), [
          { op: 'add', path: '/spec/tolerations/-', value: { key: 'more', operator: 'Exists' } },
        ]),
      );
      await refused(
        b.merge(path('pods', 'x'), { spec: { tolerations: [] } }),
        422,
        'Invalid',
        /existing toleration can not be modified except its tolerationSeconds/,
      );
      const { spec } = await ok(a.get(path('pods', 'x')));
      same((spec['tolerations'] as { key: string }[]).map(({ key }) => key).sort(), [
        'k',
        'more',
        'node.kubernetes.io/not-ready',
        'node.kubernetes.io/unreachable',
      ]);
    },
  },
  {
    id: 'patches/status-conditions-by-type',
    title: 'conditions are merged by type',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      const condition = (type: string, status: string) => ({
        type,
        status,
        lastTransitionTime: '2026-01-01T00:00:00Z',
      });
      await ok(
        a.patch('strategic', path('pods', 'x', 'status'), { status: { conditions: [condition('Ready', 'False')] } }),
      );
      await ok(
        b.patch('strategic', path('pods', 'x', 'status'), {
          status: { conditions: [condition('Initialized', 'True'), condition('Ready', 'True')] },
        }),
      );
      const { status } = await ok(a.get(path('pods', 'x')));
      same((status['conditions'] as { type: string; status: string }[]).map((c) => `${c.type}=${c.status}`).sort(), [
        'Initialized=True',
        'Ready=True',
      ]);
    },
  },
  {
    id: 'patches/taints-replace',
    title: 'taints of a node are one list: a strategic patch replaces it',
    run: async ({ a, b, path, unique }) => {
      const name = unique('node');
      await ok(a.post(path('nodes'), { metadata: { name }, spec: { taints: [{ key: 'a', effect: 'NoSchedule' }] } }));
      await ok(b.patch('strategic', path('nodes', name), { spec: { taints: [{ key: 'b', effect: 'NoExecute' }] } }));
      same(
        ((await ok(a.get(path('nodes', name)))).spec['taints'] as { key: string }[]).map(({ key }) => key),
        ['b'],
      );
    },
  },
  {
    id: 'patches/patch-a-patch',
    title: 'patches by two clients with test operations: one wins, the other sees it',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', { holder: '' })));
      const take = (client: typeof a, who: string) =>
        client.patch('json', path('configmaps', 'x'), [
          { op: 'test', path: '/data/holder', value: '' },
          { op: 'replace', path: '/data/holder', value: who },
        ]);
      const replies = await Promise.all([take(a, 'a'), take(b, 'b')]);
      same(
        replies.map(({ status }) => status).sort((x, y) => x - y),
        [200, 422],
      );
      const winner = replies[0]!.status === 200 ? 'a' : 'b';
      await ok(c.get(path('configmaps', 'x')), { data: { holder: winner } });
    },
  },
];

export const patchCases: readonly ConformanceCase[] = [...tables, ...refusals, ...lists];
