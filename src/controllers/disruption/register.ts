// SPDX-License-Identifier: Apache-2.0
// Puts disruption together: the queue that carries commands out, and the loop with its methods.
import type { Random } from '../../base/random.ts';
import type { Runnable } from '../../runtime/manager.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { ClaimCreator } from '../provisioning/create-claims.ts';
import { Disruption } from './controller.ts';
import { Emptiness } from './emptiness.ts';
import { DisruptionMarks } from './marks.ts';
import { DisruptionQueue } from './queue.ts';

/** Adds the controllers `disruption.queue` and `disruption`. */
export function registerDisruption(
  manager: { add(runnable: Runnable): unknown },
  { context, random }: { readonly context: ControllerContext; readonly random: Random },
): void {
  const marks = new DisruptionMarks(context);
  const queue = new DisruptionQueue({ context, marks, creator: new ClaimCreator(context) });
  queue.register(manager);
  new Disruption({ context, queue, marks, random, methods: [new Emptiness()] }).register(manager);
}
