// SPDX-License-Identifier: Apache-2.0
// Writes into each NodePool what its nodes have in sum, at the latest five seconds after it changed. Writes NodePools in
// the cluster `karpenter`.
import type { NodePool } from '../../../api/node-pool.ts';
import { deepEqual } from '../../../base/freeze.ts';
import type { Controller } from '../../../runtime/controller.ts';
import { formatAmounts, one } from '../../../state/amounts.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';

/** How long changes are collected: machines come and go in groups. */
const collectMs = 5000;
const unreadMs = 1000;
/** What every NodePool shows, also when it has none of it. */
const always = ['cpu', 'memory', 'pods', 'ephemeral-storage', 'nodes'] as const;

/** The controller `nodepool.counter`. */
export function counterController(context: ControllerContext): Controller {
  const { pools, state } = context;
  /** How many nodes were written, by the UID of a pool: an older definition of NodePools drops the number. */
  const told = new Map<string, number>();
  const controller = context.controller({
    name: 'nodepool.counter',
    kind: 'NodePool',
    concurrent: [10, 1000],
    reconciler: {
      async reconcile(key, signal) {
        const pool = context.pool(key);
        if (!pool) return {};
        const { uid = '' } = pool.metadata;
        // Before everything was read, the sum would be too low.
        if (!state.hasRead) return { requeueAfterMs: unreadMs };
        const wanted = counted(pool, state.poolUsage(key));
        const { nodes, ...rest } = wanted.status!;
        // Written before, and not there: it would be dropped again.
        const isDropped = pool.status?.nodes === undefined && told.get(uid) === nodes;
        await pools.patchStatus(pool, isDropped ? { ...wanted, status: rest } : wanted, { signal });
        told.set(uid, nodes!);
        return {};
      },
    },
  });
  pools.informer.addHandler({ deleted: ({ metadata }) => void told.delete(metadata.uid ?? '') });
  state.onPoolUsage((pool) => controller.enqueue(pool, { afterMs: collectMs }));
  controller.watch(pools.informer, { when: (_pool, old) => old === undefined });
  // Somebody else may have written over it.
  return controller.watch(pools.informer, {
    afterMs: collectMs,
    when: ({ status }, old) =>
      old !== undefined &&
      (status?.nodes !== old.status?.nodes || !deepEqual(status?.resources, old.status?.resources)),
  });
}

function counted(pool: NodePool, usage: ReadonlyMap<string, bigint>): NodePool {
  const amounts = new Map<string, bigint>([...always.map((name) => [name, 0n] as const), ...usage]);
  const nodes = Number((amounts.get('nodes') ?? 0n) / one);
  return { ...pool, status: { ...pool.status, resources: formatAmounts(amounts), nodes } };
}
