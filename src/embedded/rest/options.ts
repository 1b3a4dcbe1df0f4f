// SPDX-License-Identifier: Apache-2.0
// The query parameters and option bodies of requests, checked with the API server's words.

import { type FieldSelector, parseFieldSelector } from '../../kube/fields.ts';
import { everything, parseLabelSelector, type Selector, SelectorError } from '../../kube/labels.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { FieldError } from '../../kube/schema/field-error.ts';
import { admissionFor } from '../shapes/admit.ts';
import { badRequest, invalidOptions, StatusError } from '../status.ts';
import { jsonType } from './metadata.ts';

type Query = Readonly<Record<string, string>>;

export interface ListOptions {
  readonly labels: Selector;
  readonly fields: FieldSelector | undefined;
  readonly limit: number;
  readonly continue: string;
  readonly resourceVersion: number | undefined;
  readonly resourceVersionMatch: '' | 'Exact' | 'NotOlderThan';
  readonly allowBookmarks: boolean;
  readonly sendInitialEvents: boolean | undefined;
  readonly timeoutSeconds: number | undefined;
}

export function parseListOptions(query: Query, watching: boolean): ListOptions {
  const match = query['resourceVersionMatch'] ?? '';
  const sendInitialEvents = parseBoolean(query['sendInitialEvents']);
  const errors = matchErrors(query, match, sendInitialEvents, watching);
  const limit = parseInteger(query['limit']) ?? 0;
  const timeoutSeconds = parseInteger(query['timeoutSeconds']);
  const labels = parseLabels(query['labelSelector']);
  const fields = parseFields(query['fieldSelector']);
  if (errors.length > 0) throw invalidOptions('ListOptions', errors);
  return {
    labels,
    fields,
    limit,
    continue: query['continue'] ?? '',
    resourceVersion: parseResourceVersion(query['resourceVersion'], watching),
    resourceVersionMatch: match as ListOptions['resourceVersionMatch'],
    allowBookmarks: parseBoolean(query['allowWatchBookmarks']) ?? false,
    sendInitialEvents,
    timeoutSeconds,
  };
}

function matchErrors(query: Query, match: string, initial: boolean | undefined, watching: boolean): FieldError[] {
  const field = 'resourceVersionMatch';
  const forbid = (detail: string, on = field): FieldError => ({ field: on, type: 'Forbidden', detail });
  if (watching) {
    if (initial === undefined) {
      return match === ''
        ? []
        : [forbid('resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided')];
    }
    if (match === '') return [forbid('sendInitialEvents requires setting resourceVersionMatch to NotOlderThan')];
    if (match !== 'NotOlderThan') return [unsupported(field, match, ['NotOlderThan'])];
    return [];
  }
  if (initial !== undefined) return [forbid('sendInitialEvents is forbidden for list', 'sendInitialEvents')];
  if (match === '') return [];
  const errors: FieldError[] = [];
  if ((query['resourceVersion'] ?? '') === '') {
    errors.push(forbid('resourceVersionMatch is forbidden unless resourceVersion is provided'));
  }
  if ((query['continue'] ?? '') !== '') {
    errors.push(forbid('resourceVersionMatch is forbidden when continue is provided'));
  }
  if (match !== 'Exact' && match !== 'NotOlderThan')
    errors.push(unsupported(field, match, ['Exact', 'NotOlderThan', '']));
  if (match === 'Exact' && query['resourceVersion'] === '0') {
    errors.push(forbid('resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return errors;
}

/** What Go's parser has against a text as a version; undefined when it is one. */
export function versionProblem(text: string): string | undefined {
  const parsing = `strconv.ParseUint: parsing ${JSON.stringify(text)}`;
  if (!/^\d+$/.test(text)) return `${parsing}: invalid syntax`;
  // By its length first: to read megabytes of digits takes seconds.
  const digits = text.replace(/^0+/, '');
  const fits = digits.length < 20 || (digits.length === 20 && BigInt(digits) < 1n << 64n);
  return fits ? undefined : `${parsing}: value out of range`;
}

/** A resourceVersion parameter; undefined when it is absent. */
export function parseResourceVersion(text: string | undefined, watching = false): number | undefined {
  if (text === undefined || text === '') return undefined;
  const problem = versionProblem(text);
  if (problem === undefined) return Number(text);
  const why = `resourceVersion: Invalid value: ${JSON.stringify(text)}: ${problem}`;
  // A watch is refused by the storage, and that without a reason.
  throw watching ? new StatusError(500, undefined, why) : badRequest(`invalid resource version: ${why}`);
}

export interface WriteOptions {
  readonly dryRun: boolean;
  readonly fieldValidation: 'Strict' | 'Warn' | 'Ignore';
  readonly fieldManager: string | undefined;
  readonly force: boolean;
}

export function parseWriteOptions(
  query: Query,
  kind: 'CreateOptions' | 'UpdateOptions' | 'PatchOptions',
): WriteOptions {
  const errors: FieldError[] = [];
  const dryRun = query['dryRun'];
  if (dryRun !== undefined && dryRun !== 'All') errors.push(unsupported('dryRun', [dryRun], ['All']));
  const validation = query['fieldValidation'] ?? '';
  if (!['', 'Strict', 'Warn', 'Ignore'].includes(validation)) {
    errors.push(unsupported('fieldValidation', validation, ['', 'Ignore', 'Strict', 'Warn']));
  }
  const manager = query['fieldManager'];
  if (manager !== undefined && !goodManagers.has(manager)) errors.push(...managerErrors(manager));
  if (errors.length > 0) throw invalidOptions(kind, errors);
  return {
    dryRun: dryRun === 'All',
    fieldValidation: (validation || 'Warn') as WriteOptions['fieldValidation'],
    fieldManager: manager,
    force: parseBoolean(query['force']) ?? false,
  };
}

/** Names that were found in order: all writes come from the same few. */
const goodManagers = new Set<string>();

function managerErrors(manager: string): FieldError[] {
  const errors: FieldError[] = [];
  if (manager.length > 128) {
    errors.push({ field: 'fieldManager', type: 'Too long', detail: 'may not be more than 128 bytes' });
  }
  const odd = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/u.exec(manager);
  if (odd) {
    const code = odd[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0');
    const at = Buffer.byteLength(manager.slice(0, odd.index));
    const detail = `invalid character U+${code} (at position ${at})`;
    errors.push({ field: 'fieldManager', type: 'Invalid', value: manager, detail });
  }
  if (errors.length === 0 && goodManagers.size < 100) goodManagers.add(manager);
  return errors;
}

export interface DeleteOptions {
  readonly dryRun: boolean;
  readonly gracePeriodSeconds: number | undefined;
  readonly propagationPolicy: 'Foreground' | 'Background' | 'Orphan' | undefined;
  readonly orphanDependents: boolean | undefined;
  readonly preconditions: { readonly uid?: string; readonly resourceVersion?: string };
}

/** Options of a delete: from the body when there is one, from the query otherwise, as the API server does. */
export function parseDeleteOptions(body: unknown, query: Query): DeleteOptions {
  const source = body === undefined || body === null ? deleteQuery(query) : deleteBody(body);
  const { gracePeriodSeconds, propagationPolicy, orphanDependents, dryRun, preconditions } = source;
  const errors: FieldError[] = [];
  if (isSet(propagationPolicy) && !policies.includes(propagationPolicy as string)) {
    errors.push(unsupported('propagationPolicy', propagationPolicy, [...policies, 'nil']));
  }
  if (isSet(orphanDependents) && isSet(propagationPolicy)) {
    const detail = 'orphanDependents and deletionPropagation cannot be both set';
    errors.push({ field: 'propagationPolicy', type: 'Invalid', value: propagationPolicy, detail });
  }
  const steps = Array.isArray(dryRun) ? dryRun.map((step: unknown) => step ?? '') : [];
  if (steps.some((value) => value !== 'All')) errors.push(unsupported('dryRun', steps, ['All']));
  if (errors.length > 0) throw invalidOptions('DeleteOptions', errors);
  return {
    dryRun: steps.includes('All'),
    gracePeriodSeconds: typeof gracePeriodSeconds === 'number' ? gracePeriodSeconds : undefined,
    propagationPolicy: (propagationPolicy ?? undefined) as DeleteOptions['propagationPolicy'],
    orphanDependents: typeof orphanDependents === 'boolean' ? orphanDependents : undefined,
    preconditions: (preconditions ?? {}) as DeleteOptions['preconditions'],
  };
}

const policies = ['Foreground', 'Background', 'Orphan'];

interface RawDeleteOptions {
  readonly gracePeriodSeconds?: unknown;
  readonly propagationPolicy?: unknown;
  readonly orphanDependents?: unknown;
  readonly dryRun?: unknown;
  readonly preconditions?: unknown;
}

function deleteQuery(query: Query): RawDeleteOptions {
  return {
    gracePeriodSeconds: parseInteger(query['gracePeriodSeconds']),
    propagationPolicy: query['propagationPolicy'],
    orphanDependents: parseBoolean(query['orphanDependents']),
    dryRun: query['dryRun'] === undefined ? undefined : [query['dryRun']],
  };
}

function deleteBody(body: unknown): RawDeleteOptions {
  if (typeof body !== 'object' || body === null || Array.isArray(body)) {
    throw badRequest('the object provided is unrecognized (must be of type DeleteOptions): not an object');
  }
  const { kind = '', apiVersion = '' } = body as Record<string, unknown>;
  for (const [field, value] of Object.entries({ kind, apiVersion })) {
    if (typeof value === 'string' || value === null) continue;
    throw badRequest(
      `couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonType(value)} into Go struct field .${field} of type string`,
    );
  }
  if (kind !== '' && kind !== 'DeleteOptions') {
    throw badRequest(
      `no kind ${JSON.stringify(kind)} is registered for version ${JSON.stringify(apiVersion)} in scheme "pkg/runtime/scheme.go:111"`,
    );
  }
  const { gracePeriodSeconds: grace } = body as RawDeleteOptions;
  if (isSet(grace) && !(Number.isInteger(grace) && Math.abs(grace as number) < 2 ** 63)) {
    throw badRequest(
      `json: cannot unmarshal ${jsonType(grace)} into Go struct field DeleteOptions.gracePeriodSeconds of type int64`,
    );
  }
  return checkOptions(body as unknown as KubeObject, false).object as RawDeleteOptions;
}

const checkOptions = admissionFor('', 'v1', 'DeleteOptions')!;

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null;
}

function parseLabels(text: string | undefined): Selector {
  if (text === undefined || text === '') return everything;
  try {
    return parseLabelSelector(text);
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message);
    throw error;
  }
}

function parseFields(text: string | undefined): FieldSelector | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    return parseFieldSelector(text);
  } catch (error) {
    if (error instanceof SelectorError) throw badRequest(error.message);
    throw error;
  }
}

export function parseInteger(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  if (!/^[+-]?\d+$/.test(text)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  }
  const value = BigInt(text.replace('+', ''));
  if (value >= 1n << 63n || value < -(1n << 63n)) {
    throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: value out of range`);
  }
  return Number(text);
}

export function parseBoolean(text: string | undefined): boolean | undefined {
  if (text === undefined) return undefined;
  // The rule of the API server's conversion: everything but these is true.
  return !['', '0', 'false', 'False', 'FALSE', 'f', 'F'].includes(text);
}

function unsupported(field: string, value: unknown, supported: readonly string[]): FieldError {
  const listed = supported.map((item) => JSON.stringify(item)).join(', ');
  return { field, type: 'Unsupported value', value, detail: `supported values: ${listed}` };
}
