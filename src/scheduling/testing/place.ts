// SPDX-License-Identifier: Apache-2.0
// Small worlds for table tests: a solve that the judge looks at, a few machines, and pods in one line.
import { expect } from 'vitest';
import { deepFreeze } from '../../base/freeze.ts';
import type { Node, Pod, PodSpec, RequirementSpec } from '../objects.ts';
import type { InstanceTypeSpec, OfferingSpec, Problem, SolveResult } from '../problem.ts';
import { solve } from '../solve.ts';
import { instanceType, node, nodePool, offering, pod } from './builders.ts';
import { validate } from './validator.ts';

export const zone = 'topology.kubernetes.io/zone';
export const hostname = 'kubernetes.io/hostname';
export const capacityType = 'karpenter.sh/capacity-type';

export const offers = (price: number, ...zones: string[]): OfferingSpec[] =>
  (zones.length > 0 ? zones : ['a', 'b', 'c']).map((z) => offering(z, 'on-demand', price));
export const small = instanceType('small', { cpu: '2', memory: '4Gi', pods: '20' }, offers(0.1));
export const large = instanceType('large', { cpu: '16', memory: '32Gi', pods: '100' }, offers(0.7));
export const arm = instanceType('arm', { cpu: '4', memory: '8Gi', pods: '20' }, offers(0.15), { arch: 'arm64' });

/** Solves, and lets the judge look at every answer. */
export function place(
  pods: readonly Pod[],
  more: Partial<Problem> & { types?: readonly InstanceTypeSpec[] } = {},
): SolveResult {
  const { types = [small, large], ...rest } = more;
  const nodePools = rest.nodePools ?? [nodePool('default')];
  const instanceTypes = rest.instanceTypes ?? Object.fromEntries(nodePools.map((p) => [p.metadata.name!, types]));
  const problem: Problem = deepFreeze({ nodePools, instanceTypes, pods, ...rest });
  const result = solve(problem);
  expect(validate(problem, result).violations).toEqual([]);
  return result;
}

export const reasonOf = (result: SolveResult, name: string): string | undefined =>
  result.errors.find((e) => e.pod === `default/${name}`)?.reason;
export const nodeOf = (result: SolveResult, name: string): string | number | undefined => {
  const target = result.placements.find((p) => p.pod === `default/${name}`)?.target;
  return target && ('node' in target ? target.node : target.newNodeClaim);
};
export const zoneOf = (result: SolveResult, name: string): string | undefined => {
  const at = nodeOf(result, name);
  const claim = typeof at === 'number' ? result.newNodeClaims[at] : undefined;
  const requirement = claim?.requirements.find(({ key }) => key === zone);
  return requirement?.values?.length === 1 ? requirement.values[0] : undefined;
};
export const times = (n: number, name: string, options: Parameters<typeof pod>[1] = {}): Pod[] =>
  Array.from({ length: n }, (_, i) => pod(`${name}-${i}`, options));
export const required = (terms: RequirementSpec[][]): Partial<PodSpec> => ({
  affinity: {
    nodeAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions })),
      },
    },
  },
});
export const app = (name: string) => ({ labelSelector: { matchLabels: { app: name } } });
export const anti = (name: string, topologyKey: string): Partial<PodSpec> => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, ...app(name) }] } },
});
export const near = (name: string, topologyKey: string): Partial<PodSpec> => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey, ...app(name) }] } },
});
export const spread = (name: string, topologyKey: string, extra = {}): Partial<PodSpec> => ({
  topologySpreadConstraints: [{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule', ...app(name), ...extra }],
});
export const existing = (name: string, extra: Partial<Parameters<typeof node>[1]> = {}): Node =>
  node(name, { labels: { [zone]: 'a' }, allocatable: { cpu: '4', memory: '8Gi', pods: '20' }, ...extra } as Parameters<
    typeof node
  >[1]);
