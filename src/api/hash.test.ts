// SPDX-License-Identifier: Apache-2.0
// The vectors come from upstream's own code: hack/vectors/nodepool-hash makes them.
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DurationError } from './duration.ts';
import { nodePoolHash, templateHash } from './hash.ts';
import type { NodeClaimTemplate } from './node-pool.ts';

const vectors = JSON.parse(readFileSync(new URL('./hash.vectors.json', import.meta.url), 'utf8')) as {
  name: string;
  template: NodeClaimTemplate;
  hash: string;
}[];

describe('the NodePool hash equals upstream', () => {
  test('there are enough vectors, and they differ', () => {
    expect(vectors.length).toBeGreaterThanOrEqual(60);
    expect(new Set(vectors.map((v) => v.hash)).size).toBeGreaterThan(60);
  });
  test.each(vectors)('$name', ({ template, hash }) => {
    expect(nodePoolHash({ spec: { template } })).toBe(hash);
  });
});

const template = (expireAfter: string): NodeClaimTemplate => ({
  spec: { requirements: [], nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, expireAfter },
});

test('the way a duration is written does not matter', () => {
  expect(templateHash(template('1h30m'))).toBe(templateHash(template('90m')));
});

test('a duration that cannot be counted is an error, not a hash', () => {
  expect(() => templateHash(template('99999999999h'))).toThrow(DurationError);
});
