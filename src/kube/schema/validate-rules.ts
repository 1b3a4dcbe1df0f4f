// SPDX-License-Identifier: Apache-2.0
// The CEL rules of a schema, run over a value and the one it replaces.

import { deepEqual } from '../../base/freeze.ts';
import { CelError, celInput, celOptional } from '../cel.ts';
import { correlate } from './correlate.ts';
import type { FieldError } from './field-error.ts';
import type { ValidationRule } from './json-schema.ts';
import type { CompiledRule, SchemaNode } from './schema-node.ts';

type Report = (error: FieldError) => void;

/**
 * Runs the rules of a node and of all below. Rules that mention `oldSelf` run only where there is an old value to compare with (or where
 * they say that it is optional); other rules do not complain about what did not change.
 */
export function validateRules(node: SchemaNode, value: unknown, old: unknown, path: string, report: Report): void {
  if (!node.hasRules || value === undefined || value === null) return;
  if (typeof value !== 'object' || value === null || value !== old || !Object.isFrozen(value)) {
    runAll(node, value, old, path, report);
    return;
  }
  if (node.atRest.has(value)) return;
  let isAtRest = true;
  runAll(node, value, old, path, (error) => {
    isAtRest = false;
    report(error);
  });
  if (isAtRest) node.atRest.add(value);
}

function runAll(node: SchemaNode, value: unknown, old: unknown, path: string, report: Report): void {
  if (node.rules.length > 0) runRules(node, value, old ?? undefined, path, report);
  if (Array.isArray(value)) {
    if (node.items === undefined || !node.items.hasRules) return;
    const before = correlate(node, old);
    for (const [i, item] of value.entries()) validateRules(node.items, item, before(item), `${path}[${i}]`, report);
  } else if (typeof value === 'object' && value !== null) {
    const before = correlate(node, old);
    for (const [key, inner] of Object.entries(value)) {
      const property = node.properties.get(key);
      if (property !== undefined)
        validateRules(property, inner, before(key), path === '' ? key : `${path}.${key}`, report);
      else if (node.additional !== undefined)
        validateRules(node.additional, inner, before(key), `${path}[${key}]`, report);
    }
  }
}

function runRules(node: SchemaNode, value: unknown, old: unknown, path: string, report: Report): void {
  const field = path === '' ? '<nil>' : path;
  const type = node.schema.type ?? '';
  // Once for all rules: a large object may have to be converted.
  const self = celInput(value, node.schema);
  const oldSelf = old === undefined ? undefined : celInput(old, node.schema);
  for (const compiled of node.rules) {
    const { rule, program, usesOldSelf } = compiled;
    if (usesOldSelf && old === undefined && !rule.optionalOldSelf) continue;
    if (program instanceof CelError) {
      report({ field, type: 'Invalid', value: type, detail: `rule compile error: ${program.message}` });
      continue;
    }
    const variables = { self, oldSelf: rule.optionalOldSelf ? celOptional(oldSelf) : oldSelf };
    let holds: unknown;
    try {
      holds = program.evaluate(variables);
    } catch (error) {
      if (!(error instanceof CelError)) throw error;
      report({ field, type: 'Invalid', value: type, detail: failure(error, rule) });
      continue;
    }
    if (holds === true || (!usesOldSelf && old !== undefined && deepEqual(value, old))) continue;
    report(violation(compiled, variables, value, type, path));
  }
}

function failure(error: CelError, rule: ValidationRule): string {
  const about = (rule.message || rule.rule).trim();
  if (error.message.startsWith('no such overload')) {
    return `'${error.message}': call arguments did not match a supported operator, function or macro signature for rule: ${about}`;
  }
  if (error.message.startsWith('operation cancelled')) {
    return `'${error.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${about}`;
  }
  return `${error.message} evaluating rule: ${about}`;
}

function violation(
  compiled: CompiledRule,
  variables: { self: unknown; oldSelf: unknown },
  value: unknown,
  type: string,
  path: string,
): FieldError {
  const { rule } = compiled;
  const field = fieldOf(path, rule.fieldPath);
  const detail = messageOf(compiled, variables);
  // Objects and lists are too long to be shown.
  const shown = type === 'object' || type === 'array' ? {} : { value };
  switch (rule.reason ?? '') {
    case 'FieldValueForbidden':
      return { field, type: 'Forbidden', detail };
    case 'FieldValueRequired':
      return { field, type: 'Required', detail };
    case 'FieldValueDuplicate':
      return { field, type: 'Duplicate value', detail: '', ...shown };
    default:
      return { field, type: 'Invalid', detail, ...shown };
  }
}

function messageOf({ rule, message }: CompiledRule, variables: { self: unknown; oldSelf: unknown }): string {
  if (message !== undefined) {
    try {
      const text = message.evaluate(variables);
      const trimmed = typeof text === 'string' ? text.trim() : '';
      if (trimmed !== '' && !trimmed.includes('\n') && trimmed.length <= 5 * 1024) return trimmed;
    } catch (error) {
      // A message that cannot be made falls back to the fixed one.
      if (!(error instanceof CelError)) throw error;
    }
  }
  return rule.message?.trim() || `failed rule: ${rule.rule.trim()}`;
}

/** `.foo.bar` and `['foo']` below the place of the rule. */
function fieldOf(path: string, fieldPath: string | undefined): string {
  if (!fieldPath) return path === '' ? '<nil>' : path;
  const below = fieldPath.replace(/\['((?:[^'\\]|\\.)*)'\]/g, '.$1').replace(/^\./, '');
  return path === '' ? below : `${path}.${below}`;
}
