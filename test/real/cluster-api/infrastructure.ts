// SPDX-License-Identifier: Apache-2.0
// A small infrastructure provider under the real Machine controller: each EmbeddedMachine becomes a machine with a provider
// id and a Node in the workload cluster, after the times it is told; kwok is the Node's kubelet.

import { RealClock } from '../../../src/base/clock.ts';
import { deepClone } from '../../../src/base/freeze.ts';
import { SystemRandom } from '../../../src/base/random.ts';
import { newNode } from '../../../src/embedded/clouds/cluster-api/node.ts';
import {
  type Machine,
  type MachineInfrastructure,
  names,
  typesOf,
} from '../../../src/embedded/clouds/cluster-api/objects.ts';
import { SharedInformers, vanishingIsFine } from '../../../src/embedded/workloads/context.ts';
import { ignoreNotFound, isAlreadyExists } from '../../../src/kube/api-error.ts';
import type { KubeClient } from '../../../src/kube/client.ts';
import { kinds } from '../../../src/kube/kinds.ts';
import type { ResourceType } from '../../../src/kube/object.ts';
import { parseTime } from '../../../src/kube/time.ts';
import { Controller, type Result } from '../../../src/runtime/controller.ts';
import { silentLogger } from '../../../src/runtime/logging.ts';
import { Metrics } from '../../../src/runtime/metrics.ts';

export interface InfrastructureOptions {
  readonly hub: KubeClient;
  readonly workload: KubeClient;
  readonly provisionMs?: number;
  readonly bootMs?: number;
}

const types = typesOf('v1beta1');
const finalizer = 'embeddedmachine.infrastructure.cluster.x-k8s.io';
const nodeTaints = [{ key: names.uninitialized, effect: 'NoSchedule' }];

/** Runs until the signal aborts. */
export async function startInfrastructure(options: InfrastructureOptions, signal: AbortSignal): Promise<void> {
  const clock = new RealClock();
  const common = { clock, random: new SystemRandom(), log: silentLogger, metrics: new Metrics() };
  const informers = new SharedInformers({ client: options.hub, ...common });
  const machines = informers.of(types.infrastructure);
  const controller = new Controller({
    ...common,
    name: 'embedded-infrastructure',
    kind: 'EmbeddedMachine',
    reconciler: vanishingIsFine({
      reconcile: async (key) => {
        const machine = machines.get(key);
        return machine && step(machine, options, clock.now());
      },
    }),
    maxConcurrent: 10,
  }).watch(machines);
  await informers.start(signal);
  void controller.start(signal);
}

async function step(
  infrastructure: MachineInfrastructure,
  options: InfrastructureOptions,
  now: number,
): Promise<Result | void> {
  const { hub, provisionMs = 500, bootMs = 500 } = options;
  const { name = '', namespace = '', deletionTimestamp, finalizers = [] } = infrastructure.metadata;
  const client = hub.resource(types.infrastructure);
  if (deletionTimestamp !== undefined) {
    const rest = finalizers.filter((other) => other !== finalizer);
    if (rest.length < finalizers.length) await client.patch(name, { metadata: { finalizers: rest } }, { namespace });
    return;
  }
  // Not before the Machine controller holds it: until then there is nobody to make a Node for.
  const owner = infrastructure.metadata.ownerReferences?.find(({ kind }) => kind === 'Machine')?.name;
  if (owner === undefined) return;
  if (!finalizers.includes(finalizer)) {
    await client.patch(name, { metadata: { finalizers: [...finalizers, finalizer] } }, { namespace });
  }
  if (infrastructure.spec?.behavior?.neverProvisions) return;
  const age = now - parseTime(infrastructure.metadata.creationTimestamp!);
  if (age < provisionMs) return { requeueAfterMs: provisionMs - age };
  const providerID = `embedded://${namespace}/${name}`;
  await client.patch(name, { spec: { providerID } }, { namespace });
  await client.patchStatus(name, { status: { ready: true } }, { namespace });
  if (age < provisionMs + bootMs) return { requeueAfterMs: provisionMs + bootMs - age };
  await boot(infrastructure, owner, providerID, options);
}

/** The kubelet registers, once: a Node that somebody deletes does not come back. */
async function boot(
  infrastructure: MachineInfrastructure,
  name: string,
  providerID: string,
  { hub, workload }: InfrastructureOptions,
): Promise<void> {
  const { namespace, annotations = {} } = infrastructure.metadata;
  const machine = await ignoreNotFound(hub.resource(types.machine).get(name, { namespace }));
  if (!machine || machine.metadata.deletionTimestamp !== undefined || machine.status?.nodeRef !== undefined) return;
  const { [names.deploymentName]: deployment, [names.setName]: set } = machine.metadata.labels ?? {};
  const [type, named] = deployment
    ? [types.machineDeployment, deployment]
    : set
      ? [types.machineSet, set]
      : [types.machineClass, annotations[names.clonedFromName] ?? ''];
  const told = await ignoreNotFound(hub.resource(type as ResourceType).get(named, { namespace }));
  const withId: Machine = { ...deepClone(machine), spec: { ...machine.spec, providerID } };
  try {
    await workload
      .resource(kinds.Node)
      .create(newNode(withId, told?.metadata.annotations ?? {}, undefined, nodeTaints));
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
