// SPDX-License-Identifier: Apache-2.0
// One definition that many cases share: a schema with defaults, limits, rules, lists, status, scale and columns.
import { type Context, eventually, ok } from './case.ts';
import { established } from './objects.ts';

const spec = {
  type: 'object',
  required: ['size'],
  properties: {
    size: { type: 'integer', minimum: 1, maximum: 100 },
    color: { type: 'string', enum: ['red', 'green', 'blue'], default: 'green' },
    code: { type: 'string', pattern: '^[a-z]{2}-\\d+$', maxLength: 10 },
    replicas: { type: 'integer', default: 1 },
    selector: { type: 'string' },
    fixed: { type: 'string', 'x-kubernetes-validations': [{ rule: 'self == oldSelf', message: 'fixed is fixed' }] },
    range: {
      type: 'object',
      properties: { low: { type: 'integer', default: 0 }, high: { type: 'integer' } },
      'x-kubernetes-validations': [
        {
          rule: '!has(self.high) || self.low <= self.high',
          messageExpression: "self.low > 4 ? 'low is far up' : 'low is above high'",
        },
      ],
    },
    parts: {
      type: 'array',
      maxItems: 3,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: {
        type: 'object',
        required: ['name'],
        properties: { name: { type: 'string' }, weight: { type: 'integer', default: 5 } },
      },
    },
    tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
    amount: { 'x-kubernetes-int-or-string': true },
    free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    notes: { type: 'object', additionalProperties: { type: 'string' } },
    maybe: { type: 'string', nullable: true },
    when: { type: 'string', format: 'date-time' },
  },
  'x-kubernetes-validations': [
    { rule: "self.color != 'red' || self.size < 50", message: 'red ones are small', fieldPath: '.size' },
  ],
};

const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.conformance.example.com' },
  spec: {
    group: 'conformance.example.com',
    scope: 'Namespaced',
    names: {
      plural: 'widgets',
      singular: 'widget',
      kind: 'Widget',
      listKind: 'WidgetList',
      shortNames: ['wd'],
      categories: ['all'],
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: {
          status: {},
          scale: {
            specReplicasPath: '.spec.replicas',
            statusReplicasPath: '.status.replicas',
            labelSelectorPath: '.status.selector',
          },
        },
        additionalPrinterColumns: [
          { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
          { name: 'Color', type: 'string', jsonPath: '.spec.color', priority: 1 },
          { name: 'Ready', type: 'string', jsonPath: '.status.conditions[?(@.type=="Ready")].status' },
        ],
        selectableFields: [{ jsonPath: '.spec.color' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            required: ['spec'],
            properties: {
              spec,
              status: {
                type: 'object',
                properties: {
                  replicas: { type: 'integer' },
                  selector: { type: 'string' },
                  conditions: {
                    type: 'array',
                    items: { type: 'object', properties: { type: { type: 'string' }, status: { type: 'string' } } },
                  },
                },
              },
            },
          },
        },
      },
    ],
  },
};

/** Makes sure that widgets are served; the first case that needs them defines them. */
export async function withWidgets(context: Context): Promise<void> {
  const { a, path } = context;
  const { status, body } = await a.post(path('customresourcedefinitions'), definition);
  if (status !== 201 && status !== 409) throw new Error(`no widgets: ${JSON.stringify(body)}`);
  await established(context, definition.metadata.name);
  await eventually(() => ok(a.get(path('widgets'))));
}

export function widget(name: string, fields: Readonly<Record<string, unknown>> = {}, metadata: object = {}) {
  return {
    apiVersion: 'conformance.example.com/v1',
    kind: 'Widget',
    metadata: { name, ...metadata },
    spec: { size: 3, ...fields },
  };
}
