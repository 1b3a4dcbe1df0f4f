// SPDX-License-Identifier: Apache-2.0
// The CRDs of the kinds we ship, as plain JSON: what `crds/` holds as YAML and the embedded cluster installs.
import { capacityBufferKind } from './capacity-buffer.ts';
import { clusterApiNodeClassKind } from './cluster-api-node-class.ts';
import { type CustomResourceDefinition, crdOf, type Kind } from './kind.ts';
import { kwokNodeClassKind } from './kwok-node-class.ts';
import { linodeNodeClassKind } from './linode-node-class.ts';
import { nodeClaimKind } from './node-claim.ts';
import { nodeOverlayKind } from './node-overlay.ts';
import { nodePoolKind } from './node-pool.ts';

export type { CustomResourceDefinition };

/** Every kind defined here, in the order of the reference. Kinds of other clouds live with their provider. */
export const apiKinds: readonly Kind[] = [
  nodePoolKind,
  nodeClaimKind,
  nodeOverlayKind,
  capacityBufferKind,
  kwokNodeClassKind,
  clusterApiNodeClassKind,
  linodeNodeClassKind,
];

/** Their CRDs. New objects on every call. */
export function allCrds(): CustomResourceDefinition[] {
  return apiKinds.map(crdOf);
}
