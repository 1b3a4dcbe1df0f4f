// SPDX-License-Identifier: Apache-2.0
// Where the API server serves a kind, an object, a part of an object.

import { KarpenterError } from '../base/errors.ts';
import { percentEncoded } from '../base/percent.ts';
import { apiVersionOf, type ResourceType } from './object.ts';

/** The folder of a group and version: `/api/v1`, `/apis/apps/v1`. */
export function groupPath(type: { readonly group: string; readonly version: string }): string {
  return type.group === '' ? `/api/${segment(type.version)}` : `/apis/${segment(type.group)}/${segment(type.version)}`;
}

/** What was put together for a kind before: every request asks for it. */
const partsOfKind = new WeakMap<ResourceType, { readonly group: string; readonly plural: string }>();

/** The collection of a kind, in one namespace or, without one, in all of them. */
export function collectionPath(type: ResourceType, namespace?: string): string {
  let parts = partsOfKind.get(type);
  if (!parts) {
    parts = { group: groupPath(type), plural: segment(type.plural) };
    partsOfKind.set(type, parts);
  }
  const inNamespace = type.namespaced && namespace ? `/namespaces/${segment(namespace)}` : '';
  return `${parts.group}${inNamespace}/${parts.plural}`;
}

/**
 * The path of one object or of a subresource of it. Throws on an empty or impossible name and on a missing namespace:
 * what they would address by accident is the whole collection.
 */
export function objectPath(type: ResourceType, name: string, namespace?: string, subresource?: string): string {
  if (!name) throw invalid(`a ${type.kind} is addressed without a name`);
  if (type.namespaced && !namespace) {
    throw invalid(
      `${type.kind} "${name}" is addressed without a namespace, but ${apiVersionOf(type)} ${type.kind} lives in one`,
    );
  }
  const path = `${collectionPath(type, namespace)}/${segment(name)}`;
  return subresource ? `${path}/${subresource.split('/').map(segment).join('/')}` : path;
}

/** Nearly every name: it stays as it is. */
const plain = /^[\w-][\w.-]*$/;

/** One segment, encoded. Dots alone and separators cannot be told from path syntax, so the API forbids them. */
function segment(text: string): string {
  if (plain.test(text)) return text;
  if (text === '' || text === '.' || text === '..' || /[/%]/.test(text)) {
    throw invalid(`"${text}" cannot be part of an API path`);
  }
  return percentEncoded(text);
}

function invalid(message: string): KarpenterError {
  return new KarpenterError('KRP_INVALID_ADDRESS', message);
}
