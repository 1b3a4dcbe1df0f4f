// SPDX-License-Identifier: Apache-2.0
// What is wrong with which field, in the words of the API server.

import { goFloat, goJson, goQuote } from './go-format.ts';

const types = {
  Required: { reason: 'FieldValueRequired', text: 'Required value', showsValue: false },
  Invalid: { reason: 'FieldValueInvalid', text: 'Invalid value', showsValue: true },
  Type: { reason: 'FieldValueTypeInvalid', text: 'Invalid value', showsValue: true },
  'Unsupported value': { reason: 'FieldValueNotSupported', text: 'Unsupported value', showsValue: true },
  'Duplicate value': { reason: 'FieldValueDuplicate', text: 'Duplicate value', showsValue: true },
  'Not found': { reason: 'FieldValueNotFound', text: 'Not found', showsValue: true },
  'Too many': { reason: 'FieldValueTooMany', text: 'Too many', showsValue: true },
  'Too few': { reason: 'FieldValueTooFew', text: 'Too few', showsValue: true },
  'Too long': { reason: 'FieldValueTooLong', text: 'Too long', showsValue: false },
  'Too short': { reason: 'FieldValueTooShort', text: 'Too short', showsValue: false },
  Forbidden: { reason: 'FieldValueForbidden', text: 'Forbidden', showsValue: false },
  Internal: { reason: 'InternalError', text: 'Internal error', showsValue: false },
} as const;

export type FieldErrorType = keyof typeof types;

/** One thing wrong with one field. `value` is shown where the type of the error shows values; leave it out to hide it. */
export interface FieldError {
  /** `spec.template.spec.requirements[0].key`; `<nil>` stands for the object itself. */
  readonly field: string;
  readonly type: FieldErrorType;
  /** The sentence after the value; may be empty. */
  readonly detail: string;
  readonly value?: unknown;
}

/** The reason that goes into `status.details.causes`. */
export function fieldErrorReason(type: FieldErrorType): string {
  return types[type].reason;
}

/** The message without the field: what goes into `status.details.causes[].message`. */
export function fieldErrorBody(error: FieldError): string {
  const { text, showsValue } = types[error.type];
  const shown = showsValue && 'value' in error ? `${text}: ${showValue(error.value)}` : text;
  return error.detail === '' ? shown : `${shown}: ${error.detail}`;
}

/** `spec.weight: Invalid value: 101: must be at most 100`. */
function formatFieldError(error: FieldError): string {
  return `${error.field}: ${fieldErrorBody(error)}`;
}

/** All of them in one sentence as the API server joins them: one as it is, several in brackets, repeated ones once, none as nothing. */
export function formatFieldErrors(errors: readonly FieldError[]): string {
  const messages = [...new Set(errors.map(formatFieldError))];
  return messages.length <= 1 ? (messages[0] ?? '') : `[${messages.join(', ')}]`;
}

function showValue(value: unknown): string {
  if (typeof value === 'string') return goQuote(value);
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'number' && !Number.isInteger(value)) return goFloat(value);
  return value === undefined ? 'null' : goJson(value);
}
