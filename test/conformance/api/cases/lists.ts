// SPDX-License-Identifier: Apache-2.0
// Lists: selections, pages, versions.
import type { Caller } from '../caller.ts';
import { type ConformanceCase, type Context, has, namesOf, ok, refused, same } from '../case.ts';
import { configMap, deployment, pod } from '../objects.ts';
import { everywhere } from '../paths.ts';

const labels: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  one: { app: 'web', tier: 'front', n: '1' },
  two: { app: 'web', tier: 'back', n: '2' },
  three: { app: 'db', n: '10' },
  four: {},
};

async function fill({ a, path }: Context): Promise<void> {
  for (const [name, each] of Object.entries(labels)) {
    await ok(a.post(path('configmaps'), configMap(name, {}, { labels: each })));
  }
}

interface Selection {
  readonly id: string;
  readonly selector: string;
  readonly names: readonly string[];
}

const selections: readonly Selection[] = [
  { id: 'equals', selector: 'app=web', names: ['one', 'two'] },
  { id: 'double-equals', selector: 'app==db', names: ['three'] },
  { id: 'not-equals', selector: 'app!=web', names: ['four', 'three'] },
  { id: 'in', selector: 'app in (db, web)', names: ['one', 'three', 'two'] },
  { id: 'notin', selector: 'tier notin (front)', names: ['four', 'three', 'two'] },
  { id: 'exists', selector: 'tier', names: ['one', 'two'] },
  { id: 'not-exists', selector: '!tier', names: ['four', 'three'] },
  { id: 'greater', selector: 'n>1', names: ['three', 'two'] },
  { id: 'less', selector: 'n<10', names: ['one', 'two'] },
  { id: 'both', selector: 'app=web,tier!=front', names: ['two'] },
  { id: 'empty-value', selector: 'app=', names: [] },
  { id: 'spaces', selector: ' app = web , tier = back ', names: ['two'] },
  { id: 'contradiction', selector: 'app=web,app=db', names: [] },
];

const labelCases: readonly ConformanceCase[] = selections.map(({ id, selector, names }) => ({
  id: `lists/label-${id}`,
  title: `the label selector "${selector}" finds ${names.length === 0 ? 'nothing' : names.join(', ')}, in list and watch`,
  run: async (context) => {
    await fill(context);
    const { b, c, path } = context;
    const list = await ok(b.get(path('configmaps'), { labelSelector: selector }));
    same(namesOf(list), names);
    const watching = await c.watch(path('configmaps'), { labelSelector: selector, timeoutSeconds: '1' });
    if (names.length > 0) {
      same((await watching.take(names.length)).map(({ object }) => object.metadata.name).sort(), names);
    }
    watching.close();
  },
}));

interface BadSelector {
  readonly id: string;
  readonly query: Readonly<Record<string, string>>;
  readonly message: string | RegExp;
  readonly plural?: string;
}

const badSelectors: readonly BadSelector[] = [
  { id: 'label-two-equals', query: { labelSelector: 'a=b=c' }, message: "found '=', expected: ',' or 'end of string'" },
  {
    id: 'label-open',
    query: { labelSelector: 'a in (b' },
    message: /found '', expected: ',' or '\)'|unable to parse requirement/,
  },
  {
    id: 'label-operator',
    query: { labelSelector: 'a ~ b' },
    message: /unable to parse requirement: <nil>: Invalid value: "a ~ b"|found 'b'|found '~'|name part must consist/,
  },
  {
    id: 'label-bad-key',
    query: { labelSelector: '-a=b' },
    message:
      /unable to parse requirement: <nil>: Invalid value: "-a": name part must consist of alphanumeric characters/,
  },
  {
    id: 'label-bad-value',
    query: { labelSelector: 'a=b_' },
    message:
      /unable to parse requirement: values\[0\]\[a\]: Invalid value: "b_": a valid label must be an empty string or consist of alphanumeric characters/,
  },
  {
    id: 'label-not-a-number',
    query: { labelSelector: 'a>x' },
    message: /for 'Gt', 'Lt' operators, the value must be an integer/,
  },
  {
    id: 'label-too-long',
    query: { labelSelector: `a=${'v'.repeat(64)}` },
    message: /must be no more than 63 (characters|bytes)/,
  },
  {
    id: 'field-unknown',
    query: { fieldSelector: 'data.a=1' },
    message: '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"',
  },
  {
    id: 'field-unknown-pod',
    plural: 'pods',
    query: { fieldSelector: 'spec.foo=1' },
    message: 'field label not supported: spec.foo',
  },
  {
    id: 'field-no-operator',
    query: { fieldSelector: 'metadata.name' },
    message: "invalid selector: 'metadata.name'; can't understand 'metadata.name'",
  },
  {
    id: 'field-escape',
    query: { fieldSelector: 'metadata.name=a\\x' },
    message: /invalid field selector|invalid selector/,
  },
  { id: 'limit', query: { limit: 'many' }, message: 'strconv.ParseInt: parsing "many": invalid syntax' },
  { id: 'timeout', query: { timeoutSeconds: 'soon' }, message: 'strconv.ParseInt: parsing "soon": invalid syntax' },
  {
    id: 'continue',
    query: { continue: '!!!', limit: '1' },
    message: /continue key is not valid: illegal base64 data at input byte 0/,
  },
  {
    id: 'continue-json',
    query: { continue: 'e30', limit: '1' },
    message:
      /continue key is not valid: incorrect encoded start resourceVersion \(version meta.k8s.io\/v1\)|continue key is not valid/,
  },
];

const badCases: readonly ConformanceCase[] = badSelectors.map(({ id, query, message, plural = 'configmaps' }) => ({
  id: `lists/bad-${id}`,
  title: `a list or watch with ${JSON.stringify(query).slice(0, 60)} is a bad request`,
  run: async ({ a, b, c, path }) => {
    await refused(a.get(path(plural), query), 400, 'BadRequest', message);
    if (!('continue' in query) && !('timeoutSeconds' in query))
      await refused(b.get(path(plural), { ...query, watch: 'true' }), 400, 'BadRequest');
    if (!('limit' in query)) await refused(c.delete(path(plural), undefined, query), 400, 'BadRequest');
  },
}));

interface FieldSelection {
  readonly id: string;
  readonly selector: string;
  readonly names: readonly string[];
}

const podSelections: readonly FieldSelection[] = [
  { id: 'node', selector: 'spec.nodeName=here', names: ['bound'] },
  { id: 'no-node', selector: 'spec.nodeName=', names: ['done', 'waits'] },
  { id: 'phase', selector: 'status.phase=Succeeded', names: ['done'] },
  { id: 'not-phase', selector: 'status.phase!=Succeeded', names: ['bound', 'waits'] },
  { id: 'both', selector: 'spec.nodeName=,status.phase=Pending', names: ['waits'] },
  { id: 'scheduler', selector: 'spec.schedulerName=mine', names: ['waits'] },
  { id: 'restart-policy', selector: 'spec.restartPolicy=Never', names: ['done'] },
  { id: 'account', selector: 'spec.serviceAccountName=robot', names: ['bound'] },
  { id: 'name', selector: 'metadata.name!=bound', names: ['done', 'waits'] },
  { id: 'host-network', selector: 'spec.hostNetwork=true', names: ['done'] },
];

const podCases: readonly ConformanceCase[] = podSelections.map(({ id, selector, names }) => ({
  id: `lists/pods-by-${id}`,
  title: `pods are selected by "${selector}"`,
  run: async ({ a, b, c, path, namespace }) => {
    await ok(a.post(path('pods'), pod('bound', { nodeName: 'here', serviceAccountName: 'robot' })));
    await ok(a.post(path('pods'), pod('done', { restartPolicy: 'Never', hostNetwork: true })));
    await ok(a.post(path('pods'), pod('waits', { schedulerName: 'mine' })));
    await ok(a.merge(path('pods', 'done', 'status'), { status: { phase: 'Succeeded' } }));
    same(namesOf(await ok(b.get(path('pods'), { fieldSelector: selector }))), names);
    const everyone = await ok(
      c.get(everywhere('pods'), { fieldSelector: `${selector},metadata.namespace=${namespace}` }),
    );
    same(namesOf(everyone), names);
  },
}));

async function fillPages(a: Caller, path: Context['path'], count: number): Promise<string[]> {
  const names = Array.from({ length: count }, (_, i) => `p${String(i).padStart(2, '0')}`);
  for (const name of names) await ok(a.post(path('configmaps'), configMap(name)));
  return names;
}

const pageCases: readonly ConformanceCase[] = [
  {
    id: 'lists/pages',
    title: 'pages go through a collection in order and say what remains',
    run: async ({ a, b, path }) => {
      const names = await fillPages(a, path, 7);
      const first = await ok(b.get(path('configmaps'), { limit: '3' }));
      same([namesOf(first), first.metadata.remainingItemCount], [names.slice(0, 3), 4]);
      const second = await ok(b.get(path('configmaps'), { limit: '3', continue: first.metadata.continue }));
      same([namesOf(second), second.metadata.remainingItemCount], [names.slice(3, 6), 1]);
      const last = await ok(b.get(path('configmaps'), { limit: '3', continue: second.metadata.continue }));
      same(
        [namesOf(last), last.metadata.continue, last.metadata.remainingItemCount],
        [names.slice(6), undefined, undefined],
      );
      same(new Set([first, second, last].map(({ metadata }) => metadata.resourceVersion)).size, 1);
    },
  },
  {
    id: 'lists/pages-under-change',
    title: 'pages show the collection of the first page, whatever another client does meanwhile',
    run: async ({ a, b, c, path }) => {
      const names = await fillPages(a, path, 6);
      const first = await ok(b.get(path('configmaps'), { limit: '2' }));
      await ok(c.delete(path('configmaps', 'p03')));
      await ok(c.post(path('configmaps'), configMap('p025')));
      await ok(c.merge(path('configmaps', 'p05'), { data: { a: 'changed' } }));
      const rest = await ok(b.get(path('configmaps'), { continue: first.metadata.continue }));
      same(namesOf(rest), names.slice(2));
      same(rest.items.at(-1)!.data, { a: '1' });
      same(rest.metadata.resourceVersion, first.metadata.resourceVersion);
      same(namesOf(await ok(c.get(path('configmaps')))), ['p00', 'p01', 'p02', 'p025', 'p04', 'p05']);
    },
  },
  {
    id: 'lists/pages-exact',
    title: 'a page that ends the collection has no continue',
    run: async ({ a, b, path }) => {
      await fillPages(a, path, 3);
      const list = await ok(b.get(path('configmaps'), { limit: '3' }));
      same([list.items.length, list.metadata.continue, list.metadata.remainingItemCount], [3, undefined, undefined]);
    },
  },
  {
    id: 'lists/pages-selected',
    title: 'with a selector pages do not say how much remains',
    run: async ({ a, b, path }) => {
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await ok(a.post(path('configmaps'), configMap(name, {}, { labels: { odd: String('ace'.includes(name)) } })));
      }
      const first = await ok(b.get(path('configmaps'), { limit: '2', labelSelector: 'odd=true' }));
      same([namesOf(first), first.metadata.remainingItemCount], [['a', 'c'], undefined]);
      const rest = await ok(
        b.get(path('configmaps'), { limit: '2', labelSelector: 'odd=true', continue: first.metadata.continue }),
      );
      same([namesOf(rest), rest.metadata.continue], [['e'], undefined]);
    },
  },
  {
    id: 'lists/pages-size-changes',
    title: 'the size of pages may change on the way',
    run: async ({ a, b, path }) => {
      const names = await fillPages(a, path, 5);
      const first = await ok(b.get(path('configmaps'), { limit: '1' }));
      const second = await ok(b.get(path('configmaps'), { limit: '3', continue: first.metadata.continue }));
      const last = await ok(b.get(path('configmaps'), { continue: second.metadata.continue }));
      same([...namesOf(first), ...namesOf(second), ...namesOf(last)], names);
    },
  },
  {
    id: 'lists/continue-with-version',
    title: 'a version cannot be asked for together with continue',
    run: async ({ a, b, path }) => {
      await fillPages(a, path, 2);
      const first = await ok(b.get(path('configmaps'), { limit: '1' }));
      await refused(
        b.get(path('configmaps'), {
          limit: '1',
          continue: first.metadata.continue,
          resourceVersion: first.metadata.resourceVersion,
        }),
        400,
        'BadRequest',
        'specifying resource version is not allowed when using continue',
      );
    },
  },
  {
    id: 'lists/watch-after-pages',
    title: 'a watch from the version of the first page sees what changed during the pages',
    run: async ({ a, b, c, path }) => {
      await fillPages(a, path, 4);
      const first = await ok(b.get(path('configmaps'), { limit: '2' }));
      await ok(c.delete(path('configmaps', 'p03')));
      await ok(b.get(path('configmaps'), { continue: first.metadata.continue }));
      const watching = await b.watch(path('configmaps'), { resourceVersion: first.metadata.resourceVersion });
      has(await watching.take(1), [{ type: 'DELETED', object: { metadata: { name: 'p03' } } }]);
      watching.close();
    },
  },
  {
    id: 'lists/all-namespaces-order',
    title: 'a list over namespaces is ordered by namespace, then name',
    run: async ({ a, b, path, unique, namespace }) => {
      const other = unique('aaa');
      await ok(a.post(path('namespaces'), { metadata: { name: other } }));
      const make = (name: string) => configMap(name, {}, { labels: { only: namespace } });
      await ok(a.post(path('configmaps'), make('x')));
      await ok(a.post(`/api/v1/namespaces/${other}/configmaps`, make('z')));
      await ok(a.post(`/api/v1/namespaces/${other}/configmaps`, make('y')));
      same(namesOf(await ok(b.get(everywhere('configmaps'), { labelSelector: `only=${namespace}` }))), ['y', 'z', 'x']);
    },
  },
  {
    id: 'lists/empty',
    title: 'a list of nothing, also in a namespace that does not exist, is an empty list',
    run: async ({ a, b, path }) => {
      const empty = await ok(a.get(path('configmaps')), { kind: 'ConfigMapList', apiVersion: 'v1', items: [] });
      has(empty.metadata, { resourceVersion: /^\d+$/ });
      await ok(b.get('/api/v1/namespaces/no-such-namespace/pods'), { kind: 'PodList', items: [] });
      await ok(b.get('/apis/apps/v1/namespaces/no-such-namespace/deployments'), {
        kind: 'DeploymentList',
        apiVersion: 'apps/v1',
        items: [],
      });
    },
  },
  {
    id: 'lists/items-without-kind',
    title: 'items of a built-in list do not repeat kind and version',
    wire: true,
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await ok(a.post(path('deployments'), deployment('x')));
      const [item] = (await ok(b.get(path('configmaps')))).items;
      same([item!.kind, item!.apiVersion], [undefined, undefined]);
      const [other] = (await ok(b.get(path('deployments')))).items;
      same([other!.kind, other!.apiVersion], [undefined, undefined]);
    },
  },
  {
    id: 'lists/not-older-than',
    title: 'a list not older than a version has at least that one',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      const { resourceVersion } = made.metadata;
      const list = await ok(b.get(path('configmaps'), { resourceVersion, resourceVersionMatch: 'NotOlderThan' }));
      same(namesOf(list), ['x']);
      same(Number(list.metadata.resourceVersion) >= Number(resourceVersion), true);
    },
  },
  {
    id: 'lists/exact-version',
    title: 'a list at an exact version shows that moment',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const before = await ok(b.get(path('configmaps')));
      await ok(a.post(path('configmaps'), configMap('y')));
      const list = await ok(
        b.get(path('configmaps'), { resourceVersion: before.metadata.resourceVersion, resourceVersionMatch: 'Exact' }),
      );
      same([namesOf(list), list.metadata.resourceVersion], [['x'], before.metadata.resourceVersion]);
    },
  },
  {
    id: 'lists/future-version',
    title: 'a list from the future is refused after a while, with a time to try again',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      const query = { resourceVersion: '99999999999', resourceVersionMatch: 'NotOlderThan' };
      const { status, body } = await b.get(path('configmaps'), query);
      same(status, 504);
      has(body, {
        reason: 'Timeout',
        message: /^Timeout: Too large resource version: 99999999999, current: \d+$/,
        details: {
          causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
          retryAfterSeconds: 1,
        },
      });
    },
  },
  {
    id: 'lists/match-without-version',
    title: 'a match without a version, and an unknown match, are refused',
    run: async ({ a, b, path }) => {
      await refused(
        a.get(path('configmaps'), { resourceVersionMatch: 'Exact' }),
        422,
        'Invalid',
        'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided',
      );
      await refused(
        b.get(path('configmaps'), { resourceVersionMatch: 'Nearly', resourceVersion: '1' }),
        422,
        'Invalid',
        /resourceVersionMatch: Unsupported value: "Nearly": supported values: "Exact", "NotOlderThan", ""/,
      );
      await refused(
        b.get(path('configmaps'), { resourceVersionMatch: 'Exact', resourceVersion: '0' }),
        422,
        'Invalid',
        /resourceVersionMatch "exact" is forbidden for resourceVersion "0"/,
      );
    },
  },
  {
    id: 'lists/get-with-version',
    title: 'a get may ask for a version at least as new',
    run: async ({ a, b, path }) => {
      const made = await ok(a.post(path('configmaps'), configMap('x')));
      await ok(b.get(path('configmaps', 'x'), { resourceVersion: made.metadata.resourceVersion }), {
        data: { a: '1' },
      });
      // Any version will do for 0, also one from before there was an x: asked after the server is known to have seen it.
      await ok(b.get(path('configmaps', 'x'), { resourceVersion: '0' }), { metadata: { name: 'x' } });
    },
  },
  {
    id: 'lists/deployment-fields',
    title: 'kinds without fields of their own are selected by name and namespace only',
    run: async ({ a, b, path, namespace }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      same(namesOf(await ok(b.get(path('deployments'), { fieldSelector: `metadata.namespace=${namespace}` }))), ['x']);
      await refused(
        b.get(path('deployments'), { fieldSelector: 'spec.replicas=1' }),
        400,
        'BadRequest',
        '"spec.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"',
      );
    },
  },
  {
    id: 'lists/events-by-object',
    title: 'events are selected by the object they are about',
    run: async ({ a, b, path, namespace }) => {
      const event = (name: string, about: string, type: string) => ({
        metadata: { name },
        involvedObject: { kind: 'Pod', name: about, namespace },
        reason: 'Tested',
        message: 'm',
        type,
      });
      await ok(a.post(path('events'), event('e1', 'x', 'Normal')));
      await ok(a.post(path('events'), event('e2', 'y', 'Normal')));
      await ok(a.post(path('events'), event('e3', 'x', 'Warning')));
      same(namesOf(await ok(b.get(path('events'), { fieldSelector: 'involvedObject.name=x' }))), ['e1', 'e3']);
      same(namesOf(await ok(b.get(path('events'), { fieldSelector: 'involvedObject.name=x,type=Warning' }))), ['e3']);
      same(
        namesOf(
          await ok(
            b.get(path('events'), { fieldSelector: 'reason=Tested,involvedObject.kind=Pod,involvedObject.name!=x' }),
          ),
        ),
        ['e2'],
      );
    },
  },
];

export const listCases: readonly ConformanceCase[] = [...labelCases, ...badCases, ...podCases, ...pageCases];
