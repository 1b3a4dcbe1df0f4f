// SPDX-License-Identifier: Apache-2.0
import { expect, test } from 'vitest';
import { finish } from '../../base/steps.ts';
import type { NewNodeClaim, Problem } from '../../scheduling/problem.ts';
import { instanceType, node, nodePool, offering, oneOf, pod } from '../../scheduling/testing/builders.ts';
import type { Candidate } from './candidates.ts';
import { downsized } from './downsizing.ts';
import type { Rehearsed } from './rehearsal.ts';

const sold = (cpu: number) =>
  instanceType(`of-${cpu}`, { cpu: String(cpu), memory: '64Gi', pods: '110' }, [offering('a', 'on-demand', cpu)]);

/** A node `old` leaves, with pods of so many CPUs. */
function cluster(cpus: readonly string[]): Problem {
  return {
    nodePools: [nodePool('default')],
    instanceTypes: { default: [sold(2), sold(4), sold(8)] },
    nodes: [node('old', { allocatable: { cpu: '32', memory: '64Gi', pods: '110' } })],
    pods: cpus.map((cpu, i) => pod(`p${i}`, { requests: { cpu }, spec: { nodeName: 'old' } })),
  };
}

function command({ pods }: Problem, ...claims: NewNodeClaim[]): Rehearsed {
  const candidate = { machine: { name: 'old', nodeName: 'old' }, price: 32, reschedulablePods: pods };
  return { candidates: [candidate as unknown as Candidate], replacements: claims };
}

function claim({ pods }: Problem, cpu: number, more: Partial<NewNodeClaim> = {}): NewNodeClaim {
  const own = pods.map(({ metadata }) => `default/${metadata.name}`);
  const requests = { cpu: '3', pods: String(own.length) };
  return {
    nodePool: 'default',
    requirements: [],
    instanceTypes: [`of-${cpu}`],
    price: cpu,
    requests,
    pods: own,
    ...more,
  };
}

test('a machine that is larger than its pods need becomes the smallest that holds them', () => {
  const problem = cluster(['1', '1', '1']);
  const [[smaller]] = finish(downsized(problem, [command(problem, claim(problem, 8))])) as [[NewNodeClaim]];
  expect(smaller).toMatchObject({ instanceTypes: ['of-4', 'of-8'], price: 4, requests: { cpu: '3', pods: '3' } });
});

test('no machine becomes smaller where a pod would be left over', () => {
  const problem = cluster(['2', '2', '2']);
  const plan = claim(problem, 8);
  expect(finish(downsized(problem, [command(problem, plan)]))).toEqual([[plan]]);
});

test('what was asked for as a choice, or is reserved, stays as it is', () => {
  const problem = cluster(['1']);
  const choice = claim(problem, 8, { requirements: [{ ...oneOf('size', '8', '4'), minValues: 2 }] });
  const reserved = claim(problem, 8, { reservations: ['r'] });
  for (const plan of [choice, reserved]) expect(finish(downsized(problem, [command(problem, plan)]))).toEqual([[plan]]);
});
