// SPDX-License-Identifier: Apache-2.0
// Machines: infrastructure that takes its time, a Node that appears in the workload cluster and gets its labels, and an
// end in which the Node is drained and goes first.
import { deepEqual } from '../../../base/freeze.ts';
import { ignoreNotFound, isAlreadyExists, isNotFound, isTooManyRequests } from '../../../kube/api-error.ts';
import { kinds } from '../../../kube/kinds.ts';
import { formatTime, parseTime } from '../../../kube/time.ts';
import { Controller, type Result } from '../../../runtime/controller.ts';
import { vanishingIsFine } from '../../workloads/context.ts';
import { controllerOf } from '../../workloads/ownership.ts';
import type { ModelContext } from './context.ts';
import { initializedNode, newNode } from './node.ts';
import {
  type Behavior,
  type Machine,
  type MachineClass,
  type MachineStatus,
  machineFinalizer,
  names,
} from './objects.ts';

export function machineController(context: ModelContext): Controller {
  return (
    new Controller({
      ...context,
      name: 'capi-machine',
      kind: 'Machine',
      reconciler: vanishingIsFine(new Machines(context)),
      maxConcurrent: 20,
    })
      .watch(context.informers.of(context.types.machine))
      // The infrastructure of a Machine without an owner has its name.
      .watch(context.informers.of(context.types.infrastructure))
  );
}

const providerScheme = 'embedded://';
/** How soon a drain that cannot go on is tried again. */
const drainRetryMs = 1000;

class Machines {
  readonly #context: ModelContext;
  /** When a Machine's infrastructure is to be gone. */
  readonly #endsAt = new Map<string, number>();
  /** Machines whose Node has been made. */
  readonly #joined = new Set<string>();

  constructor(context: ModelContext) {
    this.#context = context;
  }

  async reconcile(key: string): Promise<Result | void> {
    const { informers, types } = this.#context;
    const machine = informers.of(types.machine).get(key);
    if (!machine) return;
    if (machine.metadata.deletionTimestamp === undefined && !(await this.#isAdopted(machine))) return;
    const behavior = this.#behavior(machine);
    return machine.metadata.deletionTimestamp === undefined
      ? this.#bringUp(machine, behavior)
      : this.#takeDown(machine, behavior);
  }

  /** Holds on to a Machine, and gives whether its infrastructure is there: whoever made it may still be at it. */
  async #isAdopted(machine: Machine): Promise<boolean> {
    const { client, informers, types } = this.#context;
    const { name = '', namespace, finalizers = [] } = machine.metadata;
    if (!finalizers.includes(machineFinalizer)) {
      const metadata = { finalizers: [...finalizers, machineFinalizer] };
      await client.resource(types.machine).patch(name, { metadata }, { namespace });
    }
    const ref = machine.spec?.infrastructureRef;
    if (ref?.kind !== types.infrastructure.kind) return true;
    return informers.of(types.infrastructure).get(`${namespace}/${ref.name}`) !== undefined;
  }

  /** Each step falls due at its own time since the Machine was made: a restart changes nothing. */
  async #bringUp(machine: Machine, behavior: Behavior): Promise<Result | void> {
    const { clock } = this.#context;
    const { provisionMs = 0, bootMs = 0, settleMs = 0 } = behavior;
    const age = clock.now() - parseTime(machine.metadata.creationTimestamp!);
    if (behavior.fails !== undefined) {
      if (age < provisionMs) return { requeueAfterMs: provisionMs - age };
      return this.#setStatus(machine, {
        phase: 'Failed',
        failureReason: behavior.fails,
        failureMessage: `the infrastructure gave up: ${behavior.fails}`,
      });
    }
    if (behavior.neverProvisions || age < provisionMs) {
      await this.#setStatus(machine, { phase: 'Provisioning' });
      return behavior.neverProvisions ? undefined : { requeueAfterMs: provisionMs - age };
    }
    if (!machine.spec?.providerID) return this.#provision(machine);
    if (machine.status?.phase === 'Provisioning' || machine.status?.phase === undefined) {
      await this.#setStatus(machine, { phase: 'Provisioned', infrastructureReady: true });
    }
    if (behavior.neverJoins) return;
    const left = provisionMs + bootMs - age;
    if (left > 0) return { requeueAfterMs: left };
    await this.#join(machine);
    const unsettled = left + settleMs;
    if (unsettled > 0) return { requeueAfterMs: unsettled };
    await this.#settle(machine);
  }

  async #provision(machine: Machine): Promise<void> {
    const { client, types } = this.#context;
    const { name = '', namespace = '' } = machine.metadata;
    const providerID = `${providerScheme}${namespace}/${name}`;
    await client.resource(types.machine).patch(name, { spec: { providerID } }, { namespace });
  }

  /** The Node appears, once: one that somebody deletes does not come back. */
  async #join(machine: Machine): Promise<void> {
    const { nodeTaints, workload } = this.#context;
    const { uid = '' } = machine.metadata;
    if (machine.status?.nodeRef !== undefined || this.#joined.has(uid)) return;
    this.#joined.add(uid);
    try {
      await workload
        .resource(kinds.Node)
        .create(newNode(machine, this.#told(machine), this.#template(machine), nodeTaints));
    } catch (error) {
      if (isAlreadyExists(error)) return;
      this.#joined.delete(uid);
      throw error;
    }
  }

  /** Cluster API finds the Node by its provider id, labels it and lets it go. */
  async #settle(machine: Machine): Promise<void> {
    const nodes = this.#context.workload.resource(kinds.Node);
    const { name = '' } = machine.metadata;
    const node = await ignoreNotFound(nodes.get(name));
    if (!node) return;
    const wanted = initializedNode(machine, node);
    if (!deepEqual(wanted, node)) await nodes.update(wanted);
    await this.#setStatus(machine, {
      phase: 'Running',
      infrastructureReady: true,
      nodeRef: { ...(this.#context.types.version === 'v1beta1' ? { kind: 'Node' } : {}), name },
    });
  }

  /** What the resource above the Machine says of its machines. */
  #told(machine: Machine): Readonly<Record<string, string>> {
    const { informers, types } = this.#context;
    const { namespace = '', labels = {} } = machine.metadata;
    const deployment = informers.of(types.machineDeployment).get(`${namespace}/${labels[names.deploymentName]}`);
    const set = informers.of(types.machineSet).get(`${namespace}/${controllerOf(machine)?.name}`);
    return (deployment ?? set ?? this.#template(machine))?.metadata.annotations ?? {};
  }

  async #takeDown(machine: Machine, { deleteMs = 0 }: Behavior): Promise<Result | void> {
    const { clock, client, types, workload } = this.#context;
    const { name = '', namespace, uid = '', finalizers = [] } = machine.metadata;
    if (!finalizers.includes(machineFinalizer)) return;
    await this.#setStatus(machine, { ...machine.status, phase: 'Deleting' });
    if (!(await this.#isDrained(name))) return { requeueAfterMs: drainRetryMs };
    const endsAt = this.#endsAt.get(uid) ?? clock.monotonic() + deleteMs;
    this.#endsAt.set(uid, endsAt);
    const left = endsAt - clock.monotonic();
    if (left > 0) return { requeueAfterMs: left };
    await ignoreNotFound(workload.resource(kinds.Node).delete(name));
    const rest = finalizers.filter((finalizer) => finalizer !== machineFinalizer);
    await ignoreNotFound(client.resource(types.machine).patch(name, { metadata: { finalizers: rest } }, { namespace }));
    this.#endsAt.delete(uid);
    this.#joined.delete(uid);
  }

  /** Cordons the Node and asks its pods to leave; gives whether they have. */
  async #isDrained(name: string): Promise<boolean> {
    const { workload } = this.#context;
    const nodes = workload.resource(kinds.Node);
    const node = await ignoreNotFound(nodes.get(name));
    if (!node) return true;
    if (!node.spec?.unschedulable) await ignoreNotFound(nodes.patch(name, { spec: { unschedulable: true } }));
    const pods = workload.resource(kinds.Pod);
    const { items } = await pods.list({ fieldSelector: `spec.nodeName=${name}` });
    const guests = items.filter((pod) => controllerOf(pod)?.kind !== 'DaemonSet');
    for (const { metadata } of guests) {
      if (metadata.deletionTimestamp !== undefined) continue;
      try {
        await pods.evict(metadata.name ?? '', { namespace: metadata.namespace });
      } catch (error) {
        if (!isTooManyRequests(error) && !isNotFound(error)) throw error;
      }
    }
    return guests.length === 0;
  }

  #behavior(machine: Machine): Behavior {
    const template = this.#template(machine);
    return { ...this.#context.behavior(machine), ...template?.spec?.template?.spec?.behavior };
  }

  #template(machine: Machine): MachineClass | undefined {
    const { informers, types } = this.#context;
    const { namespace } = machine.metadata;
    const ref = machine.spec?.infrastructureRef;
    const infrastructure = informers.of(types.infrastructure).get(`${namespace}/${ref?.name}`);
    const cloned = infrastructure?.metadata.annotations?.[names.clonedFromName];
    const name = ref?.kind === types.infrastructure.kind ? cloned : ref?.name;
    return informers.of(types.machineClass).get(`${namespace}/${name}`);
  }

  async #setStatus(machine: Machine, status: MachineStatus): Promise<void> {
    const wanted = { ...machine.status, ...status };
    const phase = machine.status?.phase;
    if (deepEqual(wanted, machine.status)) return;
    const { clock, client, types } = this.#context;
    const { name = '', namespace } = machine.metadata;
    const moved = phase !== wanted.phase ? { lastUpdated: formatTime(clock.now()) } : {};
    await ignoreNotFound(
      client.resource(types.machine).patchStatus(name, { status: { ...wanted, ...moved } }, { namespace }),
    );
  }
}
