// SPDX-License-Identifier: Apache-2.0
// The fields of built-in kinds: their names, types and protobuf numbers, from the generated table.
import table from './shapes.json' with { type: 'json' };

/** What a value is. Scalars carry a letter of the table. */
export type FieldType =
  | {
      readonly form: 'scalar';
      readonly scalar: Scalar;
      /** The type in JSON of which every value will do. */
      readonly plain?: 'string' | 'boolean' | 'number';
    }
  | { readonly form: 'list'; readonly item: FieldType }
  | { readonly form: 'map'; readonly item: FieldType }
  | { readonly form: 'message'; readonly shape: Shape };

/** string, bool, integer, double, bytes, time, micro time, duration, quantity, int-or-string, raw JSON. */
export type Scalar = 's' | 'b' | 'i' | 'd' | 'y' | 'T' | 'M' | 'D' | 'Q' | 'I' | 'R';

export interface ShapeField {
  readonly name: string;
  readonly number: number;
  readonly type: FieldType;
  /** In protobuf, a zero value stands for a field that is not set. */
  readonly omitsZero: boolean;
  /** What Go writes for it when it has no value: structs always appear, lists and maps unless they are told not to. */
  readonly zero?: Readonly<Record<string, never>> | null;
  /** Its fields appear in JSON as if they were the parent's. */
  readonly inline: boolean;
}

/** A struct of the Kubernetes API. */
export interface Shape {
  /** `core.PodSpec`. */
  readonly name: string;
  /** By name in JSON, inlined ones included. */
  readonly fields: ReadonlyMap<string, ShapeField>;
  /** By number in protobuf. */
  readonly numbers: ReadonlyMap<number, ShapeField>;
}

type Row = readonly (string | number)[];

const rows = table as unknown as Readonly<Record<string, readonly Row[]>>;
const compiled = new Map<string, Shape>();

/** The shape of that name; undefined when the table does not know it. Compiled on first use. */
export function shapeOf(name: string): Shape | undefined {
  const known = compiled.get(name);
  if (known) return known;
  const fields = rows[name];
  if (!fields) return undefined;
  const byName = new Map<string, ShapeField>();
  const byNumber = new Map<number, ShapeField>();
  const shape: Shape = { name, fields: byName, numbers: byNumber };
  // Before its fields: shapes refer to themselves.
  compiled.set(name, shape);
  for (const [fieldName, number, type, omits] of fields) {
    const field: ShapeField = {
      name: String(fieldName),
      number: Number(number),
      type: typeOf(String(type)),
      omitsZero: omits === 1,
      ...zeroOf(String(type), omits),
      inline: fieldName === '',
    };
    byNumber.set(field.number, field);
    if (!field.inline) byName.set(field.name, field);
    else if (field.type.form === 'message') for (const [key, inner] of field.type.shape.fields) byName.set(key, inner);
  }
  return shape;
}

const emptyStruct = Object.freeze({});

function zeroOf(type: string, omits: string | number | undefined): Pick<ShapeField, 'zero'> {
  if (omits === undefined || type.length === 1) return {};
  if (type.startsWith('[]') || type.startsWith('{}')) return omits === 2 ? { zero: null } : {};
  return { zero: emptyStruct };
}

function typeOf(text: string): FieldType {
  if (text.startsWith('[]')) return { form: 'list', item: typeOf(text.slice(2)) };
  if (text.startsWith('{}')) return { form: 'map', item: typeOf(text.slice(2)) };
  if (text.length === 1) return scalarOf(text as Scalar);
  const shape = shapeOf(text);
  return shape ? { form: 'message', shape } : scalarOf('R');
}

const plain = { s: 'string', D: 'string', b: 'boolean', d: 'number' } as const;

function scalarOf(scalar: Scalar): FieldType {
  return {
    form: 'scalar',
    scalar,
    ...(Object.hasOwn(plain, scalar) ? { plain: plain[scalar as keyof typeof plain] } : {}),
  };
}

/** Groups whose package in the table has another name than their first part. */
const packages: Readonly<Record<string, string>> = { '': 'core', 'rbac.authorization.k8s.io': 'rbac' };

/** The shape of a built-in kind. */
export function shapeOfKind(group: string, version: string, kind: string): Shape | undefined {
  if (kind === 'Scale' || (group === 'autoscaling' && version === 'v1')) return shapeOf(`scale.${kind}`);
  if (kind === 'DeleteOptions') return shapeOf('meta.DeleteOptions');
  return shapeOf(`${packages[group] ?? group.split('.')[0]}.${kind}`);
}
