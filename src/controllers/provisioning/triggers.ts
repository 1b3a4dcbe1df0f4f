// SPDX-License-Identifier: Apache-2.0
// What makes the provisioner look: a pod that waits for a node, and a node that is about to lose its pods. Each is told
// again every ten seconds while it lasts, so that a pass that could not help is followed by another.
import { disruptedTaint, isSameTaint } from '../../api/taints.ts';
import type { Clock } from '../../base/clock.ts';
import type { Node } from '../../kube/kinds.ts';
import { Controller } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import { isProvisionable } from '../../state/pod-predicates.ts';
import type { Batcher } from './batcher.ts';

export interface TriggerOptions {
  readonly state: ClusterState;
  readonly batcher: Batcher;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
}

const again = { requeueAfterMs: 10_000 } as const;

/** Watches pods of the workload cluster. */
export function podTrigger({ state, batcher, clock, log, metrics }: TriggerOptions): Controller {
  const { pods } = state.sources;
  return new Controller({
    name: 'provisioner.trigger.pod',
    kind: 'Pod',
    clock,
    log,
    metrics,
    maxConcurrent: 10,
    reconciler: {
      reconcile: (key) => {
        const pod = pods.get(key);
        if (!pod || !isProvisionable(pod)) return Promise.resolve();
        const uid = pod.metadata.uid ?? key;
        batcher.trigger(uid);
        state.bookkeeping.acknowledge(uid);
        return Promise.resolve(again);
      },
    },
  }).watch(pods, { when: isProvisionable, whenGone: false });
}

/** Watches nodes of the workload cluster. */
export function nodeTrigger({ state, batcher, clock, log, metrics }: TriggerOptions): Controller {
  const { nodes } = state.sources;
  return new Controller({
    name: 'provisioner.trigger.node',
    kind: 'Node',
    clock,
    log,
    metrics,
    maxConcurrent: 10,
    reconciler: {
      reconcile: (key) => {
        const node = nodes.get(key);
        if (!node || !isBeingDisrupted(node)) return Promise.resolve();
        batcher.trigger(node.metadata.uid ?? key);
        return Promise.resolve(again);
      },
    },
  }).watch(nodes, { when: isBeingDisrupted, whenGone: false });
}

function isBeingDisrupted(node: Node): boolean {
  return node.spec?.taints?.some((taint) => isSameTaint(taint, disruptedTaint)) ?? false;
}
