// SPDX-License-Identifier: Apache-2.0
import { describe, expect, expectTypeOf, test } from 'vitest';
import { array, dateTime, integer, map, object, quantity, string, type TypeOf } from './schema.ts';

const schema = object({
  description: 'A thing.',
  required: ['name'],
  fields: {
    name: string({ minLength: 1 }),
    colour: string({ enum: ['red', 'green'], default: 'red' }),
    sizes: array(integer({ format: 'int32', minimum: 0 }), { listType: 'set', maxItems: 3 }),
    parts: array(object({ required: ['id'], fields: { id: string(), when: dateTime() } }), {
      listType: 'map',
      mapKeys: ['id'],
    }),
    capacity: map(quantity, { mapType: 'atomic', maxProperties: 2 }),
  },
  rules: [{ rule: 'has(self.sizes)', message: 'sizes are needed' }],
});

describe('the schema builder', () => {
  test('gives the static type', () => {
    expectTypeOf<TypeOf<typeof schema>>().toEqualTypeOf<{
      name: string;
      colour?: 'red' | 'green';
      sizes?: number[];
      parts?: { id: string; when?: string }[];
      capacity?: Record<string, string | number>;
    }>();
  });

  test('gives the structural schema', () => {
    expect(schema.openapi).toMatchObject({
      description: 'A thing.',
      type: 'object',
      required: ['name'],
      properties: {
        name: { type: 'string', minLength: 1 },
        colour: { type: 'string', enum: ['red', 'green'], default: 'red' },
        sizes: {
          type: 'array',
          items: { type: 'integer', format: 'int32', minimum: 0 },
          'x-kubernetes-list-type': 'set',
          maxItems: 3,
        },
        parts: {
          type: 'array',
          items: { properties: { id: { type: 'string' }, when: { type: 'string', format: 'date-time' } } },
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['id'],
        },
        capacity: {
          type: 'object',
          additionalProperties: { 'x-kubernetes-int-or-string': true },
          'x-kubernetes-map-type': 'atomic',
          maxProperties: 2,
        },
      },
      'x-kubernetes-validations': [{ rule: 'has(self.sizes)', message: 'sizes are needed' }],
    });
  });
});
