// SPDX-License-Identifier: Apache-2.0
// The short name of a pod template: equal templates, equal names.

// Kubernetes' alphabet of harmless characters.
const alphabet = 'bcdfghjklmnpqrstvwxz2456789';

/** FNV-1a over the canonical JSON of the value (and a counter against collisions), spelled in harmless characters. */
export function templateHash(template: unknown, collisions = 0): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(canonical(template) + (collisions > 0 ? `#${collisions}` : ''))) {
    hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  }
  return Array.from(String(hash), (digit) => alphabet[digit.charCodeAt(0) % alphabet.length]).join('');
}

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const record = value as Record<string, unknown>;
  const keys = Object.keys(record).filter((key) => record[key] !== undefined);
  return `{${keys
    .sort()
    .map((key) => `${JSON.stringify(key)}:${canonical(record[key])}`)
    .join(',')}}`;
}
