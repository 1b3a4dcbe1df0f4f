// SPDX-License-Identifier: Apache-2.0
// Tags that come after the launch: the name of the Node, and those of the LinodeNodeClass, also when they change. And what
// a machine only needed until its Node was there is taken back. Reads NodeClaims and NodeClasses, writes annotations of
// NodeClaims in the cluster `karpenter`.
import { getCondition, nodeClaimConditions } from '../../api/conditions.ts';
import { linodeNodeClassKind } from '../../api/linode-node-class.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock } from '../../base/clock.ts';
import { deepEqual } from '../../base/freeze.ts';
import { isNodeClaimNotFound } from '../../cloud/errors.ts';
import { ignoreNotFound } from '../../kube/api-error.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import { Controller, type Result } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Machines } from './machines.ts';
import { linodeAnnotations, linodeIdOf, tagKeys, tagOf } from './names.ts';

export interface TaggingOptions {
  readonly machines: Machines;
  /** Where NodeClaims and NodeClasses live. */
  readonly karpenter: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

/** How often tags are looked at that nobody here has changed: somebody else may have. */
const againMs = 10 * 60_000;

/** The controller `linode.tagging`. Events of a NodeClaim whose tags are as they should be cost no call. */
export function taggingController({ machines, karpenter, clock, log, metrics }: TaggingOptions): Controller {
  const claims = karpenter.informers.get(nodeClaimKind);
  const classes = karpenter.informers.get(linodeNodeClassKind);
  /** When the tags of a NodeClaim's machine were seen to be right. */
  const seenAt = new Map<string, number>();

  const reconcile = async (name: string, signal: AbortSignal): Promise<Result | void> => {
    const claim = claims.get(name);
    if (!claim || !isRunning(claim)) {
      seenAt.delete(name);
      return;
    }
    const nodeClass = classes.get(claim.spec.nodeClassRef.name);
    if (!nodeClass) return;
    const { annotations = {} } = claim.metadata;
    const wanted = [...(nodeClass.spec?.tags ?? [])].sort();
    const applied = appliedTags(annotations[linodeAnnotations.appliedTags]);
    const isInitialized = getCondition(claim, nodeClaimConditions.initialized)?.status === 'True';
    const isTagged = annotations[linodeAnnotations.tagged] === 'true' && deepEqual(wanted, applied);
    if (!isInitialized) return;
    const restMs = againMs - (clock.monotonic() - (seenAt.get(name) ?? Number.NEGATIVE_INFINITY));
    if (isTagged && restMs > 0) return { requeueAfterMs: restMs };
    try {
      await machines.tag(
        claim,
        {
          add: [tagOf(tagKeys.name, claim.status?.nodeName ?? ''), ...wanted],
          remove: applied.filter((tag) => !wanted.includes(tag)),
        },
        signal,
      );
      if (!isTagged) await machines.settle(claim, signal);
    } catch (error) {
      // Whoever collects garbage sees it too.
      if (isNodeClaimNotFound(error)) return;
      throw error;
    }
    seenAt.set(name, clock.monotonic());
    if (isTagged) return { requeueAfterMs: againMs };
    const patch = {
      [linodeAnnotations.tagged]: 'true',
      [linodeAnnotations.appliedTags]: JSON.stringify(wanted),
    };
    const client = karpenter.client.resource(nodeClaimKind);
    await ignoreNotFound(client.patch(name, { metadata: { annotations: patch } }, { signal }));
    return { requeueAfterMs: againMs };
  };

  const controller = new Controller({
    name: 'linode.tagging',
    kind: 'NodeClaim',
    clock,
    log,
    metrics,
    maxConcurrent: 5,
    reconciler: { reconcile },
  })
    .watch(claims, { when: isRunning })
    .requires(classes);
  classes.addHandler({
    updated: (nodeClass, old) => {
      if (deepEqual(nodeClass.spec?.tags ?? [], old?.spec?.tags ?? [])) return;
      for (const { metadata, spec } of claims.list()) {
        if (spec.nodeClassRef.name === nodeClass.metadata.name) controller.enqueue(metadata.name ?? '');
      }
    },
  });
  return controller;
}

/** It has a machine of ours and a Node, and is not on its way out. */
function isRunning({ spec, status, metadata }: NodeClaim): boolean {
  return (
    spec.nodeClassRef.group === linodeNodeClassKind.group &&
    metadata.deletionTimestamp === undefined &&
    linodeIdOf(status?.providerID ?? '') !== undefined &&
    (status?.nodeName ?? '') !== ''
  );
}

/** What the annotation says; nothing where somebody wrote nonsense into it. */
function appliedTags(text: string | undefined): string[] {
  try {
    const value: unknown = JSON.parse(text ?? '[]');
    return Array.isArray(value) ? value.filter((tag) => typeof tag === 'string').sort() : [];
  } catch {
    return [];
  }
}
