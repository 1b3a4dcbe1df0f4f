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
    for (const condition of spec?.checks?.unhealthyNodeConditions ?? spec?.unhealthyConditions ?? []) {
      const policy = policyOf(condition);
      if (!policy) continue;
      const known = told.get(keyOf(policy));
      if (!known || known.tolerationMs < policy.tolerationMs) told.set(keyOf(policy), policy);
    }
  }
  return [...usual.filter((policy) => !told.has(keyOf(policy))), ...told.values()];
}

function keyOf({ conditionType, conditionStatus }: RepairPolicy): string {
  return `${conditionType}=${conditionStatus}`;
}

/** undefined for what cannot be read: the check is Cluster API's to complain about. */
function policyOf({ type, status, timeout, timeoutSeconds }: UnhealthyCondition): RepairPolicy | undefined {
  const tolerationMs = timeoutSeconds === undefined ? readDuration(timeout ?? '') : timeoutSeconds * 1000;
  if (!type || (status !== 'True' && status !== 'False' && status !== 'Unknown') || !tolerationMs) return;
  return { conditionType: type, conditionStatus: status, tolerationMs };
}

function readDuration(text: string): number | undefined {
  try {
    return parseDuration(text);
  } catch {
    return undefined;
  }
}
