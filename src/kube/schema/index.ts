// SPDX-License-Identifier: Apache-2.0
// Structural schemas: defaults, pruning and validation of custom resources.

export {
  type FieldError,
  type FieldErrorType,
  fieldErrorBody,
  fieldErrorReason,
  formatFieldErrors,
} from './field-error.ts';
export type { JsonSchema, ValidationRule } from './json-schema.ts';
export { SchemaError, StructuralSchema } from './structural-schema.ts';
