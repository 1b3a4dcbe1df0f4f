// SPDX-License-Identifier: Apache-2.0
// Refusals that a real API server words as faults of its own: code 500, mostly without a reason. Each is the fault of
// the request all the same. No other 500 is allowed: hack/fuzz/judge.ts takes its list from here.
import type { Reply } from '../caller.ts';
import { type ConformanceCase, type Context, ok, refused, same } from '../case.ts';
import { budget, configMap, define, deployment, pod } from '../objects.ts';

interface BluntRefusal {
  readonly id: string;
  readonly title: string;
  /** What the server says, whatever the request. */
  readonly message: RegExp;
  readonly reason?: 'InternalError';
  /** Sets the scene with one client and sends the request with another. */
  readonly ask: (context: Context) => Promise<Reply>;
}

const strategic =
  (patch: object) =>
  async ({ a, b, path }: Context) => {
    const { template } = deployment('x').spec;
    const tolerations = [{ key: 'a', operator: 'Exists' }];
    const spec = { template: { ...template, spec: { ...template.spec, tolerations } } };
    await ok(a.post(path('deployments'), deployment('x', spec)));
    return b.patch('strategic', path('deployments', 'x'), { spec: { template: { spec: patch } } });
  };

const bind =
  (target: object) =>
  async ({ a, b, path }: Context) => {
    await ok(a.post(path('pods'), pod('x')));
    return b.post(path('pods', 'x', 'binding'), { metadata: { name: 'x' }, target });
  };

const noVersion =
  /^resourceVersion: Invalid value: ".*": strconv\.ParseUint: parsing ".*": (?:invalid syntax|value out of range)$/s;

export const bluntRefusals: readonly BluntRefusal[] = [
  {
    id: 'create-with-version',
    title: 'an object to be created with a resourceVersion',
    message: /^resourceVersion should not be set on objects to be created$/,
    ask: ({ b, path }) => b.post(path('configmaps'), configMap('new', {}, { resourceVersion: '1' })),
  },
  {
    id: 'get-at-no-version',
    title: 'an object asked for at a version that is none',
    message: noVersion,
    ask: ({ b, path }) => b.get(path('configmaps', 'kept'), { resourceVersion: 'x' }),
  },
  {
    id: 'get-at-huge-version',
    title: 'an object asked for at a version beyond all numbers',
    message: noVersion,
    ask: ({ b, path }) => b.get(path('configmaps', 'kept'), { resourceVersion: '99999999999999999999' }),
  },
  {
    id: 'watch-from-no-version',
    title: 'a watch from a version that is none',
    message: noVersion,
    ask: ({ b, path }) => b.get(path('configmaps'), { watch: 'true', resourceVersion: 'x', timeoutSeconds: '1' }),
  },
  {
    id: 'watch-from-huge-version',
    title: 'a watch from a version beyond all numbers',
    message: noVersion,
    ask: ({ b, path }) =>
      b.get(path('configmaps'), { watch: 'true', resourceVersion: '99999999999999999999', timeoutSeconds: '1' }),
  },
  {
    id: 'update-of-no-version',
    title: 'an update of a version that is none',
    message: /^strconv\.ParseUint: parsing ".*": (?:invalid syntax|value out of range)$/s,
    ask: ({ b, path }) => b.put(path('configmaps', 'kept'), configMap('kept', {}, { resourceVersion: 'x' })),
  },
  {
    id: 'update-of-huge-version',
    title: 'an update of a version beyond all numbers',
    message: /^strconv\.ParseUint: parsing ".*": (?:invalid syntax|value out of range)$/s,
    ask: ({ b, path }) =>
      b.put(path('configmaps', 'kept'), configMap('kept', {}, { resourceVersion: '99999999999999999999' })),
  },
  {
    id: 'merge-to-no-version',
    title: 'a patch of a version that is none',
    message: /^strconv\.ParseUint: parsing ".*": (?:invalid syntax|value out of range)$/s,
    ask: ({ b, path }) => b.merge(path('configmaps', 'kept'), { metadata: { resourceVersion: 'x' } }),
  },
  {
    id: 'apply-of-unknown-field',
    title: 'an applied field that the kind does not have',
    message: /^failed to create typed patch object \(.*\): .*: field not declared in schema$/s,
    ask: ({ b, path }) => b.apply(path('configmaps', 'kept'), { ...configMap('kept'), nonsense: 1 }, 'm'),
  },
  {
    id: 'bind-to-another-kind',
    title: 'a pod bound to something that is no node',
    message: /^target\.kind: Unsupported value: ".*": supported values: "Node", "<empty>"$/s,
    ask: bind({ kind: 'House', name: 'n' }),
  },
  {
    id: 'bind-to-nothing',
    title: 'a pod bound to no node',
    message: /^target\.name: Required value$/,
    ask: bind({ kind: 'Node' }),
  },
  {
    id: 'evict-with-two-budgets',
    title: 'an eviction of a pod with two budgets',
    message: /^This pod has more than one PodDisruptionBudget, which the eviction subresource does not support\.$/,
    ask: async ({ a, b, path }) => {
      const labels = { app: 'guard' };
      await ok(a.post(path('pods'), pod('x', { nodeName: 'nowhere' }, { labels })));
      await ok(
        a.patch('strategic', path('pods', 'x', 'status'), {
          status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
        }),
      );
      for (const name of ['one', 'two']) {
        await ok(
          a.post(path('poddisruptionbudgets'), {
            ...budget(name, { minAvailable: 0, selector: { matchLabels: labels } }),
          }),
        );
      }
      return b.post(path('pods', 'x', 'eviction'), { metadata: { name: 'x' } });
    },
  },
  {
    id: 'scale-without-replicas',
    title: 'the scale of a custom object that says no number',
    message: /^Internal error occurred: the spec replicas field ".*" does not exist$/,
    reason: 'InternalError',
    ask: async (context) => {
      const { a, b } = context;
      const { path, make } = await define(context, {
        version: {
          subresources: { scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' } },
        },
      });
      await ok(a.post(path, make('x')));
      return b.get(`${path}/x/scale`);
    },
  },
  {
    id: 'patch-marker',
    title: 'a strategic patch with an unknown directive',
    message: /^unknown patch type: .* in map: map\[.*\]$/s,
    ask: strategic({ containers: [{ name: 'main', $patch: 'frobnicate' }] }),
  },
  {
    id: 'patch-merge-marker',
    title: 'a strategic patch that asks to merge what it merges anyway',
    message: /^merging lists cannot yet be specified in the patch$/,
    ask: strategic({ containers: [{ name: 'main', $patch: 'merge' }] }),
  },
  {
    id: 'patch-without-merge-key',
    title: 'a strategic patch whose item does not say which it is',
    message: /^map: map\[.*\] does not contain declared merge key: \S+$/s,
    ask: strategic({ containers: [{ image: 'i' }] }),
  },
  {
    id: 'patch-order',
    title: 'a strategic patch that breaks its own order',
    message: /^The order in patch list:\n.*\n doesn't match \$setElementOrder list:\n.*\n$/s,
    ask: strategic({
      '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
      containers: [{ name: 'a' }, { name: 'b' }],
    }),
  },
  {
    id: 'patch-order-type',
    title: 'a strategic patch whose order is no list',
    message: /^expected a \S+(?: \{\})?, but received a .*$/s,
    ask: strategic({ '$setElementOrder/containers': 'a' }),
  },
  {
    id: 'patch-no-merge-key',
    title: 'a strategic patch that takes objects out of a list whose objects have no name',
    message: /^cannot merge lists without merge key for (?:type )?struct$/,
    ask: strategic({ '$deleteFromPrimitiveList/tolerations': [{ key: 'a', operator: 'Exists' }] }),
  },
  {
    id: 'patch-mixed-list',
    title: 'a strategic patch with a list of several types',
    message: /^list element types are not identical: .*$/s,
    ask: strategic({ containers: [{ name: 'main' }, 'main'] }),
  },
];

export const bluntCases: readonly ConformanceCase[] = bluntRefusals.map(({ id, title, message, reason, ask }) => ({
  id: `blunt/${id}`,
  title: `${title} is refused as if it were the server's fault, and nothing changes`,
  run: async (context) => {
    const { a, c, path } = context;
    const kept = await ok(a.post(path('configmaps'), configMap('kept')));
    await refused(ask(context), 500, reason, message);
    same(await ok(c.get(path('configmaps', 'kept'))), kept);
  },
}));
