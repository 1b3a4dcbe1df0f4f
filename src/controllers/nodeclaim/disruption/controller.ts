// SPDX-License-Identifier: Apache-2.0
// Says which NodeClaims may be disrupted: the conditions Drifted and Consolidatable. Reads NodePools and NodeClasses and
// writes NodeClaims in the cluster `karpenter`. Pods come in through `status.lastPodEventTime`.
import { nodeClaimConditions, trueCondition } from '../../../api/conditions.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import type { NodePool } from '../../../api/node-pool.ts';
import { wrap } from '../../../base/errors.ts';
import { deepEqual } from '../../../base/freeze.ts';
import { isNodeClaimNotFound } from '../../../cloud/errors.ts';
import type { CloudProvider } from '../../../cloud/provider.ts';
import { keyOf } from '../../../kube/object.ts';
import type { Controller, ReconcileContext, Result } from '../../../runtime/controller.ts';
import { type ControllerContext, refersTo } from '../context.ts';
import type { Draft } from '../draft.ts';
import { AskedLately, driftPeriodMs } from './asked-lately.ts';
import { checkConsolidatable } from './consolidatable.ts';
import { DriftFinder } from './drift.ts';

const name = 'nodeclaim.disruption';
const { launched, initialized, drifted, consolidatable } = nodeClaimConditions;

/** The controller `nodeclaim.disruption`. */
export function disruptionConditionsController(context: ControllerContext): Controller {
  const { claims, pools, clock } = context;
  const clouds = context.cloudsFor(name);
  const finder = new DriftFinder();
  const asked = new AskedLately(clock);
  claims.informer.addHandler({
    deleted: (claim) => {
      finder.forget(claim);
      asked.forget(claim);
    },
  });
  const controller = context.controller({
    name,
    kind: 'NodeClaim',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal, run) {
        const claim = context.claim(key);
        const pool = claim && context.poolOf(claim);
        if (!claim || !pool || claim.metadata.deletionTimestamp !== undefined) return {};
        const cloud = clouds.ofNodeClaim(claim)!;
        const draft = context.draftOfClaim(claim);
        const now = clock.now();
        const consolidation = checkConsolidatable(draft, pool, now, run);
        let failure: unknown;
        const question = { claim, pool, nodeClass: context.nodeClass(claim.spec.nodeClassRef) };
        const step = { finder, pool, cloud, now, run, signal };
        const known = asked.rest(question);
        const drift: Result =
          known ??
          (await checkDrift(draft, step).catch((error: unknown) => {
            failure = wrap('getting drift', error);
            return {};
          }));
        if (draft.changed) await draft.save(claims, signal);
        if (failure !== undefined) throw failure;
        if (!known && drift.requeueAfterMs !== undefined) asked.remember(question);
        return soonest(consolidation, drift);
      },
    },
  });
  controller.watch(claims.informer, { when: (claim, old) => old === undefined || !isAlike(claim, old) });
  controller.watch(pools.informer, {
    keys: (pool) => context.claimsOfPool(pool).map(keyOf),
    // The hash comes as an annotation, without a new generation.
    when: (pool, old) =>
      old === undefined ||
      pool.metadata.generation !== old.metadata.generation ||
      !deepEqual(pool.metadata.annotations, old.metadata.annotations),
  });
  for (const nodeClasses of context.nodeClasses) {
    controller.watch(nodeClasses, {
      keys: (nodeClass) =>
        claims.informer
          .list()
          .filter(({ spec }) => refersTo(spec.nodeClassRef, nodeClass))
          .map(keyOf),
    });
  }
  return controller;
}

/** Conditions of which it says what they are, or on which that depends. */
const lookedAt: ReadonlySet<string> = new Set([launched, initialized, drifted, consolidatable]);

/**
 * Whether two versions of a NodeClaim differ in nothing that is looked at here. What a cloud looks at for drift is in the
 * metadata, the spec and the first fields of the status; how a drain goes on, for one, is not.
 */
function isAlike(claim: NodeClaim, old: NodeClaim): boolean {
  const { conditions: are, ...status } = claim.status ?? {};
  const { conditions: were, ...before } = old.status ?? {};
  return (
    claim.metadata.deletionTimestamp === old.metadata.deletionTimestamp &&
    deepEqual(claim.metadata.labels, old.metadata.labels) &&
    deepEqual(claim.metadata.annotations, old.metadata.annotations) &&
    deepEqual(claim.spec, old.spec) &&
    deepEqual(status, before) &&
    deepEqual(are?.filter(isLookedAt), were?.filter(isLookedAt))
  );
}

function isLookedAt({ type }: { readonly type: string }): boolean {
  return lookedAt.has(type);
}

interface DriftStep {
  readonly finder: DriftFinder;
  readonly pool: NodePool;
  readonly cloud: CloudProvider;
  readonly now: number;
  readonly run: Pick<ReconcileContext, 'log'>;
  readonly signal: AbortSignal;
}

async function checkDrift(draft: Draft<NodeClaim>, step: DriftStep): Promise<Result> {
  const { finder, pool, cloud, now, run, signal } = step;
  if (!draft.isTrue(launched)) {
    if (draft.clear(drifted)) run.log.debug("removing drift status condition, isn't launched");
    return {};
  }
  let reason: string;
  try {
    reason = await finder.reason(draft.object, pool, cloud, now, signal);
  } catch (error) {
    // A machine that is gone cannot drift; garbage collection sees to its NodeClaim.
    if (isNodeClaimNotFound(error)) return {};
    throw error;
  }
  const known = draft.condition(drifted);
  if (reason === '') {
    if (draft.clear(drifted)) run.log.debug('removing drifted status condition, not drifted');
  } else {
    draft.set(trueCondition(drifted, reason, reason));
    if (!known) run.log.debug('marking drifted', { reason });
  }
  return { requeueAfterMs: driftPeriodMs };
}

function soonest(...results: readonly Result[]): Result {
  const requeueAfterMs = Math.min(...results.map((result) => result.requeueAfterMs ?? Number.POSITIVE_INFINITY));
  return Number.isFinite(requeueAfterMs) ? { requeueAfterMs } : {};
}
