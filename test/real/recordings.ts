// SPDX-License-Identifier: Apache-2.0
// Recorded exchanges with a real API, replayed: what an answer must have in common with the recorded one.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** One recorded exchange. */
export interface Exchange {
  readonly method: string;
  readonly path: string;
  readonly body?: unknown;
  readonly status: number;
  readonly response: unknown;
  readonly xFilter?: string;
}

/** Where recordings are, by the one setting for facts that are not part of the repo. */
export function recordingsFolder(name: string): string {
  const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
  return join(resolve(root, process.env['KARPENTER_BENCH_DATA'] || '../shared/data'), name);
}

/** All recordings of a folder by name; undefined when there is no such folder. */
export function readRecordings(folder: string): Map<string, readonly Exchange[]> | undefined {
  if (!existsSync(folder)) return undefined;
  const files = readdirSync(folder).filter((file) => file.endsWith('.json'));
  return new Map(
    files
      .toSorted()
      .map((file) => [file.replace(/\.json$/, ''), JSON.parse(readFileSync(join(folder, file), 'utf8')) as Exchange[]]),
  );
}

/** What two answers may differ in. */
export interface Tolerance {
  /** Fields whose values say nothing: numbers given out, times, addresses. */
  readonly volatile: RegExp;
  /** Objects whose keys are data. */
  readonly maps: RegExp;
  /** Fields that an answer may have although this recording lacks them. */
  readonly newer: (path: string) => boolean;
  /** Fields that a recording has and the answer need not. */
  readonly older: RegExp;
}

/** What is different, as sentences; empty when nothing is. Paths are such as `data[].specs.disk`. */
export function differences(recorded: unknown, ours: unknown, tolerance: Tolerance, path = ''): string[] {
  if (recorded === null || ours === null) return [];
  if (kindOf(recorded) !== kindOf(ours)) return [`${path}: is ${kindOf(ours)}, was ${kindOf(recorded)}`];
  if (Array.isArray(recorded)) return listDifferences(recorded, ours as unknown[], tolerance, path);
  if (typeof recorded === 'object') return objectDifferences(recorded, ours as object, tolerance, path);
  if (tolerance.volatile.test(path) || masked(recorded) === masked(ours)) return [];
  return [`${path}: is ${JSON.stringify(ours)}, was ${JSON.stringify(recorded)}`];
}

function objectDifferences(recorded: object, ours: object, tolerance: Tolerance, path: string): string[] {
  if (tolerance.maps.test(path)) return [];
  const [theirs, mine] = [recorded as Record<string, unknown>, ours as Record<string, unknown>];
  const at = (key: string): string => (path === '' ? key : `${path}.${key}`);
  const found: string[] = [];
  for (const [key, value] of Object.entries(theirs)) {
    if (key in mine) found.push(...differences(value, mine[key], tolerance, at(key)));
    else if (!tolerance.older.test(at(key))) found.push(`${at(key)}: is missing`);
  }
  for (const key of Object.keys(mine)) {
    if (!(key in theirs) && !tolerance.newer(at(key))) found.push(`${at(key)}: no recording has it`);
  }
  return found;
}

/** Items of lists that hold the same things are compared one by one, others by what they look like. */
function listDifferences(recorded: unknown[], ours: unknown[], tolerance: Tolerance, path: string): string[] {
  const item = `${path}[]`;
  const same = recorded.length === ours.length && !tolerance.volatile.test(item);
  if (same) return recorded.flatMap((value, index) => differences(value, ours[index], tolerance, item));
  if (recorded.length === 0 || ours.length === 0) return [];
  const shape: Tolerance = { ...tolerance, volatile: /(?:)/ };
  // Each of ours must look like one of theirs.
  return ours.flatMap((value) => {
    const attempts = recorded.map((other) => differences(other, value, shape, item));
    return attempts.reduce((best, attempt) => (attempt.length < best.length ? attempt : best));
  });
}

/** Names that are made of numbers given out, without the numbers: `lke600208-855494-25e3fe070000`. */
function masked(value: unknown): unknown {
  return typeof value === 'string' ? value.replace(/^lke\d+-\d+-[0-9a-f]{12}$/, 'lke') : value;
}

function kindOf(value: unknown): string {
  return Array.isArray(value) ? 'list' : typeof value;
}

/** The paths of all fields of an answer. */
export function fieldsOf(value: unknown, path = ''): string[] {
  if (Array.isArray(value)) return value.flatMap((item) => fieldsOf(item, `${path}[]`));
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => {
    const at = path === '' ? key : `${path}.${key}`;
    return [at, ...fieldsOf(inner, at)];
  });
}
