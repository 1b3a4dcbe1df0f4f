// SPDX-License-Identifier: Apache-2.0
// Manifests as people have them: YAML or JSON, several objects in a text, Lists.
import { KarpenterError, messageOf } from '../base/errors.ts';
import { parseYamlDocuments } from '../kube/yaml.ts';

/** A manifest that cannot be read. */
export class ManifestError extends KarpenterError {
  constructor(file: string, message: string) {
    super('KRP_MANIFEST', `${file}: ${message}`, { details: { file } });
  }
}

/** The objects of a text, those of Lists one by one; `file` is how it is called in messages. Throws ManifestError. */
export function objectsOf(file: string, text: string): Record<string, unknown>[] {
  let documents: unknown[];
  try {
    documents = parseYamlDocuments(text);
  } catch (error) {
    throw new ManifestError(file, messageOf(error));
  }
  const found: Record<string, unknown>[] = [];
  for (const value of documents) {
    if (value === null) continue;
    if (!isObject(value) || typeof value['kind'] !== 'string') throw new ManifestError(file, 'not a Kubernetes object');
    const items: unknown = value['kind'] === 'List' ? value['items'] : [value];
    if (!Array.isArray(items) || !items.every(isObject)) throw new ManifestError(file, 'a List without objects');
    found.push(...items);
  }
  if (found.length === 0) throw new ManifestError(file, 'there is nothing in it');
  return found;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
