// SPDX-License-Identifier: Apache-2.0
// Puts the label that names the NodeClass on NodeClaims that lack it: those that a person wrote, and old ones. Reads and
// writes NodeClaims in the cluster `karpenter`.
import { nodeClassLabel } from '../../../api/labels.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../context.ts';

/** The controller `nodeclaim.hydration`. */
export function nodeClaimHydrationController(context: ControllerContext): Controller {
  const { claims } = context;
  const controller = context.controller({
    name: 'nodeclaim.hydration',
    kind: 'NodeClaim',
    concurrent: [1000, 5000],
    reconciler: {
      async reconcile(key, signal) {
        const claim = context.claim(key);
        if (!claim) return;
        const { nodeClassRef } = claim.spec;
        const labels = { ...claim.metadata.labels, [nodeClassLabel(nodeClassRef)]: nodeClassRef.name };
        await claims.patch(claim, { ...claim, metadata: { ...claim.metadata, labels } }, { signal });
      },
    },
  });
  return controller.watch(claims.informer, {
    when: ({ metadata, spec }, old) =>
      old === undefined || metadata.labels?.[nodeClassLabel(spec.nodeClassRef)] !== spec.nodeClassRef.name,
  });
}
