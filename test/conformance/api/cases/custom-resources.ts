// SPDX-License-Identifier: Apache-2.0
// Instances of a definition: validation, defaults, pruning, rules, subresources, columns.
import { type ConformanceCase, has, missing, namesOf, ok, refused, same, sees } from '../case.ts';
import { widget, withWidgets } from '../widgets.ts';

interface Verdict {
  readonly id: string;
  readonly title: string;
  readonly spec: Readonly<Record<string, unknown>>;
  /** The message after `Widget.conformance.example.com "x" is invalid: `. */
  readonly message: string | RegExp;
  /** The object is too broken to ask its rules, and the refusal says so. */
  readonly unchecked?: boolean;
}

const rulesUnchecked =
  '<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';
const words = (errors: string, unchecked = false) =>
  `Widget.conformance.example.com "x" is invalid: ${unchecked ? `[${errors}, ${rulesUnchecked}]` : errors}`;

const invalid: readonly Verdict[] = [
  {
    id: 'too-small',
    title: 'below a minimum',
    spec: { size: 0 },
    message: 'spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1',
  },
  {
    id: 'too-big',
    title: 'above a maximum',
    spec: { size: 101 },
    message: 'spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100',
  },
  {
    id: 'wrong-type',
    title: 'of the wrong type',
    spec: { size: 'big' },
    message: 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    unchecked: true,
  },
  {
    id: 'not-an-integer',
    title: 'not a whole number',
    spec: { size: 1.5 },
    message:
      'spec.size: Invalid value: "number": spec.size in body must be of type integer: "number", <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.size',
    unchecked: true,
  },
  {
    id: 'enum',
    title: 'not in an enumeration',
    spec: { color: 'mauve' },
    message: 'spec.color: Unsupported value: "mauve": supported values: "red", "green", "blue"',
    unchecked: true,
  },
  {
    id: 'pattern',
    title: 'against a pattern',
    spec: { code: 'ABC' },
    message: 'spec.code: Invalid value: "ABC": spec.code in body should match \'^[a-z]{2}-\\d+$\'',
  },
  {
    id: 'too-long',
    title: 'longer than allowed',
    spec: { code: 'ab-12345678' },
    message: 'spec.code: Too long: may not be more than 10 bytes',
    unchecked: true,
  },
  {
    id: 'rule',
    title: 'against a rule of the object',
    spec: { color: 'red', size: 60 },
    message: 'spec.size: Invalid value: red ones are small',
  },
  {
    id: 'rule-expression',
    title: 'against a rule whose message is computed',
    spec: { range: { low: 5, high: 3 } },
    message: 'spec.range: Invalid value: low is far up',
  },
  {
    id: 'duplicate-key',
    title: 'twice with one key',
    spec: { parts: [{ name: 'a' }, { name: 'a' }] },
    message: 'spec.parts[1]: Duplicate value: {"name":"a"}',
  },
  {
    id: 'duplicate-tag',
    title: 'twice in a set',
    spec: { tags: ['a', 'b', 'a'] },
    message: 'spec.tags[2]: Duplicate value: "a"',
  },
  {
    id: 'too-many',
    title: 'more than allowed',
    spec: { parts: ['a', 'b', 'c', 'd'].map((name) => ({ name })) },
    message: 'spec.parts: Too many: 4: must have at most 3 items',
    unchecked: true,
  },
  {
    id: 'missing-key',
    title: 'without its key',
    spec: { parts: [{ weight: 1 }] },
    message: 'spec.parts[0].name: Required value',
    unchecked: true,
  },
  {
    id: 'int-or-string',
    title: 'neither number nor text',
    spec: { amount: true },
    message: /spec\.amount: Invalid value: "boolean": spec\.amount in body must be of type integer,string: "boolean"/,
  },
  {
    id: 'additional',
    title: 'a value of a map of the wrong type',
    spec: { notes: { a: 1 } },
    message: 'spec.notes.a: Invalid value: "integer": spec.notes.a in body must be of type string: "integer"',
    unchecked: true,
  },
  { id: 'null', title: 'null where it may not be', spec: { size: null }, message: /spec\.size/ },
  {
    id: 'date',
    title: 'not a date',
    spec: { when: 'yesterday' },
    message: 'spec.when: Invalid value: "yesterday": spec.when in body must be of type date-time: "yesterday"',
    unchecked: true,
  },
  {
    id: 'map-is-list',
    title: 'a list where a map belongs',
    spec: { range: [] },
    message: 'spec.range: Invalid value: "array": spec.range in body must be of type object: "array"',
    unchecked: true,
  },
];

const invalidCases: readonly ConformanceCase[] = invalid.map(({ id, title, spec, message, unchecked }) => ({
  id: `custom/invalid-${id}`,
  title: `a value ${title} is refused, on create and on update`,
  run: async (context) => {
    await withWidgets(context);
    const { a, b, path } = context;
    const refusal = typeof message === 'string' ? words(message, unchecked) : message;
    await refused(a.post(path('widgets'), widget('x', spec)), 422, 'Invalid', refusal, {
      name: 'x',
      group: 'conformance.example.com',
      kind: 'Widget',
    });
    const made = await ok(b.post(path('widgets'), widget('x')));
    await refused(
      a.put(path('widgets', 'x'), { ...widget('x', spec), metadata: made.metadata }),
      422,
      'Invalid',
      refusal,
    );
    same(await ok(b.get(path('widgets', 'x'))), made);
  },
}));

export const customCases: readonly ConformanceCase[] = [
  ...invalidCases,
  {
    id: 'custom/several-errors',
    title: 'several errors are listed together, with their causes',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const { details } = await refused(
        a.post(path('widgets'), widget('x', { size: 0, color: 'mauve' })),
        422,
        'Invalid',
        /is invalid: \[spec\..*, spec\..*, <nil>: .*\]$/,
      );
      has(
        (details['causes'] as { field: string; reason: string }[])
          .map(({ field, reason }) => `${field} ${reason}`)
          .sort(),
        ['<nil> FieldValueInvalid', 'spec.color FieldValueNotSupported', 'spec.size FieldValueInvalid'],
      );
      await missing(b.get(path('widgets', 'x')));
    },
  },
  {
    id: 'custom/missing-required',
    title: 'what is required must be there',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const { spec: _, ...bare } = widget('x');
      await refused(a.post(path('widgets'), bare), 422, 'Invalid', words('spec: Required value', true));
      await refused(
        a.post(path('widgets'), { ...bare, spec: {} }),
        422,
        'Invalid',
        words('spec.size: Required value', true),
      );
      await missing(b.get(path('widgets', 'x')));
    },
  },
  {
    id: 'custom/defaults',
    title: 'defaults are filled in where their parent is',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', { parts: [{ name: 'p' }], range: {} })));
      same((await ok(b.get(path('widgets', 'x')))).spec, {
        size: 3,
        color: 'green',
        replicas: 1,
        parts: [{ name: 'p', weight: 5 }],
        range: { low: 0 },
      });
      await ok(b.merge(path('widgets', 'x'), { spec: { color: null, range: null } }));
      same((await ok(a.get(path('widgets', 'x')))).spec, {
        size: 3,
        color: 'green',
        replicas: 1,
        parts: [{ name: 'p', weight: 5 }],
      });
    },
  },
  {
    id: 'custom/pruning',
    title: 'unknown fields are pruned, but where they are preserved',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(
        a.post(
          path('widgets'),
          widget('x', { mystery: 1, free: { any: { thing: [1] } }, parts: [{ name: 'p', odd: true }] }),
          { fieldValidation: 'Ignore' },
        ),
      );
      const { spec } = await ok(b.get(path('widgets', 'x')));
      same(spec, {
        size: 3,
        color: 'green',
        replicas: 1,
        free: { any: { thing: [1] } },
        parts: [{ name: 'p', weight: 5 }],
      });
      await ok(b.merge(path('widgets', 'x'), { spec: { again: 'no' }, top: 1 }, { fieldValidation: 'Ignore' }));
      same((await ok(a.get(path('widgets', 'x')))).spec, spec);
    },
  },
  {
    id: 'custom/null-values',
    title: 'null is kept where it is allowed and dropped where it is not',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', { maybe: null, color: null })));
      const { spec } = await ok(b.get(path('widgets', 'x')));
      same(spec, { size: 3, color: 'green', replicas: 1, maybe: null });
    },
  },
  {
    id: 'custom/immutable-field',
    title: 'a transition rule forbids a change, not a first value',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')));
      await ok(a.merge(path('widgets', 'x'), { spec: { fixed: 'one' } }));
      await refused(
        b.merge(path('widgets', 'x'), { spec: { fixed: 'two' } }),
        422,
        'Invalid',
        'Widget.conformance.example.com "x" is invalid: spec.fixed: Invalid value: "two": fixed is fixed',
        {
          causes: [
            { reason: 'FieldValueInvalid', message: 'Invalid value: "two": fixed is fixed', field: 'spec.fixed' },
          ],
        },
      );
      await ok(b.merge(path('widgets', 'x'), { spec: { fixed: null } }));
      await ok(a.merge(path('widgets', 'x'), { spec: { fixed: 'two' } }), { spec: { fixed: 'two' } });
    },
  },
  {
    id: 'custom/status-apart',
    title: 'status is written through its subresource only, spec never through it',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const made = await ok(a.post(path('widgets'), { ...widget('x'), status: { replicas: 7 } }), {
        status: undefined,
        metadata: { generation: 1 },
      });
      const viaMain = await ok(b.put(path('widgets', 'x'), { ...made, status: { replicas: 7 } }));
      same([viaMain.status, viaMain.metadata.resourceVersion], [undefined, made.metadata.resourceVersion]);
      const viaStatus = await ok(
        b.put(path('widgets', 'x', 'status'), { ...made, spec: { size: 99 }, status: { replicas: 7 } }),
      );
      has(viaStatus, { spec: { size: 3 }, status: { replicas: 7 }, metadata: { generation: 1 } });
      await ok(a.merge(path('widgets', 'x'), { spec: { size: 4 }, status: { replicas: 8 } }), {
        spec: { size: 4 },
        status: { replicas: 7 },
        metadata: { generation: 2 },
      });
    },
  },
  {
    id: 'custom/status-labels',
    title: 'labels are not written through status',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', {}, { labels: { l: 'v' } })));
      await ok(
        b.merge(path('widgets', 'x', 'status'), {
          metadata: { labels: { l: 'changed' }, annotations: { n: 'v' } },
          status: { replicas: 1 },
        }),
      );
      const { metadata } = await ok(a.get(path('widgets', 'x')), { status: { replicas: 1 } });
      same([metadata.labels, metadata.annotations], [{ l: 'v' }, undefined]);
    },
  },
  {
    id: 'custom/status-validated',
    title: 'a status is validated, too',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')));
      await refused(
        b.merge(path('widgets', 'x', 'status'), { status: { conditions: 7 } }),
        422,
        'Invalid',
        words('status.conditions: Invalid value: "integer": conditions in body must be of type array: "integer"', true),
      );
      await ok(a.get(path('widgets', 'x')), { status: undefined });
    },
  },
  {
    id: 'custom/generation',
    title: 'generation counts changes of the spec, not of metadata',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')), { metadata: { generation: 1 } });
      await ok(b.merge(path('widgets', 'x'), { metadata: { labels: { l: 'v' } } }), { metadata: { generation: 1 } });
      await ok(b.merge(path('widgets', 'x'), { spec: { size: 3 } }), { metadata: { generation: 1 } });
      await ok(a.merge(path('widgets', 'x'), { spec: { size: 4 } }), { metadata: { generation: 2 } });
      await ok(b.merge(path('widgets', 'x', 'status'), { status: { replicas: 4 } }), { metadata: { generation: 2 } });
    },
  },
  {
    id: 'custom/scale',
    title: 'scale reads and writes the paths of the definition',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')));
      await ok(a.merge(path('widgets', 'x', 'status'), { status: { replicas: 2, selector: 'app=x' } }));
      const scale = await ok(b.get(path('widgets', 'x', 'scale')), {
        kind: 'Scale',
        apiVersion: 'autoscaling/v1',
        spec: { replicas: 1 },
        status: { replicas: 2, selector: 'app=x' },
      });
      await ok(b.put(path('widgets', 'x', 'scale'), { ...scale, spec: { replicas: 4 } }), { spec: { replicas: 4 } });
      await ok(a.get(path('widgets', 'x')), {
        spec: { replicas: 4 },
        status: { replicas: 2 },
        metadata: { generation: 2 },
      });
      await refused(
        a.put(path('widgets', 'x', 'scale'), { ...scale, spec: { replicas: 9 } }),
        409,
        'Conflict',
        /the object has been modified/,
      );
    },
  },
  {
    id: 'custom/scale-patch',
    title: 'scale can be patched, not below zero',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')));
      await ok(b.merge(path('widgets', 'x', 'scale'), { spec: { replicas: 3 } }), {
        kind: 'Scale',
        spec: { replicas: 3 },
      });
      await refused(
        b.merge(path('widgets', 'x', 'scale'), { spec: { replicas: -1 } }),
        422,
        'Invalid',
        /spec.replicas: Invalid value: -1: should be a non-negative integer/,
      );
      await ok(a.get(path('widgets', 'x')), { spec: { replicas: 3 } });
    },
  },
  {
    id: 'custom/table',
    title: 'printer columns become a Table, the less important marked',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', { size: 8 })));
      await ok(
        a.merge(path('widgets', 'x', 'status'), { status: { conditions: [{ type: 'Ready', status: 'True' }] } }),
      );
      const table = await ok(b.as('Table', path('widgets')), { kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
      same(
        table.columnDefinitions.map(({ name, priority }) => `${name} ${priority}`),
        ['Name 0', 'Size 0', 'Color 1', 'Ready 0'],
      );
      same(table.rows[0]!.cells, ['x', 8, 'green', 'True']);
      has(table.rows[0]!.object, { kind: 'PartialObjectMetadata', metadata: { name: 'x' } });
    },
  },
  {
    id: 'custom/selectable-field',
    title: 'declared fields can be selected by, others cannot',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('r', { color: 'red' })));
      await ok(a.post(path('widgets'), widget('g')));
      same(namesOf(await ok(b.get(path('widgets'), { fieldSelector: 'spec.color=red' }))), ['r']);
      const watching = await b.watch(path('widgets'), { fieldSelector: 'spec.color=red' });
      await sees(watching, 'ADDED r');
      await ok(a.merge(path('widgets', 'g'), { spec: { color: 'red' } }));
      await sees(watching, 'ADDED g');
      watching.close();
      await refused(
        b.get(path('widgets'), { fieldSelector: 'spec.size=3' }),
        400,
        'BadRequest',
        'field label not supported: spec.size',
      );
    },
  },
  {
    id: 'custom/no-strategic-patch',
    title: 'strategic patches are not for custom resources',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const made = await ok(a.post(path('widgets'), widget('x')));
      await refused(
        b.patch('strategic', path('widgets', 'x'), { spec: { size: 4 } }),
        415,
        'UnsupportedMediaType',
        'the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml',
      );
      same(await ok(a.get(path('widgets', 'x'))), made);
    },
  },
  {
    id: 'custom/patches',
    title: 'JSON and merge patches of custom resources, the lists as a whole',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', { parts: [{ name: 'a' }, { name: 'b' }] })));
      await ok(
        b.patch('json', path('widgets', 'x'), [
          { op: 'test', path: '/spec/size', value: 3 },
          { op: 'add', path: '/spec/parts/1', value: { name: 'c' } },
        ]),
      );
      const { spec } = await ok(a.get(path('widgets', 'x')));
      same(
        (spec['parts'] as { name: string }[]).map(({ name }) => name),
        ['a', 'c', 'b'],
      );
      await ok(a.merge(path('widgets', 'x'), { spec: { parts: [{ name: 'z' }] } }));
      same((await ok(b.get(path('widgets', 'x')))).spec['parts'], [{ name: 'z', weight: 5 }]);
    },
  },
  {
    id: 'custom/apply',
    title: 'server-side apply of custom resources merges keyed lists and sets',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.apply(path('widgets', 'x'), widget('x', { parts: [{ name: 'a' }], tags: ['one'] }), 'one'));
      const more = { ...widget('x'), spec: { parts: [{ name: 'b' }], tags: ['two'] } };
      await ok(b.apply(path('widgets', 'x'), more, 'two'));
      const { spec } = await ok(a.get(path('widgets', 'x')));
      same(
        [(spec['parts'] as { name: string }[]).map(({ name }) => name), spec['tags']],
        [
          ['a', 'b'],
          ['one', 'two'],
        ],
      );
      await refused(
        b.apply(path('widgets', 'x'), widget('x', { size: 9 }), 'two'),
        409,
        'Conflict',
        'Apply failed with 1 conflict: conflict with "one": .spec.size',
      );
    },
  },
  {
    id: 'custom/update-needs-version',
    title: 'an update of a custom resource must name its version',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const made = await ok(a.post(path('widgets'), widget('x')));
      await refused(
        b.put(path('widgets', 'x'), widget('x', { size: 4 })),
        422,
        'Invalid',
        'widgets.conformance.example.com "x" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
      );
      await ok(b.put(path('widgets', 'x'), { ...made, spec: { size: 4 } }));
    },
  },
  {
    id: 'custom/list-kind',
    title: 'a list of custom resources has its kind, and items have theirs',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x')));
      await ok(b.get(path('widgets')), {
        kind: 'WidgetList',
        apiVersion: 'conformance.example.com/v1',
        items: [{ kind: 'Widget', apiVersion: 'conformance.example.com/v1' }],
      });
    },
  },
  {
    id: 'custom/strict',
    title: 'strict validation refuses unknown fields of custom resources',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await refused(
        a.post(path('widgets'), widget('x', { mystery: 1 }), { fieldValidation: 'Strict' }),
        400,
        'BadRequest',
        'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.mystery"',
      );
      await ok(a.post(path('widgets'), widget('x')));
      await refused(
        b.merge(path('widgets', 'x'), { spec: { mystery: 1 } }, { fieldValidation: 'Strict' }),
        422,
        'Invalid',
        /strict decoding error: unknown field "spec.mystery"/,
      );
    },
  },
  {
    id: 'custom/warn',
    title: 'by default unknown fields are warned about',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      const { status, headers } = await a.post(path('widgets'), widget('x', { mystery: 1 }));
      same([status, headers['warning']], [201, '299 - "unknown field \\"spec.mystery\\""']);
      same((await ok(b.get(path('widgets', 'x')))).spec['mystery'], undefined);
    },
  },
  {
    id: 'custom/finalizers',
    title: 'custom resources have finalizers like others',
    run: async (context) => {
      await withWidgets(context);
      const { a, b, path } = context;
      await ok(a.post(path('widgets'), widget('x', {}, { finalizers: ['example.com/wait'] })), {
        metadata: { generation: 1 },
      });
      await ok(b.delete(path('widgets', 'x')), {
        kind: 'Widget',
        metadata: { generation: 2, deletionGracePeriodSeconds: 0 },
      });
      await ok(a.merge(path('widgets', 'x'), { metadata: { finalizers: [] } }));
      await missing(b.get(path('widgets', 'x')));
    },
  },
];
