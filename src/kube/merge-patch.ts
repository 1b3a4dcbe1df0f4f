// SPDX-License-Identifier: Apache-2.0
// JSON Merge Patch (RFC 7386): objects are merged key by key, null deletes, everything else replaces.

import { deepClone, deepEqual } from '../base/freeze.ts';
import { getOwn, isObject, type JsonObject, PatchError, setOwn, withinStack, withoutNulls } from './patch-error.ts';

/**
 * The document after a merge patch; neither is changed. What the patch leaves alone is the document's own, so that others
 * see at once that it is the same. Throws PatchError when the patch of an object is not an object.
 */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) throw new PatchError('Invalid JSON Patch', 400);
  return withinStack(() => (isObject(document) ? merged(document, patch) : withoutNulls(patch)));
}

/** The smallest merge patch that turns `from` into `to`; empty when they are equal. Null and absent count as the same. */
export function createMergePatch(from: unknown, to: unknown): JsonObject {
  const patch: JsonObject = {};
  const left = isObject(from) ? from : {};
  const right = isObject(to) ? to : {};
  for (const key of Object.keys(left)) {
    if (isSet(left[key]) && !isSet(getOwn(right, key))) setOwn(patch, key, null);
  }
  for (const key of Object.keys(right)) {
    const before = getOwn(left, key);
    const after = right[key];
    if (!isSet(after) || deepEqual(before, after)) continue;
    // An object that replaces something else needs all of itself in the patch.
    const change =
      isObject(before) && isObject(after) ? createMergePatch(before, after) : withoutNulls(deepClone(after));
    if (!isObject(before) || !isObject(change) || Object.keys(change).length > 0) setOwn(patch, key, change);
  }
  return patch;
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function merged(document: JsonObject, patch: JsonObject): JsonObject {
  const result = { ...document };
  for (const key of Object.keys(patch)) {
    const change = patch[key];
    if (change === null) {
      delete result[key];
      continue;
    }
    const current = getOwn(document, key);
    setOwn(result, key, isObject(current) && isObject(change) ? merged(current, change) : withoutNulls(change));
  }
  return result;
}
