// SPDX-License-Identifier: Apache-2.0
// Puts disruption together: the queue that carries commands out, and the loop with its methods.
import type { Random } from '../../base/random.ts';
import type { Controller } from '../../runtime/controller.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { ClaimCreator } from '../provisioning/create-claims.ts';
import { Disruption } from './controller.ts';
import { Emptiness } from './emptiness.ts';
import { DisruptionMarks } from './marks.ts';
import type { Method } from './method.ts';
import { DisruptionQueue } from './queue.ts';

/** Methods in the order they are asked. */
export function defaultMethods(): Method[] {
  return [new Emptiness()];
}

/** The controllers `disruption.queue` and `disruption`, ready to be started. `random` makes the ids of commands. */
export function disruptionControllers(
  context: ControllerContext,
  { random, methods = defaultMethods() }: { readonly random: Random; readonly methods?: readonly Method[] },
): Controller[] {
  const marks = new DisruptionMarks(context);
  const queue = new DisruptionQueue({ context, marks, creator: new ClaimCreator(context) });
  const disruption = new Disruption({ context, queue, marks, random, methods });
  return [queue.controller, disruption.controller];
}
