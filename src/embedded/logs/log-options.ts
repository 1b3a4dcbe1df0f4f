// SPDX-License-Identifier: Apache-2.0
// The query parameters of `pods/log`, checked in the API server's words.
import type { FieldError } from '../../kube/schema/field-error.ts';
import { parseTime } from '../../kube/time.ts';
import { parseBoolean, parseInteger } from '../rest/options.ts';
import { badRequest, invalid } from '../status.ts';

export interface LogOptions {
  readonly follow: boolean;
  readonly previous: boolean;
  readonly timestamps: boolean;
  readonly tailLines: number | undefined;
  readonly limitBytes: number | undefined;
  /** Lines from before this moment (milliseconds since the epoch) are left out. */
  readonly since: number;
}

/** Reads them. Throws StatusError as the API server does; `pod` is the name in its words. */
export function parseLogOptions(query: Readonly<Record<string, string>>, pod: string, now: number): LogOptions {
  const [tailLines, limitBytes] = [number(query['tailLines']), number(query['limitBytes'])];
  const [sinceSeconds, sinceTime] = [number(query['sinceSeconds']), time(query['sinceTime'])];
  const errors: FieldError[] = [];
  const atLeast = (field: string, value: number | undefined, least: 0 | 1): void => {
    if (value === undefined || value >= least) return;
    const detail = least === 0 ? 'must be greater than or equal to 0' : 'must be greater than 0';
    errors.push({ field, type: 'Invalid', value, detail });
  };
  atLeast('tailLines', tailLines, 0);
  atLeast('limitBytes', limitBytes, 1);
  if (sinceSeconds !== undefined && sinceTime !== undefined) {
    const detail = 'at most one of `sinceTime` or `sinceSeconds` may be specified';
    errors.push({ field: '[]', type: 'Forbidden', detail });
  } else atLeast('sinceSeconds', sinceSeconds, 1);
  if (query['stream'] !== undefined)
    errors.push({ field: 'stream', type: 'Forbidden', detail: 'may not be specified' });
  if (errors.length > 0) throw invalid('', 'PodLogOptions', pod, errors);
  return {
    follow: parseBoolean(query['follow']) ?? false,
    previous: parseBoolean(query['previous']) ?? false,
    timestamps: parseBoolean(query['timestamps']) ?? false,
    tailLines,
    limitBytes,
    since: sinceTime ?? (sinceSeconds === undefined ? 0 : now - sinceSeconds * 1000),
  };
}

/** Unlike elsewhere, an empty value is no number. */
function number(text: string | undefined): number | undefined {
  if (text === '') throw badRequest('strconv.ParseInt: parsing "": invalid syntax');
  return parseInteger(text);
}

function time(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  try {
    return parseTime(text);
  } catch {
    const quoted = JSON.stringify(text);
    throw badRequest(`parsing time ${quoted} as "2006-01-02T15:04:05Z07:00": cannot parse ${quoted} as "2006"`);
  }
}
