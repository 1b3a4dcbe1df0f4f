// SPDX-License-Identifier: Apache-2.0
// MachineSets: as many Machines as asked for. Machines on their way out count until they are gone.
import { deepEqual } from '../../../base/freeze.ts';
import { ignoreNotFound } from '../../../kube/api-error.ts';
import { Controller } from '../../../runtime/controller.ts';
import { vanishingIsFine } from '../../workloads/context.ts';
import { Expectations } from '../../workloads/expectations.ts';
import { controllerOf, controllerReference } from '../../workloads/ownership.ts';
import type { ModelContext } from './context.ts';
import { byDeletePriority } from './delete-priority.ts';
import { isPaused, type Machine, type MachineSet, machineFinalizer, names } from './objects.ts';

export function machineSetController(context: ModelContext): Controller {
  const { informers, types } = context;
  const sets = new MachineSets(context);
  return new Controller({
    ...context,
    name: 'capi-machineset',
    kind: 'MachineSet',
    reconciler: vanishingIsFine(sets),
    maxConcurrent: 10,
  })
    .watch(informers.of(types.machineSet))
    .watch(informers.of(types.machine), {
      keys: (machine) => {
        const owner = controllerOf(machine);
        return owner?.kind === 'MachineSet' ? [`${machine.metadata.namespace}/${owner.name}`] : [];
      },
    });
}

class MachineSets {
  readonly #context: ModelContext;
  readonly #expectations: Expectations;

  constructor(context: ModelContext) {
    this.#context = context;
    this.#expectations = new Expectations(context.clock);
    const seen = (machine: Machine): void => {
      const owner = controllerOf(machine);
      if (owner) this.#expectations.seen(owner.uid, machine.metadata.uid!);
    };
    context.informers.of(context.types.machine).addHandler({ added: seen, updated: seen, deleted: seen });
  }

  async reconcile(key: string): Promise<void> {
    const { informers, types, machines } = this.#context;
    const set = informers.of(types.machineSet).get(key);
    if (!set || set.metadata.deletionTimestamp !== undefined || isPaused(set)) return;
    const uid = set.metadata.uid!;
    const known = (machine: string) => {
      const found = machines.get(uid, machine);
      return found && { deleting: found.metadata.deletionTimestamp !== undefined };
    };
    const owned = machines.ownedBy(uid);
    if (this.#expectations.satisfied(uid, known)) await this.#scale(set, owned);
    await this.#report(set, owned);
  }

  async #scale(set: MachineSet, owned: readonly Machine[]): Promise<void> {
    const { client, types, clock } = this.#context;
    const uid = set.metadata.uid!;
    const difference = (set.spec?.replicas ?? 1) - owned.length;
    for (let i = 0; i < difference; i++) {
      const created = await client.resource(types.machine).create(this.#machineOf(set));
      if (!this.#context.machines.get(uid, created.metadata.uid!)) {
        this.#expectations.expectCreated(uid, created.metadata.uid!);
      }
    }
    if (difference >= 0) return;
    for (const machine of byDeletePriority(owned, set.spec?.deletePolicy, clock.now()).slice(0, -difference)) {
      if (machine.metadata.deletionTimestamp !== undefined) continue;
      const { name = '', namespace } = machine.metadata;
      await ignoreNotFound(client.resource(types.machine).delete(name, { namespace }));
      this.#expectations.expectDeleted(uid, machine.metadata.uid!);
    }
  }

  #machineOf(set: MachineSet): Machine {
    const { types, random } = this.#context;
    const { name = '', namespace } = set.metadata;
    const { metadata = {}, spec = {} } = set.spec?.template ?? {};
    const clusterName = set.spec?.clusterName ?? spec.clusterName ?? '';
    return {
      apiVersion: `${types.machine.group}/${types.version}`,
      kind: 'Machine',
      metadata: {
        name: `${name}-${random.suffix()}`,
        ...(namespace === undefined ? {} : { namespace }),
        labels: { ...metadata.labels, [names.clusterName]: clusterName, [names.setName]: name },
        annotations: { ...metadata.annotations },
        finalizers: [machineFinalizer],
        ownerReferences: [controllerReference(set, types.machineSet)],
      },
      spec: { ...spec, clusterName },
    };
  }

  async #report(set: MachineSet, owned: readonly Machine[]): Promise<void> {
    const { client, types } = this.#context;
    const ready = owned.filter(({ status }) => status?.nodeRef !== undefined).length;
    const status = {
      observedGeneration: set.metadata.generation ?? 0,
      replicas: owned.length,
      readyReplicas: ready,
      availableReplicas: ready,
      selector: selectorText(set.spec?.selector?.matchLabels),
    };
    const { conditions, ...before } = set.status ?? {};
    if (deepEqual(before, status)) return;
    await client
      .resource(types.machineSet)
      .updateStatus({ ...set, status: { ...status, ...(conditions ? { conditions } : {}) } });
  }
}

export function selectorText(labels: Readonly<Record<string, string>> = {}): string {
  return Object.entries(labels)
    .map(([key, value]) => `${key}=${value}`)
    .join(',');
}
