// SPDX-License-Identifier: Apache-2.0
// From JSON to CEL by its schema: most values are taken as they are, a few need the schema to know what they are.

import { CelDouble, CelDuration, CelError, CelTimestamp } from './cel-values.ts';
import { parseDurationNanos, parseTimeNanos, TimeError } from './time.ts';

/** The part of a JSON schema that decides how values look in CEL. */
export interface CelInputSchema {
  readonly type?: string;
  readonly format?: string;
  readonly properties?: Readonly<Record<string, CelInputSchema>>;
  readonly additionalProperties?: CelInputSchema | boolean;
  readonly items?: CelInputSchema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
}

type Convert = (value: unknown) => unknown;

const same: Convert = (value) => value;
const converters = new WeakMap<CelInputSchema, Convert>();

/** The value as CEL sees it. Costs nothing where the schema asks for nothing. */
export function celInput(value: unknown, schema: CelInputSchema): unknown {
  return converterFor(schema)(value);
}

function converterFor(schema: CelInputSchema): Convert {
  let convert = converters.get(schema);
  if (convert === undefined) {
    convert = buildConverter(schema);
    converters.set(schema, convert);
  }
  return convert;
}

function buildConverter(schema: CelInputSchema): Convert {
  if (schema['x-kubernetes-int-or-string']) return same;
  switch (schema.type ?? '') {
    case 'number':
      return (value) => (typeof value === 'number' ? new CelDouble(value) : value);
    case 'string':
      return stringConverter(schema.format);
    case 'array': {
      const item = schema.items === undefined ? same : converterFor(schema.items);
      return item === same ? same : (value) => (Array.isArray(value) ? value.map(item) : value);
    }
    case 'object':
      return objectConverter(schema);
    default:
      return same;
  }
}

function stringConverter(format: string | undefined): Convert {
  switch (format ?? '') {
    case 'date-time':
      return onText((text) => new CelTimestamp(parseTimeNanos(text.toUpperCase())));
    case 'date':
      return onText((text) => new CelTimestamp(parseTimeNanos(`${text}T00:00:00Z`)));
    case 'duration':
      return onText((text) => new CelDuration(parseDurationNanos(text)));
    case 'byte':
      return onText((text) => new Uint8Array(Buffer.from(text, 'base64')));
    default:
      return same;
  }
}

/** What is no time stays the text it is: only a rule that looks at it fails. */
function onText(convert: (text: string) => unknown): Convert {
  return (value) => {
    if (typeof value !== 'string') return value;
    try {
      return convert(value);
    } catch (error) {
      if (error instanceof TimeError || error instanceof CelError) return value;
      throw error;
    }
  };
}

function objectConverter(schema: CelInputSchema): Convert {
  const fields = new Map<string, { name: string; convert: Convert }>();
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    const [name, convert] = [escapeName(key), converterFor(property)];
    if (name !== key || convert !== same) fields.set(key, { name, convert });
  }
  const { additionalProperties } = schema;
  const others = typeof additionalProperties === 'object' ? converterFor(additionalProperties) : same;
  if (fields.size === 0 && others === same) return same;
  return (value) => {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
    const entries = Object.entries(value).flatMap(([key, inner]): [string, unknown][] => {
      const field = fields.get(key);
      if (field !== undefined) return named(key, field.name, field.convert(inner));
      return [[key, schema.properties !== undefined && Object.hasOwn(schema.properties, key) ? inner : others(inner)]];
    });
    return Object.fromEntries(entries);
  };
}

/** A property whose name is a word of the language goes by both: `self.namespace`, `self.__namespace__`. */
function named(key: string, name: string, value: unknown): [string, unknown][] {
  return keywords.has(key)
    ? [
        [key, value],
        [name, value],
      ]
    : [[name, value]];
}

/** The words of the language. */
export const keywords: ReadonlySet<string> = new Set(
  'true false null in as break const continue else for function if import let loop package namespace return var void while'.split(
    ' ',
  ),
);

/** The name of a property in an expression: `foo-bar` is `foo__dash__bar`, `namespace` is `__namespace__`. */
export function escapeName(name: string): string {
  if (keywords.has(name)) return `__${name}__`;
  if (!/__|[-./]/.test(name)) return name;
  return name.replace(/__|[-./]/g, (part) => {
    switch (part) {
      case '__':
        return '__underscores__';
      case '-':
        return '__dash__';
      case '.':
        return '__dot__';
      default:
        return '__slash__';
    }
  });
}
