// SPDX-License-Identifier: Apache-2.0
// A small model of Cluster API over any API server: MachineDeployments, MachineSets and Machines live as the real
// managers let them live, with machines that may be slow, fail or never join.
import type { Clock } from '../../../base/clock.ts';
import type { Random } from '../../../base/random.ts';
import { isAlreadyExists } from '../../../kube/api-error.ts';
import type { KubeClient } from '../../../kube/client.ts';
import { kinds } from '../../../kube/kinds.ts';
import type { Logger } from '../../../runtime/logging.ts';
import { Metrics } from '../../../runtime/metrics.ts';
import { SharedInformers } from '../../workloads/context.ts';
import { ownerIndex } from '../../workloads/owner-index.ts';
import type { ModelContext } from './context.ts';
import { clusterApiCrds } from './crds.ts';
import { machineController } from './machine.ts';
import { machineDeploymentController } from './machine-deployment.ts';
import { machineSetController } from './machine-set.ts';
import { type Behavior, type Machine, names, type Types, typesOf, type Version } from './objects.ts';

export interface ClusterApiModelOptions {
  /** The management cluster. */
  readonly hub: KubeClient;
  /** Where Nodes appear; the management cluster itself unless told. */
  readonly workload?: KubeClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly version?: Version;
  /** How each machine behaves: its faults included. */
  readonly behavior?: (machine: Machine) => Behavior;
  readonly nodeTaints?: readonly { key: string; value?: string; effect: string }[];
}

/** About what a virtual machine takes. */
const usual: Behavior = { provisionMs: 5000, bootMs: 10_000, settleMs: 1500, deleteMs: 2000 };
const usualTaints = [{ key: names.uninitialized, effect: 'NoSchedule' }];

export interface ClusterApiModel {
  readonly types: Types;
  /** Stops the managers, as a restart or a hanging process would; what they have written stays. */
  stop(): Promise<void>;
}

/** Installs the kinds, where they are missing. */
export async function installClusterApi(hub: KubeClient, version: Version = 'v1beta1'): Promise<void> {
  for (const crd of clusterApiCrds(version)) {
    try {
      await hub.resource(kinds.CustomResourceDefinition).create(crd as never);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
    }
  }
}

/** Starts the managers; resolves when they work. The kinds must be installed. */
export async function startClusterApi(options: ClusterApiModelOptions): Promise<ClusterApiModel> {
  const { hub, workload = hub, clock, random, log, version = 'v1beta1' } = options;
  const types = typesOf(version);
  const informers = new SharedInformers({ client: hub, clock, random, log });
  informers.of(types.machineClass);
  informers.of(types.infrastructure);
  const context: ModelContext = {
    client: hub,
    workload,
    informers,
    clock,
    random,
    log,
    metrics: new Metrics(),
    types,
    machines: ownerIndex(informers.of(types.machine)),
    sets: ownerIndex(informers.of(types.machineSet)),
    behavior: (machine) => ({ ...usual, ...options.behavior?.(machine) }),
    nodeTaints: options.nodeTaints ?? usualTaints,
  };
  const controllers = [machineDeploymentController(context), machineSetController(context), machineController(context)];
  const stopping = new AbortController();
  await informers.start(stopping.signal);
  const running = Promise.all(controllers.map((controller) => controller.start(stopping.signal)));
  return {
    types,
    stop: async () => {
      stopping.abort(new DOMException('the managers stop', 'AbortError'));
      await running;
      await informers.stopped();
    },
  };
}
