// SPDX-License-Identifier: Apache-2.0
// Create, read, update and delete, with the words for what cannot be.
import { type ConformanceCase, has, missing, namesOf, ok, refused, same } from '../case.ts';
import { configMap, deployment, pod } from '../objects.ts';

export const crudCases: readonly ConformanceCase[] = [
  {
    id: 'crud/create-then-read',
    title: 'what one client creates another reads, with what the server adds',
    run: async ({ a, b, namespace, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      has(made, { apiVersion: 'v1', kind: 'ConfigMap', data: { a: '1' }, metadata: { name: 'x', namespace } });
      has(made.metadata, { uid: /^[0-9a-f-]{36}$/, resourceVersion: /^\d+$/, creationTimestamp: /^\d{4}-.*Z$/ });
      same(made.metadata.generation, undefined);
      same(await ok(b.get(path('configmaps', 'x'))), made);
    },
  },
  {
    id: 'crud/created-is-201',
    title: 'a create answers 201, a second one of the same name 409, an update 200',
    run: async ({ a, b, path }) => {
      const first = await a.post(path('configmaps'), configMap('x'));
      same(first.status, 201);
      await refused(b.post(path('configmaps'), configMap('x')), 409, 'AlreadyExists', 'configmaps "x" already exists', {
        name: 'x',
        kind: 'configmaps',
      });
      same((await b.put(path('configmaps', 'x'), first.body)).status, 200);
    },
  },
  {
    id: 'crud/client-cannot-set-server-fields',
    title: 'uid and times are the server’s, whatever the body says',
    run: async ({ a, b, path }) => {
      const mine = {
        uid: 'mine',
        creationTimestamp: '2001-01-01T00:00:00Z',
        selfLink: '/x',
        deletionTimestamp: '2001-01-01T00:00:00Z',
        deletionGracePeriodSeconds: 5,
      };
      await ok(a.post(path('configmaps'), configMap('x', {}, mine)));
      const got = await ok(b.get(path('configmaps', 'x')), { metadata: { deletionTimestamp: undefined } });
      has(got.metadata, { uid: /^[0-9a-f-]{36}$/, creationTimestamp: /^20[2-9]\d/, selfLink: undefined });
    },
  },
  {
    id: 'crud/create-with-version',
    title: 'an object to be created must not have a resourceVersion',
    run: async ({ a, b, path }) => {
      const body = configMap('x', {}, { resourceVersion: '1' });
      const { status, body: answer } = await a.post(path('configmaps'), body);
      // No reason: the storage refuses it, not the handler.
      has(
        { ...answer, code: status },
        {
          status: 'Failure',
          code: 500,
          reason: undefined,
          message: 'resourceVersion should not be set on objects to be created',
        },
      );
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'crud/generate-name',
    title: 'names are made from generateName, each another one',
    run: async ({ a, b, path }) => {
      const body = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { generateName: 'gen-' } };
      const made = await Promise.all([a, b, a, b].map((client) => ok(client.post(path('configmaps'), body))));
      for (const each of made) has(each.metadata, { name: /^gen-[a-z0-9]{5}$/, generateName: 'gen-' });
      same(new Set(made.map((each) => each.metadata.name)).size, 4);
      same(namesOf(await ok(b.get(path('configmaps')))), made.map((each) => each.metadata.name).sort());
    },
  },
  {
    id: 'crud/generate-name-cut',
    title: 'a generateName that leaves no room is cut before the suffix is added',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), { metadata: { generateName: 'n'.repeat(200) } }));
      has(made.metadata, { name: /^n{58}[a-z0-9]{5}$/ });
      await ok(b.get(path('configmaps', made.metadata.name)));
      const tooLong = { metadata: { generateName: 'n'.repeat(300) } };
      await refused(
        b.post(path('configmaps'), tooLong),
        422,
        'Invalid',
        /metadata.generateName: Invalid value: .*: must be no more than 253 characters/,
      );
    },
  },
  {
    id: 'crud/name-wins-over-generate-name',
    title: 'a name wins over generateName, which is kept',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { generateName: 'gen-' })), { metadata: { name: 'x' } });
      await ok(b.get(path('configmaps', 'x')), { metadata: { generateName: 'gen-' } });
      await refused(b.post(path('configmaps'), configMap('x', {}, { generateName: 'gen-' })), 409, 'AlreadyExists');
    },
  },
  {
    id: 'crud/no-name',
    title: 'without a name there is nothing to create',
    run: async ({ a, b, path }) => {
      await refused(
        a.post(path('configmaps'), { metadata: {} }),
        422,
        'Invalid',
        'ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required',
        { kind: 'ConfigMap', causes: [{ reason: 'FieldValueRequired', field: 'metadata.name' }] },
      );
      same((await ok(b.get(path('configmaps')))).items, []);
    },
  },
  {
    id: 'crud/bad-name',
    title: 'names are checked, and the refusal says how they should look',
    run: async ({ a, b, path }) => {
      const message =
        "ConfigMap \"Not_Valid\" is invalid: metadata.name: Invalid value: \"Not_Valid\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
      await refused(a.post(path('configmaps'), configMap('Not_Valid')), 422, 'Invalid', message, {
        name: 'Not_Valid',
        kind: 'ConfigMap',
        causes: [{ reason: 'FieldValueInvalid', field: 'metadata.name' }],
      });
      same((await ok(b.get(path('configmaps')))).items, []);
    },
  },
  {
    id: 'crud/long-name',
    title: 'names are at most 253 characters, those of services at most 63',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('n'.repeat(253))));
      await refused(
        a.post(path('configmaps'), configMap('n'.repeat(254))),
        422,
        'Invalid',
        /must be no more than 253 characters/,
      );
      const service = { metadata: { name: 'n'.repeat(64) }, spec: { ports: [{ port: 80 }] } };
      await refused(b.post(path('services'), service), 422, 'Invalid', /must be no more than 63 characters/);
    },
  },
  {
    id: 'crud/get-missing',
    title: 'what is not there is a NotFound that names it',
    run: async ({ a, b, path }) => {
      await refused(a.get(path('configmaps', 'x')), 404, 'NotFound', 'configmaps "x" not found', {
        name: 'x',
        kind: 'configmaps',
      });
      await refused(a.get(path('deployments', 'x')), 404, 'NotFound', 'deployments.apps "x" not found', {
        name: 'x',
        group: 'apps',
        kind: 'deployments',
      });
      await refused(b.delete(path('configmaps', 'x')), 404, 'NotFound', 'configmaps "x" not found');
    },
  },
  {
    id: 'crud/update-missing',
    title: 'an update of what is not there is refused as not found',
    run: async ({ a, b, path }) => {
      await refused(a.put(path('configmaps', 'x'), configMap('x')), 404, 'NotFound', 'configmaps "x" not found');
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'crud/patch-missing',
    title: 'a patch of what is not there is refused as not found',
    run: async ({ a, b, path }) => {
      await refused(a.merge(path('configmaps', 'x'), { data: {} }), 404, 'NotFound', 'configmaps "x" not found');
      await refused(b.patch('json', path('configmaps', 'x'), []), 404, 'NotFound');
      await missing(b.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'crud/update-replaces',
    title: 'an update replaces what it leaves out',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', { a: '1', b: '2' }, { labels: { l: 'v' } })));
      await ok(b.put(path('configmaps', 'x'), configMap('x', { c: '3' })));
      same((await ok(a.get(path('configmaps', 'x')))).data, { c: '3' });
      same((await ok(a.get(path('configmaps', 'x')))).metadata.labels, undefined);
    },
  },
  {
    id: 'crud/update-keeps-identity',
    title: 'an update cannot change the time of creation, and must name the right uid',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const body = configMap('x', { b: '2' }, { creationTimestamp: '2001-01-01T00:00:00Z' });
      const put = await ok(b.put(path('configmaps', 'x'), body));
      has(put.metadata, { uid: made.metadata.uid, creationTimestamp: made.metadata.creationTimestamp });
      const other = '11111111-1111-1111-1111-111111111111';
      await refused(
        b.put(path('configmaps', 'x'), configMap('x', {}, { uid: other })),
        409,
        'Conflict',
        `Operation cannot be fulfilled on configmaps "x": StorageError: invalid object, Code: 4, Key: /registry/configmaps/${made.metadata.namespace}/x, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: ${other}, UID in object meta: ${made.metadata.uid}`,
      );
    },
  },
  {
    id: 'crud/no-change-no-version',
    title: 'an update that changes nothing keeps the version and tells no watcher',
    run: async ({ a, b, c, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const watching = await c.watch(path('configmaps'), { resourceVersion: made.metadata.resourceVersion });
      const put = await ok(b.put(path('configmaps', 'x'), made));
      same(put.metadata.resourceVersion, made.metadata.resourceVersion);
      await ok(b.merge(path('configmaps', 'x'), { data: { a: '1' } }), {
        metadata: { resourceVersion: made.metadata.resourceVersion },
      });
      await ok(a.post(path('configmaps'), configMap('y')));
      has(await watching.take(1), [{ type: 'ADDED', object: { metadata: { name: 'y' } } }]);
      watching.close();
    },
  },
  {
    id: 'crud/delete-answers',
    title: 'a delete answers with a Status that names what was deleted',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const { kind, status, details } = await ok(b.delete(path('configmaps', 'x')));
      same(
        { kind, status, details },
        { kind: 'Status', status: 'Success', details: { name: 'x', kind: 'configmaps', uid: made.metadata.uid } },
      );
      await missing(a.get(path('configmaps', 'x')));
    },
  },
  {
    id: 'crud/delete-pod-answers',
    title: 'a pod without grace is answered as the object it was',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('pods'), pod('x')));
      const gone = await ok(b.delete(path('pods', 'x'), { gracePeriodSeconds: 0 }), { kind: 'Pod' });
      same(gone.metadata.uid, made.metadata.uid);
      await missing(a.get(path('pods', 'x')));
    },
  },
  {
    id: 'crud/recreate',
    title: 'a name can be used again, by another object',
    run: async ({ a, b, path }) => {
      const first = await ok(a.post(path('configmaps'), configMap('x')));
      await ok(b.delete(path('configmaps', 'x')));
      const second = await ok(a.post(path('configmaps'), configMap('x')));
      same(first.metadata.uid === second.metadata.uid, false);
      const stale = configMap('x', { a: '2' }, { uid: first.metadata.uid });
      await refused(b.put(path('configmaps', 'x'), stale), 409, 'Conflict', /Precondition failed: UID in precondition/);
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'crud/delete-collection',
    title: 'a collection is deleted within its selection only',
    run: async ({ a, b, path }) => {
      for (const [name, set] of [
        ['p', 'one'],
        ['q', 'one'],
        ['r', 'two'],
      ] as const) {
        await ok(a.post(path('configmaps'), configMap(name, {}, { labels: { set } })));
      }
      const gone = await ok(b.delete(path('configmaps'), undefined, { labelSelector: 'set=one' }), {
        kind: 'ConfigMapList',
      });
      same(namesOf(gone), ['p', 'q']);
      same(namesOf(await ok(a.get(path('configmaps')))), ['r']);
    },
  },
  {
    id: 'crud/delete-collection-by-field',
    title: 'a collection is deleted by field, and its watchers are told',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('p')));
      await ok(a.post(path('configmaps'), configMap('q')));
      const watching = await c.watch(path('configmaps'));
      await watching.take(2);
      await ok(b.delete(path('configmaps'), undefined, { fieldSelector: 'metadata.name=q' }));
      has(await watching.take(1), [{ type: 'DELETED', object: { metadata: { name: 'q' } } }]);
      same(namesOf(await ok(a.get(path('configmaps')))), ['p']);
      watching.close();
    },
  },
  {
    id: 'crud/immutable-config-map',
    title: 'an immutable ConfigMap cannot be changed, nor made mutable again',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), { ...configMap('x'), immutable: true }));
      await refused(
        b.merge(path('configmaps', 'x'), { data: { a: '2' } }),
        422,
        'Invalid',
        'ConfigMap "x" is invalid: data: Forbidden: field is immutable when `immutable` is set',
        { causes: [{ reason: 'FieldValueForbidden', field: 'data' }] },
      );
      await refused(
        b.merge(path('configmaps', 'x'), { immutable: false }),
        422,
        'Invalid',
        /immutable: Forbidden: field is immutable when `immutable` is set/,
      );
      await ok(b.merge(path('configmaps', 'x'), { metadata: { labels: { l: 'v' } } }));
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'crud/secret-string-data',
    title: 'stringData of a secret is write-only and ends in data',
    run: async ({ a, b, path }) => {
      await ok(
        a.post(path('secrets'), { metadata: { name: 'x' }, stringData: { user: 'me' }, data: { other: 'eA==' } }),
        {
          type: 'Opaque',
          stringData: undefined,
        },
      );
      same((await ok(b.get(path('secrets', 'x')))).data, { user: 'bWU=', other: 'eA==' });
      await ok(b.merge(path('secrets', 'x'), { stringData: { user: 'you' } }));
      has((await ok(a.get(path('secrets', 'x')))).data, { user: 'eW91' });
    },
  },
  {
    id: 'crud/generation',
    title: 'generation counts changes of the spec, not of labels or status',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')), { metadata: { generation: 1 } });
      await ok(b.merge(path('deployments', 'x'), { metadata: { labels: { l: 'v' } } }), {
        metadata: { generation: 1 },
      });
      await ok(b.merge(path('deployments', 'x', 'status'), { status: { replicas: 3 } }), {
        metadata: { generation: 1 },
      });
      await ok(a.merge(path('deployments', 'x'), { spec: { replicas: 2 } }), { metadata: { generation: 2 } });
      await ok(b.get(path('deployments', 'x')), { metadata: { generation: 2 }, status: { replicas: 3 } });
    },
  },
  {
    id: 'crud/pod-defaults',
    title: 'a pod gets the defaults every client relies on',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.get(path('pods', 'x')), {
        spec: {
          restartPolicy: 'Always',
          dnsPolicy: 'ClusterFirst',
          schedulerName: 'default-scheduler',
          terminationGracePeriodSeconds: 30,
          enableServiceLinks: true,
          preemptionPolicy: 'PreemptLowerPriority',
          priority: 0,
          securityContext: {},
          containers: [
            {
              imagePullPolicy: 'IfNotPresent',
              terminationMessagePath: '/dev/termination-log',
              terminationMessagePolicy: 'File',
              resources: {},
            },
          ],
          tolerations: [
            { key: 'node.kubernetes.io/not-ready', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
            { key: 'node.kubernetes.io/unreachable', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
          ],
        },
        status: { phase: 'Pending', qosClass: 'BestEffort' },
      });
    },
  },
  {
    id: 'crud/pod-quality',
    title: 'a pod’s quality of service follows from its resources',
    run: async ({ a, b, path }) => {
      const resources = { limits: { cpu: '1', memory: '1Gi' } };
      const containers = [{ name: 'main', image: 'i:latest', resources }];
      await ok(a.post(path('pods'), pod('guaranteed', { containers })), { status: { qosClass: 'Guaranteed' } });
      await ok(b.get(path('pods', 'guaranteed')), {
        spec: { containers: [{ imagePullPolicy: 'Always', resources: { requests: { cpu: '1', memory: '1Gi' } } }] },
      });
      const some = [{ name: 'main', image: 'i', resources: { requests: { cpu: '0.5' } } }];
      await ok(b.post(path('pods'), pod('burstable', { containers: some })), {
        status: { qosClass: 'Burstable' },
        spec: { containers: [{ resources: { requests: { cpu: '500m' } } }] },
      });
    },
  },
  {
    id: 'crud/pod-spec-fixed',
    title: 'of a pod’s spec only images, deadlines and tolerations may change',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('pods'), pod('x')));
      await ok(b.patch('strategic', path('pods', 'x'), { spec: { containers: [{ name: 'main', image: 'other' }] } }), {
        spec: { containers: [{ image: 'other' }] },
      });
      await refused(
        b.merge(path('pods', 'x'), { spec: { hostNetwork: true } }),
        422,
        'Invalid',
        /^Pod "x" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers\[\*\].image`/,
        { causes: [{ reason: 'FieldValueForbidden', field: 'spec' }] },
      );
      await ok(a.get(path('pods', 'x')), { spec: { containers: [{ image: 'other' }] } });
    },
  },
];
