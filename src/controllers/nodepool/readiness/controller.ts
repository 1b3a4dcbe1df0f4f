// SPDX-License-Identifier: Apache-2.0
// A NodePool is as ready as its NodeClass: the condition NodeClassReady. Reads the NodeClasses of all providers, writes
// NodePools in the cluster `karpenter`.
import {
  type ConditionUpdate,
  falseCondition,
  getCondition,
  nodePoolConditions,
  readyCondition,
  trueCondition,
} from '../../../api/conditions.ts';
import type { KubeObject } from '../../../kube/object.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

const { nodeClassReady } = nodePoolConditions;

/** The controller `nodepool.readiness`. */
export function readinessController(context: ControllerContext): Controller {
  const { pools } = context;
  const controller = context.controller({
    name: 'nodepool.readiness',
    kind: 'NodePool',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal) {
        const pool = context.pool(key);
        if (!pool) return;
        const draft = context.draftOfPool(pool);
        draft.set(readinessOf(context.nodeClass(pool.spec.template.spec.nodeClassRef)));
        if (draft.changed) await draft.save(pools, signal);
      },
    },
  });
  for (const nodeClasses of context.nodeClasses) {
    controller.watch(nodeClasses, { keys: (nodeClass) => context.poolsOfNodeClass(nodeClass) });
  }
  return controller.watch(pools.informer);
}

function readinessOf(nodeClass: KubeObject | undefined): ConditionUpdate {
  if (!nodeClass) return falseCondition(nodeClassReady, 'NodeClassNotFound', 'the NodeClass does not exist');
  if (nodeClass.metadata.deletionTimestamp !== undefined)
    return falseCondition(nodeClassReady, 'NodeClassTerminating', 'the NodeClass is being deleted');
  const ready = getCondition(nodeClass, readyCondition);
  if (ready?.status === 'True') return trueCondition(nodeClassReady);
  if (ready?.status === 'False')
    return falseCondition(nodeClassReady, ready.reason || 'NodeClassNotReady', ready.message ?? '');
  return falseCondition(nodeClassReady, 'NodeClassReadinessUnknown', 'the NodeClass does not say whether it is ready');
}
