// SPDX-License-Identifier: Apache-2.0
// Whether a node has been quiet for as long as its NodePool asks: the condition Consolidatable.
import { nodeClaimConditions, trueCondition } from '../../../api/conditions.ts';
import { DurationError, durationMs } from '../../../api/duration.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { parseTime } from '../../../kube/time.ts';
import type { ReconcileContext, Result } from '../../../runtime/controller.ts';
import { againAtWallTime } from '../../wall-time.ts';
import type { Draft } from '../draft.ts';

const { initialized, consolidatable } = nodeClaimConditions;

/** Sets or clears Consolidatable; when it is too early, says when it is time. */
export function checkConsolidatable(
  draft: Draft<NodeClaim>,
  pool: NodePool,
  now: number,
  run: Pick<ReconcileContext, 'log'>,
): Result {
  const clear = (reason: string): Result => {
    if (draft.clear(consolidatable)) run.log.debug('removing consolidatable status condition', { reason });
    return {};
  };
  if (pool.spec.replicas !== undefined) return clear('the nodepool is static');
  const afterMs = quietTimeOf(pool);
  if (afterMs === undefined) return clear('consolidation is disabled');
  const ready = draft.condition(initialized);
  if (ready?.status !== 'True') return clear("nodeclaim isn't initialized");
  const since = parseTime(draft.object.status?.lastPodEventTime ?? ready.lastTransitionTime);
  const leftMs = since + afterMs - now;
  if (leftMs > 0) {
    clear('consolidateAfter window not yet elapsed');
    return againAtWallTime(leftMs);
  }
  if (draft.set(trueCondition(consolidatable))) run.log.debug('marking consolidatable');
  return {};
}

/** How long a node must have been quiet; undefined when that is never, also because the time cannot be counted. */
export function quietTimeOf(pool: NodePool): number | undefined {
  try {
    return durationMs(pool.spec.disruption?.consolidateAfter ?? '0s');
  } catch (error) {
    if (error instanceof DurationError) return undefined;
    throw error;
  }
}
