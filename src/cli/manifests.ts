// SPDX-License-Identifier: Apache-2.0
// Manifests as people have them: YAML or JSON, several objects in a text, Lists.
import type { Manifest } from '../api/convert.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { parseYamlDocuments } from '../kube/yaml.ts';

/** A manifest that cannot be read. */
export class ManifestError extends KarpenterError {
  constructor(file: string, message: string) {
    super('KRP_MANIFEST', `${file}: ${message}`, { details: { file } });
  }
}

/** The objects of a text, those of Lists one by one; `file` is how it is called in messages. Throws ManifestError. */
export function objectsOf(file: string, text: string): Manifest[] {
  let documents: unknown[];
  try {
    documents = parseYamlDocuments(text);
  } catch (error) {
    throw new ManifestError(file, messageOf(error));
  }
  const found: Manifest[] = [];
  for (const [i, value] of documents.entries()) {
    if (value === null) continue;
    const where = documents.length > 1 ? `document ${i + 1}: ` : '';
    if (!isManifest(value)) throw new ManifestError(file, `${where}${notOne}`);
    if (value.kind !== 'List') {
      found.push(value);
      continue;
    }
    const items: unknown = value['items'];
    if (!Array.isArray(items)) throw new ManifestError(file, `${where}a List without items`);
    const odd = items.findIndex((item) => !isManifest(item));
    if (odd >= 0) throw new ManifestError(file, `${where}items[${odd}]: ${notOne}`);
    found.push(...(items as Manifest[]));
  }
  if (found.length === 0) throw new ManifestError(file, 'there is nothing in it');
  return found;
}

const notOne = 'not a Kubernetes object: apiVersion and kind have to say, as texts, what it is';

function isManifest(value: unknown): value is Manifest {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  const { apiVersion, kind } = value as Partial<Record<keyof Manifest, unknown>>;
  return typeof apiVersion === 'string' && typeof kind === 'string';
}
