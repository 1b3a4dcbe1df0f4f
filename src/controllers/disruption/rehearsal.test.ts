// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { finish } from '../../base/steps.ts';
import type { Problem } from '../../scheduling/problem.ts';
import { instanceType, node, nodePool, offering, pod } from '../../scheduling/testing/builders.ts';
import type { Candidate } from './candidates.ts';
import type { Proposal } from './method.ts';
import { rehearse } from './rehearsal.ts';

const priced = (name: string, cpu: string, price: number) =>
  instanceType(name, { cpu, memory: '64Gi', pods: '110' }, [offering('a', 'on-demand', price)]);

/** Nodes of eight CPUs, each with pods that request so many. */
function cluster(pods: Readonly<Record<string, readonly string[]>>): Problem {
  return {
    nodePools: [nodePool('default')],
    instanceTypes: { default: [priced('small', '2', 1), priced('large', '8', 4)] },
    nodes: Object.keys(pods).map((name) => node(name, { allocatable: { cpu: '8', memory: '64Gi', pods: '110' } })),
    pods: Object.entries(pods).flatMap(([name, cpus]) =>
      cpus.map((cpu, i) => pod(`${name}-${i}`, { requests: { cpu }, spec: { nodeName: name } })),
    ),
  };
}

/** Nodes that go, for machines of these types. */
function removal(
  { pods }: Problem,
  names: readonly string[],
  price: number,
  ...types: ('small' | 'large')[]
): Proposal {
  const candidates = names.map((name) => {
    const reschedulablePods = pods.filter(({ spec }) => spec.nodeName === name);
    return { machine: { name, nodeName: name }, price, reschedulablePods } as unknown as Candidate;
  });
  const replacements = types.map((type) => ({
    nodePool: 'default',
    requirements: [],
    instanceTypes: [type],
    price: type === 'small' ? 1 : 4,
    requests: {},
    pods: [],
  }));
  return { candidates, replacements, destinations: [] };
}

const kept = (problem: Problem, ...proposals: Proposal[]): readonly Proposal[] =>
  finish(rehearse(problem, proposals, { closely: false })).kept;

test('a command whose pods find the places that were planned is kept', () => {
  const problem = cluster({ a: ['1500m'], b: ['1', '1'], c: ['6'] });
  const [replaced, deleted] = [removal(problem, ['a'], 4, 'small'), removal(problem, ['b'], 4)];
  expect(kept(problem, replaced, deleted)).toEqual([replaced, deleted]);
});

test('a command that needs a machine nobody planned for is dropped, unless it is worth that, too', () => {
  const problem = cluster({ a: ['3', '3'], b: ['3', '3'], c: ['8'] });
  const tight = removal(problem, ['a'], 4, 'small');
  expect(kept(problem, tight)).toEqual([]);
  const generous = removal(problem, ['a', 'b'], 9, 'large');
  expect(kept(problem, generous)).toEqual([generous]);
});

test('of commands that count on the same room only as many are kept as it holds', () => {
  const problem = cluster({ a: ['2'], b: ['2'], c: ['5'] });
  const proposals = [removal(problem, ['a'], 0.5), removal(problem, ['b'], 0.5)];
  expect(kept(problem, ...proposals)).toHaveLength(1);
});

test('a pod that would have no place at all keeps its node', () => {
  const problem = cluster({ a: ['1'], c: ['8'] });
  const odd = { ...problem.pods[0]!, spec: { ...problem.pods[0]!.spec, nodeSelector: { disk: 'fast' } } };
  const pods = [odd, problem.pods[1]!];
  expect(kept({ ...problem, pods }, removal({ ...problem, pods }, ['a'], 100, 'small'))).toEqual([]);
});
