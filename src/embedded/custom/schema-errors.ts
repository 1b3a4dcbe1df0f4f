// SPDX-License-Identifier: Apache-2.0
// What makes a schema unfit for a definition although it can be compiled: missing types, keys that are not there,
// defaults that it forbids itself, rules about what is not declared.

import { CelError } from '../../kube/cel.ts';
import { type CelNode, parseCel } from '../../kube/cel-parser.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { type JsonSchema, StructuralSchema } from '../../kube/schema/index.ts';

/** The problems of a schema and of all below it; fields are relative to the schema. */
export function schemaErrors(schema: JsonSchema, at = ''): FieldError[] {
  const below = (part: string): string => (at === '' ? part : `${at}.${part}`);
  const errors = [...listErrors(schema, below), ...defaultErrors(schema, below), ...ruleErrors(schema, below)];
  for (const [name, inner] of Object.entries(schema.properties ?? {})) {
    errors.push(...typeErrors(inner, below(`properties[${name}]`), 'fields'));
    errors.push(...schemaErrors(inner, below(`properties[${name}]`)));
  }
  const { items, additionalProperties } = schema;
  if (items) errors.push(...typeErrors(items, below('items'), 'array items'), ...schemaErrors(items, below('items')));
  if (typeof additionalProperties === 'object') {
    errors.push(...schemaErrors(additionalProperties, below('additionalProperties')));
  }
  return errors;
}

function typeErrors(schema: JsonSchema, at: string, of: string): FieldError[] {
  const free = schema['x-kubernetes-int-or-string'] || schema['x-kubernetes-preserve-unknown-fields'];
  if (schema.type || free) return [];
  return [{ field: `${at}.type`, type: 'Required', detail: `must not be empty for specified object ${of}` }];
}

function listErrors(schema: JsonSchema, below: (part: string) => string): FieldError[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  const declared = schema.items?.properties ?? {};
  return keys
    .filter((key) => !(key in declared))
    .map((key) => ({
      field: below('x-kubernetes-list-map-keys'),
      type: 'Invalid',
      value: key,
      detail: 'entries must all be names of item properties',
    }));
}

function defaultErrors(schema: JsonSchema, below: (part: string) => string): FieldError[] {
  if (schema.default === undefined || schema.default === null) return [];
  const [first] = new StructuralSchema({ ...schema, 'x-kubernetes-validations': [] } as JsonSchema).validate(
    schema.default,
  );
  return first ? [{ ...first, field: below('default') }] : [];
}

function ruleErrors(schema: JsonSchema, below: (part: string) => string): FieldError[] {
  const errors: FieldError[] = [];
  (schema['x-kubernetes-validations'] ?? []).forEach(({ rule }, i) => {
    const tree = parsed(rule);
    if (!tree) return;
    const field = below(`x-kubernetes-validations[${i}].rule`);
    const fail = (detail: string): unknown => errors.push({ field, type: 'Invalid', value: rule, detail });
    if (neverBoolean(tree)) fail('must evaluate to a bool');
    const unknown = undeclaredField(tree, schema);
    if (unknown !== undefined) {
      const column = rule.indexOf(`.${unknown}`) + 1;
      fail(`compilation failed: ERROR: <input>:1:${column}: undefined field '${unknown}'`);
    }
  });
  return errors;
}

/** The tree of a rule; undefined when it has none, which the schema's own problems say. */
function parsed(rule: string): CelNode | undefined {
  try {
    return parseCel(rule);
  } catch (error) {
    if (error instanceof CelError) return undefined;
    throw error;
  }
}

const arithmetic = new Set(['+', '-', '*', '/', '%']);

/** Whether a result can be told, without types, to be no truth value. */
function neverBoolean(node: CelNode): boolean {
  switch (node.kind) {
    case 'literal':
      return typeof node.value !== 'boolean';
    case 'list':
    case 'map':
      return true;
    case 'unary':
      return node.operator === '-';
    case 'binary':
      return arithmetic.has(node.operator);
    case 'conditional':
      return neverBoolean(node.yes) && neverBoolean(node.no);
    case 'identifier':
    case 'select':
    case 'index':
    case 'call':
      return false;
  }
}

/** The first field a rule reads from `self` that its schema does not have. */
function undeclaredField(node: CelNode, schema: JsonSchema): string | undefined {
  if (node.kind === 'select') {
    const owner = schemaAt(node.operand, schema);
    if (owner && isClosed(owner) && !(unescaped(node.field) in (owner.properties ?? {}))) return node.field;
  }
  for (const child of childrenOf(node)) {
    const found = undeclaredField(child, schema);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The schema of what a chain of selects from `self` reads, as far as it is known. */
function schemaAt(node: CelNode, schema: JsonSchema): JsonSchema | undefined {
  if (node.kind === 'identifier') return node.name === 'self' ? schema : undefined;
  if (node.kind !== 'select') return undefined;
  return schemaAt(node.operand, schema)?.properties?.[unescaped(node.field)];
}

/** Whether a schema names all fields: only then is another one a mistake. The root has metadata of its own. */
function isClosed(schema: JsonSchema): boolean {
  return (
    schema.type === 'object' &&
    schema.properties !== undefined &&
    !schema.additionalProperties &&
    !schema['x-kubernetes-preserve-unknown-fields'] &&
    !schema['x-kubernetes-embedded-resource'] &&
    !('spec' in schema.properties || 'metadata' in schema.properties)
  );
}

/** CEL writes names that it could not read otherwise between underscores. */
function unescaped(field: string): string {
  const escapes: Readonly<Record<string, string>> = {
    __dot__: '.',
    __dash__: '-',
    __slash__: '/',
    __underscores__: '__',
  };
  return field
    .replaceAll(/__(?:dot|dash|slash|underscores)__/g, (escape) => escapes[escape]!)
    .replace(/^__([a-z]+)__$/, '$1');
}

function childrenOf(node: CelNode): readonly CelNode[] {
  switch (node.kind) {
    case 'select':
      return [node.operand];
    case 'index':
      return [node.operand, node.key];
    case 'call':
      return [...(node.receiver ? [node.receiver] : []), ...node.args];
    case 'list':
      return node.items.map(({ value }) => value);
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value]);
    case 'unary':
      return [node.operand];
    case 'binary':
      return [node.left, node.right];
    case 'conditional':
      return [node.test, node.yes, node.no];
    case 'literal':
    case 'identifier':
      return [];
  }
}
