// SPDX-License-Identifier: Apache-2.0
// The marks of a disruption that everybody can see: the taint on the Node (cluster `workload`) and the condition on
// the NodeClaim (cluster `karpenter`). They are put on when a command begins and taken off when it is given up. Nodes that
// wait for a budget carry another taint, which asks pods to go elsewhere.
import { getCondition, nodeClaimConditions, trueCondition } from '../../api/conditions.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { disruptedTaint, isSameTaint, leavingTaint, mergeTaints } from '../../api/taints.ts';
import { isConflict } from '../../kube/api-error.ts';
import type { Node } from '../../kube/kinds.ts';
import type { KubeObject } from '../../kube/object.ts';
import type { StateNode } from '../../state/state-node.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import type { Draft } from '../nodeclaim/draft.ts';
import type { ObjectStore } from '../nodeclaim/object-store.ts';

const { disruptionReason } = nodeClaimConditions;
/** Others write to Nodes and NodeClaims all the time. */
const mostTries = 5;

/** Writes the marks; every write goes over the newest version and leaves the rest of the object alone. */
export class DisruptionMarks {
  readonly #context: ControllerContext;

  constructor(context: ControllerContext) {
    this.#context = context;
  }

  /** Whether a machine carries any. */
  static on({ node, nodeClaim }: StateNode): boolean {
    return (
      hasTaint(node, disruptedTaint) ||
      (nodeClaim !== undefined && getCondition(nodeClaim, disruptionReason) !== undefined)
    );
  }

  /** Nothing new is placed on the machine, and its NodeClaim says why. Objects that are gone are passed over. */
  async put({ node, nodeClaim }: StateNode, reason: string, signal: AbortSignal): Promise<void> {
    const { nodes } = this.#context;
    await this.#change(nodes, node, signal, (of) =>
      nodes.patch(of, withTaints(of, mergeTaints(of.spec?.taints ?? [], [disruptedTaint])), { signal, lock: true }),
    );
    await this.#changeConditions(nodeClaim, signal, (draft) =>
      draft.set(trueCondition(disruptionReason, reason, reason)),
    );
  }

  /** Takes the marks off, unless the machine is being deleted: then they belong to whoever terminates it. */
  async clear({ node, nodeClaim }: StateNode, signal: AbortSignal): Promise<void> {
    const { nodes } = this.#context;
    if (nodeClaim?.metadata.deletionTimestamp !== undefined) return;
    await this.#change(nodes, node, signal, async (of) => {
      const taints = of.spec?.taints ?? [];
      const left = taints.filter((taint) => !isSameTaint(taint, disruptedTaint));
      if (left.length === taints.length || of.metadata.deletionTimestamp !== undefined) return;
      await nodes.patch(of, withTaints(of, left), { signal, lock: true });
    });
    await this.#changeConditions(nodeClaim, signal, (draft) => draft.clear(disruptionReason));
  }

  /** Whether pods are asked not to come. */
  static isLeaving({ node }: StateNode): boolean {
    return hasTaint(node, leavingTaint);
  }

  /** Asks pods to go elsewhere if they can, or no longer. */
  async setLeaving({ node }: StateNode, leaving: boolean, signal: AbortSignal): Promise<void> {
    const { nodes } = this.#context;
    await this.#change(nodes, node, signal, async (of) => {
      if (of.metadata.deletionTimestamp !== undefined) return;
      const taints = of.spec?.taints ?? [];
      const others = taints.filter((taint) => !isSameTaint(taint, leavingTaint));
      if (others.length < taints.length === leaving) return;
      await nodes.patch(of, withTaints(of, leaving ? [...others, leavingTaint] : others), { signal, lock: true });
    });
  }

  async #changeConditions(
    claim: NodeClaim | undefined,
    signal: AbortSignal,
    change: (draft: Draft<NodeClaim>) => void,
  ): Promise<void> {
    const { claims } = this.#context;
    await this.#change(claims, claim, signal, async (of) => {
      if (of.metadata.deletionTimestamp !== undefined) return;
      const draft = this.#context.draftOfClaim(of);
      change(draft);
      if (draft.changed) await draft.save(claims, signal);
    });
  }

  /** Tries the change on the newest state known, and on what the API server has as long as others are quicker. */
  async #change<T extends KubeObject>(
    store: ObjectStore<T>,
    object: T | undefined,
    signal: AbortSignal,
    write: (object: T) => Promise<unknown>,
  ): Promise<void> {
    const name = object?.metadata.name ?? '';
    let newest = object && store.get(name);
    for (let tries = 1; newest && newest.metadata.uid === object?.metadata.uid; tries++) {
      try {
        await write(newest);
        return;
      } catch (error) {
        if (!isConflict(error) || tries >= mostTries) throw error;
        newest = await store.read(name, signal);
      }
    }
  }
}

/** By hand: each pass asks it of every machine. */
function hasTaint(node: Node | undefined, wanted: typeof leavingTaint): boolean {
  for (const taint of node?.spec?.taints ?? none) if (isSameTaint(taint, wanted)) return true;
  return false;
}

const none: NonNullable<NonNullable<Node['spec']>['taints']> = [];

function withTaints(node: Node, taints: NonNullable<Node['spec']>['taints'] & {}): Node {
  return { ...node, spec: { ...node.spec, taints } };
}
