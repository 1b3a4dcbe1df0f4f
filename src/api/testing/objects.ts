// SPDX-License-Identifier: Apache-2.0
// Builders of our kinds for tests: valid by default, any part replaceable.
import type { NodeClaim, NodeClaimSpec } from '../node-claim.ts';
import type { NodeOverlay, NodeOverlaySpec } from '../node-overlay.ts';
import type { NodeClaimTemplateSpec, NodePool, NodePoolSpec } from '../node-pool.ts';

const kwokRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' };

/** A dynamic pool of the pretended cloud. `spec` replaces parts of the spec, `template` parts of the template's spec. */
export function nodePool(
  options: {
    name?: string;
    labels?: Record<string, string>;
    spec?: Partial<NodePoolSpec>;
    template?: Partial<NodeClaimTemplateSpec>;
  } = {},
): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: options.name ?? 'default', generation: 1 },
    spec: {
      template: {
        ...(options.labels && { metadata: { labels: options.labels } }),
        spec: { nodeClassRef: { ...kwokRef }, requirements: [], ...options.template },
      },
      ...options.spec,
    },
  };
}

/** A claim for any machine of the pretended cloud. */
export function nodeClaim(options: { name?: string; spec?: Partial<NodeClaimSpec> } = {}): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: options.name ?? 'default-1', generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: { nodeClassRef: { ...kwokRef }, requirements: [], ...options.spec },
  };
}

/** An overlay that changes nothing yet. */
export function nodeOverlay(options: { name?: string; spec?: Partial<NodeOverlaySpec> } = {}): NodeOverlay {
  return {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name: options.name ?? 'default', generation: 1 },
    spec: { requirements: [], ...options.spec },
  };
}
