// SPDX-License-Identifier: Apache-2.0
// Puts termination together: the queue that evicts pods, and the controller that fills it.
import type { Controller } from '../../../runtime/controller.ts';
import type { ControllerContext } from '../../nodeclaim/context.ts';
import { EvictionQueue } from '../eviction/queue.ts';
import { NodeTermination } from './controller.ts';

/** The controllers `eviction-queue` and `node.termination`, ready to be started. */
export function terminationControllers(context: ControllerContext): Controller[] {
  const evictions = new EvictionQueue({ context });
  return [evictions.controller, new NodeTermination({ context, evictions }).controller];
}
