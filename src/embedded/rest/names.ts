// SPDX-License-Identifier: Apache-2.0
// What an object may be called, in the API server's words.

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const subdomainPattern = new RegExp(`^${label}(\\.${label})*$`);
const labelPattern = new RegExp(`^${label}$`);
const label1035Pattern = /^[a-z]([-a-z0-9]*[a-z0-9])?$/;

/** Problems with an RFC 1123 subdomain: the name of most objects. */
export function subdomainProblems(name: string): string[] {
  const problems: string[] = [];
  if (name.length > 253) problems.push('must be no more than 253 characters');
  if (!subdomainPattern.test(name)) {
    problems.push(
      `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '${label}(\\.${label})*')`,
    );
  }
  return problems;
}

/** Problems with an RFC 1123 label: namespaces, containers, ports. */
export function labelProblems(name: string): string[] {
  const problems: string[] = [];
  if (name.length > 63) problems.push('must be no more than 63 characters');
  if (!labelPattern.test(name)) {
    problems.push(
      `a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`,
    );
  }
  return problems;
}

/** Problems with an RFC 1035 label: services. */
export function label1035Problems(name: string): string[] {
  const problems: string[] = [];
  if (name.length > 63) problems.push('must be no more than 63 characters');
  if (!label1035Pattern.test(name)) {
    problems.push(
      "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    );
  }
  return problems;
}

/** Problems with a name that may be anything that fits one path segment: RBAC objects. */
export function pathSegmentProblems(name: string): string[] {
  if (name === '.' || name === '..') return [`may not be '${name}'`];
  const problems: string[] = [];
  for (const character of ['/', '%']) if (name.includes(character)) problems.push(`may not contain '${character}'`);
  return problems;
}
