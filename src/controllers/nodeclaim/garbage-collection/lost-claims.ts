// SPDX-License-Identifier: Apache-2.0
// NodeClaims whose machine is gone: somebody removed it behind our back, or the cloud took it.
import { hasTrueConditions, nodeClaimConditions } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { planted } from '../../../base/defects.ts';
import { isNodeClaimNotFound } from '../../../cloud/errors.ts';
import type { CloudProvider, Instance } from '../../../cloud/provider.ts';
import { type Logger, objectField } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import { disruptedLabels, nodeClaimMetrics } from '../metrics.ts';
import { inParallel } from './in-parallel.ts';

const parallel = 20;

interface Round {
  readonly context: ControllerContext;
  readonly cloud: CloudProvider;
  readonly claims: readonly NodeClaim[];
  readonly instances: readonly Instance[];
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Deletes registered NodeClaims whose machine is gone, unless their Node still says that it is ready. Those that have
 * not registered have their own time limit.
 */
export async function collectClaims(round: Round): Promise<void> {
  const present = new Set(round.instances.filter(({ deleting }) => !deleting).map(({ providerID }) => providerID));
  const lost = round.claims.filter(
    (claim) =>
      claim.metadata.deletionTimestamp === undefined &&
      hasTrueConditions(claim, nodeClaimConditions.registered) &&
      !present.has(claim.status?.providerID ?? ''),
  );
  if (!planted('forgets-lost-machines')) await inParallel(lost, parallel, (claim) => collectClaim(claim, round));
}

async function collectClaim(claim: NodeClaim, { context, cloud, signal, log }: Round): Promise<void> {
  if (context.nodesOf(claim).some(isReady) || !(await isGone(claim, cloud, signal))) return;
  if (!(await context.claims.delete(claim, signal))) return;
  const { providerID, nodeName = '' } = claim.status ?? {};
  log.debug('garbage collecting nodeclaim with no cloudprovider representation', {
    ...objectField(claim, 'NodeClaim'),
    Node: { name: nodeName },
    'provider-id': providerID,
  });
  context.metrics
    .counter(nodeClaimMetrics.disrupted)
    .inc(disruptedLabels('garbage_collected', claim, context.poolOf(claim)));
}

/** A list may leave out what it could not read; the machine itself is asked for before its NodeClaim goes. */
async function isGone(claim: NodeClaim, cloud: CloudProvider, signal: AbortSignal): Promise<boolean> {
  try {
    return (await cloud.get(claim.status?.providerID ?? '', signal)).deleting === true;
  } catch (error) {
    if (isNodeClaimNotFound(error)) return true;
    throw error;
  }
}

function isReady(node: { status?: { conditions?: { type: string; status: string }[] } }): boolean {
  return node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}
