// SPDX-License-Identifier: Apache-2.0
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { type Defect, defects, plant, planted } from '../base/defects.ts';
import { allDefects, hunt, huntSeeds, knownSeeds } from './defects.ts';

const noticedBy: Partial<Record<Defect, string>> = {
  'cluster-api-binds-twice': 'machines/not-shared',
  'cluster-api-adopts-strangers': 'cluster-api/strangers',
  'linode-launches-again': 'linode/no-surplus',
  'linode-claims-the-account': 'linode/strangers',
  'collects-strangers': 'machines/strangers-stay',
  'ignores-disruption-budgets': 'pods/moved-gently',
  'node-let-go-too-early': 'machines/never-let-go',
};

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
    expect([...places.keys()].sort()).toEqual(Object.keys(defects).sort());
    for (const name of allDefects) expect(places.get(name), name).toHaveLength(1);
  });

  test('have each been found, and it is written down by which seed', () => {
    expect(Object.keys(knownSeeds).sort()).toEqual(Object.keys(defects).sort());
    const listed = readFileSync('docs/reliability.md', 'utf8').matchAll(
      /^\| `([a-z-]+)` \| `([a-z/-]+)` \| (\d+) \|$/gm,
    );
    expect(Object.fromEntries([...listed].map(([, name, , seed]) => [name, Number(seed)]))).toEqual(knownSeeds);
  });
});

describe('the simulator', () => {
  // All of them are hunted by `npm run nightly -- defects`: these are quick to find.
  test.each(Object.keys(noticedBy) as Defect[])(
    'finds %s',
    async (defect) => {
      expect(await hunt(defect, { seeds: huntSeeds.slice(0, 3), hours: 2 })).toMatchObject({
        invariant: noticedBy[defect],
      });
    },
    180_000,
  );
});
