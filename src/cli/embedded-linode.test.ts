// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { perform } from './demo/perform.ts';
import { cloudsNamed } from './embedded-clouds.ts';

test.each([
  ['lke', false],
  ['lke', true],
  ['instance', false],
  ['instance', true],
])(
  'the demo of the guides plays on Linode in mode %s, and leaves nothing (two clusters: %s)',
  async (mode, twoClusters) => {
    const clouds = cloudsNamed('linode', mode);
    const [scenario] = clouds[0]!.scenarios;
    const { signal } = new AbortController();
    const show = (): void => undefined;
    const summary = await perform({ scenario: scenario!, clouds, show, signal, virtual: {}, twoClusters });
    expect(summary).toMatchObject({ succeeded: true, left: { pods: 0, machines: 0, pricePerHour: 0 } });
    // Five plans with one CPU are the cheapest way to five; the guide's six-CPU plan is the dearest that makes sense.
    const paid = summary.bought.reduce((sum, { pricePerHour }) => sum + pricePerHour, 0);
    expect(paid).toBeGreaterThanOrEqual(5 * 0.018 - 1e-9);
    expect(paid).toBeLessThanOrEqual(0.144);
  },
  120_000,
);

test('a mode that nobody knows is refused, with those there are', () => {
  expect(() => cloudsNamed('linode', 'metal')).toThrow('no such mode of linode: metal; there are: lke, instance');
  expect(() => cloudsNamed('kwok', 'lke')).toThrow('there are none');
});
