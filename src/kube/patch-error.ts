// SPDX-License-Identifier: Apache-2.0
// What a patch that cannot be applied throws, and the small tools all kinds of patches share.

import { KarpenterError } from '../base/errors.ts';
import { deepClone } from '../base/freeze.ts';

/** The HTTP status the API server answers with: malformed, well-formed but not applicable, too much, not foreseen. */
export type PatchStatus = 400 | 413 | 415 | 422 | 500;

/** A patch that cannot be applied. The message is the API server's. */
export class PatchError extends KarpenterError {
  readonly status: PatchStatus;

  constructor(message: string, status: PatchStatus) {
    super('KRP_PATCH_INVALID', message);
    this.status = status;
  }
}

export type JsonObject = Record<string, unknown>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value of a key that the object itself has: names of the prototype are data like others. */
export function getOwn(object: JsonObject, key: string): unknown {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** Sets a key as data, also `__proto__`. */
export function setOwn(object: JsonObject, key: string, value: unknown): void {
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  } else {
    object[key] = value;
  }
}

/** A copy without the keys that hold null, all the way down: in a document, absent and null are the same. Items of lists stay. */
export function withoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) if (value[key] !== null) setOwn(copy, key, withoutNulls(value[key]));
  return copy;
}

/** Runs a patch on a copy of the document. */
export function onCopy<T>(document: unknown, patch: (copy: unknown) => T): T {
  return withinStack(() => patch(deepClone(document)));
}

/** A document nested too deeply for the stack is refused, not half patched. */
export function withinStack<T>(patch: () => T): T {
  try {
    return patch();
  } catch (error) {
    if (error instanceof RangeError) throw new PatchError('the document or the patch is nested too deeply', 400);
    throw error;
  }
}
