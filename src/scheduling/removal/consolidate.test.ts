// SPDX-License-Identifier: Apache-2.0
import { afterEach, expect, test, vi } from 'vitest';
import { finish } from '../../base/steps.ts';
import { Packer } from '../pack.ts';
import type { Problem } from '../problem.ts';
import { instanceType, node, nodePool, offering, pod } from '../testing/builders.ts';
import { type ConsolidateOptions, consolidate, type Removable } from './consolidate.ts';

afterEach(() => vi.restoreAllMocks());

/** A node for 10 $ whose four pods fill most of a machine for 2 $. */
const allocatable = (cpu: string) => ({ cpu, memory: '64Gi', pods: '110' });
const problem: Problem = {
  nodePools: [nodePool('default')],
  instanceTypes: { default: [instanceType('eight', allocatable('8'), [offering('a', 'on-demand', 2)])] },
  nodes: [node('old', { allocatable: allocatable('32') })],
  pods: [0, 1, 2, 3].map((i) => pod(`p${i}`, { requests: { cpu: '1500m' }, spec: { nodeName: 'old' } })),
  state: { candidates: ['old'] },
};

function commandsAndPackings(suffices?: ConsolidateOptions<Removable>['suffices']) {
  const packings = vi.spyOn(Packer.prototype, 'run');
  const commands = finish(
    consolidate({
      problem,
      removable: [{ node: 'old', pool: 'default', price: 10 }],
      budget: () => 1,
      approve: (_, claims) => claims,
      ...(suffices ? { suffices } : {}),
    }),
  );
  const { length } = packings.mock.calls;
  packings.mockRestore();
  return { bought: commands.flatMap(({ claims }) => claims).length, packings: length };
}

test('no better way to pack is looked for where even that would save too little', () => {
  const all = commandsAndPackings();
  const asked: number[][] = [];
  const few = commandsAndPackings((_, savings, pods) => {
    asked.push([savings, pods]);
    return false;
  });
  expect([all.bought, few.bought]).toEqual([1, 1]);
  expect(few.packings).toBeLessThan(all.packings);
  // Another way may cost a fifth less.
  expect(asked[0]).toEqual([expect.closeTo(10 - 2 * 0.8), 4]);
  expect(commandsAndPackings(() => true)).toEqual(all);
});
