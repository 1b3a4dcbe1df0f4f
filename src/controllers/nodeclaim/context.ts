// SPDX-License-Identifier: Apache-2.0
// What the controllers of NodeClaims and NodePools share: the objects they read and write, ways from one to the other,
// and how a controller is set up. NodePools, NodeClaims and NodeClasses are of the cluster `karpenter`, Nodes and Pods
// of `workload`.
import { nodeClaimConditionTypes, nodePoolConditionTypes } from '../../api/conditions.ts';
import { labels } from '../../api/labels.ts';
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import { type NodePool, nodePoolKind } from '../../api/node-pool.ts';
import type { Clock } from '../../base/clock.ts';
import { metered } from '../../cloud/metered-provider.ts';
import { CloudRegistry } from '../../cloud/registry.ts';
import type { Informer } from '../../kube/informer.ts';
import { kinds, type Node } from '../../kube/kinds.ts';
import { type KubeObject, keyOf, type ResourceType } from '../../kube/object.ts';
import type { Clusters } from '../../runtime/clusters.ts';
import { Controller, type ControllerOptions } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { linearScaleReconciles } from '../../runtime/rate-limiters.ts';
import type { Settings } from '../../runtime/settings.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import { PoolHealth } from '../nodepool/registration-health/pool-health.ts';
import { Draft } from './draft.ts';
import { ObjectStore } from './object-store.ts';

export interface ControllerContextOptions {
  readonly clusters: Clusters;
  readonly registry: CloudRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly settings: Pick<Settings, 'cpuRequests' | 'ignoreDraRequests'>;
  readonly state: ClusterState;
}

const byProviderID = 'providerID';

/** Made once for all controllers of NodeClaims and NodePools: they see each other's writes at once. */
export class ControllerContext {
  readonly clusters: Clusters;
  readonly registry: CloudRegistry;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly settings: ControllerContextOptions['settings'];
  readonly state: ClusterState;
  readonly claims: ObjectStore<NodeClaim>;
  readonly pools: ObjectStore<NodePool>;
  readonly nodes: ObjectStore<Node>;
  readonly poolHealth = new PoolHealth();
  readonly #nodeClasses = new Map<string, Informer<KubeObject>>();

  constructor(options: ControllerContextOptions) {
    const { clusters, registry } = options;
    this.clusters = clusters;
    this.registry = registry;
    this.clock = options.clock;
    this.log = options.log;
    this.metrics = options.metrics;
    this.settings = options.settings;
    this.state = options.state;
    this.claims = new ObjectStore(clusters.karpenter, nodeClaimKind as ResourceType<NodeClaim>);
    this.pools = new ObjectStore(clusters.karpenter, nodePoolKind as ResourceType<NodePool>);
    this.nodes = new ObjectStore(clusters.workload, kinds.Node);
    this.claims.informer.addIndex(byProviderID, (claim) => claim.status?.providerID || undefined);
    this.nodes.informer.addIndex(byProviderID, (node) => node.spec?.providerID || undefined);
    for (const type of registry.nodeClasses) {
      // A NodeClass kind that is not installed means that no NodePool of it can be ready, no more.
      const informer = clusters.karpenter.informers.get(type, { tolerateMissing: true });
      this.#nodeClasses.set(`${type.kind}.${type.group}`, informer);
    }
  }

  draftOfClaim(claim: NodeClaim): Draft<NodeClaim> {
    return new Draft(claim, nodeClaimConditionTypes, this.clock);
  }

  draftOfPool(pool: NodePool): Draft<NodePool> {
    return new Draft(pool, nodePoolConditionTypes, this.clock);
  }

  /** The NodeClaim, if it is one of ours. */
  claim(name: string): NodeClaim | undefined {
    const claim = this.claims.get(name);
    return claim && this.registry.ofNodeClaim(claim) ? claim : undefined;
  }

  /** The NodePool, if it is one of ours. */
  pool(name: string): NodePool | undefined {
    const pool = this.pools.get(name);
    return pool && this.registry.ofNodePool(pool) ? pool : undefined;
  }

  /** The NodePool a NodeClaim says it is of; NodeClaims that a person wrote may have none. */
  poolOf(claim: NodeClaim): NodePool | undefined {
    const name = claim.metadata.labels?.[labels.nodePool];
    return name === undefined ? undefined : this.pool(name);
  }

  claimsOfPool(pool: NodePool): NodeClaim[] {
    const { name } = pool.metadata;
    return this.claims
      .list()
      .filter((claim) => claim.metadata.labels?.[labels.nodePool] === name && this.registry.ofNodeClaim(claim));
  }

  /** Every Node that says it is the machine of a NodeClaim. More than one is a fault of whoever registered them. */
  nodesOf(claim: NodeClaim): Node[] {
    const providerID = claim.status?.providerID;
    if (!providerID) return [];
    return this.nodes.informer.byIndex(byProviderID, providerID).map((node) => this.nodes.get(keyOf(node)) ?? node);
  }

  /** The NodeClaims of ours whose machine a Node says it is. */
  claimsOf(node: Node): NodeClaim[] {
    const providerID = node.spec?.providerID;
    if (!providerID) return [];
    return this.claims.informer
      .byIndex(byProviderID, providerID)
      .filter((claim) => this.registry.ofNodeClaim(claim))
      .map((claim) => this.claims.get(keyOf(claim)) ?? claim);
  }

  /** The NodeClass a NodePool or NodeClaim refers to, if it exists. */
  nodeClass(ref: { readonly group: string; readonly kind: string; readonly name: string }): KubeObject | undefined {
    return this.#nodeClasses.get(`${ref.kind}.${ref.group}`)?.get(ref.name);
  }

  /** The NodeClasses of all providers, to watch. */
  get nodeClasses(): Iterable<Informer<KubeObject>> {
    return this.#nodeClasses.values();
  }

  /** The names of the NodePools that refer to a NodeClass. */
  poolsOfNodeClass(nodeClass: KubeObject): string[] {
    return this.pools.informer
      .list()
      .filter((pool) => refersTo(pool.spec.template.spec.nodeClassRef, nodeClass))
      .map(keyOf);
  }

  /** The providers, their calls counted for one controller. */
  cloudsFor(controller: string): CloudRegistry {
    const { metrics, clock } = this;
    return new CloudRegistry(this.registry.providers.map((cloud) => metered(cloud, { metrics, clock, controller })));
  }

  /** A controller that works on so many objects at once, more of them with more CPU. */
  controller(
    options: Omit<ControllerOptions, 'clock' | 'log' | 'metrics' | 'maxConcurrent'> & {
      readonly concurrent: number | readonly [min: number, max: number];
    },
  ): Controller {
    const { concurrent, ...rest } = options;
    const { clock, log, metrics } = this;
    const maxConcurrent = typeof concurrent === 'number' ? concurrent : this.concurrency(...concurrent);
    return new Controller({ ...rest, clock, log, metrics, maxConcurrent });
  }

  concurrency(min: number, max: number): number {
    return linearScaleReconciles(this.settings.cpuRequests, min, max);
  }
}

/** Whether a reference names this NodeClass. */
export function refersTo(
  ref: { readonly group: string; readonly kind: string; readonly name: string },
  nodeClass: KubeObject,
): boolean {
  const group = nodeClass.apiVersion?.split('/')[0];
  return ref.name === nodeClass.metadata.name && ref.kind === nodeClass.kind && ref.group === group;
}
