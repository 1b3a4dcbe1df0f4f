// SPDX-License-Identifier: Apache-2.0
// Bodies as they come over the wire: JSON, or YAML where the API server takes it.
import { parse as parseYaml } from 'yaml';
import { messageOf } from '../base/errors.ts';
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
}

/** Reads a body. Throws StatusError: 415 for what we do not speak, 400 for what could not be kept. */
export function parseBody(bytes: Buffer, method: string, contentType: string | undefined): ParsedBody {
  if (bytes.length === 0) return {};
  const media = (contentType ?? '').split(';')[0]!.trim().toLowerCase();
  if (media === 'application/vnd.kubernetes.protobuf' && method !== 'PATCH') return { body: decodeProtobuf(bytes) };
  const known = method === 'PATCH' ? patches.has(media) : json.has(media) || yaml.has(media);
  if (!known) {
    throw unsupportedMediaType(
      method === 'PATCH'
        ? undefined
        : 'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    );
  }
  const text = bytes.toString('utf8');
  const parsed = yaml.has(media) ? { body: readYaml(text) } : readJson(text, method);
  if (depthOf(parsed.body) > deepest) throw badRequest(`the body is nested deeper than ${deepest} levels`);
  return parsed;
}

function readJson(text: string, method: string): ParsedBody {
  try {
    return { body: JSON.parse(text) as unknown };
  } catch (error) {
    const why = goMessage(text, messageOf(error));
    return { bodyProblem: method === 'PATCH' || text.length > 1024 ? why : `${why} (${text})` };
  }
}

function readYaml(text: string): unknown {
  try {
    // Aliases can make a small text a huge value.
    return parseYaml(text, { maxAliasCount: 100 }) as unknown;
  } catch (error) {
    throw badRequest(`error decoding YAML: ${messageOf(error)}`);
  }
}

/** What Go's decoder says to the same text, as far as the place of the error tells. */
function goMessage(text: string, fallback: string): string {
  const position = Number(/at position (\d+)/.exec(fallback)?.[1] ?? text.length);
  const character = text[position];
  if (character === undefined) return 'unexpected end of JSON input';
  return `invalid character '${character}' ${expectedAfter(text.slice(0, position).trimEnd())}`;
}

function expectedAfter(before: string): string {
  const last = before.at(-1) ?? '';
  if (last === '' || last === ':' || last === '[') return 'looking for beginning of value';
  if (last === '{') return 'looking for beginning of object key string';
  const inObject = before.lastIndexOf('{') > before.lastIndexOf('[');
  if (last === ',') return inObject ? 'looking for beginning of object key string' : 'looking for beginning of value';
  if (!/[{[]/.test(before)) return 'after top-level value';
  return inObject ? 'after object key:value pair' : 'after array element';
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
