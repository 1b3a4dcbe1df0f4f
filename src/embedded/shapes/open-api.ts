// SPDX-License-Identifier: Apache-2.0
// The schema of a built-in kind for OpenAPI: names and types of its fields. Shapes that refer to themselves end in a
// free-form object.
import { type FieldType, type Scalar, type Shape, shapeOfKind } from './shapes.ts';

type Schema = Record<string, unknown>;

const scalars: Readonly<Record<Scalar, Schema>> = {
  s: { type: 'string' },
  b: { type: 'boolean' },
  i: { type: 'integer', format: 'int64' },
  d: { type: 'number', format: 'double' },
  y: { type: 'string', format: 'byte' },
  T: { type: 'string', format: 'date-time' },
  M: { type: 'string', format: 'date-time' },
  D: { type: 'string' },
  Q: { type: 'string', format: 'quantity' },
  I: { type: 'string', format: 'int-or-string' },
  R: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
};

/** The schema of a kind, made when it is first asked for. */
export function openApiOf(group: string, version: string, kind: string): (() => Schema) | undefined {
  const shape = shapeOfKind(group, version, kind);
  return shape && (() => schemaOf(shape, new Set()));
}

function schemaOf(shape: Shape, above: ReadonlySet<Shape>): Schema {
  if (above.has(shape)) return scalars.R;
  const within = new Set([...above, shape]);
  const properties: Schema = {};
  for (const [name, field] of shape.fields) {
    if (name === 'metadata' && above.size === 0) continue;
    properties[name] = typeSchema(field.type, within);
  }
  return { type: 'object', properties };
}

function typeSchema(type: FieldType, above: ReadonlySet<Shape>): Schema {
  switch (type.form) {
    case 'scalar':
      return scalars[type.scalar];
    case 'list':
      return { type: 'array', items: typeSchema(type.item, above) };
    case 'map':
      return { type: 'object', additionalProperties: typeSchema(type.item, above) };
    case 'message':
      return schemaOf(type.shape, above);
  }
}
