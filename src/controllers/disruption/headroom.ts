// SPDX-License-Identifier: Apache-2.0
// Machines with room to spare: kube-scheduler fills all nodes alike, so that gaps are left on each. A plan that counts on a gap
// per machine buys fewer and larger ones, and holds.
import { Quantity } from '../../kube/quantity.ts';
import type { ResourceList } from '../../scheduling/objects.ts';
import { type Amounts, addTo, podRequests } from '../../scheduling/pod-resources.ts';
import type { InstanceTypeSpec, Problem } from '../../scheduling/problem.ts';
import type { Candidate } from './candidates.ts';

/** What the pods of some machines request on average. */
export function meanRequests(candidates: readonly Candidate[]): Amounts {
  const total: Amounts = new Map();
  let count = 0n;
  for (const { reschedulablePods } of candidates)
    for (const { spec, status } of reschedulablePods) {
      addTo(total, podRequests(spec, status));
      count++;
    }
  return new Map([...total].map(([name, nano]) => [name, count === 0n ? 0n : nano / count]));
}

/** The same cluster, where a share of these amounts of each machine to be bought is left free. */
export function withHeadroom(problem: Problem, amounts: Amounts, share: number): Problem {
  const reserved: [string, bigint][] = [...amounts].map(([name, nano]) => [name, scaled(nano, share)]);
  const roomy = (type: InstanceTypeSpec): InstanceTypeSpec => ({
    ...type,
    overhead: { ...type.overhead, systemReserved: sum(type.overhead?.systemReserved, reserved) },
  });
  // Pools often sell the same list.
  const lists = new Map<readonly InstanceTypeSpec[], readonly InstanceTypeSpec[]>();
  const instanceTypes = Object.entries(problem.instanceTypes).map(([pool, types]) => {
    const list = lists.get(types) ?? types.map(roomy);
    lists.set(types, list);
    return [pool, list] as const;
  });
  return { ...problem, instanceTypes: Object.fromEntries(instanceTypes) };
}

function scaled(nano: bigint, share: number): bigint {
  return (nano * BigInt(Math.round(share * 1000))) / 1000n;
}

function sum(list: ResourceList | undefined, more: readonly (readonly [string, bigint])[]): ResourceList {
  const total: Record<string, string | number> = { ...list };
  for (const [name, nano] of more)
    total[name] = Quantity.fromNano(Quantity.parse(total[name] ?? 0).nano + nano, 'DecimalSI').toString();
  return total;
}
