// SPDX-License-Identifier: Apache-2.0
// JSON text that is the same for equal values, whatever the order of their keys.
import { compareStrings } from '../../base/order.ts';

export function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => compareStrings(a, b)))
      : part,
  );
}
