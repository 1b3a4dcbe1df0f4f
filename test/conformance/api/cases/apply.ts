// SPDX-License-Identifier: Apache-2.0
// Server-side apply: who owns which field, and what happens when two want the same.

import type { Thing } from '../caller.ts';
import { type ConformanceCase, has, ok, refused, same } from '../case.ts';
import { configMap, container, deployment } from '../objects.ts';

/** Managers of an object with their operation and what they own, sorted. */
function owners(thing: Thing): string[] {
  return (thing.metadata.managedFields ?? [])
    .map(({ manager, operation, subresource, fieldsV1 }) => {
      const where = subresource === undefined ? '' : `/${subresource as string}`;
      return `${String(manager)} ${String(operation)}${where} ${JSON.stringify(fieldsV1)}`;
    })
    .sort();
}

const data = (keys: string[]) => JSON.stringify({ 'f:data': Object.fromEntries(keys.map((key) => [`f:${key}`, {}])) });
/** Who made the map owns it as well. */
const madeData = (keys: string[]) => data(keys).replace('{"f:data":{', '{"f:data":{".":{},');

export const applyCases: readonly ConformanceCase[] = [
  {
    id: 'apply/creates',
    title: 'an apply creates what is not there, and answers 201, then 200',
    run: async ({ a, b, path }) => {
      same((await a.apply(path('configmaps', 'x'), configMap('x'), 'one')).status, 201);
      same((await a.apply(path('configmaps', 'x'), configMap('x'), 'one')).status, 200);
      same(owners(await ok(b.get(path('configmaps', 'x')))), [`one Apply ${data(['a'])}`]);
    },
  },
  {
    id: 'apply/conflict',
    title: 'a second manager that wants another value is told whose field it is',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'));
      await refused(
        b.apply(path('configmaps', 'x'), configMap('x', { a: '9' }), 'two'),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "one": .data.a',
        { causes: [{ reason: 'FieldManagerConflict', message: 'conflict with "one"', field: '.data.a' }] },
      );
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'apply/conflicts',
    title: 'several conflicts are all listed',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'));
      await refused(
        b.apply(path('configmaps', 'x'), configMap('x', { a: '9', b: '9' }), 'two'),
        409,
        'Conflict',
        'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b',
        { causes: [{ field: '.data.a' }, { field: '.data.b' }] },
      );
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1', b: '2' } });
    },
  },
  {
    id: 'apply/force',
    title: 'force takes the field over, and the former owner loses it',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'));
      await ok(b.apply(path('configmaps', 'x'), configMap('x', { a: '9' }), 'two', { force: 'true' }));
      const now = await ok(a.get(path('configmaps', 'x')), { data: { a: '9', b: '2' } });
      same(owners(now), [`one Apply ${data(['b'])}`, `two Apply ${data(['a'])}`]);
    },
  },
  {
    id: 'apply/shared',
    title: 'managers that agree on a value share it; it goes when the last lets go',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1' }), 'one'));
      await ok(b.apply(path('configmaps', 'x'), configMap('x', { a: '1' }), 'two'));
      await ok(a.apply(path('configmaps', 'x'), configMap('x', {}), 'one'));
      await ok(b.get(path('configmaps', 'x')), { data: { a: '1' } });
      await ok(b.apply(path('configmaps', 'x'), configMap('x', {}), 'two'));
      same((await ok(a.get(path('configmaps', 'x')))).data?.['a'], undefined);
    },
  },
  {
    id: 'apply/removes-own',
    title: 'what a manager leaves out of its next apply is removed',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'));
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { b: '2' }), 'one'));
      same((await ok(b.get(path('configmaps', 'x')))).data, { b: '2' });
    },
  },
  {
    id: 'apply/leaves-others',
    title: 'what others own stays when a manager applies less',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1' }), 'one'));
      await ok(b.merge(path('configmaps', 'x'), { data: { z: '26' } }, { fieldManager: 'two' }));
      await ok(a.apply(path('configmaps', 'x'), configMap('x', { b: '2' }), 'one'));
      same((await ok(b.get(path('configmaps', 'x')))).data, { b: '2', z: '26' });
    },
  },
  {
    id: 'apply/update-takes-over',
    title: 'an update never conflicts: it takes the fields it changes',
    run: async ({ a, b, path }) => {
      const made = await ok(a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'));
      await ok(b.put(path('configmaps', 'x'), { ...made, data: { a: '9', b: '2' } }, { fieldManager: 'two' }));
      const now = await ok(a.get(path('configmaps', 'x')));
      same(owners(now), [`one Apply ${data(['b'])}`, `two Update ${data(['a'])}`]);
      await refused(
        a.apply(path('configmaps', 'x'), configMap('x', { a: '1', b: '2' }), 'one'),
        409,
        'Conflict',
        /^Apply failed with 1 conflict: conflict with "two" using v1( at .*)?: \.data\.a$/,
      );
    },
  },
  {
    id: 'apply/create-is-an-update',
    title: 'a create is recorded as an update by its manager',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x'), { fieldManager: 'maker' }));
      same(owners(await ok(b.get(path('configmaps', 'x')))), [`maker Update ${madeData(['a'])}`]);
      await refused(
        b.apply(path('configmaps', 'x'), configMap('x', { a: '2' }), 'two'),
        409,
        'Conflict',
        /conflict with "maker" using v1/,
      );
    },
  },
  {
    id: 'apply/same-value-no-conflict',
    title: 'applying the value that is there is no conflict',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x'), { fieldManager: 'maker' }));
      await ok(b.apply(path('configmaps', 'x'), configMap('x'), 'two'));
      same(owners(await ok(a.get(path('configmaps', 'x')))), [
        `maker Update ${madeData(['a'])}`,
        `two Apply ${data(['a'])}`,
      ]);
    },
  },
  {
    id: 'apply/default-manager',
    title: 'without a field manager the first part of the user agent counts',
    wire: true,
    run: async ({ a, b, path }) => {
      await ok(
        a.call({
          method: 'POST',
          path: path('configmaps'),
          body: configMap('x'),
          headers: { 'user-agent': 'tool/v2 (linux)' },
        }),
      );
      same(owners(await ok(b.get(path('configmaps', 'x')))), [`tool Update ${madeData(['a'])}`]);
      await ok(b.merge(path('configmaps', 'x'), { data: { b: '2' } }));
      same(owners(await ok(a.get(path('configmaps', 'x')))), [
        `conformance Update ${data(['b'])}`,
        `tool Update ${madeData(['a'])}`,
      ]);
    },
  },
  {
    id: 'apply/needs-manager',
    title: 'an apply without a field manager is refused',
    run: async ({ a, b, path }) => {
      await refused(
        a.apply(path('configmaps', 'x'), configMap('x'), ''),
        422,
        'Invalid',
        'PatchOptions.meta.k8s.io "" is invalid: fieldManager: Required value: is required for apply patch',
        {
          group: 'meta.k8s.io',
          kind: 'PatchOptions',
          causes: [{ reason: 'FieldValueRequired', field: 'fieldManager' }],
        },
      );
      await refused(b.get(path('configmaps', 'x')), 404, 'NotFound');
    },
  },
  {
    id: 'apply/force-only-for-apply',
    title: 'force is for applies only',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('configmaps'), configMap('x')));
      await refused(
        b.merge(path('configmaps', 'x'), { data: { a: '2' } }, { force: 'true' }),
        422,
        'Invalid',
        'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
      );
      await ok(a.get(path('configmaps', 'x')), { data: { a: '1' } });
    },
  },
  {
    id: 'apply/needs-kind',
    title: 'an apply must say kind and version',
    run: async ({ a, b, path }) => {
      await refused(
        a.apply(path('configmaps', 'x'), { metadata: { name: 'x' }, data: {} }, 'one'),
        400,
        'BadRequest',
        /apiVersion|kind/i,
      );
      await refused(b.get(path('configmaps', 'x')), 404, 'NotFound');
    },
  },
  {
    id: 'apply/wrong-name',
    title: 'an apply must name the object of its path',
    run: async ({ a, b, path }) => {
      await refused(
        a.apply(path('configmaps', 'x'), configMap('y'), 'one'),
        400,
        'BadRequest',
        'the name of the object (y) does not match the name on the URL (x)',
      );
      await refused(b.get(path('configmaps', 'y')), 404, 'NotFound');
    },
  },
  {
    id: 'apply/no-managed-fields',
    title: 'an apply must not carry managedFields',
    run: async ({ a, b, path }) => {
      const made = await ok(a.apply(path('configmaps', 'x'), configMap('x'), 'one'));
      await refused(
        b.apply(path('configmaps', 'x'), made, 'one'),
        400,
        'BadRequest',
        'metadata.managedFields must be nil',
      );
    },
  },
  {
    id: 'apply/unknown-field',
    title: 'an apply with a field that is not in the schema is refused',
    run: async ({ a, b, path }) => {
      const reply = await a.apply(path('configmaps', 'x'), { ...configMap('x'), dta: { a: '1' } }, 'one');
      has(
        { status: reply.status, message: reply.body.message },
        { status: 500, message: /field not declared in schema/ },
      );
      await refused(b.get(path('configmaps', 'x')), 404, 'NotFound');
    },
  },
  {
    id: 'apply/keyed-list',
    title: 'two managers own elements of one list by their keys',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('deployments', 'x'), deployment('x'), 'one'));
      const side = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'x' },
        spec: { template: { spec: { containers: [{ name: 'side', image: 'car' }] } } },
      };
      await ok(b.apply(path('deployments', 'x'), side, 'two'));
      await ok(a.get(path('deployments', 'x')), {
        spec: { template: { spec: { containers: [{ name: 'main' }, { name: 'side' }] } } },
      });
      await ok(b.apply(path('deployments', 'x'), { ...side, spec: {} }, 'two'));
      await ok(a.get(path('deployments', 'x')), { spec: { template: { spec: { containers: [{ name: 'main' }] } } } });
    },
  },
  {
    id: 'apply/keyed-list-conflict',
    title: 'a conflict in a list names the element by its key',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('deployments', 'x'), deployment('x'), 'one'));
      const template = { metadata: { labels: { app: 'x' } }, spec: { containers: [{ ...container, image: 'other' }] } };
      await refused(
        b.apply(path('deployments', 'x'), deployment('x', { template }), 'two'),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "one": .spec.template.spec.containers[name="main"].image',
      );
    },
  },
  {
    id: 'apply/hand-over-replicas',
    title: 'a manager hands a field over by no longer applying it once another owns it',
    run: async ({ a, b, c, path }) => {
      await ok(a.apply(path('deployments', 'x'), deployment('x', { replicas: 3 }), 'one'));
      const scaler = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' }, spec: { replicas: 3 } };
      await ok(b.apply(path('deployments', 'x'), scaler, 'scaler'));
      const { replicas: _, ...rest } = deployment('x').spec;
      await ok(a.apply(path('deployments', 'x'), { ...deployment('x'), spec: rest }, 'one'));
      await ok(c.get(path('deployments', 'x')), { spec: { replicas: 3 } });
      await ok(b.apply(path('deployments', 'x'), { ...scaler, spec: { replicas: 5 } }, 'scaler'), {
        spec: { replicas: 5 },
      });
    },
  },
  {
    id: 'apply/status-is-apart',
    title: 'fields set through status are recorded apart',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('deployments', 'x'), deployment('x'), 'one'));
      await ok(
        b.merge(path('deployments', 'x', 'status'), { status: { replicas: 2 } }, { fieldManager: 'controller' }),
      );
      const { metadata } = await ok(a.get(path('deployments', 'x')));
      has(metadata.managedFields, [
        { manager: 'one', operation: 'Apply', subresource: undefined },
        {
          manager: 'controller',
          operation: 'Update',
          subresource: 'status',
          fieldsV1: { 'f:status': { 'f:replicas': {} } },
        },
      ]);
    },
  },
  {
    id: 'apply/status-by-apply',
    title: 'a status can be applied through its subresource and leaves the spec alone',
    run: async ({ a, b, path }) => {
      await ok(a.post(path('deployments'), deployment('x')));
      const body = {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'x' },
        spec: { replicas: 9 },
        status: { replicas: 2 },
      };
      await ok(b.apply(path('deployments', 'x', 'status'), body, 'controller'));
      await ok(a.get(path('deployments', 'x')), {
        spec: { replicas: 1 },
        status: { replicas: 2 },
        metadata: { generation: 1 },
      });
    },
  },
  {
    id: 'apply/reset-managers',
    title: 'an empty entry in managedFields resets them all',
    run: async ({ a, b, path }) => {
      await ok(a.apply(path('configmaps', 'x'), configMap('x'), 'one'));
      await ok(b.merge(path('configmaps', 'x'), { metadata: { managedFields: [{}] } }));
      same((await ok(a.get(path('configmaps', 'x')))).metadata.managedFields, undefined);
      // Nobody owns what was there before the next apply; it is called by that name.
      await refused(
        b.apply(path('configmaps', 'x'), configMap('x', { a: '2' }), 'two'),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "before-first-apply" using v1: .data.a',
      );
    },
  },
  {
    id: 'apply/no-op-keeps-version',
    title: 'an apply that changes nothing keeps the version',
    run: async ({ a, b, path }) => {
      const made = await ok(a.apply(path('configmaps', 'x'), configMap('x'), 'one'));
      const again = await ok(a.apply(path('configmaps', 'x'), configMap('x'), 'one'));
      same(again.metadata.resourceVersion, made.metadata.resourceVersion);
      await ok(b.get(path('configmaps', 'x')), { metadata: { resourceVersion: made.metadata.resourceVersion } });
    },
  },
  {
    id: 'apply/uid-does-not-create',
    title: 'an apply that names a uid never creates',
    run: async ({ a, b, path }) => {
      const body = configMap('x', {}, { uid: '11111111-1111-1111-1111-111111111111' });
      await refused(
        a.apply(path('configmaps', 'x'), body, 'one'),
        409,
        'Conflict',
        /uid mismatch: the provided object specified uid 11111111-1111-1111-1111-111111111111, and no existing object was found/,
      );
      await refused(b.get(path('configmaps', 'x')), 404, 'NotFound');
    },
  },
  {
    id: 'apply/labels',
    title: 'labels have owners one by one',
    run: async ({ a, b, path }) => {
      const labelled = (labels: object) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x', labels } });
      await ok(a.apply(path('configmaps', 'x'), labelled({ mine: 'a' }), 'one'));
      await ok(b.apply(path('configmaps', 'x'), labelled({ yours: 'b' }), 'two'));
      same((await ok(a.get(path('configmaps', 'x')))).metadata.labels, { mine: 'a', yours: 'b' });
      await ok(a.apply(path('configmaps', 'x'), labelled({}), 'one'));
      same((await ok(b.get(path('configmaps', 'x')))).metadata.labels, { yours: 'b' });
    },
  },
];
