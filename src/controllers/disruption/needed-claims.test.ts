// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { finish } from '../../base/steps.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { instanceType, node, nodePool, offering, pod } from '../../scheduling/testing/builders.ts';
import type { Candidate } from './candidates.ts';
import { neededClaims } from './needed-claims.ts';

const prices = { small: 1, large: 4 } as const;
const priced = (name: keyof typeof prices, cpu: string) =>
  instanceType(name, { cpu, memory: '64Gi', pods: '110' }, [offering('a', 'on-demand', prices[name])]);

/** Nodes of eight CPUs, each with pods that request so many. */
function cluster(pods: Readonly<Record<string, readonly string[]>>): Problem {
  return {
    nodePools: [nodePool('default')],
    instanceTypes: { default: [priced('small', '2'), priced('large', '8')] },
    nodes: Object.keys(pods).map((name) => node(name, { allocatable: { cpu: '8', memory: '64Gi', pods: '110' } })),
    pods: Object.entries(pods).flatMap(([name, cpus]) =>
      cpus.map((cpu, i) => pod(`${name}-${i}`, { requests: { cpu }, spec: { nodeName: name } })),
    ),
  };
}

/** The types of the machines that are bought now, of those that were planned, when one node goes. */
function bought(
  problem: Problem,
  going: string,
  types: readonly (keyof typeof prices)[],
  avoided: string[],
  price = 8,
): string[] | undefined {
  const reschedulablePods = problem.pods.filter(({ spec }) => spec.nodeName === going);
  const candidate = { machine: { name: going, nodeName: going }, price, reschedulablePods } as unknown as Candidate;
  const claims = types.map(
    (type): NewNodeClaim => ({
      nodePool: 'default',
      requirements: [],
      instanceTypes: [type],
      price: prices[type],
      requests: {},
      pods: [],
    }),
  );
  const needed = finish(neededClaims(problem, [candidate], claims, new Set(avoided)));
  return needed?.map(({ instanceTypes }) => instanceTypes[0]!);
}

test('a machine that the pods of a piece can do without is not bought yet, the dearest first', () => {
  const problem = cluster({ a: ['1500m'], b: ['8'] });
  expect(bought(problem, 'a', ['small', 'large'], [])).toEqual(['small']);
});

test('a machine that pods go to is bought', () => {
  const problem = cluster({ a: ['6'], b: ['8'] });
  expect(bought(problem, 'a', ['small', 'large'], [])).toEqual(['large']);
});

test('none is bought for pods that find room elsewhere, unless that is a node which goes next', () => {
  const problem = cluster({ a: ['1500m'], b: ['1'] });
  expect(bought(problem, 'a', ['small'], [])).toEqual([]);
  expect(bought(problem, 'a', ['small'], ['b'])).toEqual(['small']);
});

test('machines that cost more than what goes are not looked at any further', () => {
  const problem = cluster({ a: ['6', '1500m'], b: ['8'] });
  expect(bought(problem, 'a', ['small', 'large'], [], 4)).toEqual(['large']);
  expect(bought(problem, 'a', ['small', 'large'], [], 3.5)).toBeUndefined();
});
