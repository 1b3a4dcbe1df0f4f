// SPDX-License-Identifier: Apache-2.0
// Whether a schema is one at all: every field of the type it must have. Decoding into Go's types does this for the real
// server; here it keeps strange values away from the code that compiles schemas.
import { isRecord, jsonType } from '../rest/metadata.ts';
import { badRequest } from '../status.ts';

type Check = (value: unknown) => boolean;

const isText: Check = (value) => typeof value === 'string';
const isNumber: Check = (value) => typeof value === 'number';
const isFlag: Check = (value) => typeof value === 'boolean';
const isTexts: Check = (value) => Array.isArray(value) && value.every(isText);
const isList: Check = Array.isArray;

const plain: Readonly<Record<string, readonly [Check, string]>> = {
  ...all(['type', 'format', 'pattern', 'title', 'description', '$ref', 'id', '$schema'], isText, 'string'),
  ...all(['x-kubernetes-list-type', 'x-kubernetes-map-type'], isText, 'string'),
  ...all(['minimum', 'maximum', 'multipleOf'], isNumber, 'float64'),
  ...all(
    ['minLength', 'maxLength', 'minItems', 'maxItems', 'minProperties', 'maxProperties'],
    Number.isInteger,
    'int64',
  ),
  ...all(['exclusiveMinimum', 'exclusiveMaximum', 'uniqueItems', 'nullable'], isFlag, 'bool'),
  ...all(
    ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource', 'x-kubernetes-int-or-string'],
    isFlag,
    'bool',
  ),
  ...all(['required', 'x-kubernetes-list-map-keys'], isTexts, '[]string'),
  ...all(['enum', 'allOf', 'anyOf', 'oneOf', 'x-kubernetes-validations'], isList, '[]v1.JSON'),
  ...all(['properties', 'patternProperties', 'definitions'], isRecord, 'map[string]v1.JSONSchemaProps'),
};

const rule: Readonly<Record<string, readonly [Check, string]>> = {
  ...all(['rule', 'message', 'messageExpression', 'reason', 'fieldPath'], isText, 'string'),
  ...all(['optionalOldSelf'], isFlag, 'bool'),
};

function all(names: readonly string[], check: Check, type: string): Readonly<Record<string, readonly [Check, string]>> {
  return Object.fromEntries(names.map((name) => [name, [check, type] as const]));
}

/** Drops what is null, as decoding does, and refuses what is of the wrong type. Throws StatusError (400). */
export function checkSchemaShape(schema: unknown): void {
  if (!isRecord(schema)) throw misfit(schema, 'openAPIV3Schema', 'v1.JSONSchemaProps');
  checkFields(schema, plain);
  for (const each of Array.isArray(schema['x-kubernetes-validations']) ? schema['x-kubernetes-validations'] : []) {
    if (!isRecord(each)) throw misfit(each, 'x-kubernetes-validations', 'v1.ValidationRule');
    checkFields(each, rule);
    each['rule'] ??= '';
  }
  for (const child of childrenOf(schema)) checkSchemaShape(child);
}

function checkFields(
  fields: Record<string, unknown>,
  checks: Readonly<Record<string, readonly [Check, string]>>,
): void {
  for (const key of Object.keys(fields)) {
    if (fields[key] == null && key !== 'default') delete fields[key];
    else if (Object.hasOwn(checks, key) && !checks[key]![0](fields[key]))
      throw misfit(fields[key], key, checks[key]![1]);
  }
}

function childrenOf(schema: Record<string, unknown>): unknown[] {
  const maps = ['properties', 'patternProperties', 'definitions'].flatMap((key) => Object.values(schema[key] ?? {}));
  const lists = ['allOf', 'anyOf', 'oneOf'].flatMap((key) => (schema[key] ?? []) as unknown[]);
  const single = ['items', 'not'].filter((key) => key in schema).map((key) => schema[key]);
  const { additionalProperties: additional } = schema;
  const open = additional === undefined || typeof additional === 'boolean' ? [] : [additional];
  return [...maps, ...lists, ...single, ...open];
}

function misfit(value: unknown, field: string, type: string): Error {
  const what = value === null ? 'null' : jsonType(value);
  return badRequest(
    `CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal ${what} into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.${field} of type ${type}`,
  );
}
