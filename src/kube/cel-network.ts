// SPDX-License-Identifier: Apache-2.0
// Addresses and networks in CEL (`ip('10.0.0.1')`, `cidr('10.0.0.0/8').containsIP(…)`), and the named formats of Kubernetes.

import { isIP } from 'node:net';
import { CelError, type CelFunction, CelOpaque, CelOptional, noSuchOverload } from './cel-values.ts';
import { isQualifiedName, isValidLabelValue } from './labels.ts';
import { formatCheck } from './schema/formats.ts';

class CelIp extends CelOpaque {
  readonly typeName = 'net.IP';
  readonly bits: bigint;
  readonly family: 4 | 6;
  constructor(bits: bigint, family: 4 | 6) {
    super();
    this.bits = bits;
    this.family = family;
  }
  get key(): string {
    return `${this.family}/${this.bits}`;
  }
  get width(): number {
    return this.family === 4 ? 32 : 128;
  }
}

class CelCidr extends CelOpaque {
  readonly typeName = 'net.CIDR';
  readonly ip: CelIp;
  readonly prefix: number;
  constructor(ip: CelIp, prefix: number) {
    super();
    this.ip = ip;
    this.prefix = prefix;
  }
  get key(): string {
    return `${this.ip.key}/${this.prefix}`;
  }
}

/** A named format: what is wrong with a text, as a list, or nothing. */
class CelFormat extends CelOpaque {
  readonly typeName = 'kubernetes.NamedFormat';
  readonly key: string;
  readonly problems: (text: string) => readonly string[];
  constructor(name: string, problems: (text: string) => readonly string[]) {
    super();
    this.key = name;
    this.problems = problems;
  }
}

const label = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';
const matching = (pattern: RegExp, max: number, message: string) => (text: string) => [
  ...(text.length > max ? [`must be no more than ${max} bytes`] : []),
  ...(pattern.test(text) ? [] : [message]),
];
const labelRule = matching(
  /^[a-z0-9]+(-+[a-z0-9]+)*$/,
  63,
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character " +
    `(e.g. 'my-name',  or '123-abc', regex used for validation is '${label}')`,
);
const subdomainRule = matching(
  /^[a-z0-9]+(-+[a-z0-9]+)*(\.[a-z0-9]+(-+[a-z0-9]+)*)*$/,
  253,
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character " +
    `(e.g. 'example.com', regex used for validation is '${label}(\\.${label})*')`,
);
const label1035Rule = matching(
  /^[a-z]([-a-z0-9]*[a-z0-9])?$/,
  63,
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character " +
    "(e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
);
/** A prefix of a generated name may end in a dash. */
const asPrefix = (problems: (text: string) => readonly string[]) => (text: string) => problems(text.replace(/-$/, 'a'));
const byFormat = (name: string, message: string) => (text: string) => (formatCheck(name)?.(text) ? [] : [message]);

const formats: ReadonlyMap<string, CelFormat> = new Map(
  Object.entries({
    dns1123Label: labelRule,
    dns1123Subdomain: subdomainRule,
    dns1035Label: label1035Rule,
    dns1123LabelPrefix: asPrefix(labelRule),
    dns1123SubdomainPrefix: asPrefix(subdomainRule),
    dns1035LabelPrefix: asPrefix(label1035Rule),
    qualifiedName: isQualifiedName,
    labelValue: isValidLabelValue,
    uri: byFormat('uri', 'invalid URI'),
    uuid: byFormat('uuid', 'does not match the UUID format'),
    byte: byFormat('byte', 'invalid base64'),
    date: byFormat('date', 'invalid date'),
    datetime: byFormat('date-time', 'invalid datetime'),
  }).map(([name, problems]) => [name, new CelFormat(name, problems)]),
);

export const networkFunctions: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['isIP', (value) => parseIp(text(value)) !== undefined],
  [
    'ip',
    (value) =>
      parseIp(text(value)) ?? fail(`IP Address "${text(value)}" parse error during conversion from string: invalid IP`),
  ],
  ['ip.isCanonical', isCanonical],
  ['isCIDR', (value) => parseCidr(text(value)) !== undefined],
  [
    'cidr',
    (value) =>
      parseCidr(text(value)) ?? fail('network address parse error during conversion from string: invalid CIDR'),
  ],
  ['format.named', (name) => new CelOptional(formats.get(text(name)))],
  ...[...formats].map(([name, format]): [string, CelFunction] => [`format.${name}`, () => format]),
]);

export const networkMethods: ReadonlyMap<string, CelFunction> = new Map<string, CelFunction>([
  ['family', (ip) => asIp(ip).family],
  ['isUnspecified', (ip) => asIp(ip).bits === 0n],
  ['isLoopback', (ip) => within(ip, '127.0.0.0/8', '::1/128')],
  ['isLinkLocalMulticast', (ip) => within(ip, '224.0.0.0/24', 'ff02::/16')],
  ['isLinkLocalUnicast', (ip) => within(ip, '169.254.0.0/16', 'fe80::/10')],
  ['isGlobalUnicast', isGlobalUnicast],
  [
    'containsIP',
    (cidr, ip) => contains(asCidr(cidr), typeof ip === 'string' ? (parseIp(ip) ?? fail('invalid IP')) : asIp(ip)),
  ],
  ['containsCIDR', containsCidr],
  ['ip', (cidr) => asCidr(cidr).ip],
  ['masked', (cidr) => masked(asCidr(cidr))],
  ['prefixLength', (cidr) => asCidr(cidr).prefix],
  ['validate', validate],
]);

/** The text of an address or a network, for `string()`. */
export function networkText(value: unknown): string | undefined {
  if (value instanceof CelIp) return ipText(value);
  return value instanceof CelCidr ? `${ipText(value.ip)}/${value.prefix}` : undefined;
}

function fail(message: string): never {
  throw new CelError(message);
}

function text(value: unknown): string {
  if (typeof value === 'string') return value;
  throw noSuchOverload();
}

function asIp(value: unknown): CelIp {
  if (value instanceof CelIp) return value;
  throw noSuchOverload();
}

function asCidr(value: unknown): CelCidr {
  if (value instanceof CelCidr) return value;
  throw noSuchOverload();
}

function parseIp(source: string): CelIp | undefined {
  const version = isIP(source);
  if (version === 4)
    return new CelIp(
      source.split('.').reduce((bits, part) => (bits << 8n) | BigInt(part), 0n),
      4,
    );
  // Zones and addresses of version 4 in version 6 are refused by Kubernetes.
  if (version !== 6 || source.includes('%') || source.includes('.')) return undefined;
  const [head = '', tail] = source.split('::');
  const left = head === '' ? [] : head.split(':');
  const right = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? [] : Array.from({ length: 8 - left.length - right.length }, () => '0');
  const bits = [...left, ...zeros, ...right].reduce((all, part) => (all << 16n) | BigInt(`0x${part}`), 0n);
  return new CelIp(bits, 6);
}

function parseCidr(source: string): CelCidr | undefined {
  const [address = '', prefix = '', ...rest] = source.split('/');
  const ip = parseIp(address);
  if (ip === undefined || rest.length > 0 || !/^(0|[1-9][0-9]{0,2})$/.test(prefix)) return undefined;
  return Number(prefix) <= ip.width ? new CelCidr(ip, Number(prefix)) : undefined;
}

function ipText(ip: CelIp): string {
  if (ip.family === 4) return [24n, 16n, 8n, 0n].map((shift) => (ip.bits >> shift) & 255n).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => ((ip.bits >> BigInt(112 - 16 * i)) & 0xffffn).toString(16));
  // The longest run of at least two zeros is left out.
  const runs = [...groups.join(':').matchAll(/(?:^|:)0(?::0)+(?=:|$)/g)].map(([run]) => run);
  const longest = runs.reduce(
    (best, run) => (run.replace(/^:/, '').length > best.replace(/^:/, '').length ? run : best),
    '',
  );
  if (longest === '') return groups.join(':');
  const joined = groups.join(':');
  const at = joined.search(new RegExp(`(^|:)${longest.replace(/^:/, '')}(?=:|$)`));
  return `${joined.slice(0, at)}::${joined.slice(at + longest.length).replace(/^:/, '')}`;
}

function isCanonical(value: unknown): boolean {
  const ip =
    parseIp(text(value)) ?? fail(`IP Address "${text(value)}" parse error during conversion from string: invalid IP`);
  return ipText(ip) === value;
}

function masked(cidr: CelCidr): CelCidr {
  const rest = BigInt(cidr.ip.width - cidr.prefix);
  return new CelCidr(new CelIp((cidr.ip.bits >> rest) << rest, cidr.ip.family), cidr.prefix);
}

function contains(cidr: CelCidr, ip: CelIp): boolean {
  const rest = BigInt(cidr.ip.width - cidr.prefix);
  return cidr.ip.family === ip.family && cidr.ip.bits >> rest === ip.bits >> rest;
}

function containsCidr(outer: unknown, value: unknown): boolean {
  const inner = typeof value === 'string' ? (parseCidr(value) ?? fail('invalid CIDR')) : asCidr(value);
  return contains(asCidr(outer), inner.ip) && asCidr(outer).prefix <= inner.prefix;
}

function within(value: unknown, ...networks: readonly string[]): boolean {
  const ip = asIp(value);
  return networks.some((network) => {
    const cidr = parseCidr(network);
    return cidr !== undefined && contains(cidr, ip);
  });
}

function isGlobalUnicast(value: unknown): boolean {
  const ip = asIp(value);
  const broadcast = ip.family === 4 && ip.bits === 0xffffffffn;
  return (
    ip.bits !== 0n &&
    !broadcast &&
    !within(ip, '127.0.0.0/8', '::1/128', '224.0.0.0/4', 'ff00::/8', '169.254.0.0/16', 'fe80::/10')
  );
}

/** Nothing when the text is fine, else the list of what is wrong. */
function validate(format: unknown, value: unknown): CelOptional {
  if (!(format instanceof CelFormat)) throw noSuchOverload();
  const problems = format.problems(text(value));
  return problems.length === 0 ? CelOptional.none : new CelOptional(problems);
}
