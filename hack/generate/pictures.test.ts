// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { DemoEvent } from '../../src/cli/demo/events.ts';
import { pictureOf } from './pictures.ts';

const state = (at: number, running: number, pending: number, machines: number): DemoEvent => ({
  type: 'state',
  at,
  pods: { running, pending, starting: 0, leaving: 0 },
  machines,
  nodes: machines,
  pricePerHour: machines / 10,
});

test('a picture steps where something changed, and names what was done', () => {
  const svg = pictureOf([
    { type: 'begin', at: 0, scenario: 'tiny', description: 'a < b', providers: [], acts: [] },
    { type: 'act', at: 0, act: 0, title: 'it begins' },
    state(0, 0, 4, 0),
    state(4, 4, 0, 2),
    { type: 'act', at: 6, act: 1, title: 'it ends' },
    state(8, 0, 0, 0),
  ]);
  expect(svg).toContain('aria-label="karpenter demo tiny: a &lt; b"');
  // 4 of 10 seconds without a machine, then both, then none.
  expect(svg).toContain(
    '<polygon class="machines" points="100,298 404,298 404,214 708,214 708,298 860,298 860,298 708,298 708,298 404,298 404,298 100,298"/>',
  );
  expect(svg.match(/<circle class="bullet"/g)).toHaveLength(4);
  expect(svg).toContain('0.0 s  it begins');
  expect(svg).toContain('prefers-color-scheme: dark');
});
