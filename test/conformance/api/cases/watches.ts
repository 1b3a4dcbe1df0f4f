// SPDX-License-Identifier: Apache-2.0
// Watches: from where they start, what they tell and in which order, how they end and resume.
import { type ConformanceCase, has, ok, pause, refused, same, sees } from '../case.ts';
import { configMap, define, deployment } from '../objects.ts';
import { everywhere } from '../paths.ts';

const labelled = (name: string, set: string) => configMap(name, {}, { labels: { set } });

export const watchCases: readonly ConformanceCase[] = [
  {
    id: 'watch/life',
    title: 'a watcher sees an object come, change and go',
    run: async ({ a, b, path }) => {
      const { metadata } = await ok(a.get(path('configmaps')));
      const watching = await b.watch(path('configmaps'), { resourceVersion: metadata.resourceVersion });
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.merge(path('configmaps', 'x'), { data: { a: '2' } }));
      await ok(a.delete(path('configmaps', 'x')));
      const [added, changed, gone] = await sees(watching, 'ADDED x', 'MODIFIED x', 'DELETED x');
      has([added!.data, changed!.data, gone!.data], [{ a: '1' }, { a: '2' }, { a: '2' }]);
      const versions = [added!, changed!, gone!].map((event) => Number(event.metadata.resourceVersion));
      same(
        versions,
        [...new Set(versions)].sort((p, q) => p - q),
        'growing versions',
      );
      watching.close();
    },
  },
  {
    id: 'watch/from-zero',
    title: 'a watch from 0 starts with what is there',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.post(path('configmaps'), configMap('y')));
      // Version 0 may be answered from a cache that is a moment behind.
      const watching = await b.watch(path('configmaps'), { resourceVersion: '0' });
      const names = (await watching.take(2)).map(({ type, object }) => `${type} ${object.metadata.name}`);
      same(names.sort(), ['ADDED x', 'ADDED y']);
      watching.close();
    },
  },
  {
    id: 'watch/from-nowhere',
    title: 'a watch without a version starts with what is there, then goes on',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const watching = await b.watch(path('configmaps'));
      await sees(watching, 'ADDED x');
      await ok(a.delete(path('configmaps', 'x')));
      await sees(watching, 'DELETED x');
      watching.close();
    },
  },
  {
    id: 'watch/resume',
    title: 'a watch that resumes from its last version misses nothing and repeats nothing',
    run: async ({ a, b, c, path }) => {
      const watching = await b.watch(path('configmaps'));
      await ok(a.post(path('configmaps'), configMap('one')));
      const [seen] = await sees(watching, 'ADDED one');
      watching.close();
      await ok(a.post(path('configmaps'), configMap('two')));
      await ok(a.delete(path('configmaps', 'one')));
      const again = await c.watch(path('configmaps'), { resourceVersion: seen!.metadata.resourceVersion });
      await sees(again, 'ADDED two', 'DELETED one');
      again.close();
    },
  },
  {
    id: 'watch/resume-from-list',
    title: 'a list gives the version to watch from',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('one')));
      const list = await ok(b.get(path('configmaps')));
      await ok(a.merge(path('configmaps', 'one'), { data: { a: '2' } }));
      const watching = await b.watch(path('configmaps'), { resourceVersion: list.metadata.resourceVersion });
      await sees(watching, 'MODIFIED one');
      watching.close();
    },
  },
  {
    id: 'watch/same-order',
    title: 'three watchers of one collection see the same events in the same order',
    run: async ({ a, b, c, path }) => {
      const { metadata } = await ok(a.get(path('configmaps')));
      const from = { resourceVersion: metadata.resourceVersion };
      const watchers = await Promise.all([a, b, c].map((client) => client.watch(path('configmaps'), from)));
      await Promise.all(
        [a, b, c].map(async (client, i) => {
          await ok(client.post(path('configmaps'), configMap(`m${i}`)));
          await ok(client.merge(path('configmaps', `m${i}`), { data: { a: '2' } }));
          await ok(client.delete(path('configmaps', `m${i}`)));
        }),
      );
      const seen = await Promise.all(watchers.map((watching) => watching.take(9)));
      const lines = seen.map((events) =>
        events.map(({ type, object }) => `${type} ${object.metadata.name} ${object.metadata.resourceVersion}`),
      );
      same(lines[1], lines[0]);
      same(lines[2], lines[0]);
      for (const watching of watchers) watching.close();
    },
  },
  {
    id: 'watch/all-namespaces',
    title: 'a watch over all namespaces sees each of them',
    run: async ({ a, b, c, path, unique }) => {
      const other = unique('other');
      await ok(a.post(path('namespaces'), { metadata: { name: other } }));
      const watching = await b.watch(everywhere('configmaps'), { labelSelector: `set=${other}` });
      await ok(a.post(path('configmaps'), labelled('x', other)));
      await ok(c.post(`/api/v1/namespaces/${other}/configmaps`, labelled('y', other)));
      const [x, y] = await sees(watching, 'ADDED x', 'ADDED y');
      same(x!.metadata.namespace === y!.metadata.namespace, false);
      watching.close();
    },
  },
  {
    id: 'watch/selector-enter-leave',
    title: 'to a watcher with a selector, entering is ADDED and leaving is DELETED',
    run: async ({ a, b, path }) => {
      const watching = await b.watch(path('configmaps'), { labelSelector: 'set=mine' });
      await ok(a.post(path('configmaps'), labelled('x', 'other')));
      await ok(a.merge(path('configmaps', 'x'), { metadata: { labels: { set: 'mine' } } }));
      await ok(a.merge(path('configmaps', 'x'), { data: { k: 'v' } }));
      const left = await ok(a.merge(path('configmaps', 'x'), { metadata: { labels: { set: 'other' } } }));
      const events = await sees(watching, 'ADDED x', 'MODIFIED x', 'DELETED x');
      has(events[2], { metadata: { labels: { set: 'mine' }, resourceVersion: left.metadata.resourceVersion } });
      watching.close();
    },
  },
  {
    id: 'watch/selector-delete',
    title: 'the deletion of what is not selected is not told',
    run: async ({ a, b, path }) => {
      const watching = await b.watch(path('configmaps'), { labelSelector: 'set=mine' });
      await ok(a.post(path('configmaps'), labelled('x', 'other')));
      await ok(a.delete(path('configmaps', 'x')));
      await ok(a.post(path('configmaps'), labelled('y', 'mine')));
      await ok(a.delete(path('configmaps', 'y')));
      await sees(watching, 'ADDED y', 'DELETED y');
      watching.close();
    },
  },
  {
    id: 'watch/field-selector',
    title: 'a watch by field selector follows one object',
    run: async ({ a, b, path }) => {
      const watching = await b.watch(path('configmaps'), { fieldSelector: 'metadata.name=y' });
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.post(path('configmaps'), configMap('y')));
      await ok(a.delete(path('configmaps', 'x')));
      await ok(a.delete(path('configmaps', 'y')));
      await sees(watching, 'ADDED y', 'DELETED y');
      watching.close();
    },
  },
  {
    id: 'watch/field-enter-leave',
    title: 'a watch by node sees a pod when it is bound',
    run: async ({ a, b, path }) => {
      const watching = await b.watch(path('pods'), { fieldSelector: 'spec.nodeName=somewhere' });
      await ok(a.post(path('pods'), { metadata: { name: 'x' }, spec: { containers: [{ name: 'c', image: 'i' }] } }));
      const target = { apiVersion: 'v1', kind: 'Node', name: 'somewhere' };
      await ok(
        a.post(path('pods', 'x', 'binding'), { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'x' }, target }),
      );
      await sees(watching, 'ADDED x');
      await ok(a.delete(path('pods', 'x'), { gracePeriodSeconds: 0 }));
      await sees(watching, 'MODIFIED x', 'DELETED x');
      watching.close();
    },
  },
  {
    id: 'watch/by-name-path',
    title: 'on the path of an object, watch is ignored: it is a plain get',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      same(await ok(b.get(path('configmaps', 'x'), { watch: 'true' })), made);
      await refused(b.get(path('configmaps', 'y'), { watch: 'true' }), 404, 'NotFound');
    },
  },
  {
    id: 'watch/old-path',
    title: 'the old watch path is served still',
    run: async ({ a, b, path, namespace }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const watching = await b.watch(`/api/v1/watch/namespaces/${namespace}/configmaps`);
      await sees(watching, 'ADDED x');
      await ok(a.delete(path('configmaps', 'x')));
      await sees(watching, 'DELETED x');
      watching.close();
    },
  },
  {
    id: 'watch/timeout',
    title: 'a watch ends after timeoutSeconds',
    run: async ({ a, b, path }) => {
      const watching = await b.watch(path('configmaps'), { timeoutSeconds: '1' });
      await ok(a.post(path('configmaps'), configMap('x')));
      same(
        (await watching.rest()).filter(({ type }) => type !== 'BOOKMARK').map(({ type }) => type),
        ['ADDED'],
      );
    },
  },
  {
    id: 'watch/initial-events',
    title: 'a watch that asks for initial events gets them, then a bookmark that says so',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.post(path('configmaps'), configMap('y')));
      const watching = await b.watch(path('configmaps'), {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'true',
      });
      await sees(watching, 'ADDED x', 'ADDED y');
      const mark = await watching.next();
      has(mark, {
        type: 'BOOKMARK',
        object: {
          kind: 'ConfigMap',
          apiVersion: 'v1',
          metadata: { resourceVersion: /^\d+$/, annotations: { 'k8s.io/initial-events-end': 'true' } },
        },
      });
      await ok(a.delete(path('configmaps', 'x')));
      await sees(watching, 'DELETED x');
      watching.close();
    },
  },
  {
    id: 'watch/initial-events-none',
    title: 'initial events of an empty collection are only the bookmark, and its version can be resumed from',
    run: async ({ a, b, c, path }) => {
      const watching = await b.watch(path('configmaps'), {
        sendInitialEvents: 'true',
        resourceVersionMatch: 'NotOlderThan',
        allowWatchBookmarks: 'true',
      });
      const mark = await watching.next();
      same(mark?.type, 'BOOKMARK');
      watching.close();
      await ok(a.post(path('configmaps'), configMap('x')));
      const again = await c.watch(path('configmaps'), { resourceVersion: mark!.object.metadata.resourceVersion });
      await sees(again, 'ADDED x');
      again.close();
    },
  },
  {
    id: 'watch/initial-events-false',
    title: 'a watch may ask not to get initial events',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const watching = await b.watch(path('configmaps'), {
        sendInitialEvents: 'false',
        resourceVersionMatch: 'NotOlderThan',
      });
      await pause(150);
      await ok(a.post(path('configmaps'), configMap('y')));
      await sees(watching, 'ADDED y');
      watching.close();
    },
  },
  {
    id: 'watch/initial-events-need-match',
    title: 'initial events need resourceVersionMatch NotOlderThan',
    run: async ({ a, b, path }) => {
      const query = { watch: 'true', sendInitialEvents: 'true' };
      await refused(
        a.get(path('configmaps'), query),
        422,
        'Invalid',
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan',
        { group: 'meta.k8s.io', kind: 'ListOptions' },
      );
      await refused(
        b.get(path('configmaps'), { ...query, resourceVersionMatch: 'Exact' }),
        422,
        'Invalid',
        /resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan|Unsupported value: "Exact"/,
      );
      await refused(
        b.get(path('configmaps'), { sendInitialEvents: 'true' }),
        422,
        'Invalid',
        /sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list/,
      );
    },
  },
  {
    id: 'watch/match-needs-initial-events',
    title: 'resourceVersionMatch is not for a plain watch',
    run: async ({ a, b, path }) => {
      const query = { watch: 'true', resourceVersionMatch: 'NotOlderThan', resourceVersion: '1' };
      await refused(
        a.get(path('configmaps'), query),
        422,
        'Invalid',
        /resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided/,
      );
      await refused(b.get(path('pods'), query), 422, 'Invalid');
    },
  },
  {
    id: 'watch/too-old',
    title: 'a watch from before what is remembered says 410 and ends',
    run: async (context) => {
      const { a, b } = context;
      // The memory of a kind begins with its definition.
      const { path: gadgets, make } = await define(context);
      await ok(a.post(gadgets, make('x')));
      const watching = await b.watch(gadgets, { resourceVersion: '1' });
      const event = await watching.next();
      has(event, {
        type: 'ERROR',
        object: { kind: 'Status', code: 410, reason: 'Expired', message: /^too old resource version: 1 \(\d+\)$/ },
      });
      same(await watching.next(), undefined);
    },
  },
  {
    id: 'watch/bad-version',
    title: 'a watch from what is no version is refused',
    run: async ({ a, b, path }) => {
      for (const [client, version] of [
        [a, 'abc'],
        [b, '-5'],
      ] as const) {
        const { status, body } = await client.get(path('configmaps'), { watch: 'true', resourceVersion: version });
        const message = `resourceVersion: Invalid value: "${version}": strconv.ParseUint: parsing "${version}": invalid syntax`;
        has({ ...body, status }, { status: 500, code: 500, reason: undefined, message });
      }
    },
  },
  {
    id: 'watch/bad-selector',
    title: 'a watch with a bad selector is refused before it starts',
    run: async ({ a, b, path }) => {
      await refused(a.get(path('configmaps'), { watch: 'true', labelSelector: 'a=b=c' }), 400, 'BadRequest');
      await refused(
        b.get(path('configmaps'), { watch: 'true', fieldSelector: 'spec.x=y' }),
        400,
        'BadRequest',
        '"spec.x" is not a known field selector: only "metadata.name", "metadata.namespace"',
      );
    },
  },
  {
    id: 'watch/as-table',
    title: 'a watch as Tables sends the columns once',
    run: async ({ a, b, path }) => {
      const accept = 'application/json;as=Table;g=meta.k8s.io;v=v1';
      const watching = await b.watch(path('configmaps'), {}, accept);
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.post(path('configmaps'), configMap('y')));
      const [first, second] = await watching.take(2);
      has(first, { type: 'ADDED', object: { kind: 'Table', rows: [{ cells: ['x', 1, /.+/] }] } });
      same(
        first!.object.columnDefinitions.map(({ name }) => name),
        ['Name', 'Data', 'Age'],
      );
      has(second, { object: { kind: 'Table', rows: [{ cells: ['y', 1, /.+/] }] } });
      same(second!.object.columnDefinitions ?? [], []);
      watching.close();
    },
  },
  {
    id: 'watch/as-metadata',
    title: 'a watch may ask for metadata only',
    run: async ({ a, b, path }) => {
      const accept = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1';
      const watching = await b.watch(path('configmaps'), {}, accept);
      await ok(a.post(path('configmaps'), configMap('x')));
      const [x] = await sees(watching, 'ADDED x');
      has(x, { kind: 'PartialObjectMetadata', apiVersion: 'meta.k8s.io/v1', data: undefined });
      watching.close();
    },
  },
  {
    id: 'watch/finalized-deletion',
    title: 'a deletion that waits for a finalizer is a change first, a deletion later',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', {}, { finalizers: ['example.com/wait'] })));
      const watching = await b.watch(path('configmaps'));
      await sees(watching, 'ADDED x');
      await ok(a.delete(path('configmaps', 'x')));
      const [marked] = await sees(watching, 'MODIFIED x');
      has(marked!.metadata, { deletionTimestamp: /Z$/, deletionGracePeriodSeconds: 0 });
      await ok(a.merge(path('configmaps', 'x'), { metadata: { finalizers: null } }));
      await sees(watching, 'DELETED x');
      watching.close();
    },
  },
  {
    id: 'watch/status-changes',
    title: 'changes of the status reach those who watch the object',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      const watching = await b.watch(path('deployments'));
      await sees(watching, 'ADDED x');
      await ok(a.merge(path('deployments', 'x', 'status'), { status: { replicas: 4 } }));
      const [changed] = await sees(watching, 'MODIFIED x');
      has(changed, { status: { replicas: 4 } });
      watching.close();
    },
  },
  {
    id: 'watch/burst',
    title: 'two hundred changes in a row all arrive, in order',
    run: async ({ a, b, c, path }) => {
      await ok(a.post(path('configmaps'), configMap('x', { n: '0' })));
      const [one, two] = [await b.watch(path('configmaps')), await c.watch(path('configmaps'))];
      await Promise.all([sees(one, 'ADDED x'), sees(two, 'ADDED x')]);
      for (let n = 1; n <= 200; n++) await ok(a.merge(path('configmaps', 'x'), { data: { n: String(n) } }));
      const expected = Array.from({ length: 200 }, (_, i) => String(i + 1));
      for (const watching of [one, two]) {
        same(
          (await watching.take(200)).map(({ object }) => object.data['n']),
          expected,
        );
        watching.close();
      }
    },
  },
  {
    id: 'watch/wire-format',
    title: 'a watch answers with JSON and is never cached',
    wire: true,
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const reply = await b.get(path('configmaps'), { watch: 'true', timeoutSeconds: '1' });
      has(reply.headers, { 'content-type': 'application/json', 'cache-control': 'no-cache, private' });
    },
  },
];
