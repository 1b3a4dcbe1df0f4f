// SPDX-License-Identifier: Apache-2.0

import { describe, expect, test } from 'vitest';
import { formatCheck } from './formats.ts';

const examples: Record<string, { good: string[]; bad: string[] }> = {
  bsonobjectid: { good: ['507f1f77bcf86cd799439011'], bad: ['507f', ''] },
  uri: { good: ['https://a.b/c?d', '/path'], bad: ['a b', 'x', ''] },
  email: { good: ['a@b.c'], bad: ['a', 'a@', '@b'] },
  hostname: { good: ['example.com', 'a'], bad: ['-a', 'a_b', 'a..b'] },
  ipv4: { good: ['1.2.3.4'], bad: ['1.2.3', '1.2.3.256', '::1'] },
  ipv6: { good: ['::1', '2001:db8::1'], bad: ['1.2.3.4', 'x', 'fe80::1%eth0'] },
  cidr: { good: ['10.0.0.0/8', '::/0'], bad: ['10.0.0.0', '10.0.0.0/33', '10.0.0.0/8/9'] },
  mac: { good: ['00:1a:2b:3c:4d:5e'], bad: ['00:1a', 'x'] },
  uuid: { good: ['123e4567-e89b-12d3-a456-426614174000', '123E4567E89B12D3A456426614174000'], bad: ['123'] },
  uuid3: { good: ['a3bb189e-8bf9-3888-9912-ace4e6543002'], bad: ['a3bb189e-8bf9-4888-9912-ace4e6543002'] },
  uuid4: { good: ['57b73598-8764-4ad0-a76a-679bb6640eb1'], bad: ['57b73598-8764-3ad0-a76a-679bb6640eb1'] },
  uuid5: { good: ['987fbc97-4bed-5078-af07-9141ba07c9f3'], bad: ['987fbc97-4bed-4078-af07-9141ba07c9f3'] },
  isbn: { good: ['0321751043', '978-0321751041'], bad: ['0321751044', '978-0321751042'] },
  isbn10: { good: ['0321751043'], bad: ['978-0321751041'] },
  isbn13: { good: ['978-0321751041'], bad: ['0321751043'] },
  creditcard: { good: ['4111-1111-1111-1111'], bad: ['1234'] },
  ssn: { good: ['111-22-3333'], bad: ['111'] },
  hexcolor: { good: ['#fff', 'FFFFFF'], bad: ['#ff'] },
  rgbcolor: { good: ['rgb(1, 2, 255)'], bad: ['rgb(1,2,256)'] },
  byte: { good: ['', 'aGVsbG8='], bad: ['a', 'a!=='] },
  password: { good: ['', 'x'], bad: [] },
  date: { good: ['2024-02-29'], bad: ['2023-02-29', '2024-2-9'] },
  duration: { good: ['1h', '2 days', '3 weeks'], bad: ['', 'x', '5'] },
  'date-time': {
    good: ['2024-01-01T00:00:00Z', '2024-01-01t00:00:00.5+01:00'],
    bad: ['2024-01-01', '2024-01-01T25:00:00Z'],
  },
  'k8s-short-name': { good: ['a-b'], bad: ['A', 'a.b', 'a'.repeat(64)] },
  'k8s-long-name': { good: ['a-b.c'], bad: ['A', '.a', 'a'.repeat(254)] },
};

describe('a format', () => {
  test.each(Object.entries(examples))('%s', (format, { good, bad }) => {
    const check = formatCheck(format);
    for (const text of good) expect(check?.(text), text).toBe(true);
    for (const text of bad) expect(check?.(text), text).toBe(false);
  });

  test('that is not known is not checked', () => {
    expect(formatCheck('no-such-format')).toBeUndefined();
    expect(formatCheck('constructor')).toBeUndefined();
  });
});
