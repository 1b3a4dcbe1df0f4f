// SPDX-License-Identifier: Apache-2.0
// The schema of a custom resource at work: defaults, pruning and validation as the API server does them.

import { KarpenterError } from '../../base/errors.ts';
import { getOwn, isObject } from '../patch-error.ts';
import type { FieldError, FieldErrorType } from './field-error.ts';
import type { JsonSchema } from './json-schema.ts';
import { SchemaNode } from './schema-node.ts';
import { defaulted, type IsKnown, pruned } from './shape.ts';
import { listErrors } from './validate-lists.ts';
import { validateRules } from './validate-rules.ts';
import { validateValue } from './validate-value.ts';

/** Errors after which the API server does not run rules: their values may not be what the rules expect. */
const blocking: ReadonlySet<FieldErrorType> = new Set([
  'Unsupported value',
  'Required',
  'Too long',
  'Too many',
  'Type',
]);
const notChecked =
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation';

/** A value that cannot be worked on at all: it is nested deeper than the stack allows. */
export class SchemaError extends KarpenterError {
  constructor(message: string) {
    super('KRP_SCHEMA', message);
  }
}

/** A structural schema, compiled once. Never changes the values it is given. */
export class StructuralSchema {
  /** What is wrong with the schema itself: patterns and rules that do not compile. Fields are paths in the schema (`properties[spec].pattern`). */
  readonly problems: readonly FieldError[];
  readonly #root: SchemaNode;

  constructor(schema: JsonSchema) {
    const problems: FieldError[] = [];
    this.#root = new SchemaNode(schema, problems);
    this.problems = problems;
  }

  /** The value with the defaults of the schema. It shares what needs none with the one given. */
  default(value: unknown): unknown {
    return guarded(() => defaulted(this.#root, value));
  }

  /**
   * The value without unknown fields, and their paths (`spec.foo[0].bar`); it shares what has none with the one given. `apiVersion`,
   * `kind` and `metadata` are always known, and so is what `isKnown` says was pruned before.
   */
  prune(value: unknown, isKnown: IsKnown = () => false): { value: unknown; unknown: string[] } {
    const unknown: string[] = [];
    return { value: guarded(() => pruned(this.#root, value, true, '', unknown, isKnown)), unknown };
  }

  /**
   * What is wrong with a value, in the API server's words and order of checks. With the value it replaces, transition rules run, and what
   * did not change is not reported.
   */
  validate(value: unknown, oldValue?: unknown): FieldError[] {
    return guarded(() => this.#validate(value, oldValue));
  }

  /** What is wrong with a value whose status is being written: of its fields only those of the status are looked at, rules run on all. */
  validateStatus(value: unknown, oldValue: unknown): FieldError[] {
    return guarded(() => this.#validate(value, oldValue, 'status'));
  }

  #validate(value: unknown, oldValue: unknown, part?: string): FieldError[] {
    const errors: FieldError[] = [];
    const report = (error: FieldError): void => {
      errors.push(error);
    };
    if (part === undefined) validateValue(this.#root, value, oldValue, '', report);
    else this.#validatePart(part, value, oldValue, report);
    for (const error of listErrors(this.#root, value, oldValue)) report(error);
    if (!this.#root.hasRules) return errors;
    if (errors.some(({ type }) => blocking.has(type))) {
      report({ field: '<nil>', type: 'Invalid', value: null, detail: notChecked });
    } else {
      validateRules(this.#root, value, oldValue, '', report);
    }
    return errors;
  }

  /** One field alone. The API server then names fields in its sentences from there on, and in full only in the path. */
  #validatePart(part: string, value: unknown, oldValue: unknown, report: (error: FieldError) => void): void {
    const node = this.#root.properties.get(part);
    const [now, before] = [fieldOf(value, part), fieldOf(oldValue, part)];
    if (node === undefined || now === undefined) return;
    validateValue(node, now, before, '', (error) => {
      const { field } = error;
      report(
        error.type === 'Invalid' && field === '<nil>'
          ? error
          : { ...error, field: field === '<nil>' ? part : `${part}.${field}` },
      );
    });
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return isObject(value) ? getOwn(value, name) : undefined;
}

function guarded<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof RangeError) throw new SchemaError('the value is nested too deeply');
    throw error;
  }
}
