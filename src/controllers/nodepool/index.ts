// SPDX-License-Identifier: Apache-2.0
// The controllers of NodePools.
import type { Controller } from '../../runtime/controller.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { counterController } from './counter/controller.ts';
import { hashController } from './hash/controller.ts';
import { readinessController } from './readiness/controller.ts';
import { registrationHealthController } from './registration-health/controller.ts';
import { validationController } from './validation/controller.ts';

/** All of them, ready to be started. */
export function nodePoolControllers(context: ControllerContext): Controller[] {
  return [
    hashController(context),
    counterController(context),
    readinessController(context),
    validationController(context),
    registrationHealthController(context),
  ];
}
