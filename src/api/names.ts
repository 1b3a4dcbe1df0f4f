// SPDX-License-Identifier: Apache-2.0
// What may be a label key and a label value. Selectors (src/kube/labels) answer in the API server's words; here the
// answer is a short sentence for a condition.

import { labelNamePattern, subdomainPattern } from '../base/names.ts';

const nameRule = "letters, digits, '-', '_' and '.', with a letter or digit at both ends";

/** What is wrong with a label key (`name` or `example.com/name`); undefined when nothing is. */
export function labelKeyProblem(key: string): string | undefined {
  const slash = key.indexOf('/');
  const name = key.slice(slash + 1);
  // The length comes first: it also bounds what the patterns have to look at.
  if (slash >= 0) {
    const domain = key.slice(0, slash);
    if (domain.length === 0 || domain.length > 253) return 'the part before the slash must have 1 to 253 characters';
    if (!subdomainPattern.test(domain)) return 'the part before the slash must be a DNS name in lower case';
  }
  if (name.length === 0 || name.length > 63) return 'the name must have 1 to 63 characters';
  return labelNamePattern.test(name) ? undefined : `the name must consist of ${nameRule}`;
}

/** What is wrong with a label value; undefined when nothing is. The empty value is fine. */
export function labelValueProblem(value: string): string | undefined {
  if (value.length > 63) return 'it must have at most 63 characters';
  return value === '' || labelNamePattern.test(value) ? undefined : `it must consist of ${nameRule}`;
}
