// SPDX-License-Identifier: Apache-2.0
// Writes the NodeClaims of a plan, each for itself: one that fails takes no other with it. Disruption makes its
// replacements through here, too.
import { labels } from '../../api/labels.ts';
import type { NodeClaim } from '../../api/node-claim.ts';
import { nodeClaimKind } from '../../api/node-claim.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { KarpenterError, wrap } from '../../base/errors.ts';
import { compareStrings } from '../../base/order.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import { apiErrorOf } from '../../kube/api-error.ts';
import type { ResourceType } from '../../kube/object.ts';
import { Quantity } from '../../kube/quantity.ts';
import { type Clusters, ownerReference } from '../../runtime/clusters.ts';
import { formatList, type Logger, objectField } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { NewNodeClaim } from '../../scheduling/problem.ts';
import { conflict, requirementsOf, requirementsOfLabels } from '../../scheduling/requirements.ts';
import { readAmounts } from '../../state/amounts.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import { nextReading, type PoolCatalog } from '../../state/pool-catalog.ts';
import { provisioningMetrics } from './metrics.ts';
import { nodeClaimFor } from './node-claim.ts';

export interface ClaimCreatorOptions {
  readonly clusters: Clusters;
  readonly state: ClusterState;
  readonly registry: CloudRegistry;
  readonly metrics: Metrics;
  /** Is told of a NodeClaim that was written although the answer was lost. */
  readonly onFound?: (claim: NodeClaim) => void;
}

export interface CreateOptions {
  /** For the metric: why machines are bought. */
  readonly reason: string;
  readonly catalog: PoolCatalog;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** What became of one plan. */
export type CreateOutcome =
  | { readonly plan: NewNodeClaim; readonly claim: NodeClaim }
  | { readonly plan: NewNodeClaim; readonly error: Error };

/** A NodePool already has more than its limits allow. */
export class PoolLimitError extends KarpenterError {
  constructor(pool: string, exceeded: string) {
    super('KRP_NODEPOOL_LIMIT', `all of the limits of nodepool ${pool} are used up: ${exceeded}`);
  }
}

/** Others buy at the same cloud, and the plan knows nothing of it. */
class CloudTakenError extends KarpenterError {
  constructor(cloud: string) {
    super('KRP_CLOUD_TAKEN', `others bought at ${cloud} since the plan was made`);
  }
}

/** NodeClaims were written of which nobody had heard: the plan counts on fewer machines than there will be. */
class FoundClaimsError extends KarpenterError {
  constructor(names: readonly string[]) {
    super(
      'KRP_NODECLAIMS_FOUND',
      `the answer was lost when these were written, and they are there: ${names.join(', ')}`,
    );
  }
}

/** Who bought at a cloud last. */
interface Purchases {
  /** Of which reading their plans are. */
  readonly reading: number;
  /** How many are being written. */
  pending: number;
  /** When the last of them began or ended. */
  at: number;
}

/** By what is known of the cluster, which provisioning and disruption share, and by cloud. */
const purchasesOf = new WeakMap<ClusterState, Map<string, Purchases>>();

/** Turns plans into NodeClaims in the cluster `karpenter`. */
export class ClaimCreator {
  readonly #options: ClaimCreatorOptions;
  /** Pools for which a NodeClaim may have been written although it was not answered. */
  readonly #doubtful = new Set<string>();

  constructor(options: ClaimCreatorOptions) {
    this.#options = options;
  }

  /** Creates all of them at once. Never rejects: each outcome says what became of its plan, in the order of the plans. */
  create(plans: readonly NewNodeClaim[], options: CreateOptions): Promise<CreateOutcome[]> {
    const looked = new Map<string, Promise<void>>();
    for (const { nodePool } of plans)
      if (this.#doubtful.has(nodePool) && !looked.has(nodePool))
        looked.set(nodePool, this.#findUnheardOf(nodePool, options.signal));
    return Promise.all(
      plans.map(async (plan): Promise<CreateOutcome> => {
        try {
          const looking = looked.get(plan.nodePool);
          if (looking) await looking;
          return { plan, claim: await this.#createOne(plan, options) };
        } catch (error) {
          return { plan, error: wrap('creating nodeclaim', error) };
        }
      }),
    );
  }

  /** Throws when nothing can be bought for one of the plans as things are now. */
  check(plans: readonly NewNodeClaim[]): void {
    for (const { nodePool } of plans) this.#usablePool(nodePool);
  }

  /**
   * Asks the API server itself what there is of a pool: a watch may be late by minutes, and without the machines whose answers were lost
   * they would be bought once more with every try. Throws when there is one that nobody knew of.
   */
  async #findUnheardOf(pool: string, signal: AbortSignal): Promise<void> {
    const { clusters, state, onFound } = this.#options;
    const claims = clusters.karpenter.client.resource(nodeClaimKind as ResourceType<NodeClaim>);
    const { items } = await claims.listAll({ labelSelector: `${labels.nodePool}=${pool}`, signal });
    const found = items.filter(({ metadata }) => !state.hasClaim(metadata.name ?? ''));
    for (const claim of found) {
      state.trackCreated(claim);
      onFound?.(claim);
    }
    this.#doubtful.delete(pool);
    if (found.length > 0) throw new FoundClaimsError(found.map(({ metadata }) => metadata.name ?? ''));
  }

  async #createOne(plan: NewNodeClaim, { reason, catalog, log, signal }: CreateOptions): Promise<NodeClaim> {
    const { clusters, state, metrics } = this.#options;
    const pool = this.#usablePool(plan.nodePool);
    refuseOutdated(plan, pool);
    const cluster = clusters.karpenter;
    const draft = nodeClaimFor({
      pool,
      plan,
      instanceTypes: catalog.instanceTypes[plan.nodePool] ?? [],
      labelSet: this.#options.registry.serving(pool.spec.template.spec.nodeClassRef).labels,
      owner: ownerReference({ cluster, object: pool }, cluster, { blockOwnerDeletion: true }),
    });
    const written = this.#take(pool, catalog);
    let claim: NodeClaim;
    try {
      claim = await cluster.client.resource(nodeClaimKind as ResourceType<NodeClaim>).create(draft, { signal });
      // At once: the next pass must not buy the same machine again because the watch is late.
      state.trackCreated(claim, plan.pods);
    } catch (error) {
      if ((apiErrorOf(error)?.status ?? 500) >= 500) this.#doubtful.add(plan.nodePool);
      throw error;
    } finally {
      written();
    }
    metrics.counter(provisioningMetrics.nodeClaimsCreated).inc({
      reason,
      nodepool: plan.nodePool,
      min_values_relaxed: String(plan.minValuesRelaxed ?? false),
    });
    log.info('created nodeclaim', {
      ...objectField(pool, 'NodePool'),
      ...objectField(claim, 'NodeClaim'),
      requests: plan.requests,
      'instance-types': formatList(plan.instanceTypes, 5),
    });
    return claim;
  }

  /**
   * Provisioning and disruption plan at the same time, each without the other's machines: the second of them would exceed
   * limits and reservations. It plans again. Gives what is called when the NodeClaim is written.
   */
  #take(pool: NodePool, { reading }: PoolCatalog): () => void {
    if (reading === undefined) return () => undefined;
    const { state, registry } = this.#options;
    let purchases = purchasesOf.get(state);
    if (!purchases) purchasesOf.set(state, (purchases = new Map()));
    const cloud = registry.ofNodePool(pool)?.name ?? '';
    const last = purchases.get(cloud);
    if (last && last.reading !== reading && (last.pending > 0 || last.at > reading)) throw new CloudTakenError(cloud);
    const own = last?.reading === reading ? last : { reading, pending: 0, at: 0 };
    purchases.set(cloud, own);
    own.pending++;
    own.at = nextReading();
    return () => {
      own.pending--;
      own.at = nextReading();
    };
  }

  /** The pool as it is now: since the plan was made it may have gone, or others may have used it up. */
  #usablePool(name: string): NodePool {
    const { state } = this.#options;
    const pool = state.nodePool(name);
    if (!pool || pool.metadata.deletionTimestamp !== undefined)
      throw new KarpenterError('KRP_NODEPOOL_GONE', `nodepool ${name} is gone`);
    const usage = state.poolUsage(name);
    const exceeded: string[] = [];
    for (const [resource, limit] of readAmounts(pool.spec.limits)) {
      const used = usage.get(resource) ?? 0n;
      if (used <= limit) continue;
      const [has, may] = [used, limit].map((nano) => Quantity.fromNano(nano).toString());
      exceeded.push(`${resource} ${has} of ${may}`);
    }
    if (exceeded.length > 0) throw new PoolLimitError(name, exceeded.sort(compareStrings).join(', '));
    return pool;
  }
}

/**
 * A plan waits before it is carried out, and users edit NodePools meanwhile. A NodeClaim of both versions would require one
 * label and carry another, under a hash that says that it is up to date.
 */
function refuseOutdated(plan: NewNodeClaim, { metadata, spec }: NodePool): void {
  const changed = conflict(requirementsOf(plan.requirements), requirementsOfLabels(spec.template.metadata?.labels));
  if (changed === undefined) return;
  throw new KarpenterError(
    'KRP_NODEPOOL_CHANGED',
    `nodepool ${metadata.name} has changed since the plan was made: label ${changed}`,
  );
}
