// SPDX-License-Identifier: Apache-2.0
// The plan of what to buy: checked against what can be worked out by hand.
import { describe, expect, it } from 'vitest';
import { planPurchases, type Wanted } from './patterns.ts';

const machines = {
  width: 2,
  // A lean machine, a hungry one, and one that is dearer than the lean one and no larger.
  units: Float64Array.from([8, 16, 8, 64, 8, 16]),
  prices: Float64Array.from([1, 2, 1.5]),
};
const wanted = (...list: readonly (readonly [cpu: number, memory: number, count: number])[]): Wanted[] =>
  list.map(([cpu, memory, count]) => ({ request: Float64Array.from([cpu, memory]), count }));

function totals(pods: readonly Wanted[]): { price: number; placed: number[] } {
  const plan = planPurchases(machines, pods);
  for (const { machine, counts } of plan) {
    for (let r = 0; r < 2; r++) {
      const used = pods.reduce((sum, { request }, s) => sum + request[r]! * counts[s]!, 0);
      expect(used).toBeLessThanOrEqual(machines.units[machine * 2 + r]!);
    }
  }
  return {
    price: plan.reduce((sum, { machine, times }) => sum + machines.prices[machine]! * times, 0),
    placed: pods.map((_, s) => plan.reduce((sum, { counts, times }) => sum + counts[s]! * times, 0)),
  };
}

describe('a plan of purchases', () => {
  it('fills machines of one kind when one kind suits best', () => {
    expect(totals(wanted([1, 2, 80]))).toEqual({ price: 10, placed: [80] });
  });

  it('puts shapes together that use up a machine together', () => {
    // Apart: lean pods on ten lean machines, hungry ones on forty. Together, hungry machines hold both.
    const { price, placed } = totals(wanted([4, 2, 40], [1, 14, 160]));
    expect(placed).toEqual([40, 160]);
    expect(price).toBeLessThanOrEqual(80);
  });

  it('leaves out what no machine holds', () => {
    expect(totals(wanted([9, 1, 5], [8, 16, 3]))).toEqual({ price: 3, placed: [0, 3] });
  });

  it('plans nothing for nobody', () => {
    expect(planPurchases(machines, [])).toEqual([]);
  });
});
