// SPDX-License-Identifier: Apache-2.0
// A schema prepared for use: patterns, formats and rules compiled, properties in order, and where there is nothing to do.

import type { RE2JS } from 're2js';
import { compareStrings } from '../../base/order.ts';
import { CelError, type CelProgram, compileCel } from '../cel.ts';
import { compileRegexp, RegexpError } from '../regexp.ts';
import type { FieldError } from './field-error.ts';
import { formatCheck } from './formats.ts';
import type { JsonSchema, ValidationRule } from './json-schema.ts';

export interface CompiledRule {
  readonly rule: ValidationRule;
  /** An error instead of a program when the rule is not CEL. */
  readonly program: CelProgram | CelError;
  readonly message: CelProgram | undefined;
  readonly usesOldSelf: boolean;
}

export class SchemaNode {
  readonly schema: JsonSchema;
  /** What the value may be; empty: anything. */
  readonly types: readonly string[];
  readonly nullable: boolean;
  readonly properties: ReadonlyMap<string, SchemaNode>;
  readonly additional: SchemaNode | undefined;
  readonly items: SchemaNode | undefined;
  readonly required: readonly string[];
  readonly preservesUnknown: boolean;
  readonly embedded: boolean;
  readonly format: string | undefined;
  readonly checkFormat: ((text: string) => boolean) | undefined;
  readonly pattern: RE2JS | RegexpError | undefined;
  readonly allOf: readonly SchemaNode[];
  readonly anyOf: readonly SchemaNode[];
  readonly oneOf: readonly SchemaNode[];
  readonly not: SchemaNode | undefined;
  readonly rules: readonly CompiledRule[];
  /** Whether this node or one below has rules. */
  readonly hasRules: boolean;
  /** Whether this node or one below is a list that is a set or a map. */
  readonly hasListTypes: boolean;
  /** Frozen values whose rules say nothing when they stay as they are. */
  readonly atRest = new WeakSet<object>();
  /** Texts that were found in order: the same few come again and again. */
  readonly goodTexts = new Set<string>();

  /** `problems` collects what is wrong with the schema itself; `path` is the place of this node in it. */
  constructor(schema: JsonSchema, problems: FieldError[] = [], path = '') {
    const child = (inner: JsonSchema, at: string): SchemaNode => new SchemaNode(inner, problems, below(path, at));
    const all = (list: readonly JsonSchema[] | undefined, name: string): SchemaNode[] =>
      (list ?? []).map((inner, i) => child(inner, `${name}[${i}]`));
    this.schema = schema;
    this.types = schema['x-kubernetes-int-or-string'] ? ['integer', 'string'] : schema.type ? [text(schema.type)] : [];
    this.nullable = schema.nullable ?? false;
    this.properties = new Map(
      Object.entries(schema.properties ?? {})
        .toSorted(([a], [b]) => compareStrings(a, b))
        .map(([name, inner]) => [name, child(inner, `properties[${name}]`)]),
    );
    const { additionalProperties, items } = schema;
    this.additional =
      typeof additionalProperties === 'object' ? child(additionalProperties, 'additionalProperties') : undefined;
    this.items = items === undefined ? undefined : child(items, 'items');
    this.required = schema.required ?? [];
    this.preservesUnknown = schema['x-kubernetes-preserve-unknown-fields'] ?? false;
    this.embedded = schema['x-kubernetes-embedded-resource'] ?? false;
    this.format = knownFormat(schema, this.types);
    this.checkFormat = this.format === undefined || isNumberFormat(this.types) ? undefined : formatCheck(this.format);
    this.pattern = schema.pattern ? tryPattern(schema.pattern, problems, path) : undefined;
    this.allOf = all(schema.allOf, 'allOf');
    this.anyOf = all(schema.anyOf, 'anyOf');
    this.oneOf = all(schema.oneOf, 'oneOf');
    this.not = schema.not === undefined ? undefined : child(schema.not, 'not');
    this.rules = compileRules(schema, problems, path);
    const inner = [...this.properties.values(), this.additional, this.items].filter((node) => node !== undefined);
    this.hasRules = this.rules.length > 0 || inner.some((node) => node.hasRules);
    const listType = schema['x-kubernetes-list-type'];
    this.hasListTypes = listType === 'set' || listType === 'map' || inner.some((node) => node.hasListTypes);
  }

  /** The schema of a key of an object. */
  of(key: string): SchemaNode | undefined {
    return this.properties.get(key) ?? this.additional;
  }
}

function below(path: string, name: string): string {
  return path === '' ? name : `${path}.${name}`;
}

/** The API server drops formats it does not know, and those that do not fit the type. */
/** A schema that nobody checked may hold anything. */
function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function knownFormat({ format }: JsonSchema, types: readonly string[]): string | undefined {
  if (!format) return undefined;
  const type = types.length === 1 ? types[0] : '';
  if (type === 'integer') return format === 'int32' || format === 'int64' ? format : undefined;
  if (type === 'number') return format === 'float' || format === 'double' ? format : undefined;
  return (type === '' || type === 'string') && formatCheck(format) !== undefined ? format : undefined;
}

function isNumberFormat(types: readonly string[]): boolean {
  return types.includes('integer') || types.includes('number');
}

function tryPattern(pattern: string, problems: FieldError[], path: string): RE2JS | RegexpError {
  try {
    return compileRegexp(pattern);
  } catch (error) {
    if (!(error instanceof RegexpError)) throw error;
    const detail = `must be a valid regular expression, but isn't: ${error.message}`;
    problems.push({ field: below(path, 'pattern'), type: 'Invalid', value: pattern, detail });
    return error;
  }
}

function compileRules(schema: JsonSchema, problems: FieldError[], path: string): CompiledRule[] {
  const own = schema['x-kubernetes-validations'] ?? [];
  const inherited = (schema.allOf ?? []).flatMap((inner) => inner['x-kubernetes-validations'] ?? []);
  return [...own, ...inherited].map((told, i): CompiledRule => {
    const rule = { ...told, rule: text(told?.rule ?? '') };
    const at = below(path, `x-kubernetes-validations[${i}]`);
    const program = tryCompile(rule.rule, problems, `${at}.rule`);
    const message = rule.messageExpression
      ? tryCompile(rule.messageExpression, problems, `${at}.messageExpression`)
      : undefined;
    return {
      rule,
      program,
      message: message instanceof CelError ? undefined : message,
      usesOldSelf: !(program instanceof CelError) && program.uses('oldSelf'),
    };
  });
}

function tryCompile(expression: string, problems: FieldError[], field: string): CelProgram | CelError {
  try {
    return compileCel(expression);
  } catch (error) {
    if (!(error instanceof CelError)) throw error;
    problems.push({ field, type: 'Invalid', value: expression, detail: `compilation failed: ${error.message}` });
    return error;
  }
}
