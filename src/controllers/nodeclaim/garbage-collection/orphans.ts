// SPDX-License-Identifier: Apache-2.0
// Machines whose NodeClaim is gone: a launch that was cut off before it could be written down, or a NodeClaim whose
// finalizer somebody took away. Nobody else would ever give them back.
import { nodeClassLabel, terminationFinalizer } from '../../../api/labels.ts';
import type { NodeClaim } from '../../../api/node-claim.ts';
import { planted } from '../../../base/defects.ts';
import { isNodeClaimNotFound } from '../../../cloud/errors.ts';
import type { CloudProvider, Instance } from '../../../cloud/provider.ts';
import type { Node } from '../../../kube/kinds.ts';
import { parseTime } from '../../../kube/time.ts';
import type { Logger } from '../../../runtime/logging.ts';
import type { ControllerContext } from '../context.ts';
import { inParallel } from './in-parallel.ts';

/** How long a machine is left alone after it was made, and after it was first seen without a NodeClaim. */
const graceMs = 60_000;
/** For how long a Node that does not answer may still have pods that must not be lost: as long as Kubernetes leaves them there. */
const silentMs = 5 * 60_000;
const parallel = 20;

/** Removes the orphans of one cloud, round by round. */
export class OrphanCollector {
  readonly #context: ControllerContext;
  readonly #cloud: CloudProvider;
  /** Since when each machine has been seen without a NodeClaim, by provider id. */
  #since = new Map<string, number>();
  /** By UID of a Node that is drained: since when it has been seen not to be ready. Monotonic. */
  #silentSince = new Map<string, number>();

  constructor(context: ControllerContext, cloud: CloudProvider) {
    this.#context = context;
    this.#cloud = cloud;
  }

  /** One round; gives whether there are orphans left. */
  async collect(instances: readonly Instance[], signal: AbortSignal, log: Logger): Promise<boolean> {
    const suspects = this.#withoutClaim(instances, this.#context.claims.list());
    const now = this.#context.clock.now();
    const known = this.#since;
    this.#since = new Map(suspects.map(({ providerID }) => [providerID, known.get(providerID) ?? now]));
    const silent = this.#silentSince;
    this.#silentSince = new Map();
    if (suspects.length === 0 || planted('orphans-left-behind')) return false;
    const due = suspects.filter((instance) => this.#isDue(instance, now));
    if (due.length > 0) {
      // Without a list that worked there is no saying that a NodeClaim is gone: its kind may just not be served.
      const orphans = this.#withoutClaim(due, await this.#context.claims.readAll(signal));
      await inParallel(orphans, parallel, (instance) => this.#remove(instance, silent, signal, log));
    }
    return true;
  }

  /** Machines that say for which NodeClaim they were made, and it is none of these. */
  #withoutClaim(instances: readonly Instance[], claims: readonly NodeClaim[]): Instance[] {
    const uids = new Set(claims.map(({ metadata }) => (planted('collects-young-machines') ? '' : metadata.uid)));
    const providerIDs = new Set(claims.map(({ status }) => status?.providerID));
    return instances.filter(
      ({ nodeClaim, deleting, providerID }) =>
        (nodeClaim || planted('collects-strangers')) &&
        !deleting &&
        !uids.has(nodeClaim?.uid) &&
        !providerIDs.has(providerID),
    );
  }

  #isDue({ providerID, createdAt }: Instance, now: number): boolean {
    if (now - (this.#since.get(providerID) ?? now) < graceMs) return false;
    return createdAt === undefined || now - parseTime(createdAt) >= graceMs;
  }

  /** Its Node goes first, so that pods are drained; then the machine. */
  async #remove(
    instance: Instance,
    silent: ReadonlyMap<string, number>,
    signal: AbortSignal,
    log: Logger,
  ): Promise<void> {
    const { nodes } = this.#context;
    const claim = this.#claimOf(instance);
    const remaining = this.#context.nodesOf(claim).filter((node) => !this.#isGivenUp(node, silent));
    for (const node of remaining) {
      if (node.metadata.deletionTimestamp !== undefined) continue;
      const held = await nodes.patch(node, heldForDrain(node, claim), { signal });
      if (held) await nodes.delete(held, signal);
    }
    if (remaining.length > 0) return;
    try {
      await this.#cloud.delete(claim, signal);
    } catch (error) {
      if (!isNodeClaimNotFound(error)) throw error;
    }
    log.info('garbage collected instance without nodeclaim', {
      'provider-id': instance.providerID,
      NodeClaim: { name: instance.nodeClaim?.name ?? '' },
    });
  }

  /** Whether there is nobody on a Node to drain any more: one that is not ready for a moment comes back with its pods. */
  #isGivenUp(node: Node, silent: ReadonlyMap<string, number>): boolean {
    if (isReady(node)) return false;
    const { uid = '' } = node.metadata;
    const now = this.#context.clock.monotonic();
    const since = silent.get(uid) ?? now;
    this.#silentSince.set(uid, since);
    return now - since >= silentMs;
  }

  /** The NodeClaim as it must have been, for the cloud to find the machine by. */
  #claimOf({ providerID, labels, nodeClaim }: Instance): NodeClaim {
    const kind = this.#cloud.nodeClasses.find((candidate) => labels[nodeClassLabel(candidate)] !== undefined);
    const { group, kind: of } = kind ?? this.#cloud.nodeClasses[0];
    return {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: { name: nodeClaim?.name ?? '', uid: nodeClaim?.uid ?? '', labels: { ...labels } },
      spec: {
        nodeClassRef: { group, kind: of, name: labels[nodeClassLabel({ group, kind: of })] ?? '' },
        requirements: [],
      },
      status: { providerID },
    };
  }
}

/** A Node that was never registered may have pods all the same: it is held until they have left, as any other. */
function heldForDrain(node: Node, { spec }: NodeClaim): Node {
  const { finalizers = [], labels } = node.metadata;
  if (finalizers.includes(terminationFinalizer)) return node;
  const { nodeClassRef } = spec;
  return {
    ...node,
    metadata: {
      ...node.metadata,
      // By this label its cloud is known.
      labels: { ...labels, [nodeClassLabel(nodeClassRef)]: nodeClassRef.name },
      finalizers: [...finalizers, terminationFinalizer],
    },
  };
}

function isReady(node: Node): boolean {
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}
