// SPDX-License-Identifier: Apache-2.0
// Why a machine is no longer what its NodeClass asks for.

export const driftReasons = {
  nodeClass: 'NodeClassDrift',
  type: 'InstanceTypeDrift',
  firewall: 'FirewallDrift',
  version: 'VersionDrift',
  image: 'ImageDrift',
  disk: 'DiskEncryptionDrift',
  placementGroup: 'PlacementGroupDrift',
  /** Labels, taints or the count of a node pool were changed by hand. */
  pool: 'NodePoolDrift',
} as const;
