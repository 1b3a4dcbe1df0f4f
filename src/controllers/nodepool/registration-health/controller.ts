// SPDX-License-Identifier: Apache-2.0
// Keeps the memory of registrations in step with NodePools: filled from their condition after a restart, begun anew when
// the NodePool or its NodeClass changed. Reads NodeClasses, writes NodePools in the cluster `karpenter`.
import { nodePoolConditions, unknownCondition } from '../../../api/conditions.ts';
import type { Controller } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

const { nodeRegistrationHealthy } = nodePoolConditions;

/** The controller `nodepool.registrationhealth`. */
export function registrationHealthController(context: ControllerContext): Controller {
  const { pools, poolHealth } = context;
  pools.informer.addHandler({ deleted: (pool) => poolHealth.forget(pool.metadata.uid ?? '') });
  const controller = context.controller({
    name: 'nodepool.registrationhealth',
    kind: 'NodePool',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal) {
        const pool = context.pool(key);
        const nodeClass = pool && context.nodeClass(pool.spec.template.spec.nodeClassRef);
        if (!pool || !nodeClass) return;
        const uid = pool.metadata.uid ?? '';
        const draft = context.draftOfPool(pool);
        const condition = draft.condition(nodeRegistrationHealthy);
        if (poolHealth.of(uid) === 'unknown' && condition && condition.status !== 'Unknown') {
          poolHealth.reset(uid, condition.status === 'True' ? 'healthy' : 'unhealthy');
        }
        const generation = nodeClass.metadata.generation ?? 0;
        const outdated =
          pool.status?.nodeClassObservedGeneration !== generation ||
          condition?.observedGeneration !== pool.metadata.generation;
        if (outdated) {
          draft.set(unknownCondition(nodeRegistrationHealthy));
          const { status } = draft.object;
          draft.replace({ ...draft.object, status: { ...status, nodeClassObservedGeneration: generation } });
          if (!(await draft.save(pools, signal))) return;
          // Only now: a conflict must not let the old verdict come back as news.
          poolHealth.reset(uid, 'unknown');
        }
      },
    },
  });
  for (const nodeClasses of context.nodeClasses) {
    controller.watch(nodeClasses, { keys: (nodeClass) => context.poolsOfNodeClass(nodeClass) });
  }
  return controller.watch(pools.informer);
}
