// SPDX-License-Identifier: Apache-2.0
// Two clients, one object: versions, preconditions, and who is told to try again.
import { type ConformanceCase, has, ok, refused, same } from '../case.ts';
import { configMap, deployment } from '../objects.ts';

const modified = (plural: string, name: string) =>
  `Operation cannot be fulfilled on ${plural} "${name}": the object has been modified; please apply your changes to the latest version and try again`;

export const concurrencyCases: readonly ConformanceCase[] = [
  {
    id: 'concurrency/lost-update',
    title: 'the second of two updates from one version is refused',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.put(path('configmaps', 'x'), { ...made, data: { a: '2' } }));
      await refused(
        b.put(path('configmaps', 'x'), { ...made, data: { a: '3' } }),
        409,
        'Conflict',
        modified('configmaps', 'x'),
        {
          name: 'x',
          kind: 'configmaps',
        },
      );
      await ok(b.get(path('configmaps', 'x')), { data: { a: '2' } });
    },
  },
  {
    id: 'concurrency/read-modify-write',
    title: 'twenty increments by two clients that retry on conflict all count',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', { n: '0' })));
      const increment = async (client: typeof a): Promise<void> => {
        for (;;) {
          const now = await ok(client.get(path('configmaps', 'x')));
          const data = { n: String(Number(now.data['n']) + 1) };
          const { status } = await client.put(path('configmaps', 'x'), { ...now, data });
          if (status === 200) return;
          same(status, 409);
        }
      };
      const tenTimes = async (client: typeof a): Promise<void> => {
        for (let i = 0; i < 10; i++) await increment(client);
      };
      await Promise.all([tenTimes(a), tenTimes(b)]);
      await ok(c.get(path('configmaps', 'x')), { data: { n: '20' } });
    },
  },
  {
    id: 'concurrency/unconditional-update',
    title: 'an update without a version wins whatever came before',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(b.merge(path('configmaps', 'x'), { data: { a: '2' } }));
      await ok(a.put(path('configmaps', 'x'), configMap('x', { a: '3' })));
      await ok(b.get(path('configmaps', 'x')), { data: { a: '3' } });
    },
  },
  {
    id: 'concurrency/bad-version',
    title: 'a version that is no number cannot be updated from',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const body = configMap('x', {}, { resourceVersion: 'abc' });
      const { status, body: answer } = await b.put(path('configmaps', 'x'), body);
      // No reason: the storage refuses it, not the handler.
      const message = 'strconv.ParseUint: parsing "abc": invalid syntax';
      has({ ...answer, status }, { status: 500, code: 500, reason: undefined, message });
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'concurrency/patch-with-version',
    title: 'a merge patch that names an old version is refused',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const { resourceVersion } = made.metadata;
      await ok(a.merge(path('configmaps', 'x'), { metadata: { resourceVersion }, data: { a: '2' } }));
      await refused(
        b.merge(path('configmaps', 'x'), { metadata: { resourceVersion }, data: { a: '3' } }),
        409,
        'Conflict',
        modified('configmaps', 'x'),
      );
      await ok(b.get(path('configmaps', 'x')), { data: { a: '2' } });
    },
  },
  {
    id: 'concurrency/patch-with-uid',
    title: 'a patch that names another uid is refused',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const uid = '11111111-1111-1111-1111-111111111111';
      await refused(
        b.merge(path('configmaps', 'x'), { metadata: { uid }, data: { a: '3' } }),
        422,
        'Invalid',
        `ConfigMap "x" is invalid: metadata.uid: Invalid value: "${uid}": field is immutable`,
      );
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'concurrency/patches-never-lose',
    title: 'patches of different keys by three clients at once all stay',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {})));
      const keys = Array.from({ length: 12 }, (_, i) => `k${i}`);
      const clients = [a, b, c];
      await Promise.all(
        keys.map((key, i) => ok(clients[i % 3]!.merge(path('configmaps', 'x'), { data: { [key]: 'v' } }))),
      );
      same(Object.keys((await ok(a.get(path('configmaps', 'x')))).data).sort(), keys.sort());
    },
  },
  {
    id: 'concurrency/create-race',
    title: 'of ten creates of one name exactly one succeeds',
    run: async ({ a, b, c, path }) => {
      const clients = [a, b, c];
      const replies = await Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          clients[i % 3]!.post(path('configmaps'), configMap('x', { by: String(i) })),
        ),
      );
      same(
        replies.map(({ status }) => status).sort((x, y) => x - y),
        [201, ...Array(9).fill(409)],
      );
      const winner = replies.find(({ status }) => status === 201)!.body;
      same((await ok(a.get(path('configmaps', 'x')))).data, winner.data);
    },
  },
  {
    id: 'concurrency/delete-race',
    title: 'of several deletes of one object exactly one succeeds',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const replies = await Promise.all([a, b, c].map((client) => client.delete(path('configmaps', 'x'))));
      same(
        replies.map(({ status }) => status).sort((x, y) => x - y),
        [200, 404, 404],
      );
    },
  },
  {
    id: 'concurrency/delete-precondition-uid',
    title: 'a delete may insist on the uid',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const uid = '11111111-1111-1111-1111-111111111111';
      await refused(
        b.delete(path('configmaps', 'x'), { preconditions: { uid } }),
        409,
        'Conflict',
        `Operation cannot be fulfilled on ConfigMap "x": the UID in the precondition (${uid}) does not match the UID in record (${made.metadata.uid}). The object might have been deleted and then recreated`,
      );
      await ok(b.delete(path('configmaps', 'x'), { preconditions: { uid: made.metadata.uid } }));
    },
  },
  {
    id: 'concurrency/delete-precondition-version',
    title: 'a delete may insist on the version',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const { resourceVersion } = made.metadata;
      const now = await ok(a.merge(path('configmaps', 'x'), { data: { a: '2' } }));
      await refused(
        b.delete(path('configmaps', 'x'), { preconditions: { resourceVersion } }),
        409,
        'Conflict',
        `Operation cannot be fulfilled on ConfigMap "x": the ResourceVersion in the precondition (${resourceVersion}) does not match the ResourceVersion in record (${now.metadata.resourceVersion}). The object might have been modified`,
      );
      await ok(b.delete(path('configmaps', 'x'), { preconditions: { resourceVersion: now.metadata.resourceVersion } }));
    },
  },
  {
    id: 'concurrency/status-conflict',
    title: 'status updates conflict like others',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      await ok(a.put(path('deployments', 'x', 'status'), { ...made, status: { replicas: 1 } }));
      await refused(
        b.put(path('deployments', 'x', 'status'), { ...made, status: { replicas: 2 } }),
        409,
        'Conflict',
        modified('deployments.apps', 'x'),
        {
          name: 'x',
          group: 'apps',
          kind: 'deployments',
        },
      );
      await ok(b.get(path('deployments', 'x')), { status: { replicas: 1 } });
    },
  },
  {
    id: 'concurrency/status-does-not-block-spec',
    title: 'a spec update from before a status update is refused all the same',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('deployments'), deployment('x')));
      await ok(b.merge(path('deployments', 'x', 'status'), { status: { replicas: 1 } }));
      await refused(a.put(path('deployments', 'x'), { ...made, spec: { ...made.spec, replicas: 5 } }), 409, 'Conflict');
      await ok(a.get(path('deployments', 'x')), { spec: { replicas: 1 } });
    },
  },
  {
    id: 'concurrency/versions-grow',
    title: 'versions of an object grow with each change, also across kinds',
    run: async ({ a, b, path }) => {
      const versions: number[] = [];
      const note = (thing: { metadata: { resourceVersion: string } }) =>
        versions.push(Number(thing.metadata.resourceVersion));
      note(await ok(a.post(path('configmaps'), configMap('x'))));
      note(await ok(b.post(path('secrets'), { metadata: { name: 'x' } })));
      note(await ok(a.merge(path('configmaps', 'x'), { data: { a: '2' } })));
      note(await ok(b.merge(path('secrets', 'x'), { metadata: { labels: { l: 'v' } } })));
      note(await ok(b.get(path('configmaps'))));
      same(
        versions,
        versions.toSorted((x, y) => x - y),
      );
      has(new Set(versions.slice(0, 4)).size, 4);
    },
  },
];
