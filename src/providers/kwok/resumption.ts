// SPDX-License-Identifier: Apache-2.0
// What runs beside the KWOK provider: machines that were launched before a restart, and whose Nodes had not appeared by
// then, are brought back; at the end nobody waits for machines any more.
import { nodeClaimConditions } from '../../api/conditions.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock } from '../../base/clock.ts';
import type { ResourceType } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { aborted, Controller } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Runnable } from '../../runtime/manager.ts';
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

/** All that runs beside the provider for as long as the process leads. */
export function kwokRunnables(options: ResumptionOptions): readonly Runnable[] {
  const machines: Runnable = {
    name: 'kwok.machines',
    async start(signal) {
      await aborted(signal);
      // A machine that waits for its Node would keep the process alive after everything else has stopped.
      options.provider.close();
    },
  };
  return [resumptionController(options), machines];
}

/** The controller `kwok.resumption`: looks at each NodeClaim that has a machine of ours and no Node yet. */
function resumptionController({ provider, karpenter, clock, log, metrics }: ResumptionOptions): Controller {
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
