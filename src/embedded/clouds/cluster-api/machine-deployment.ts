// SPDX-License-Identifier: Apache-2.0
// MachineDeployments: one MachineSet per template, rolled over within surge and unavailability, or left to those who
// delete Machines (OnDelete).
import { createHash } from 'node:crypto';
import { deepEqual } from '../../../base/freeze.ts';
import { chain, compareStrings } from '../../../base/order.ts';
import { isAlreadyExists } from '../../../kube/api-error.ts';
import { Controller } from '../../../runtime/controller.ts';
import { vanishingIsFine } from '../../workloads/context.ts';
import { controllerOf, controllerReference } from '../../workloads/ownership.ts';
import type { ModelContext } from './context.ts';
import { selectorText } from './machine-set.ts';
import { isPaused, type MachineDeployment, type MachineSet, names } from './objects.ts';

export function machineDeploymentController(context: ModelContext): Controller {
  const { informers, types } = context;
  return new Controller({
    ...context,
    name: 'capi-machinedeployment',
    kind: 'MachineDeployment',
    reconciler: vanishingIsFine(new MachineDeployments(context)),
    maxConcurrent: 10,
  })
    .watch(informers.of(types.machineDeployment))
    .watch(informers.of(types.machineSet), {
      keys: (set) => {
        const owner = controllerOf(set);
        return owner?.kind === 'MachineDeployment' ? [`${set.metadata.namespace}/${owner.name}`] : [];
      },
    })
    .watch(informers.of(types.machine), {
      keys: ({ metadata }) => {
        const name = metadata.labels?.[names.deploymentName];
        return name === undefined ? [] : [`${metadata.namespace}/${name}`];
      },
      when: ({ metadata }, old) => metadata.deletionTimestamp !== old?.metadata.deletionTimestamp,
    });
}

interface Rollout {
  readonly current: MachineSet;
  readonly old: readonly MachineSet[];
  readonly replicas: number;
}

class MachineDeployments {
  readonly #context: ModelContext;
  /** The MachineSet that was just made, until the cache shows it. */
  readonly #made = new Map<string, MachineSet>();

  constructor(context: ModelContext) {
    this.#context = context;
  }

  async reconcile(key: string): Promise<void> {
    const { informers, types, sets } = this.#context;
    const deployment = informers.of(types.machineDeployment).get(key);
    if (!deployment || deployment.metadata.deletionTimestamp !== undefined || isPaused(deployment)) return;
    const owned = sets.ownedBy(deployment.metadata.uid!);
    const replicas = replicasOf(deployment);
    const hash = templateHash(deployment);
    const found = owned.find(({ metadata }) => metadata.labels?.[names.templateHash] === hash);
    const current = found ?? (await this.#make(deployment, hash, owned.length === 0 ? replicas : 0));
    if (!current) return;
    const old = owned
      .filter(({ metadata }) => metadata.name !== current.metadata.name)
      .sort(
        chain(
          (a, b) => compareStrings(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? ''),
          (a, b) => compareStrings(a.metadata.name ?? '', b.metadata.name ?? ''),
        ),
      );
    await this.#annotate(current, deployment);
    const rollout = { current, old, replicas };
    if (strategyOf(deployment).type === 'OnDelete') await this.#onDelete(rollout);
    else await this.#roll(deployment, rollout);
    await this.#report(deployment, rollout);
  }

  async #make(deployment: MachineDeployment, hash: string, replicas: number): Promise<MachineSet | undefined> {
    const { client, types } = this.#context;
    const { name = '', namespace, uid = '' } = deployment.metadata;
    const known = this.#made.get(uid);
    if (known?.metadata.labels?.[names.templateHash] === hash) return known;
    const clusterName = deployment.spec?.clusterName ?? '';
    const identity = { [names.clusterName]: clusterName, [names.deploymentName]: name, [names.templateHash]: hash };
    const template = deployment.spec?.template ?? {};
    const set: MachineSet = {
      apiVersion: `${types.machineSet.group}/${types.version}`,
      kind: 'MachineSet',
      metadata: {
        name: `${name}-${hash}`,
        ...(namespace === undefined ? {} : { namespace }),
        labels: { ...template.metadata?.labels, ...identity },
        annotations: copiedAnnotations(deployment),
        ownerReferences: [controllerReference(deployment, types.machineDeployment)],
      },
      spec: {
        clusterName,
        replicas,
        ...deletePolicyOf(deployment),
        selector: { matchLabels: identity },
        template: {
          ...template,
          metadata: { ...template.metadata, labels: { ...template.metadata?.labels, ...identity } },
        },
      },
    };
    try {
      const made = await client.resource(types.machineSet).create(set);
      this.#made.set(uid, made);
      return made;
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      return undefined;
    }
  }

  /** The newest set carries the annotations of its MachineDeployment, whatever they are for. */
  async #annotate(set: MachineSet, deployment: MachineDeployment): Promise<void> {
    const wanted = copiedAnnotations(deployment);
    const now = set.metadata.annotations ?? {};
    if (deepEqual(now, wanted)) return;
    const gone = Object.keys(now).filter((key) => !(key in wanted));
    const annotations = { ...wanted, ...Object.fromEntries(gone.map((key) => [key, null])) };
    const { client, types } = this.#context;
    const { name = '', namespace } = set.metadata;
    await client.resource(types.machineSet).patch(name, { metadata: { annotations } }, { namespace });
  }

  /** The new set grows within the surge, the old ones shrink as far as the new is available. */
  async #roll(deployment: MachineDeployment, { current, old, replicas }: Rollout): Promise<void> {
    const { maxSurge = 1, maxUnavailable = 0 } = strategyOf(deployment).rollingUpdate ?? {};
    const surge = countOf(maxSurge, replicas, Math.ceil);
    const unavailable = countOf(maxUnavailable, replicas, Math.floor);
    const total = old.reduce((sum, set) => sum + wanted(set), wanted(current));
    const room = Math.max(0, replicas + surge - total);
    const active = old.filter((set) => wanted(set) > 0);
    const grown = active.length === 0 ? replicas : Math.min(replicas, wanted(current) + room);
    await this.#resize(current, grown);
    const missing = Math.max(0, grown - (current.status?.availableReplicas ?? 0));
    let removable = total - wanted(current) + grown - (replicas - unavailable) - missing;
    for (const set of active) {
      if (removable <= 0) break;
      const less = Math.min(removable, wanted(set));
      await this.#resize(set, wanted(set) - less);
      removable -= less;
    }
  }

  /** Old Machines stay until somebody deletes them; what goes is replaced by new ones. */
  async #onDelete({ current, old, replicas }: Rollout): Promise<void> {
    const left = old.map((set) => {
      const machines = this.#context.machines.ownedBy(set.metadata.uid!);
      const staying = machines.filter(({ metadata }) => metadata.deletionTimestamp === undefined).length;
      return { set, replicas: Math.min(wanted(set), staying) };
    });
    let surplus = left.reduce((sum, one) => sum + one.replicas, wanted(current)) - replicas;
    for (const one of left) {
      const less = Math.max(0, Math.min(surplus, one.replicas));
      one.replicas -= less;
      surplus -= less;
      await this.#resize(one.set, one.replicas);
    }
    const remaining = left.reduce((sum, one) => sum + one.replicas, 0);
    await this.#resize(current, Math.max(0, replicas - remaining));
  }

  async #resize(set: MachineSet, replicas: number): Promise<void> {
    if (wanted(set) === replicas) return;
    const { client, types } = this.#context;
    const { name = '', namespace } = set.metadata;
    await client.resource(types.machineSet).patch(name, { spec: { replicas } }, { namespace });
  }

  async #report(deployment: MachineDeployment, { current, old, replicas }: Rollout): Promise<void> {
    const { client, types } = this.#context;
    const sets = [current, ...old];
    const sum = (count: (set: MachineSet) => number | undefined): number =>
      sets.reduce((total, set) => total + (count(set) ?? 0), 0);
    const updated = current.status?.replicas ?? 0;
    const ready = sum(({ status }) => status?.readyReplicas);
    const total = sum(({ status }) => status?.replicas);
    const status = {
      observedGeneration: deployment.metadata.generation ?? 0,
      replicas: total,
      ...(types.version === 'v1beta1' ? { updatedReplicas: updated } : { upToDateReplicas: updated }),
      readyReplicas: ready,
      availableReplicas: ready,
      selector: selectorText({ [names.deploymentName]: deployment.metadata.name ?? '' }),
      phase: total > replicas ? 'ScalingDown' : ready < replicas ? 'ScalingUp' : 'Running',
    };
    const { conditions, ...before } = deployment.status ?? {};
    if (deepEqual(before, status)) return;
    await client
      .resource(types.machineDeployment)
      .updateStatus({ ...deployment, status: { ...status, ...(conditions ? { conditions } : {}) } });
  }
}

/** As the admission webhook fills it in. */
function replicasOf({ spec, metadata }: MachineDeployment): number {
  if (spec?.replicas !== undefined) return spec.replicas;
  const { [names.minSize]: min, [names.maxSize]: max } = metadata.annotations ?? {};
  return min !== undefined && max !== undefined ? Number(min) : 1;
}

function strategyOf({ spec }: MachineDeployment) {
  return spec?.rollout?.strategy ?? spec?.strategy ?? { type: 'RollingUpdate' };
}

function deletePolicyOf(deployment: MachineDeployment): { deletePolicy?: string } {
  const deletePolicy = strategyOf(deployment).rollingUpdate?.deletePolicy;
  return deletePolicy === undefined ? {} : { deletePolicy };
}

function wanted(set: MachineSet): number {
  return set.spec?.replicas ?? 1;
}

function countOf(value: number | string, of: number, round: (x: number) => number): number {
  return typeof value === 'number' ? value : round((Number.parseFloat(value) / 100) * of);
}

/** Of what a change replaces Machines for: labels and annotations of the template change in place. */
function templateHash({ spec }: MachineDeployment): string {
  const { bootstrap, infrastructureRef, version, failureDomain } = spec?.template?.spec ?? {};
  const text = JSON.stringify([
    bootstrap?.configRef?.kind,
    bootstrap?.configRef?.name,
    bootstrap?.dataSecretName,
    infrastructureRef?.kind,
    infrastructureRef?.name,
    version,
    failureDomain,
  ]);
  return createHash('sha256').update(text).digest('hex').slice(0, 5);
}

function copiedAnnotations({ metadata }: MachineDeployment): Record<string, string> {
  const { 'kubectl.kubernetes.io/last-applied-configuration': _, ...copied } = metadata.annotations ?? {};
  return copied;
}
