// SPDX-License-Identifier: Apache-2.0
// JSON Patch (RFC 6902) as the API server applies it: its library replaces keys that are not there yet, counts negative
// indexes from the end, and takes a test for null as passed when nothing is there.

import { deepClone, deepEqual } from '../base/freeze.ts';
import { getOwn, isObject, type JsonObject, onCopy, PatchError, setOwn } from './patch-error.ts';

export interface JsonPatchOperation {
  readonly op: 'add' | 'remove' | 'replace' | 'move' | 'copy' | 'test';
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

const maxOperations = 10_000;
/** Copies of copies grow without bound: the API server stops where a request would. */
const maxCopied = 3 * 1024 * 1024;

/** Applies the operations to a copy of the document. Throws PatchError: 400 malformed, 413 too many, 422 does not apply. */
export function applyJsonPatch(document: unknown, operations: unknown): unknown {
  if (!Array.isArray(operations) || !operations.every(isObject)) {
    throw new PatchError('json: cannot unmarshal into Go value of type jsonpatch.Patch', 400);
  }
  if (operations.length > maxOperations) {
    throw new PatchError(
      `The allowed maximum operations in a JSON patch is ${maxOperations}, got ${operations.length}`,
      413,
    );
  }
  return onCopy(document, (copy) => {
    const patching = new Patching(copy);
    for (const operation of operations) patching.apply(operation);
    return patching.root;
  });
}

/** The operations that turn `from` into `to`: keys one by one, lists as a whole. */
export function createJsonPatch(from: unknown, to: unknown, path = ''): JsonPatchOperation[] {
  if (deepEqual(from, to)) return [];
  if (!isObject(from) || !isObject(to)) return [{ op: 'replace', path, value: to }];
  const operations: JsonPatchOperation[] = [];
  for (const key of Object.keys(from)) {
    const at = `${path}/${encode(key)}`;
    if (getOwn(to, key) === undefined) operations.push({ op: 'remove', path: at });
    else operations.push(...createJsonPatch(from[key], to[key], at));
  }
  for (const key of Object.keys(to)) {
    if (!Object.hasOwn(from, key)) operations.push({ op: 'add', path: `${path}/${encode(key)}`, value: to[key] });
  }
  return operations;
}

interface Place {
  readonly parent: JsonObject | unknown[];
  readonly key: string;
}

class Patching {
  root: unknown;
  #copied = 0;

  constructor(root: unknown) {
    this.root = root;
  }

  apply(operation: JsonObject): void {
    const op = getOwn(operation, 'op');
    switch (op) {
      case 'add': {
        const path = pathOf(operation, 'add operation failed to decode path: missing value');
        const place = this.#find(path, `add operation does not apply: doc is missing path: "${path}": missing value`);
        insert(place, valueOf(operation), `error in add for path: '${path}'`);
        return;
      }
      case 'remove': {
        const path = pathOf(operation, 'remove operation failed to decode path: missing value');
        const place = this.#find(
          path,
          `remove operation does not apply: doc is missing path: "${path}": missing value`,
        );
        remove(place, `error in remove for path: '${path}'`);
        return;
      }
      case 'replace':
        this.#replace(operation);
        return;
      case 'move':
        this.#move(operation);
        return;
      case 'copy':
        this.#copy(operation);
        return;
      case 'test':
        this.#test(operation);
        return;
      default:
        throw new PatchError(`Unexpected kind: ${typeof op === 'string' ? op : 'unknown'}`, 422);
    }
  }

  #replace(operation: JsonObject): void {
    const path = pathOf(
      operation,
      'replace operation failed to decode path: operation missing path field: missing value',
    );
    const value = valueOf(operation);
    if (path === '') {
      if (typeof value !== 'object' || value === null)
        throw new PatchError('replace operation value must be object or array: %!w(<nil>)', 422);
      this.root = value;
      return;
    }
    const { parent, key } = this.#find(
      path,
      `replace operation does not apply: doc is missing path: ${path}: missing value`,
    );
    if (!Array.isArray(parent)) return setOwn(parent, key, value);
    const index = existingIndex(parent, key);
    if (index === undefined)
      throw new PatchError(`replace operation does not apply: doc is missing key: ${path}: missing value`, 422);
    parent[index] = value;
  }

  #move(operation: JsonObject): void {
    const from = fromOf(operation, 'move');
    const source = this.#find(from, `move operation does not apply: doc is missing from path: ${from}: missing value`);
    const value = read(source, `error in move for path: '${source.key}'`);
    remove(source, `error in move for path: '${source.key}'`);
    const path = pathOf(operation, 'move operation failed to decode path: operation missing path field: missing value');
    const target = this.#find(
      path,
      `move operation does not apply: doc is missing destination path: ${path}: missing value`,
    );
    insert(target, value, `error in move for path: '${path}'`);
  }

  #copy(operation: JsonObject): void {
    const from = fromOf(operation, 'copy');
    const source = this.#find(from, `copy operation does not apply: doc is missing from path: ${from}: missing value`);
    const value = read(source, `error in copy for from: '${from}'`) ?? null;
    const path = pathOf(operation, 'copy operation failed to decode path: missing value');
    const target = this.#find(
      path,
      `copy operation does not apply: doc is missing destination path: ${path}: missing value`,
    );
    this.#copied += JSON.stringify(value).length;
    if (this.#copied > maxCopied) {
      throw new PatchError(
        `Unable to complete the copy, the accumulated size increase of copy is ${this.#copied}, exceeding the limit ${maxCopied}`,
        422,
      );
    }
    insert(target, deepClone(value), 'error while adding value during copy');
  }

  #test(operation: JsonObject): void {
    const path = pathOf(operation, 'test operation failed to decode path: operation missing path field: missing value');
    const expected = valueOf(operation);
    let actual: unknown = this.root;
    if (path !== '') {
      const place = this.#find(path, `test operation does not apply: is missing path: ${path}: missing value`);
      actual = read(place, `error in test for path: '${path}'`) ?? null;
    }
    if (!deepEqual(actual, expected)) throw new PatchError(`testing value ${path} failed: test failed`, 422);
  }

  /** The container that holds what the pointer names, and the last key. Like the API server's library it ignores what stands before the first slash. */
  #find(path: string, missing: string): Place {
    const parts = path.split('/').map(decode);
    const key = parts.pop();
    let container: unknown = this.root;
    if (parts.length === 0 || key === undefined) throw new PatchError(missing, 422);
    for (const part of parts.slice(1)) {
      if (Array.isArray(container)) {
        const index = existingIndex(container, part);
        container = index === undefined ? undefined : container[index];
      } else container = isObject(container) ? getOwn(container, part) : undefined;
    }
    if (!isObject(container) && !Array.isArray(container)) throw new PatchError(missing, 422);
    return { parent: container, key };
  }
}

function pathOf(operation: JsonObject, missing: string): string {
  const path = getOwn(operation, 'path');
  if (typeof path !== 'string') throw new PatchError(missing, 422);
  return path;
}

function fromOf(operation: JsonObject, name: string): string {
  const from = getOwn(operation, 'from');
  if (typeof from === 'string') return from;
  throw new PatchError(`${name} operation failed to decode from: operation, missing from field: missing value`, 422);
}

function valueOf(operation: JsonObject): unknown {
  return deepClone(getOwn(operation, 'value') ?? null);
}

function read({ parent, key }: Place, doing: string): unknown {
  if (!Array.isArray(parent)) return getOwn(parent, key);
  return parent[indexOrThrow(parent, key, doing)];
}

function remove({ parent, key }: Place, doing: string): void {
  if (Array.isArray(parent)) {
    parent.splice(indexOrThrow(parent, key, doing), 1);
  } else {
    if (!Object.hasOwn(parent, key))
      throw new PatchError(`${doing}: Unable to remove nonexistent key: ${key}: missing value`, 422);
    delete parent[key];
  }
}

function insert({ parent, key }: Place, value: unknown, doing: string): void {
  if (!Array.isArray(parent)) return setOwn(parent, key, value);
  if (key === '-') {
    parent.push(value);
    return;
  }
  const index = parseIndex(key);
  if (index === undefined) {
    throw new PatchError(`${doing}: value was not a proper array index: '${key}': ${notANumber(key)}`, 422);
  }
  // One more place than there are items: the end.
  if (index > parent.length || index < -(parent.length + 1)) throw new PatchError(`${doing}: ${badIndex(index)}`, 422);
  parent.splice(index < 0 ? index + parent.length + 1 : index, 0, value);
}

function existingIndex(list: readonly unknown[], key: string): number | undefined {
  const index = parseIndex(key);
  if (index === undefined || index >= list.length || index < -list.length) return undefined;
  return index < 0 ? index + list.length : index;
}

function indexOrThrow(list: readonly unknown[], key: string, doing: string): number {
  const index = existingIndex(list, key);
  if (index !== undefined) return index;
  const parsed = parseIndex(key);
  throw new PatchError(`${doing}: ${parsed === undefined ? notANumber(key) : badIndex(parsed)}`, 422);
}

function parseIndex(key: string): number | undefined {
  return /^[+-]?[0-9]{1,15}$/.test(key) ? Number(key) : undefined;
}

function notANumber(key: string): string {
  return `strconv.Atoi: parsing ${JSON.stringify(key)}: invalid syntax`;
}

function badIndex(index: number): string {
  return `Unable to access invalid index: ${index}: invalid index referenced`;
}

function decode(part: string): string {
  return part.replace(/~[01]/g, (code) => (code === '~1' ? '/' : '~'));
}

function encode(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
