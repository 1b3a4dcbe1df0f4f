// SPDX-License-Identifier: Apache-2.0
// KWOK: a cloud whose machines are Node objects. The kwok controller, or the embedded kubelet, brings them to life.

import { type KwokNodeClass, kwokNodeClassKind } from '../../api/kwok-node-class.ts';
import type { LabelSet } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { Clock, Timer } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { compareStrings } from '../../base/order.ts';
import { InsufficientCapacityError, NodeClaimNotFoundError, NodeClassNotReadyError } from '../../cloud/errors.ts';
import type { CloudProvider, Instance, InstanceType, RepairPolicy } from '../../cloud/provider.ts';
import { ignoreNotFound, isAlreadyExists } from '../../kube/api-error.ts';
import type { KubeClient } from '../../kube/client.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { parseDuration } from '../../kube/time.ts';
import type { Logger } from '../../runtime/logging.ts';
import { defaultInstanceTypes } from './instance-types.ts';
import { kwokLabelSet } from './labels.ts';
import { instanceOf, nodeFor, providerScheme } from './machine.ts';

export interface KwokProviderOptions {
  /** Where KWOKNodeClasses live. */
  readonly karpenter: KubeClient;
  /** Where Nodes appear. */
  readonly workload: KubeClient;
  readonly clock: Clock;
  readonly log: Logger;
  readonly types?: readonly InstanceType[];
}

/** A machine that was launched and whose Node has not appeared yet. */
interface Booting {
  readonly node: Node;
  timer: Timer;
}

const minute = 60_000;
const retryMs = [1000, 2000, 5000, 10_000, 30_000] as const;

/**
 * Machines are found by name, and a name follows from the NodeClaim's UID: launching again is finding again. A machine
 * whose Node had not appeared when the controller died is resumed by the next `create` or `resume` for its NodeClaim.
 */
export class KwokProvider implements CloudProvider {
  readonly name = 'kwok';
  readonly nodeClasses = [kwokNodeClassKind] as const;
  readonly labels: LabelSet;
  readonly repairPolicies: readonly RepairPolicy[] = [
    { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 10 * minute },
    { conditionType: 'Ready', conditionStatus: 'Unknown', tolerationMs: 10 * minute },
  ];
  readonly #options: KwokProviderOptions;
  readonly #types: ReadonlyMap<string, InstanceType>;
  /** The same list for all who ask: what was worked out about it once holds as long as it is the same. */
  readonly #sold: readonly InstanceType[];
  readonly #booting = new Map<string, Booting>();
  #isClosed = false;

  constructor(options: KwokProviderOptions) {
    this.#options = options;
    const types = options.types ?? defaultInstanceTypes();
    this.#types = new Map(types.map((type) => [type.name, type]));
    this.#sold = [...this.#types.values()];
    this.labels = kwokLabelSet(types.flatMap((t) => t.offerings.flatMap((o) => o.requirements.map((r) => r.key))));
  }

  async create(claim: NodeClaim, signal: AbortSignal): Promise<Instance> {
    const node = nodeFor(claim, this.#types, this.labels);
    const existing = await this.#node(node.metadata.name!, signal);
    if (existing) return instanceOf(existing);
    const delayMs = await this.#registrationDelay(claim, signal);
    this.#boot(node, delayMs);
    return instanceOf(node);
  }

  async delete(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    const providerID = claim.status?.providerID ?? '';
    if (!providerID.startsWith(providerScheme)) throw new NodeClaimNotFoundError(`${providerID} is no machine of KWOK`);
    const name = providerID.slice(providerScheme.length);
    const booting = this.#booting.get(name);
    booting?.timer.cancel();
    this.#booting.delete(name);
    const node = await this.#node(name, signal);
    // A Node that is going already only waits for our own finalizer: as a machine it is gone.
    if (!node || node.metadata.deletionTimestamp) throw new NodeClaimNotFoundError(`machine ${providerID} is gone`);
    await ignoreNotFound(
      this.#options.workload.resource(kinds.Node).delete(name, {
        signal,
        ...(node.metadata.uid ? { preconditions: { uid: node.metadata.uid } } : {}),
      }),
    );
  }

  async get(providerID: string, signal: AbortSignal): Promise<Instance> {
    if (!providerID.startsWith(providerScheme)) throw new NodeClaimNotFoundError(`${providerID} is no machine of KWOK`);
    const name = providerID.slice(providerScheme.length);
    const node = this.#booting.get(name)?.node ?? (await this.#node(name, signal));
    // One whose Node is going runs its pods until they have left: only then it is gone.
    if (!node) throw new NodeClaimNotFoundError(`machine ${providerID} is gone`);
    return instanceOf(node);
  }

  async list(signal: AbortSignal): Promise<readonly Instance[]> {
    const { items } = await this.#options.workload.resource(kinds.Node).listAll({ signal });
    const machines = new Map([...this.#booting].map(([name, { node }]) => [name, node]));
    for (const node of items) {
      if (node.spec?.providerID?.startsWith(providerScheme)) machines.set(node.metadata.name ?? '', node);
    }
    return [...machines].sort(([a], [b]) => compareStrings(a, b)).map(([, node]) => instanceOf(node));
  }

  instanceTypes(): Promise<readonly InstanceType[]> {
    return Promise.resolve(this.#sold);
  }

  driftReason(): Promise<string> {
    return Promise.resolve('');
  }

  /** Brings back a machine that was launched before a restart and whose Node has not appeared. Harmless otherwise. */
  async resume(claim: NodeClaim, signal: AbortSignal): Promise<void> {
    if (!claim.status?.providerID || claim.metadata.deletionTimestamp) return;
    await this.create(claim, signal);
  }

  /** Stops waiting for machines; they are resumed after a restart. */
  close(): void {
    this.#isClosed = true;
    for (const { timer } of this.#booting.values()) timer.cancel();
    this.#booting.clear();
  }

  async #registrationDelay(claim: NodeClaim, signal: AbortSignal): Promise<number> {
    const { name } = claim.spec.nodeClassRef;
    const nodeClass: KwokNodeClass | undefined = await ignoreNotFound(
      this.#options.karpenter.resource(kwokNodeClassKind).get(name, { signal }),
    );
    if (!nodeClass) throw new InsufficientCapacityError(`KWOKNodeClass ${name} does not exist`);
    const ready = nodeClass.status?.conditions?.find((condition) => condition.type === 'Ready');
    if (ready?.status === 'False')
      throw new NodeClassNotReadyError(ready.message || `KWOKNodeClass ${name} is not ready`);
    const delay = nodeClass.spec?.nodeRegistrationDelay;
    return delay ? parseDuration(delay) : 0;
  }

  #node(name: string, signal: AbortSignal): Promise<Node | undefined> {
    return ignoreNotFound(this.#options.workload.resource(kinds.Node).get(name, { signal }));
  }

  /** Lets the Node appear after the delay, and tries again for as long as the machine is wanted. */
  #boot(node: Node, delayMs: number): void {
    const { clock, log, workload } = this.#options;
    const name = node.metadata.name!;
    if (this.#isClosed || this.#booting.has(name)) return;
    let attempts = 0;
    const appear = async (booting: Booting): Promise<void> => {
      try {
        await workload.resource(kinds.Node).create(node);
      } catch (error) {
        if (!isAlreadyExists(error) && this.#booting.get(name) === booting) {
          log.warn('failed creating node from nodeclaim', { Node: { name }, error: messageOf(error) });
          const waitMs = retryMs[Math.min(attempts++, retryMs.length - 1)]!;
          booting.timer = clock.after(waitMs, () => void appear(booting));
          return;
        }
      }
      if (this.#booting.get(name) === booting) this.#booting.delete(name);
      // Deleted while the request was under way: the Node must not outlive its machine.
      else await ignoreNotFound(workload.resource(kinds.Node).delete(name)).catch(() => undefined);
    };
    const booting: Booting = { node, timer: clock.after(delayMs, () => void appear(booting)) };
    this.#booting.set(name, booting);
  }
}
