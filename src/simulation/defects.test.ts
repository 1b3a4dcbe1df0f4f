// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Defect, plant, planted } from '../base/defects.ts';
import { allDefects, hunt, huntSeeds } from './defects.ts';

afterEach(() => plant(undefined));

describe('planted defects', () => {
  test('are off, and on one at a time', () => {
    expect(allDefects.filter((name) => planted(name))).toEqual([]);
    plant('cuts-grace');
    plant('event-storm');
    expect(allDefects.filter((name) => planted(name))).toEqual(['event-storm']);
    plant(undefined);
    expect(allDefects.filter((name) => planted(name))).toEqual([]);
  });

  test('are at least twenty, each in one place of the product', () => {
    expect(allDefects.length).toBeGreaterThanOrEqual(20);
    const places = new Map<string, string[]>();
    for (const path of readdirSync('src', { recursive: true, encoding: 'utf8' })) {
      if (!path.endsWith('.ts') || path.endsWith('.test.ts')) continue;
      const source = readFileSync(join('src', path), 'utf8');
      for (const [, name = ''] of source.matchAll(/planted\('([^']+)'\)/g))
        places.set(name, [...(places.get(name) ?? []), path]);
    }
    expect([...places.keys()].sort()).toEqual([...allDefects].sort());
    for (const [name, paths] of places) expect(paths, name).toHaveLength(1);
  });
});

describe('the simulator', () => {
  // All of them are hunted by `npm run nightly -- defects`: these are quick to find.
  test.each<[Defect, string]>([])(
    'finds %s',
    async (defect, invariant) => {
      expect(await hunt(defect, { seeds: huntSeeds.slice(0, 2), hours: 0.5 })).toMatchObject({ invariant });
    },
    120_000,
  );
});
