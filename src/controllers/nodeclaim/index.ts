// SPDX-License-Identifier: Apache-2.0
// The controllers of NodeClaims.
import type { Controller } from '../../runtime/controller.ts';
import { consistencyController } from './consistency/controller.ts';
import type { ControllerContext } from './context.ts';
import { disruptionConditionsController } from './disruption/controller.ts';
import { expirationController } from './expiration/controller.ts';
import { garbageCollectionController } from './garbage-collection/controller.ts';
import { nodeClaimHydrationController } from './hydration/controller.ts';
import { lifecycleController } from './lifecycle/controller.ts';
import { podEventsController } from './pod-events/controller.ts';

export { ControllerContext, type ControllerContextOptions } from './context.ts';

/** All of them, ready to be started. */
export function nodeClaimControllers(context: ControllerContext): Controller[] {
  return [
    lifecycleController(context),
    nodeClaimHydrationController(context),
    consistencyController(context),
    expirationController(context),
    garbageCollectionController(context),
    podEventsController(context),
    disruptionConditionsController(context),
  ];
}
