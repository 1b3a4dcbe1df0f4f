// SPDX-License-Identifier: Apache-2.0
// Brings back machines that were launched before a restart and whose Nodes had not appeared by then.
import { nodeClaimConditions } from '../../api/conditions.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock } from '../../base/clock.ts';
import type { ResourceType } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { Controller } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { providerScheme } from './machine.ts';
import type { KwokProvider } from './provider.ts';

export interface ResumptionOptions {
  readonly provider: KwokProvider;
  /** Where NodeClaims live. */
  readonly karpenter: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** The controller `kwok.resumption`: looks at each NodeClaim that has a machine of ours and no Node yet. */
export function resumptionController({ provider, karpenter, clock, log, metrics }: ResumptionOptions): Controller {
  const claims = karpenter.informers.get(nodeClaimKind as ResourceType<NodeClaim>);
  return new Controller({
    name: 'kwok.resumption',
    kind: 'NodeClaim',
    clock,
    log,
    metrics,
    maxConcurrent: 10,
    reconciler: {
      async reconcile(name, signal) {
        const claim = claims.get(name);
        if (claim && waitsForNode(claim)) await provider.resume(claim, signal);
      },
    },
  }).watch(claims, { when: (claim, old) => old === undefined && waitsForNode(claim) });
}

function waitsForNode(claim: NodeClaim): boolean {
  const registered = claim.status?.conditions?.find(({ type }) => type === nodeClaimConditions.registered);
  return (
    claim.status?.providerID?.startsWith(providerScheme) === true &&
    registered?.status !== 'True' &&
    claim.metadata.deletionTimestamp === undefined
  );
}
