// SPDX-License-Identifier: Apache-2.0
// The clouds that a world can have, by name.
import { scriptedCloud } from '../cloud/scripted-cloud.ts';
import type { SimulatedCloud, StoredCloudParts } from '../contract.ts';
import { clusterApiCloud } from './cluster-api-cloud.ts';
import { kwokCloud } from './kwok-cloud.ts';
import { linodeCloud } from './linode-cloud.ts';

/** Few types and none small: some thirty nodes for some three hundred pods. */
const market = { cpus: [4, 8], reserved: { cpus: 8, count: 3 } };

const known = {
  scripted: (parts: StoredCloudParts) => scriptedCloud(parts, market),
  kwok: kwokCloud,
  'cluster-api': clusterApiCloud,
  linode: (parts: StoredCloudParts) => linodeCloud(parts, 'lke'),
  'linode-shared': (parts: StoredCloudParts) => linodeCloud(parts, 'shared'),
  'linode-instance': (parts: StoredCloudParts) => linodeCloud(parts, 'instance'),
} satisfies Readonly<Record<string, (parts: StoredCloudParts) => SimulatedCloud>>;

export type CloudName = keyof typeof known;

/** What a world has unless its scenario says otherwise. */
export const usualClouds = ['scripted', 'kwok'] as const satisfies readonly CloudName[];

/** Builds a cloud. Nothing of it runs before it is furnished. */
export function cloudNamed(name: CloudName, parts: StoredCloudParts): SimulatedCloud {
  return known[name](parts);
}
