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

/** Reads a body. Throws StatusError: 415 for what we do not speak, 400 for what is not what it claims to be. */
export function parseBody(bytes: Buffer, method: string, contentType: string | undefined): unknown {
  const media = (contentType ?? '').split(';')[0]!.trim().toLowerCase();
  if (media === 'application/vnd.kubernetes.protobuf' && method !== 'PATCH') return decodeProtobuf(bytes);
  const known = method === 'PATCH' ? patches.has(media) : json.has(media) || yaml.has(media);
  if (!known) {
    throw unsupportedMediaType(
      method === 'PATCH'
        ? undefined
        : 'the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf',
    );
  }
  const text = bytes.toString('utf8');
  const value = yaml.has(media) ? readYaml(text) : readJson(text, method);
  if (depthOf(value) > deepest) throw badRequest(`the body is nested deeper than ${deepest} levels`);
  return value;
}

function readJson(text: string, method: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const why = goMessage(text, messageOf(error));
    throw badRequest(
      method === 'PATCH' ? `error decoding patch: ${why}` : `couldn't get version/kind; json parse error: ${why}`,
    );
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

/** What Go's decoder says to the same text, where we can tell. */
function goMessage(text: string, fallback: string): string {
  if (/Unexpected end of JSON input/.test(fallback)) return 'unexpected end of JSON input';
  const position = /at position (\d+)/.exec(fallback);
  const character = position ? text[Number(position[1])] : undefined;
  return character === undefined ? fallback : `invalid character '${character}' in JSON at offset ${position![1]}`;
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
