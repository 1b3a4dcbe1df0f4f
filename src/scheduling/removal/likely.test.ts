// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import type { Pod } from '../objects.ts';
import type { Problem } from '../problem.ts';
import { instanceType, node, nodePool, offering, pod } from '../testing/builders.ts';
import { courses, LikelyPlacement } from './likely.ts';

/** A node `old` that leaves, with pods of so many CPUs, and others that take them. */
function leaving(cpus: readonly string[], others: Readonly<Record<string, string>>): Problem {
  const allocatable = (cpu: string) => ({ cpu, memory: '64Gi', pods: '110' });
  const pods = cpus.map((cpu, i): Pod => pod(`p${i}`, { requests: { cpu }, spec: { nodeName: 'old' } }));
  return {
    nodePools: [nodePool('default')],
    instanceTypes: { default: [instanceType('one', allocatable('2'), [offering('a', 'on-demand', 1)])] },
    nodes: [
      node('old', { allocatable: allocatable('32') }),
      ...Object.entries(others).map(([name, cpu]) => node(name, { allocatable: allocatable(cpu) })),
    ],
    pods,
    state: { candidates: ['old'] },
  };
}

test('pods go where the most room is left, and what is left over is bought for', () => {
  // A plan would fill one node with three small pods and the other with the large one.
  const problem = leaving(['1', '1', '1', '3'], { a: '3', b: '3' });
  const [first] = courses;
  const { newNodeClaims, failed, placed } = new LikelyPlacement(problem).outcome(first!);
  expect(failed).toEqual([]);
  // The largest comes first: it gets a node of its own.
  expect(new Set([...placed.values()].map(({ length }) => length))).toEqual(new Set([1, 3]));
  expect(newNodeClaims).toEqual([]);
  const even = new LikelyPlacement(leaving(['2', '2', '1', '1', '1', '1'], { a: '4500m', b: '4500m' }));
  expect([...even.outcome(first!).placed.values()].map(({ length }) => length)).toEqual([3, 3]);
  const tight = new LikelyPlacement(leaving(['2', '2', '2'], { a: '3', b: '3' })).outcome(first!);
  expect(tight.newNodeClaims).toMatchObject([{ price: 1, pods: [expect.any(String)] }]);
});

test('of nodes that are alike any may be taken first, and nothing of one course is left in the next', () => {
  const placement = new LikelyPlacement(leaving(['1'], { a: '4', b: '4' }));
  const firsts = courses.map((course) => [...placement.outcome(course).placed.keys()][0]);
  expect(new Set(firsts)).toEqual(new Set(['a', 'b']));
  expect(courses.map((course) => [...placement.outcome(course).placed.keys()][0])).toEqual(firsts);
});

test('a node may be asked about as if it were of another size', () => {
  const placement = new LikelyPlacement(leaving(['2', '2'], { a: '4' }));
  expect(placement.outcome(courses[0]!).newNodeClaims).toEqual([]);
  const smaller = new Map([['a', { cpu: '2', memory: '64Gi', pods: '110' }]]);
  expect(placement.outcome(courses[0]!, smaller).newNodeClaims).toHaveLength(1);
  expect(placement.outcome(courses[0]!).newNodeClaims).toEqual([]);
});

test('a pod that nothing can be bought for is told', () => {
  const { failed } = new LikelyPlacement(leaving(['8'], { a: '4' })).outcome(courses[0]!);
  expect(failed).toEqual(['default/p0']);
});
