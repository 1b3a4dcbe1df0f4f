// SPDX-License-Identifier: Apache-2.0
// The string formats that the API server checks in CRD schemas; it ignores all others.

import { isIP, isIPv4, isIPv6 } from 'node:net';
import { compileRegexp } from '../regexp.ts';
import { parseDurationNanos, parseTime, TimeError } from '../time.ts';

type Check = (text: string) => boolean;

// Compiled when first used: most formats never are.
const matching =
  (pattern: string): Check =>
  (text) =>
    compileRegexp(pattern).test(text);
const hex = (version: string, variant: string): Check =>
  matching(`(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?${version}-?${variant}-?[0-9a-f]{12}$`);
const shortName = '[a-z0-9]([-a-z0-9]*[a-z0-9])?';

const isShortName = matching(`^${shortName}$`);
const isLongName = matching(`^${shortName}(\\.${shortName})*$`);
const isHostname = matching(
  '^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}([a-zA-Z\\p{L}]){2,63})$',
);
const isCreditCard = matching(
  '^(?:4[0-9]{12}(?:[0-9]{3})?|5[1-5][0-9]{14}|6(?:011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(?:0[0-5]|[68][0-9])[0-9]{11}|(?:2131|1800|35\\d{3})\\d{11})$',
);

const formats: ReadonlyMap<string, Check> = new Map<string, Check>([
  ['bsonobjectid', matching('^[0-9a-fA-F]{24}$')],
  ['uri', isRequestUri],
  ['email', matching('^[^\\s@<>"]+@[^\\s@<>"]+$')],
  ['hostname', (text) => isHostname(text) && text.length <= 255 && text.split('.').every((part) => part.length <= 63)],
  ['ipv4', isIPv4],
  ['ipv6', (text) => isIPv6(text) && !text.includes('%')],
  ['cidr', isCidr],
  [
    'mac',
    matching(
      '^([0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){5}|([0-9A-Fa-f]{4}\\.){2}[0-9A-Fa-f]{4}|[0-9A-Fa-f]{2}([:-][0-9A-Fa-f]{2}){7})$',
    ),
  ],
  ['uuid', hex('[0-9a-f]{4}', '[0-9a-f]{4}')],
  ['uuid3', hex('3[0-9a-f]{3}', '[0-9a-f]{4}')],
  ['uuid4', hex('4[0-9a-f]{3}', '[89ab][0-9a-f]{3}')],
  ['uuid5', hex('5[0-9a-f]{3}', '[89ab][0-9a-f]{3}')],
  ['isbn', (text) => isIsbn10(text) || isIsbn13(text)],
  ['isbn10', isIsbn10],
  ['isbn13', isIsbn13],
  ['creditcard', (text) => isCreditCard(text.replace(/[^0-9]+/g, ''))],
  ['ssn', matching('^\\d{3}[- ]?\\d{2}[- ]?\\d{4}$')],
  ['hexcolor', matching('^#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$')],
  [
    'rgbcolor',
    matching(
      '^rgb\\(\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*,\\s*(0|[1-9]\\d?|1\\d\\d?|2[0-4]\\d|25[0-5])\\s*\\)$',
    ),
  ],
  ['byte', matching('^(?:[A-Za-z0-9+\\/]{4})*(?:[A-Za-z0-9+\\/]{2}==|[A-Za-z0-9+\\/]{3}=)?$')],
  ['password', () => true],
  ['date', (text) => isTime(`${text}T00:00:00Z`)],
  ['duration', isDuration],
  ['datetime', (text) => isTime(text.toUpperCase())],
  ['k8sshortname', (text) => text.length <= 63 && isShortName(text)],
  ['k8slongname', (text) => text.length <= 253 && isLongName(text)],
]);

/** The check of a string format; `undefined` for formats the API server does not know. */
export function formatCheck(format: string): Check | undefined {
  return formats.get(format.replaceAll('-', ''));
}

function isTime(text: string): boolean {
  return parses(() => parseTime(text));
}

// Go's syntax, or `2 days` and the like.
function isDuration(text: string): boolean {
  return (
    parses(() => parseDurationNanos(text)) ||
    /\d+\s*(ns|nano|us|µs|micro|ms|milli|s\b|sec|m\b|min|h\b|hr|hour|d\b|day|w\b|wk|week)/i.test(text)
  );
}

function parses(parse: () => unknown): boolean {
  try {
    parse();
    return true;
  } catch (error) {
    if (error instanceof TimeError) return false;
    throw error;
  }
}

function isRequestUri(text: string): boolean {
  return /^[a-zA-Z][-+.a-zA-Z0-9]*:|^\//.test(text) && !/\s/.test(text) && URL.canParse(text, 'http://localhost');
}

function isCidr(text: string): boolean {
  const [address = '', bits = '', ...rest] = text.split('/');
  const version = isIP(address);
  return version !== 0 && rest.length === 0 && /^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128);
}

function isIsbn10(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^(?:[0-9]{9}X|[0-9]{10})$/.test(digits)) return false;
  const sum = Array.from(digits).reduce((total, digit, i) => total + (digit === 'X' ? 10 : Number(digit)) * (i + 1), 0);
  return sum % 11 === 0;
}

function isIsbn13(text: string): boolean {
  const digits = text.replace(/[\s-]+/g, '');
  if (!/^[0-9]{13}$/.test(digits)) return false;
  return Array.from(digits).reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0) % 10 === 0;
}
