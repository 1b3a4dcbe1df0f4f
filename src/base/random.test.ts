// SPDX-License-Identifier: Apache-2.0
import { describe, expect, test } from 'vitest';
import { SeededRandom, SystemRandom } from './random.ts';

describe.each([
  ['seeded', () => new SeededRandom(7)],
  ['system', () => new SystemRandom()],
] as const)('%s chance', (_name, make) => {
  test('is spread evenly over [0, 1)', () => {
    const random = make();
    const drawn = Array.from({ length: 20_000 }, () => random.next());
    expect(drawn.every((x) => x >= 0 && x < 1)).toBe(true);
    const counts = Array.from({ length: 10 }, (_, i) => drawn.filter((x) => Math.floor(x * 10) === i).length);
    for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(400);
  });

  test('gives whole numbers below a bound, each of them', () => {
    const random = make();
    const seen = new Set(Array.from({ length: 1000 }, () => random.int(6)));
    expect([...seen].toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(random.int(1)).toBe(0);
  });

  test('gives UUIDs of version 4 that do not repeat', () => {
    const random = make();
    const uuids = Array.from({ length: 1000 }, () => random.uuid());
    for (const uuid of uuids) {
      expect(uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    }
    expect(new Set(uuids).size).toBe(1000);
  });

  test('gives suffixes of the alphabet of Kubernetes', () => {
    const random = make();
    expect(random.suffix()).toHaveLength(5);
    expect(random.suffix(200)).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{200}$/);
    expect(random.suffix(0)).toBe('');
  });
});

test('a seed repeats, another seed does not', () => {
  const draw = (seed: number): string[] => {
    const random = new SeededRandom(seed);
    return [String(random.next()), random.uuid(), random.suffix(), String(random.int(1000))];
  };
  expect(draw(1)).toEqual(draw(1));
  expect(draw(1)).not.toEqual(draw(2));
});

test('a seed gives the same sequence on every machine and in every release', () => {
  const random = new SeededRandom(42);
  expect([random.next(), random.int(1000), random.suffix(), random.uuid()]).toMatchInlineSnapshot(`
    [
      0.15377165265745885,
      18,
      "sztk5",
      "5bde8d56-54e8-4c38-8bab-2732876dc215",
    ]
  `);
});

test('the numbers use all their bits', () => {
  const random = new SystemRandom();
  const fine = Array.from({ length: 100 }, () => random.next()).filter((x) => (x * 2 ** 53) % 2 === 1);
  expect(fine.length).toBeGreaterThan(20);
});
