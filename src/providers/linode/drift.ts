// SPDX-License-Identifier: Apache-2.0
// Why a machine is no longer what its NodeClass asks for: by what its node pool or Linode really is.
import { labels } from '../../api/labels.ts';
import type { LinodeNodeClassSpec } from '../../api/linode-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { LinodeInstance } from './api-types.ts';
import type { OwnPool } from './pools.ts';

export const driftReasons = {
  nodeClass: 'NodeClassDrift',
  type: 'InstanceTypeDrift',
  firewall: 'FirewallDrift',
  version: 'VersionDrift',
  image: 'ImageDrift',
  disk: 'DiskEncryptionDrift',
  placementGroup: 'PlacementGroupDrift',
  /** Taints, labels or the count of a node pool were changed by hand. */
  pool: 'NodePoolDrift',
} as const;

type Check = readonly [wanted: string | number | undefined, found: string | number | null | undefined, reason: string];

/** The first that differs. What nobody asked for, and what Linode says nothing about, does not. */
function firstOf(checks: readonly Check[]): string {
  return checks.find(([wanted, found]) => wanted !== undefined && found != null && wanted !== found)?.[2] ?? '';
}

export function poolDrift(pool: OwnPool, claim: NodeClaim, spec: LinodeNodeClassSpec): string {
  const reason = firstOf([
    [claim.metadata.labels?.[labels.instanceType], pool.type, driftReasons.type],
    [spec.firewallID, pool.firewall_id, driftReasons.firewall],
    [spec.lkeK8sVersion, pool.k8s_version, driftReasons.version],
    [spec.diskEncryption, pool.disk_encryption, driftReasons.disk],
  ]);
  if (reason !== '') return reason;
  if (pool.members) return lacksTaint(pool, claim) || hasOtherLabels(pool, claim) ? driftReasons.pool : '';
  if (pool.claimUid === undefined) return '';
  return pool.count > 1 || lacksTaint(pool, claim) ? driftReasons.pool : '';
}

/** The labels of a shared pool were changed by hand: its next nodes would be others than those it has. */
function hasOtherLabels(pool: OwnPool, { metadata }: NodeClaim): boolean {
  return Object.entries(pool.labels ?? {}).some(([key, value]) => metadata.labels?.[key] !== value);
}

function lacksTaint({ taints }: OwnPool, { spec }: NodeClaim): boolean {
  return (spec.taints ?? []).some(
    ({ key, value = '', effect }) =>
      !(taints ?? []).some((have) => have.key === key && (have.value ?? '') === value && have.effect === effect),
  );
}

/** But for the firewall, which costs a call of its own. */
export function linodeDrift(
  linode: LinodeInstance,
  claim: NodeClaim,
  spec: LinodeNodeClassSpec & { readonly image: string },
): string {
  return firstOf([
    [claim.metadata.labels?.[labels.instanceType], linode.type, driftReasons.type],
    [spec.image, linode.image, driftReasons.image],
    [spec.placementGroup?.id, linode.placement_group?.id ?? 0, driftReasons.placementGroup],
    [spec.diskEncryption, linode.disk_encryption, driftReasons.disk],
  ]);
}
