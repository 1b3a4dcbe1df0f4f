// SPDX-License-Identifier: Apache-2.0
// What a schema is to the rules on it: the types of its values in CEL, and how large they can get in one request.

import type { SizedType } from '../cel-cost.ts';
import { escapeName, keywords } from '../cel-input.ts';
import { type CelStaticType, dynType, listOf, mapOf, simpleType, stringType, structType } from '../cel-types.ts';
import type { JsonSchema } from './json-schema.ts';

/** The type of a value of the schema. */
export interface RuleType extends SizedType {
  /** The type in CEL; objects get names below `name`. */
  readonly type: (name: string) => CelStaticType;
  /** The fewest bytes of JSON such a value takes: it bounds how often the value can come in one request. */
  readonly minBytes: number;
  readonly fields?: ReadonlyMap<string, RuleType>;
  readonly items?: RuleType;
  readonly keys?: RuleType;
}

/** A request has at most this many bytes. */
export const maxRequestBytes: number = 3 * 1024 * 1024;
const maxText = maxRequestBytes - 2;

const plain = (name: string, minBytes: number, maxElements = 0): RuleType => ({
  type: () => simpleType(name),
  minBytes,
  maxElements,
});

/** The type of what a schema describes; undefined for what rules cannot see. `resource`: it has apiVersion, kind and metadata. */
export function ruleType(schema: JsonSchema, resource: boolean): RuleType | undefined {
  if (schema['x-kubernetes-int-or-string']) {
    const { maxLength } = schema;
    return {
      type: () => dynType,
      minBytes: 1,
      maxElements: maxLength === undefined ? maxText : Math.max(maxLength, 0) * 4,
    };
  }
  switch (schema.type ?? '') {
    case 'array':
      return arrayType(schema);
    case 'object':
      return objectType(resource ? withMetadata(schema) : schema);
    case 'string':
      return textType(schema);
    case 'boolean':
      return plain('bool', 4);
    case 'number':
      return plain('double', 1);
    case 'integer':
      return plain('int', 1);
    default:
      return undefined;
  }
}

function child(schema: JsonSchema): RuleType | undefined {
  return ruleType(schema, schema['x-kubernetes-embedded-resource'] ?? false);
}

function arrayType({ items, maxItems }: JsonSchema): RuleType | undefined {
  const item = items && child(items);
  if (item === undefined) return undefined;
  const most = maxItems === undefined ? Math.floor((maxRequestBytes - 2) / (item.minBytes + 1)) : Math.max(maxItems, 0);
  return { type: (name) => listOf(item.type(`${name}.@idx`)), minBytes: 2, maxElements: most, items: item };
}

const mapKey: RuleType = { type: () => stringType, minBytes: 2, maxElements: 0 };

function objectType(schema: JsonSchema): RuleType | undefined {
  const { additionalProperties, maxProperties } = schema;
  if (typeof additionalProperties === 'object') {
    const value = child(additionalProperties);
    if (value === undefined) return undefined;
    const most =
      maxProperties === undefined
        ? Math.floor((maxRequestBytes - 2) / (value.minBytes + 6))
        : Math.max(maxProperties, 0);
    return {
      type: (name) => mapOf(stringType, value.type(`${name}.@elem`)),
      minBytes: 2,
      maxElements: most,
      items: value,
      keys: mapKey,
    };
  }
  const fields = new Map<string, RuleType>();
  const required = new Set(schema.required ?? []);
  let minBytes = 2;
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const type = child(property);
    if (type === undefined) continue;
    if (canBeNamed(name)) fields.set(escapeName(name), type);
    if (keywords.has(name)) fields.set(name, type);
    if (required.has(name) && (property.default === undefined || property.default === null)) {
      minBytes += Buffer.byteLength(name) + type.minBytes + 4;
    }
  }
  return {
    type: (name) =>
      structType(name, new Map([...fields].map(([field, type]) => [field, type.type(`${name}.${field}`)]))),
    minBytes,
    maxElements: 0,
    fields,
  };
}

/** Whether CEL has a way to write the name of a property. */
function canBeNamed(name: string): boolean {
  return /^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name);
}

const text: JsonSchema = { type: 'string' };

/** Of metadata, rules see the names alone. */
function withMetadata(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    properties: {
      ...schema.properties,
      kind: text,
      apiVersion: text,
      metadata: { type: 'object', properties: { name: text, generateName: text } },
    },
  };
}

function textType({ format, maxLength, enum: values }: JsonSchema): RuleType {
  switch (format ?? '') {
    case 'byte':
      return plain('bytes', 2, maxLength === undefined ? maxText : Math.max(maxLength, 0));
    case 'duration':
      return plain('duration', 3, 32);
    case 'date':
      return plain('timestamp', 12, 12);
    case 'date-time':
      return plain('timestamp', 21, 32);
    default:
      return plain('string', 2, longest(maxLength, values));
  }
}

/** A character takes up to four bytes, and it is bytes that are counted. */
function longest(maxLength: number | undefined, values: readonly unknown[] | undefined): number {
  if (maxLength !== undefined) return Math.max(maxLength, 0) * 4;
  if (!values?.length) return maxText;
  return Math.max(0, ...values.map((value) => (typeof value === 'string' ? Buffer.byteLength(value) : 0)));
}
