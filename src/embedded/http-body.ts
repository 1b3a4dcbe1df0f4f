// SPDX-License-Identifier: Apache-2.0
// Bodies as they come over the wire: JSON, or YAML where the API server takes it.
import { messageOf } from '../base/errors.ts';
import { parseYaml } from '../kube/yaml.ts';
import { readJsonText } from './json-text.ts';
import { decodeProtobuf } from './shapes/protobuf.ts';
import { badRequest, unsupportedMediaType } from './status.ts';

const json = new Set(['application/json', '', '*/*']);
const patches = new Set([
  'application/json-patch+json',
  'application/merge-patch+json',
  'application/strategic-merge-patch+json',
  'application/apply-patch+yaml',
]);
const yaml = new Set(['application/yaml', 'application/apply-patch+yaml']);
/** Deeper nesting than any real object has; beyond it, recursion would be the client's to exhaust. */
const deepest = 512;

export interface ParsedBody {
  readonly body?: unknown;
  /** Why the text could not be read, in the words of Go's decoder. */
  readonly bodyProblem?: string;
  /** Keys that came twice, by their paths. */
  readonly duplicates?: readonly string[];
}

/** Reads a body. Throws StatusError: 415 for what we do not speak, 400 for what could not be kept. */
export function parseBody(bytes: Buffer, method: string, contentType: string | undefined): ParsedBody {
  if (bytes.length === 0) return {};
  const media = (contentType ?? '').split(';')[0]!.trim().toLowerCase();
  if (media === 'application/vnd.kubernetes.protobuf' && method !== 'PATCH') return { body: decodeProtobuf(bytes) };
  // A type that cannot be read is another thing than none.
  const garbled = media === '' && (contentType ?? '').trim() !== '';
  const known = !garbled && (method === 'PATCH' ? patches.has(media) : json.has(media) || yaml.has(media));
  if (!known) {
    throw unsupportedMediaType(
      method === 'PATCH'
        ? undefined
        : 'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    );
  }
  const text = bytes.toString('utf8');
  const parsed = yaml.has(media) ? readYaml(text) : readJson(text, method);
  if (depthOf(parsed.body) > deepest) throw badRequest(`the body is nested deeper than ${deepest} levels`);
  return /\\u[dD][89a-fA-F]/.test(text) ? { ...parsed, body: wellFormed(parsed.body) } : parsed;
}

function readJson(text: string, method: string): ParsedBody {
  try {
    const body = JSON.parse(text) as unknown;
    if (method === 'PATCH') return { body };
    const { duplicates } = readJsonText(text);
    return duplicates.length === 0 ? { body } : { body, duplicates };
  } catch (error) {
    const why = readJsonText(text).problem ?? messageOf(error);
    return { bodyProblem: method === 'PATCH' ? why : `${why} (${summary(text)})` };
  }
}

/** What a refusal shows of a body: an object as it is, anything else as bytes. */
function summary(text: string): string {
  const shown = text.startsWith('{') ? text : Buffer.from(text).toString('hex');
  return shown.length > 1024 ? `${shown.slice(0, 1024)} [truncated]` : shown;
}

/** Half of a surrogate pair is no character: Go reads it as U+FFFD, and no answer could carry it. */
function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(wellFormed);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key.toWellFormed(), wellFormed(inner)]));
}

function readYaml(text: string): ParsedBody {
  try {
    // Half of a pair is no character; Go's reader takes no pairs either.
    if (/\\u[dD][89a-fA-F]/.test(text)) throw new Error('found invalid Unicode character escape code');
    return { body: parseYaml(text) };
  } catch (error) {
    return { bodyProblem: `yaml: ${messageOf(error)}` };
  }
}

/** How deep a value is nested, without recursion. */
function depthOf(value: unknown): number {
  let level: unknown[] = [value];
  let depth = 0;
  while (level.length > 0 && depth <= deepest) {
    const next: unknown[] = [];
    for (const item of level) {
      if (typeof item !== 'object' || item === null) continue;
      for (const child of Object.values(item)) if (typeof child === 'object' && child !== null) next.push(child);
    }
    level = next;
    depth++;
  }
  return depth;
}
