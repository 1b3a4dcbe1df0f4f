// SPDX-License-Identifier: Apache-2.0
// Decoding as the API server does it for built-in kinds: unknown fields are dropped and named, nulls are absent fields,
// quantities become canonical, and a value of the wrong type is refused.

import { deepClone } from '../../base/freeze.ts';
import type { KubeObject } from '../../kube/object.ts';
import { canonicalQuantity, QuantityError } from '../../kube/quantity.ts';
import { parseTime, TimeError } from '../../kube/time.ts';
import { jsonType } from '../rest/metadata.ts';
import { badRequest } from '../status.ts';
import { type FieldType, type Scalar, type Shape, shapeOfKind } from './shapes.ts';

type Fields = Record<string, unknown>;

/** Why a value does not fit; the message is Go's. */
class Misfit extends Error {}

/** What a body is once it fits its kind, and the fields that the kind does not have. */
export interface Admitted {
  readonly object: KubeObject;
  readonly unknown: readonly string[];
}

/**
 * The check of one kind's bodies: gives a copy of what fits. What is frozen in a body of our own was stored before, and so was what a
 * body has in common with the stored object: it fits and is shared. Throws StatusError (400).
 */
export function admissionFor(
  group: string,
  version: string,
  kind: string,
): ((object: KubeObject, owned: boolean, stored?: KubeObject) => Admitted) | undefined {
  const shape = shapeOfKind(group, version, kind);
  if (!shape) return undefined;
  return (object, owned, stored) => {
    const unknown: string[] = [];
    try {
      const fitted = fit(shape, object as unknown as Fields, '', owned, unknown, true, stored as unknown as Fields);
      return { object: fitted as unknown as KubeObject, unknown };
    } catch (error) {
      if (!(error instanceof Misfit)) throw error;
      throw badRequest(`${kind} in version "${version}" cannot be handled as a ${kind}: ${error.message}`);
    }
  };
}

function fit(
  shape: Shape,
  fields: Fields,
  path: string,
  owned: boolean,
  unknown: string[],
  top: boolean,
  stored?: Fields,
): Fields {
  if (owned && Object.isFrozen(fields)) return fields;
  // All fields at once is several times faster than one after the other.
  const fitted: Fields = { ...fields };
  for (const key in fitted) {
    if (top && (key === 'apiVersion' || key === 'kind')) continue;
    const value = fitted[key];
    if (stored !== undefined && typeof value === 'object' && value !== null && value === stored[key]) continue;
    const field = shape.fields.get(key);
    if (!field) unknown.push(path + key);
    if (!field || value === null || value === undefined) {
      delete fitted[key];
      continue;
    }
    const { type } = field;
    if (isPlain(type, value)) continue;
    // Paths of scalars are put together only for an error.
    const fits =
      type.form === 'scalar'
        ? fitScalar(type.scalar, value, path, key, shape)
        : fitValue(type, value, path + key, shape, owned, unknown, stored?.[key]);
    if (fits !== value) fitted[key] = fits;
  }
  return fitted;
}

function fitValue(
  type: FieldType,
  value: unknown,
  path: string,
  owner: Shape,
  owned: boolean,
  unknown: string[],
  stored?: unknown,
): unknown {
  switch (type.form) {
    case 'scalar':
      return fitScalar(type.scalar, value, path, '', owner);
    case 'message':
      if (!isFields(value)) throw wrongType(value, type, path, owner);
      // Templates of objects may carry a kind of their own.
      return fit(
        type.shape,
        value,
        `${path}.`,
        owned,
        unknown,
        type.shape.fields.has('metadata'),
        isFields(stored) ? stored : undefined,
      );
    case 'list':
      if (!Array.isArray(value)) throw wrongType(value, type, path, owner);
      return owned && Object.isFrozen(value) ? value : fitList(type.item, value, path, owner, owned, unknown);
    case 'map':
      if (!isFields(value)) throw wrongType(value, type, path, owner);
      return owned && Object.isFrozen(value) ? value : fitMap(type.item, value, path, owner, owned, unknown);
  }
}

function fitList(
  item: FieldType,
  list: readonly unknown[],
  path: string,
  owner: Shape,
  owned: boolean,
  unknown: string[],
): unknown[] {
  const items: unknown[] = [];
  for (let i = 0; i < list.length; i++) {
    const value = list[i] ?? absentItem(item);
    const place = item.form === 'scalar' ? path : `${path}[${i}]`;
    items.push(isPlain(item, value) ? value : fitValue(item, value, place, owner, owned, unknown));
  }
  return items;
}

function fitMap(item: FieldType, map: Fields, path: string, owner: Shape, owned: boolean, unknown: string[]): Fields {
  const entries: Fields = { ...map };
  for (const key in entries) {
    const value = entries[key] ?? absentItem(item);
    const place = item.form === 'message' ? `${path}.${key}` : path;
    const fits = isPlain(item, value) ? value : fitValue(item, value, place, owner, owned, unknown);
    if (fits !== entries[key]) entries[key] = fits;
  }
  return entries;
}

/** Most values are texts of any kind: nothing more is asked of them. */
function isPlain(type: FieldType, value: unknown): boolean {
  return type.form === 'scalar' && type.plain !== undefined && typeof value === type.plain;
}

/** What Go makes of null where there must be something. */
function absentItem(type: FieldType): unknown {
  return type.form === 'message' ? {} : '';
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const jsonTypeOf: Readonly<Record<Scalar, string | undefined>> = {
  s: 'string',
  b: 'boolean',
  i: 'number',
  d: 'number',
  y: 'string',
  T: 'string',
  M: 'string',
  D: 'string',
  Q: undefined,
  I: undefined,
  R: undefined,
};

function fitScalar(scalar: Scalar, value: unknown, path: string, key: string, owner: Shape): unknown {
  const expected = jsonTypeOf[scalar];
  if (expected !== undefined && typeof value !== expected) {
    throw wrongType(value, { form: 'scalar', scalar }, path + key, owner);
  }
  if (scalar === 'Q') return fitQuantity(value);
  if (scalar === 'R') return deepClone(value);
  if (scalar === 'i' && !Number.isInteger(value)) {
    throw new Misfit(
      `json: cannot unmarshal number ${String(value)} into Go struct field ${structField(owner, path + key)} of type int32`,
    );
  }
  if (scalar === 'T' || scalar === 'M') checkTime(value as string, scalar === 'M');
  if (scalar === 'y' && !/^[A-Za-z0-9+/\r\n]*={0,2}[\r\n]*$/.test(value as string)) {
    throw new Misfit('illegal base64 data at input byte 0');
  }
  if (scalar === 'I' && typeof value !== 'string' && !Number.isInteger(value)) {
    throw wrongType(value, { form: 'scalar', scalar: 'i' }, path + key, owner);
  }
  return value;
}

/** Texts that many objects share: pods of a workload ask for the same amounts. */
const canonical = new Map<string | number, string>();

function fitQuantity(value: unknown): string {
  if (typeof value !== 'string' && typeof value !== 'number') throw new Misfit(notAQuantity);
  const known = canonical.get(value);
  if (known !== undefined) return known;
  try {
    const text = canonicalQuantity(value);
    if (canonical.size > 10_000) canonical.clear();
    canonical.set(value, text);
    return text;
  } catch (error) {
    if (error instanceof QuantityError) throw new Misfit(error.message || notAQuantity);
    throw error;
  }
}

const notAQuantity = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Micro times must have exactly six digits of a second, as Go's layout has. */
function checkTime(text: string, micro: boolean): void {
  if (micro && !/\.\d{6}(Z|[+-]\d\d:\d\d)$/.test(text)) throw wrongTime(text, micro, text.slice(19), '.000000');
  try {
    parseTime(text);
  } catch (error) {
    if (!(error instanceof TimeError)) throw error;
    throw wrongTime(text, micro, text, '2006');
  }
}

function wrongTime(text: string, micro: boolean, rest: string, wanted: string): Misfit {
  const layout = micro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00';
  return new Misfit(
    `parsing time ${JSON.stringify(text)} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${wanted}"`,
  );
}

function wrongType(value: unknown, type: FieldType, path: string, owner: Shape): Misfit {
  return new Misfit(
    `json: cannot unmarshal ${jsonType(value)} into Go struct field ${structField(owner, path)} of type ${goType(type)}`,
  );
}

/** `Container.spec.containers.name`: the struct that has the field, and the way to it. */
function structField(owner: Shape, path: string): string {
  return `${owner.name.split('.')[1]}.${path.replaceAll(/\[\d+\]/g, '')}`;
}

const goScalars: Readonly<Record<Scalar, string>> = {
  s: 'string',
  b: 'bool',
  i: 'int32',
  d: 'float64',
  y: '[]uint8',
  T: 'v1.Time',
  M: 'v1.MicroTime',
  D: 'v1.Duration',
  Q: 'resource.Quantity',
  I: 'intstr.IntOrString',
  R: 'runtime.RawExtension',
};

function goType(type: FieldType): string {
  if (type.form === 'list') return `[]${goType(type.item)}`;
  if (type.form === 'map') return `map[string]${goType(type.item)}`;
  return type.form === 'message' ? `v1.${type.shape.name.split('.')[1]}` : goScalars[type.scalar];
}
