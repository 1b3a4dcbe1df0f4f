// SPDX-License-Identifier: Apache-2.0
// Puts termination together: the queue that evicts pods, and the controller that fills it.
import type { Runnable } from '../../../runtime/manager.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { EvictionQueue } from '../eviction/queue.ts';
import { NodeTermination } from './controller.ts';

/** Adds the controllers `eviction-queue` and `node.termination`. */
export function registerTermination(
  manager: { add(runnable: Runnable): unknown },
  { context }: { readonly context: ControllerContext },
): void {
  const evictions = new EvictionQueue({ context });
  evictions.register(manager);
  new NodeTermination({ context, evictions }).register(manager);
}
