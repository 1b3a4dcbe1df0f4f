// SPDX-License-Identifier: Apache-2.0
// What ConfigMaps and Secrets have in common: keys, a size, and the wish not to be changed any more.
import { deepEqual } from '../../base/freeze.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';

type Data = Readonly<Record<string, string>> | undefined;

const largest = 1024 * 1024;

export function keyErrors(field: string, data: Data): FieldError[] {
  const errors: FieldError[] = [];
  for (const key in data) {
    for (const detail of keyProblems(key))
      errors.push({ field: `${field}[${key}]`, type: 'Invalid', value: key, detail });
  }
  return errors;
}

function keyProblems(key: string): string[] {
  const problems: string[] = [];
  if (key.length > 253) problems.push('must be no more than 253 characters');
  if (!/^[-._a-zA-Z0-9]+$/.test(key)) {
    problems.push(
      "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
    );
  }
  if (key === '.' || key.startsWith('..')) problems.push(key === '.' ? "must not be '.'" : "must not start with '..'");
  return problems;
}

export function sizeErrors(...parts: readonly Data[]): FieldError[] {
  let size = 0;
  for (const data of parts) for (const key in data) size += data[key]!.length;
  return size > largest ? [{ field: '[]', type: 'Too long', detail: `may not be more than ${largest} bytes` }] : [];
}

/** An empty map is as good as none: it is not written. */
export function dropEmptyData(object: { data?: Data; binaryData?: Data }): void {
  if (object.data && Object.keys(object.data).length === 0) delete object.data;
  if (object.binaryData && Object.keys(object.binaryData).length === 0) delete object.binaryData;
}

/** What may not change once an object says that it is immutable. */
export function frozenErrors<T extends { readonly immutable?: boolean }>(
  object: T,
  old: T,
  fields: readonly (keyof T & string)[],
): FieldError[] {
  if (old.immutable !== true) return [];
  const detail = 'field is immutable when `immutable` is set';
  const changed = fields.filter((field) => !deepEqual(object[field], old[field]));
  return [...(object.immutable === true ? [] : ['immutable']), ...changed].map((field) => ({
    field,
    type: 'Forbidden',
    detail,
  }));
}
