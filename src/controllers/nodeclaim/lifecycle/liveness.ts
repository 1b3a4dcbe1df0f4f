// SPDX-License-Identifier: Apache-2.0
// Liveness: a NodeClaim that does not become a node in time is given up. Times count from the conditions' last change.
import { nodeClaimConditions } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { planted } from '../../../base/defects.ts';
import { formatDuration, parseTime } from '../../../kube/time.ts';
import type { Result } from '../../../runtime/controller.ts';
import type { Logger } from '../../../runtime/logging.ts';
import { againAtWallTime } from '../../wall-time.ts';
import type { ControllerContext } from '../context.ts';
import type { Draft } from '../draft.ts';
import { disruptedLabels, nodeClaimMetrics } from '../metrics.ts';
import { recordFailure } from './registration-outcome.ts';

/** How long a cloud may take to launch a machine. */
export const launchTimeoutMs = 5 * 60_000;
/** How long a machine may take to become a node. */
export const registrationTimeoutMs = 15 * 60_000;

export interface LivenessStep {
  readonly context: ControllerContext;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** Deletes the NodeClaim when its time is over; otherwise says when to look again. */
export async function checkLiveness(draft: Draft<NodeClaim>, step: LivenessStep): Promise<Result> {
  const { launched, registered } = nodeClaimConditions;
  if (draft.isTrue(registered) || planted('waits-for-ever')) return {};
  const waits = [
    { type: launched, timeoutMs: launchTimeoutMs, reason: 'launch_timeout' },
    { type: registered, timeoutMs: registrationTimeoutMs, reason: 'registration_timeout' },
  ] as const;
  let requeueAfterMs = Number.POSITIVE_INFINITY;
  for (const { type, timeoutMs, reason } of waits) {
    if (draft.isTrue(type)) continue;
    const since = draft.condition(type)?.lastTransitionTime;
    const leftMs = since === undefined ? timeoutMs : parseTime(since) + timeoutMs - step.context.clock.now();
    if (leftMs <= 0) {
      await giveUp(draft.object, timeoutMs, reason, step);
      return {};
    }
    requeueAfterMs = Math.min(requeueAfterMs, leftMs);
  }
  return againAtWallTime(requeueAfterMs);
}

async function giveUp(
  claim: NodeClaim,
  timeoutMs: number,
  reason: 'launch_timeout' | 'registration_timeout',
  { context, log, signal }: LivenessStep,
): Promise<void> {
  await recordFailure(context, claim, signal);
  if (!(await context.claims.delete(claim, signal))) return;
  log.debug('terminating due to timeout', { timeout: formatDuration(timeoutMs), reason });
  context.metrics.counter(nodeClaimMetrics.disrupted).inc(disruptedLabels(reason, claim, context.poolOf(claim)));
}
