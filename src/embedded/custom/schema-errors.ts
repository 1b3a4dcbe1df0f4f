// SPDX-License-Identifier: Apache-2.0
// What a schema must be beyond its types: fields that are declared, lists that can be merged, defaults that are valid, rules
// that say what they must.
import type { FieldError } from '../../kube/schema/field-error.ts';
import { type JsonSchema, StructuralSchema } from '../../kube/schema/index.ts';
import type { ValidationRule } from '../../kube/schema/json-schema.ts';

/** The problems of a schema and of all below it; `at` is its place. */
export function schemaErrors(schema: JsonSchema, at: string): FieldError[] {
  const below = (part: string): string => `${at}.${part}`;
  const errors: FieldError[] = [];
  const { items, additionalProperties } = schema;
  if (typeof additionalProperties === 'object') {
    errors.push(...schemaErrors(additionalProperties, below('additionalProperties')));
  }
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    errors.push(...typeErrors(inner, below(`properties[${name}]`), 'fields'));
    errors.push(...schemaErrors(inner, below(`properties[${name}]`)));
  }
  if (items) errors.push(...typeErrors(items, below('items'), 'array items'), ...schemaErrors(items, below('items')));
  errors.push(
    ...shapeErrors(schema, below),
    ...listErrors(schema, below),
    ...keyErrors(schema, below),
    ...defaultErrors(schema, below),
    ...(schema['x-kubernetes-validations'] ?? []).flatMap((rule, i) =>
      wordErrors(rule, schema, below(`x-kubernetes-validations[${i}]`)),
    ),
  );
  return errors;
}

type Below = (part: string) => string;

function typeErrors(schema: JsonSchema, at: string, of: string): FieldError[] {
  const free = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields'];
  if (schema.type || free) return [];
  return [{ field: `${at}.type`, type: 'Required', detail: `must not be empty for specified object ${of}` }];
}

function shapeErrors(schema: JsonSchema, below: Below): FieldError[] {
  const errors: FieldError[] = [];
  const { properties = {}, additionalProperties } = schema;
  if (schema.uniqueItems) {
    const detail = 'uniqueItems cannot be set to true since the runtime complexity becomes quadratic';
    errors.push({ field: below('uniqueItems'), type: 'Forbidden', detail });
  }
  if (Object.keys(properties).length > 0 && additionalProperties !== undefined && additionalProperties !== true) {
    const detail = 'additionalProperties and properties are mutual exclusive';
    errors.push({ field: below('additionalProperties'), type: 'Forbidden', detail });
  }
  const preserves = schema['x-kubernetes-preserve-unknown-fields'];
  if (preserves === false) {
    errors.push(invalid(below('x-kubernetes-preserve-unknown-fields'), false, 'must be true or undefined'));
  }
  return errors;
}

const listTypes = ['atomic', 'set', 'map'];
const mapTypes = ['atomic', 'granular'];

function listErrors(schema: JsonSchema, below: Below): FieldError[] {
  const [listType, mapType] = [schema['x-kubernetes-list-type'], schema['x-kubernetes-map-type']];
  return [
    ...kindErrors(schema, below, 'x-kubernetes-map-type', 'object', mapType, mapTypes),
    ...kindErrors(schema, below, 'x-kubernetes-list-type', 'array', listType, listTypes),
    ...(listType === 'set' && schema.type === 'array' ? setErrors(schema.items, below) : []),
  ];
}

function kindErrors(
  { type }: JsonSchema,
  below: Below,
  mark: string,
  wanted: string,
  value: string | undefined,
  supported: readonly string[],
): FieldError[] {
  if (value === undefined) return [];
  const errors: FieldError[] = [];
  const detail = `must be ${wanted} if ${mark} is specified`;
  if (!type) errors.push({ field: below('type'), type: 'Required', detail });
  else if (type !== wanted) errors.push(invalid(below('type'), type, detail));
  if (!supported.includes(value)) errors.push(unsupported(below(mark), value, supported));
  return errors;
}

/** Items of a set are compared as a whole, so they must be atomic. */
function setErrors(items: JsonSchema | undefined, below: Below): FieldError[] {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items?.['x-kubernetes-list-type'];
  if (items?.type === 'array' && listType !== undefined && listType !== 'atomic') {
    return [invalid(below('items.x-kubernetes-list-type'), listType, detail)];
  }
  if (items?.type === 'object' && items['x-kubernetes-map-type'] !== 'atomic') {
    return [invalid(below('items.x-kubernetes-map-type'), listType ?? null, detail)];
  }
  return [];
}

function keyErrors(schema: JsonSchema, below: Below): FieldError[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const listType = schema['x-kubernetes-list-type'];
  const { items } = schema;
  const errors: FieldError[] = [];
  if (keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    const field = below('x-kubernetes-list-type');
    errors.push(listType === undefined ? { field, type: 'Required', detail } : invalid(field, listType, detail));
  }
  if (listType !== 'map') return errors;
  if (keys.length === 0) {
    const detail = 'must not be empty if x-kubernetes-list-type is map';
    errors.push({ field: below('x-kubernetes-list-map-keys'), type: 'Required', detail });
  }
  if (items === undefined) {
    const detail = 'must have a schema if x-kubernetes-list-type is map';
    return [...errors, { field: below('items'), type: 'Required', detail }];
  }
  if (items.type !== 'object') {
    const detail = "must be object if parent array's x-kubernetes-list-type is map";
    return [...errors, invalid(below('items.type'), items.type ?? '', detail)];
  }
  return [...errors, ...namedErrors(keys, items, below)];
}

function namedErrors(keys: readonly string[], items: JsonSchema, below: Below): FieldError[] {
  const errors: FieldError[] = [];
  for (const [i, key] of keys.entries()) {
    const property = items.properties?.[key];
    const field = below('x-kubernetes-list-map-keys');
    if (property === undefined) errors.push(invalid(field, keys, 'entries must all be names of item properties'));
    else if (property.type === 'array' || property.type === 'object') {
      const detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
      errors.push(invalid(below(`items.properties[${key}].type`), items.type, detail));
    }
    if (keys.indexOf(key) < i) errors.push(invalid(field, keys, 'must not contain duplicate entries'));
    else if (property && property.default === undefined && !items.required?.includes(key)) {
      const detail =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
      errors.push({ field: below(`items.properties[${key}].default`), type: 'Required', detail });
    }
  }
  return errors;
}

function defaultErrors(schema: JsonSchema, below: Below): FieldError[] {
  if (schema.default === undefined || schema.default === null) return [];
  const [first] = new StructuralSchema({ ...schema, 'x-kubernetes-validations': [] } as JsonSchema).validate(
    schema.default,
  );
  return first ? [{ ...first, field: below('default') }] : [];
}

const reasons = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];
const breaks = /[\n\r]/;

/** What a rule says beside its expression. */
function wordErrors(rule: ValidationRule, schema: JsonSchema, at: string): FieldError[] {
  const errors: FieldError[] = [];
  const { message = '', messageExpression = '', reason, fieldPath = '' } = rule;
  const text = rule.rule.trim();
  if (text === '') errors.push({ field: `${at}.rule`, type: 'Required', detail: 'rule is not specified' });
  else if (message !== '' && message.trim() === '') {
    errors.push(invalid(`${at}.message`, message, 'must be non-empty if specified'));
  } else if (breaks.test(message.trim())) {
    errors.push(invalid(`${at}.message`, message, 'must not contain line breaks'));
  } else if (breaks.test(text) && message.trim() === '') {
    const detail = 'message must be specified if rule contains line breaks';
    errors.push({ field: `${at}.message`, type: 'Required', detail });
  }
  if (messageExpression !== '' && messageExpression.trim() === '') {
    const detail = 'messageExpression must be non-empty if specified';
    errors.push({ field: `${at}.messageExpression`, type: 'Required', detail });
  }
  if (reason !== undefined && !reasons.includes(reason)) {
    errors.push(unsupported(`${at}.reason`, reason, reasons));
  }
  if (fieldPath !== '') errors.push(...pathErrors(fieldPath, schema, `${at}.fieldPath`));
  return errors;
}

function pathErrors(path: string, schema: JsonSchema, field: string): FieldError[] {
  const errors: FieldError[] = [];
  if (path.trim() === '') errors.push(invalid(field, path, 'must be non-empty if specified'));
  if (breaks.test(path)) errors.push(invalid(field, path, 'must not contain line breaks'));
  if (!leadsSomewhere(path, schema)) errors.push(invalid(field, path, 'must be a valid path'));
  return errors;
}

/** Whether `.a.b['c']` names a field below a schema. */
function leadsSomewhere(path: string, schema: JsonSchema): boolean {
  const steps = [...path.matchAll(/\.([A-Za-z_][A-Za-z0-9_]*)|\['((?:[^'\\]|\\.)+)'\]/gy)];
  if (steps.length === 0 || steps.map(([step]) => step).join('') !== path) return false;
  let at: JsonSchema | undefined = schema;
  for (const [, plain, quoted] of steps) {
    const name = plain ?? quoted!.replaceAll(/\\(.)/g, '$1');
    const inside: JsonSchema | undefined = at.properties?.[name];
    const any: JsonSchema['additionalProperties'] = at.additionalProperties;
    at = inside ?? (typeof any === 'object' && quoted !== undefined ? any : undefined);
    if (at === undefined) return false;
  }
  return true;
}

function unsupported(field: string, value: string, supported: readonly string[]): FieldError {
  const detail = `supported values: ${supported.map((each) => JSON.stringify(each)).join(', ')}`;
  return { field, type: 'Unsupported value', value, detail };
}

function invalid(field: string, value: unknown, detail: string): FieldError {
  return { field, type: 'Invalid', value, detail };
}
