// SPDX-License-Identifier: Apache-2.0
// What the API server demands of the fields that scale reads and writes, whatever the schema of the definition says.
import type { KubeObject } from '../../kube/object.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { goValue } from '../../kube/schema/go-format.ts';
import type { ScalePaths } from '../resource.ts';

const mostReplicas = 2_147_483_647;

/** What is wrong with the number of replicas that is wanted. */
export function scaleSpecErrors(object: KubeObject, paths: ScalePaths | undefined): FieldError[] {
  return paths ? replicasErrors(object, paths.specReplicas) : [];
}

/** What is wrong with the number of replicas that are there, and with the selector. */
export function scaleStatusErrors(object: KubeObject, paths: ScalePaths | undefined): FieldError[] {
  if (!paths) return [];
  const errors = replicasErrors(object, paths.statusReplicas);
  const { value, problem } = paths.selector === undefined ? {} : read(object, paths.selector, 'string');
  if (problem !== undefined)
    errors.push({ field: paths.selector!, type: 'Invalid', value: value ?? '', detail: problem });
  return errors;
}

function replicasErrors(object: KubeObject, path: string): FieldError[] {
  const { value = 0, problem } = read(object, path, 'int64');
  const invalid = (detail: string): FieldError[] => [{ field: path, type: 'Invalid', value, detail }];
  if (problem !== undefined) return invalid(problem);
  if (Number(value) < 0) return invalid('should be a non-negative integer');
  return Number(value) > mostReplicas ? invalid(`should be less than or equal to ${mostReplicas}`) : [];
}

/** The value at a path; nothing where there is none, a problem in the server's words where it is of another type. */
function read(object: KubeObject, path: string, type: 'int64' | 'string'): { value?: unknown; problem?: string } {
  const fields = path.replace(/^\./, '').split('.');
  const wrong = (value: unknown, expected: string, depth: number) => ({
    problem: `.${fields.slice(0, depth).join('.')} accessor error: ${goValue(value)} is of the type ${goType(value)}, expected ${expected}`,
  });
  let value: unknown = object;
  for (const [i, field] of fields.entries()) {
    if (value === null) return {};
    if (goType(value) !== 'map[string]interface {}') return wrong(value, 'map[string]interface{}', i + 1);
    if (!Object.hasOwn(value as object, field)) return {};
    value = (value as Record<string, unknown>)[field];
  }
  return goType(value) === type ? { value } : wrong(value, type, fields.length);
}

/** How Go calls the type of a JSON value. */
function goType(value: unknown): string {
  if (value === null || value === undefined) return '<nil>';
  if (Array.isArray(value)) return '[]interface {}';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int64' : 'float64';
  if (typeof value === 'bigint') return 'int64';
  if (typeof value === 'boolean') return 'bool';
  return typeof value === 'string' ? 'string' : 'map[string]interface {}';
}
