// SPDX-License-Identifier: Apache-2.0
// Puts the label that names the NodeClass on Nodes of ours that lack it: by it a Node is known as ours. Reads NodeClaims
// in the cluster `karpenter`, writes Nodes in `workload`.
import { labels, nodeClassLabel } from '../../../api/labels.ts';
import { deepEqual } from '../../../base/freeze.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

/** The controller `node.hydration`. */
export function nodeHydrationController(context: ControllerContext): Controller {
  const { claims, nodes } = context;
  const controller = context.controller({
    name: 'node.hydration',
    kind: 'Node',
    concurrent: [1000, 5000],
    reconciler: {
      async reconcile(key, signal) {
        const node = nodes.get(key);
        // Registration brings all labels; before it a Node is left alone.
        if (!node || node.metadata.labels?.[labels.registered] !== 'true') return;
        const [claim, another] = context.claimsOf(node);
        if (!claim || another) return;
        const { nodeClassRef } = claim.spec;
        const hydrated = { ...node.metadata.labels, [nodeClassLabel(nodeClassRef)]: nodeClassRef.name };
        await nodes.patch(node, { ...node, metadata: { ...node.metadata, labels: hydrated } }, { signal });
      },
    },
  });
  controller.watch(nodes.informer, {
    when: (node, old) => old === undefined || !deepEqual(node.metadata.labels, old.metadata.labels),
  });
  return controller.watch(claims.informer, {
    keys: (claim) => context.nodesOf(claim).map(keyOf),
    when: (claim, old) => old === undefined || claim.status?.providerID !== old.status?.providerID,
  });
}
