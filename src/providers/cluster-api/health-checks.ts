// SPDX-License-Identifier: Apache-2.0
// MachineHealthChecks say when a machine of Cluster API counts as broken. Where nodes are repaired, they go by the same.
import type { RepairPolicy } from '../../cloud/provider.ts';
import type { KubeObject } from '../../kube/object.ts';
import { parseDuration } from '../../kube/time.ts';
import type { Scalable } from './kinds.ts';
import { memberLabel } from './names.ts';

interface UnhealthyCondition {
  readonly type?: string;
  readonly status?: string;
  /** v1beta1 */
  readonly timeout?: string;
  /** v1beta2 */
  readonly timeoutSeconds?: number;
}

export interface MachineHealthCheck extends KubeObject {
  readonly spec?: {
    readonly clusterName?: string;
    readonly unhealthyConditions?: readonly UnhealthyCondition[];
    readonly checks?: { readonly unhealthyNodeConditions?: readonly UnhealthyCondition[] };
  };
}

/**
 * The usual policies, and those of the MachineHealthChecks of the Clusters that members belong to. What both speak of goes by
 * the check; where several do, by the most patient.
 */
export function repairPoliciesOf(
  usual: readonly RepairPolicy[],
  checks: readonly MachineHealthCheck[],
  members: readonly Scalable[],
): RepairPolicy[] {
  const clusters = new Set(
    members.filter(({ metadata }) => metadata.labels?.[memberLabel] !== undefined).map(({ spec }) => spec?.clusterName),
  );
  const told = new Map<string, RepairPolicy>();
  for (const { spec } of checks) {
    if (!clusters.has(spec?.clusterName)) continue;
    for (const condition of conditionsOf(spec)) {
      const policy = policyOf(condition);
      if (!policy) continue;
      const known = told.get(keyOf(policy));
      if (!known || known.tolerationMs < policy.tolerationMs) told.set(keyOf(policy), policy);
    }
  }
  return [...usual.filter((policy) => !told.has(keyOf(policy))), ...told.values()];
}

/** One that another version or a damaged object holds instead of a list is none. */
function conditionsOf(spec: MachineHealthCheck['spec']): readonly UnhealthyCondition[] {
  const told: unknown = spec?.checks?.unhealthyNodeConditions ?? spec?.unhealthyConditions;
  return Array.isArray(told) ? told.filter((each) => typeof each === 'object' && each !== null) : [];
}

function keyOf({ conditionType, conditionStatus }: RepairPolicy): string {
  return `${conditionType}=${conditionStatus}`;
}

/** undefined for what cannot be read: the check is Cluster API's to complain about. */
function policyOf({ type, status, timeout, timeoutSeconds }: UnhealthyCondition): RepairPolicy | undefined {
  const tolerationMs = typeof timeoutSeconds === 'number' ? timeoutSeconds * 1000 : readDuration(timeout);
  if (typeof type !== 'string' || type === '' || !tolerationMs || tolerationMs < 0) return;
  if (status !== 'True' && status !== 'False' && status !== 'Unknown') return;
  return { conditionType: type, conditionStatus: status, tolerationMs };
}

function readDuration(text: unknown): number | undefined {
  if (typeof text !== 'string') return undefined;
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}
