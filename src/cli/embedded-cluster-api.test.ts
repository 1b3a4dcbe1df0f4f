// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { perform } from './demo/perform.ts';
import { cloudsNamed } from './embedded-clouds.ts';

test.each([[false], [true]])(
  'the demo of the guides plays on Cluster API, and leaves nothing (two clusters: %s)',
  async (twoClusters) => {
    const clouds = cloudsNamed('cluster-api');
    const [scenario] = clouds[0]!.scenarios;
    const { signal } = new AbortController();
    const show = (): void => undefined;
    const summary = await perform({ scenario: scenario!, clouds, show, signal, virtual: {}, twoClusters });
    expect(summary).toMatchObject({ succeeded: true, left: { pods: 0, machines: 0, pricePerHour: 0 } });
    // Three machines of two CPUs, at the price of their annotation.
    expect(summary.bought.map(({ pricePerHour }) => pricePerHour)).toEqual([0.096, 0.096, 0.096]);
  },
  60_000,
);
