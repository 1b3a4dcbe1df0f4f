// SPDX-License-Identifier: Apache-2.0
// NodePools with a fixed number of nodes.
import type { Controller } from '../../runtime/controller.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { staticDeprovisioningController } from './deprovisioning.ts';
import { staticProvisioningController } from './provisioning.ts';
import type { StaticNodes } from './static-nodes.ts';

export { StaticNodes } from './static-nodes.ts';

/** The controllers that keep static pools at their size. */
export function staticControllers(context: ControllerContext, nodes: StaticNodes): Controller[] {
  return [staticProvisioningController(context, nodes), staticDeprovisioningController(context, nodes)];
}
