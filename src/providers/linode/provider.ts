// SPDX-License-Identifier: Apache-2.0
// Linode: a cloud whose machines are node pools of an LKE cluster, or Linodes that join a cluster of your own.
import { labels, nodeClassLabel } from '../../api/labels.ts';
import { type LinodeNodeClass, linodeNodeClassKind } from '../../api/linode-node-class.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { compareStrings } from '../../base/order.ts';
import { CreateError, InsufficientCapacityError, NodeClassNotReadyError } from '../../cloud/errors.ts';
import type { CloudProvider, Instance, InstanceType, RepairPolicy } from '../../cloud/provider.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Catalog } from './catalog.ts';
import { choicesFor, shapeOf } from './choice.ts';
import { driftReasons } from './drift.ts';
import type { Launch, Machine, Machines } from './machines.ts';
import { linodeAnnotations, linodeLabelSet } from './names.ts';
import { nodeClassHash, nodeClassHashVersion, usable } from './node-class.ts';

export interface LinodeProviderOptions {
  readonly machines: Machines;
  readonly catalog: Catalog;
  /** Where LinodeNodeClasses live. */
  readonly karpenter: Cluster;
}

const minute = 60_000;
const classLabel = nodeClassLabel(linodeNodeClassKind);
const unhealthy = (conditionType: string, conditionStatus: 'False' | 'Unknown', minutes: number): RepairPolicy => ({
  conditionType,
  conditionStatus,
  tolerationMs: minutes * minute,
});

/** Launching is idempotent by the UID of the NodeClaim, which every machine carries from its birth. */
export class LinodeProvider implements CloudProvider {
  readonly name = 'linode';
  readonly nodeClasses = [linodeNodeClassKind] as const;
  readonly labels = linodeLabelSet;
  readonly repairPolicies: readonly RepairPolicy[] = [
    unhealthy('Ready', 'False', 30),
    unhealthy('Ready', 'Unknown', 30),
    unhealthy('AcceleratedHardwareReady', 'False', 10),
    unhealthy('StorageReady', 'False', 30),
    unhealthy('NetworkingReady', 'False', 30),
    unhealthy('KernelReady', 'False', 30),
    unhealthy('ContainerRuntimeReady', 'False', 30),
  ];
  readonly #options: LinodeProviderOptions;
  readonly #classes: Informer<LinodeNodeClass>;

  constructor(options: LinodeProviderOptions) {
    this.#options = options;
    this.#classes = options.karpenter.informers.get(linodeNodeClassKind);
  }

  async create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    await this.#synced(signal);
    const nodeClass = this.#classes.get(claim.spec.nodeClassRef.name);
    const planner = { nodeClass, plan: () => this.#plan(claim, nodeClass) };
    return this.#instance(await this.#options.machines.create(claim, planner, signal));
  }

  delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    return this.#options.machines.delete(claim, signal);
  }

  async get(providerID: string, signal: AbortSignal): Promise<Instance> {
    await this.#synced(signal);
    return this.#instance(await this.#options.machines.get(providerID, signal));
  }

  async list(signal: AbortSignal): Promise<readonly Instance[]> {
    await this.#synced(signal);
    const instances = await Promise.all(
      (await this.#options.machines.list(signal)).map((machine) => this.#instance(machine)),
    );
    return instances.sort((a, b) => compareStrings(a.providerID, b.providerID));
  }

  async instanceTypes(pool: NodePool, signal: AbortSignal): Promise<readonly InstanceType[]> {
    await this.#synced(signal);
    const { name } = pool.spec.template.spec.nodeClassRef;
    const nodeClass = this.#classes.get(name);
    if (!nodeClass) throw new NodeClassNotReadyError(`LinodeNodeClass ${name} does not exist`);
    return this.#options.catalog.types(nodeClass);
  }

  async driftReason(claim: NodeClaim, signal: AbortSignal): Promise<string> {
    await this.#synced(signal);
    const nodeClass = this.#classes.get(claim.spec.nodeClassRef.name);
    if (!nodeClass || nodeClass.metadata.deletionTimestamp !== undefined) return '';
    const { [linodeAnnotations.hash]: hash, [linodeAnnotations.hashVersion]: version } =
      claim.metadata.annotations ?? {};
    if (hash !== undefined && version === nodeClassHashVersion && hash !== nodeClassHash(nodeClass)) {
      return driftReasons.nodeClass;
    }
    return this.#options.machines.drift(claim, nodeClass, signal);
  }

  async #plan(claim: NodeClaim, found: LinodeNodeClass | undefined): Promise<Launch> {
    const nodeClass = usable(found, claim.spec.nodeClassRef.name);
    const types = await this.#types(nodeClass);
    const choices = choicesFor(claim, types);
    if (choices.length === 0) {
      throw new InsufficientCapacityError(
        `none of ${types.length} plans meets the requirements and requests and can be had now`,
      );
    }
    return { nodeClass, choices };
  }

  async #types(nodeClass: LinodeNodeClass): Promise<readonly InstanceType[]> {
    try {
      return await this.#options.catalog.types(nodeClass);
    } catch (error) {
      const message = `what Linode sells cannot be read: ${error instanceof Error ? error.message : String(error)}`;
      throw new CreateError(message, { reason: 'InstanceTypeResolutionFailed', message }, { cause: error });
    }
  }

  async #instance(machine: Machine): Promise<Instance> {
    const className = machine.labels[classLabel];
    const nodeClass = className === undefined ? undefined : this.#classes.get(className);
    const types = await this.#options.catalog.types(nodeClass);
    const type = types.find(({ name }) => name === machine.type);
    const shape = shapeOf(machine.type, machine.region, type);
    const { providerID, imageID, nodeClaim, createdAt, deleting, nodeClassHash: hash } = machine;
    return {
      providerID,
      ...shape,
      labels: { ...machine.labels, ...shape.labels, [labels.instanceType]: machine.type },
      ...(hash === undefined
        ? {}
        : {
            annotations: {
              [linodeAnnotations.hash]: hash,
              [linodeAnnotations.hashVersion]: nodeClassHashVersion,
            },
          }),
      ...(imageID === undefined ? {} : { imageID }),
      ...(nodeClaim ? { nodeClaim } : {}),
      ...(createdAt === undefined ? {} : { createdAt }),
      ...(deleting ? { deleting: true } : {}),
    };
  }

  /** A NodeClass that was not read yet must not be taken for missing. */
  async #synced(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (!this.#classes.hasSynced) await this.#classes.waitForSync(signal);
  }
}
