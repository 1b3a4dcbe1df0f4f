// SPDX-License-Identifier: Apache-2.0
// Random clusters live through scaling and drift with the whole program, in virtual time, under the eyes of a validator.
// `npm test` tries a sample; KARPENTER_DISRUPTION_WORLDS sets the number. Thousands: `npm run nightly -- disruption`.
import { describe, expect, test } from 'vitest';
import { live } from './testing/random-story.ts';

const worlds = Number(process.env['KARPENTER_DISRUPTION_WORLDS'] ?? 20);

describe('the whole program', () => {
  test('keeps every promise of disruption in random clusters', async () => {
    const seen = new Map<string, number>();
    for (let seed = 1; seed <= worlds; seed++) {
      const { violations, disrupted } = await live(seed);
      expect(violations, `seed ${seed}`).toEqual([]);
      for (const [reason, count] of disrupted) seen.set(reason, (seen.get(reason) ?? 0) + count);
    }
    // A sample in which nothing was disrupted would have proved nothing.
    if (worlds >= 20) expect([...seen.keys()].sort()).toEqual(['Drifted', 'Empty', 'Underutilized']);
  }, 3_600_000);

  test.each([
    [10030, 'pods did not go where they were meant to, and the same was done again'],
    [10046, 'nodes that were alike went minutes apart'],
    [20044, 'nobody noticed that an empty node could take pods again'],
  ])('keeps them in the cluster of seed %d, where once %s', async (seed) => {
    expect((await live(seed, { isPlain: true })).violations).toEqual([]);
  });
});
