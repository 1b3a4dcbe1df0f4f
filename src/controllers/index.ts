// SPDX-License-Identifier: Apache-2.0
// Every controller of the autoscaler, wired: what `karpenter controller` and the embedded cluster both run.
import { labels } from '../api/labels.ts';
import type { NodeClaim } from '../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../api/node-pool.ts';
import type { Random } from '../base/random.ts';
import { OverlayStore, withOverlays } from '../cloud/overlays.ts';
import { CloudRegistry } from '../cloud/registry.ts';
import { withoutReserved } from '../cloud/reserved-capacity.ts';
import type { ResourceType } from '../kube/object.ts';
import type { Executor } from '../runtime/executor.ts';
import type { Runnable } from '../runtime/manager.ts';
import type { Settings } from '../runtime/settings.ts';
import { ClusterState } from '../state/cluster-state.ts';
import { stateObserver } from '../state/observer.ts';
import { disruptionControllers } from './disruption/index.ts';
import type { Method } from './disruption/method.ts';
import { metricsControllers } from './metrics/index.ts';
import { nodeHealthController } from './node/health/controller.ts';
import { nodeHydrationController } from './node/hydration/controller.ts';
import { terminationControllers } from './node/termination/index.ts';
import { ControllerContext, type ControllerContextOptions, nodeClaimControllers } from './nodeclaim/index.ts';
import { nodePoolControllers } from './nodepool/index.ts';
import { overlayController } from './overlay/controller.ts';
import { registerProvisioning } from './provisioning/controller.ts';
import { StaticNodes, staticControllers } from './static/index.ts';
import { statusControllers } from './status/index.ts';

export interface ControllersOptions extends Omit<ControllerContextOptions, 'state' | 'settings'> {
  readonly random: Random;
  readonly executor: Executor;
  readonly settings: Settings;
  /** The ways to find nodes that had better go, unless the usual ones. */
  readonly disruptionMethods?: readonly Method[];
  /** How long one scheduling pass may take; the provisioner's own unless told. */
  readonly passTimeoutMs?: number;
}

/** Adds all controllers to a manager. Informers start with the manager's clusters. */
export function registerControllers(
  manager: { add(runnable: Runnable): unknown },
  given: ControllersOptions,
): { readonly state: ClusterState } {
  const overlays = given.settings.featureGates.NodeOverlay ? new OverlayStore() : undefined;
  const clouds = visible(given);
  const options = { ...given, registry: overlays ? withOverlaysOn(clouds, overlays, given) : clouds };
  const { clusters, registry, clock, log, metrics, random, settings } = options;
  const state = new ClusterState({ clusters, registry, clock, log, batchMaxDurationMs: settings.batchMaxDuration });
  const context = new ControllerContext({ ...options, state });
  registerProvisioning(manager, { ...options, state });
  const staticNodes = settings.featureGates.StaticCapacity ? new StaticNodes(context) : undefined;
  const controllers = [
    ...nodeClaimControllers(context),
    ...nodePoolControllers(context),
    nodeHydrationController(context),
    ...terminationControllers(context),
    ...disruptionControllers(context, {
      random,
      settings,
      ...(staticNodes ? { staticNodes } : {}),
      ...(given.disruptionMethods ? { methods: given.disruptionMethods } : {}),
    }),
    ...(staticNodes ? staticControllers(context, staticNodes) : []),
    ...(settings.featureGates.NodeRepair ? [nodeHealthController(context)] : []),
    ...(overlays ? [overlayController(context, overlays, clouds)] : []),
  ];
  for (const controller of controllers) manager.add(controller);
  manager.add(stateObserver({ state, clock, log, metrics }));
  if (!settings.disableClusterStateObservability) {
    const capacityBuffers = settings.featureGates.CapacityBuffer;
    const observers = [...metricsControllers(context), ...statusControllers(context, { capacityBuffers })];
    for (const observer of observers) manager.add(observer);
  }
  return { state };
}

/** The clouds with what NodeOverlays say better. */
function withOverlaysOn(
  clouds: CloudRegistry,
  overlays: OverlayStore,
  { clusters }: ControllersOptions,
): CloudRegistry {
  const pools = clusters.karpenter.informers.get(nodePoolKind as ResourceType<NodePool>);
  const poolOf = ({ metadata }: NodeClaim): NodePool | undefined => pools.get(metadata.labels?.[labels.nodePool] ?? '');
  return new CloudRegistry(clouds.providers.map((provider) => withOverlays(provider, overlays, poolOf)));
}

/** What the feature gates let us see of the clouds. */
function visible({ registry, settings }: Pick<ControllersOptions, 'registry' | 'settings'>): CloudRegistry {
  return settings.featureGates.ReservedCapacity
    ? registry
    : new CloudRegistry(registry.providers.map((provider) => withoutReserved(provider)));
}
