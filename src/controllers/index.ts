// SPDX-License-Identifier: Apache-2.0
// Every controller of the autoscaler, wired: what `karpenter controller` and the embedded cluster both run.
import type { Random } from '../base/random.ts';
import type { Executor } from '../runtime/executor.ts';
import type { Runnable } from '../runtime/manager.ts';
import type { Settings } from '../runtime/settings.ts';
import { ClusterState } from '../state/cluster-state.ts';
import { EvictionQueue } from './node/eviction/queue.ts';
import { nodeHydrationController } from './node/hydration/controller.ts';
import { NodeTermination } from './node/termination/controller.ts';
import { ControllerContext, type ControllerContextOptions, nodeClaimControllers } from './nodeclaim/index.ts';
import { nodePoolControllers } from './nodepool/index.ts';
import { registerProvisioning } from './provisioning/controller.ts';

export interface ControllersOptions extends Omit<ControllerContextOptions, 'state' | 'settings'> {
  readonly random: Random;
  readonly executor: Executor;
  readonly settings: Settings;
}

/** Adds all controllers to a manager. Informers start with the manager's clusters. */
export function registerControllers(
  manager: { add(runnable: Runnable): unknown },
  options: ControllersOptions,
): { readonly state: ClusterState } {
  const { clusters, registry, clock, log, settings } = options;
  const state = new ClusterState({ clusters, registry, clock, log, batchMaxDurationMs: settings.batchMaxDuration });
  const context = new ControllerContext({ ...options, state });
  registerProvisioning(manager, { ...options, state });
  for (const controller of [...nodeClaimControllers(context), ...nodePoolControllers(context)]) manager.add(controller);
  manager.add(nodeHydrationController(context));
  const evictions = new EvictionQueue({ context });
  evictions.register(manager);
  new NodeTermination({ context, evictions }).register(manager);
  return { state };
}
