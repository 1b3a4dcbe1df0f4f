// SPDX-License-Identifier: Apache-2.0
// How many machines the pools with a fixed number of nodes have, and who may make one more. Counts by NodeClaims, those
// just written included; whoever makes one reserves it first, so that two never fill the same place.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { KarpenterError } from '../../base/errors.ts';
import { compareStrings } from '../../base/order.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { poolRequirements } from '../../scheduling/templates.ts';
import { one, readAmounts } from '../../state/amounts.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';

/** The machines of a pool. */
export interface StaticCount {
  /** In service or coming up; nobody wants to replace them. */
  readonly active: readonly NodeClaim[];
  /** Active ones that were written and are not seen yet. */
  readonly unseen: number;
  /** Being replaced: they stay until their replacement is there. */
  readonly pendingDisruption: number;
  readonly deleting: number;
}

/** Counts and reservations. One for all who make or remove machines of static pools. */
export class StaticNodes {
  readonly #context: ControllerContext;
  /** Names of NodeClaims that are written and not in the informer yet, with their pool. */
  readonly #written = new Map<string, string>();
  /** Names of NodeClaims that commands replace. */
  readonly #pending = new Set<string>();
  readonly #reserved = new Map<string, number>();

  constructor(context: ControllerContext) {
    this.#context = context;
    context.claims.informer.addHandler({
      added: ({ metadata }) => void this.#written.delete(metadata.name ?? ''),
      deleted: ({ metadata }) => {
        this.#written.delete(metadata.name ?? '');
        this.#pending.delete(metadata.name ?? '');
      },
    });
  }

  /** Whether a pool has a fixed number of nodes. */
  static is(pool: NodePool): boolean {
    return pool.spec.replicas !== undefined;
  }

  count(pool: string): StaticCount {
    const { claims, state } = this.#context;
    const active: NodeClaim[] = [];
    let [pendingDisruption, deleting, unseen] = [0, 0, 0];
    for (const claim of claims.list()) {
      if (claim.metadata.labels?.[labels.nodePool] !== pool) continue;
      const name = claim.metadata.name ?? '';
      if (claim.metadata.deletionTimestamp !== undefined) deleting++;
      else if (this.#pending.has(name)) pendingDisruption++;
      else if (state.nodeByClaim(name)?.markedForDeletion) deleting++;
      else active.push(claim);
    }
    for (const [name, of] of this.#written) {
      if (claims.informer.get(name) || !state.hasClaim(name)) this.#written.delete(name);
      else if (of === pool) unseen++;
    }
    return { active, unseen, pendingDisruption, deleting };
  }

  /** Reserves up to `wanted` places within the pool's limit of nodes; gives how many. Give them back when they are filled. */
  reserve(pool: NodePool, wanted: number): number {
    const name = pool.metadata.name ?? '';
    const limit = readAmounts(pool.spec.limits).get('nodes');
    const { active, unseen, pendingDisruption, deleting } = this.count(name);
    const taken = active.length + unseen + pendingDisruption + deleting + (this.#reserved.get(name) ?? 0);
    const left = limit === undefined ? Number.POSITIVE_INFINITY : Number(limit / one) - taken;
    const granted = Math.max(0, Math.min(wanted, left));
    if (granted > 0) this.#reserved.set(name, (this.#reserved.get(name) ?? 0) + granted);
    return granted;
  }

  release(pool: NodePool, count: number): void {
    const name = pool.metadata.name ?? '';
    const left = (this.#reserved.get(name) ?? 0) - count;
    if (left > 0) this.#reserved.set(name, left);
    else this.#reserved.delete(name);
  }

  /** A NodeClaim was written: it counts from now on. */
  wrote(claim: NodeClaim): void {
    const { name = '' } = claim.metadata;
    if (!this.#context.claims.informer.get(name)) {
      this.#written.set(name, claim.metadata.labels?.[labels.nodePool] ?? '');
    }
  }

  /** A command replaces it, or has given that up. */
  setPending(claim: NodeClaim, pending: boolean): void {
    const { name = '' } = claim.metadata;
    if (pending) this.#pending.add(name);
    else this.#pending.delete(name);
  }

  /** One more machine of a pool: whatever its template allows, its cloud chooses. */
  planFor(pool: NodePool): NewNodeClaim {
    const cloud = this.#context.registry.serving(pool.spec.template.spec.nodeClassRef);
    const requirements = poolRequirements(pool, cloud.labels);
    if (typeof requirements === 'string') throw new KarpenterError('KRP_NODEPOOL_REQUIREMENTS', requirements);
    const sorted = [...requirements.values()].sort((a, b) => compareStrings(a.key, b.key));
    return {
      nodePool: pool.metadata.name ?? '',
      requirements: sorted.flatMap((requirement) => requirement.toSpecs()),
      instanceTypes: [],
      price: 0,
      requests: {},
      pods: [],
    };
  }
}
