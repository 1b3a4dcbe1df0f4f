// SPDX-License-Identifier: Apache-2.0
// The main loop: a batch of pods, a plan, NodeClaims. Reads both clusters through the state, writes NodeClaims into
// `karpenter` and events where their objects live.
import { getCondition, nodePoolConditions } from '../../api/conditions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Random } from '../../base/random.ts';
import { isUnevaluatedNodePool } from '../../cloud/errors.ts';
import { metered } from '../../cloud/metered-provider.ts';
import { CloudRegistry } from '../../cloud/registry.ts';
import type { Pod } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import type { Clusters } from '../../runtime/clusters.ts';
import type { ReconcileContext, Result } from '../../runtime/controller.ts';
import type { Executor } from '../../runtime/executor.ts';
import { ChangeMonitor, formatList, type Logger, objectField } from '../../runtime/logging.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import type { Settings } from '../../runtime/settings.ts';
import type { NewNodeClaim, Problem, SolveResult } from '../../scheduling/problem.ts';
import type { VolumeIndex } from '../../scheduling/volumes.ts';
import type { ClusterState } from '../../state/cluster-state.ts';
import type { DefaultSpread } from '../../state/default-spread.ts';
import { PdbLimits } from '../../state/pdb-limits.ts';
import { type PoolCatalog, PoolCatalogReader } from '../../state/pool-catalog.ts';
import { nominationLimiter } from '../events.ts';
import type { PodArrivals } from './arrivals.ts';
import type { Batcher } from './batcher.ts';
import { ConsolidationHazards } from './consolidation-hazards.ts';
import { ClaimCreator, type CreateOutcome } from './create-claims.ts';
import { countByZone, zonesOf } from './effective-zone.ts';
import { failedScheduling, noCompatibleInstanceTypes, nominated } from './events.ts';
import { provisioningMetrics } from './metrics.ts';
import { buyingObstacle, passProblem } from './pass-problem.ts';
import { solveTask } from './solve-task.ts';
import { UnchangedProblem } from './unchanged-problem.ts';
import type { ValidatedPods } from './validate-pods.ts';
import { ZoneRules } from './zone-rules.ts';

export interface ProvisionerOptions {
  readonly clusters: Clusters;
  readonly state: ClusterState;
  readonly registry: CloudRegistry;
  readonly executor: Executor;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  readonly settings: Settings;
  readonly batcher: Batcher;
  /** Pods that kube-scheduler has not looked at yet; none unless told. */
  readonly arrivals?: Pick<PodArrivals, 'siblingsOf' | 'areUnderWay'>;
  /** Spread constraints for pods that bring none; none unless told. */
  readonly defaultSpread?: DefaultSpread;
  /** A pass ends with what it has after this long; a minute unless told. */
  readonly passTimeoutMs?: number;
}

const defaultPassTimeoutMs = 60_000;
/** How long to wait before asking again whether every NodeClaim has its machine. */
const unsyncedRetryMs = 100;
const controller = 'provisioner';

/** What a pass was about and what came of it. */
interface Pass {
  readonly catalog: PoolCatalog;
  readonly pods: ValidatedPods;
  readonly result: SolveResult;
  /** Of clouds that have a NodeClaim on its way: what that one will hold is not known, so nothing more is bought there. */
  readonly deferred: readonly NewNodeClaim[];
}

/** One turn after the other: `reconcile` is the body of a singleton controller. */
export class Provisioner {
  readonly #options: ProvisionerOptions;
  readonly #creator: ClaimCreator;
  readonly #hazards: ConsolidationHazards;
  readonly #nominations: { tryTake(): boolean };
  readonly #emptyPools: ChangeMonitor;
  readonly #catalogs: PoolCatalogReader;
  readonly #unchanged = new UnchangedProblem<Pick<Pass, 'pods' | 'result'>>();
  /** Of the controller: calls that a pass did not wait for end with it. */
  #lifetime: AbortSignal | undefined;
  /** A window has ended and what it held was not planned for yet. */
  #due = false;
  /** Clouds for which the last pass had plans that had to wait for a launch. */
  #awaited: ReadonlySet<string> = new Set();

  constructor(options: ProvisionerOptions) {
    const { clock, metrics } = options;
    const providers = options.registry.providers.map((cloud) => metered(cloud, { metrics, clock, controller }));
    this.#options = { ...options, registry: new CloudRegistry(providers) };
    this.#creator = new ClaimCreator(options);
    this.#hazards = new ConsolidationHazards(options.clock);
    this.#nominations = nominationLimiter(options.clock);
    this.#emptyPools = new ChangeMonitor(options.clock);
    this.#catalogs = new PoolCatalogReader({
      registry: this.#options.registry,
      clock,
      onLate: (pool) => options.batcher.trigger(pool.metadata.uid ?? ''),
    });
  }

  /**
   * Waits for a batch and serves it. Without one, and with nothing else to wait for, it rests until it is asked again. A
   * NodeClaim that cannot be created is logged, and its pods come back with the next trigger: one pool that is refused must
   * not slow down the others. Throws when no plan could be made.
   */
  async reconcile(signal: AbortSignal, { log, stopping }: ReconcileContext): Promise<Result> {
    const { batcher, state } = this.#options;
    this.#lifetime = stopping;
    if (!this.#due && this.#awaited.size === 0 && !batcher.isTriggered) return {};
    this.#due ||= (await batcher.wait(stopping)) || this.#isAwaitedOver();
    if (stopping.aborted || !this.#due) return { requeueAfterMs: 0 };
    if (!state.hasRead || this.#options.defaultSpread?.hasRead === false || this.#isStalled()) {
      log.debug('waiting on cluster sync', { unlaunched: state.unlaunchedClaims.size });
      return { requeueAfterMs: unsyncedRetryMs };
    }
    const pass = await this.schedule(signal, log);
    this.#awaited = new Set((pass?.deferred ?? []).map((plan) => this.#cloudOf(plan)));
    if (pass) await this.#provision(pass, signal, log);
    this.#due = false;
    return { requeueAfterMs: 0 };
  }

  /** Whether every cloud that could sell something has a NodeClaim on its way: a plan would only have to wait. */
  #isStalled(): boolean {
    const { state, registry } = this.#options;
    const hold = state.launchHold();
    if (!hold) return false;
    const pools = state.sources.nodePools.list().filter((pool) => buyingObstacle(pool, registry) === undefined);
    return pools.every((pool) => hold.clouds.has(registry.ofNodePool(pool)?.name ?? ''));
  }

  /** Whether a cloud for which plans had to wait has launched everything by now. */
  #isAwaitedOver(): boolean {
    if (this.#awaited.size === 0) return false;
    const hold = this.#options.state.launchHold();
    return [...this.#awaited].some((cloud) => !hold?.clouds.has(cloud));
  }

  #cloudOf({ nodePool }: NewNodeClaim): string {
    const { state, registry } = this.#options;
    const pool = state.nodePool(nodePool);
    return (pool && registry.ofNodePool(pool)?.name) ?? '';
  }

  /** Plans for all pods that wait or will have to move; undefined when there are none. Changes nothing but memory and metrics. */
  async schedule(signal: AbortSignal, log: Logger): Promise<Pass | undefined> {
    const { state, registry, clock, metrics, random, settings, defaultSpread, arrivals } = this.#options;
    const started = clock.monotonic();
    if (state.pendingCount === 0 && !this.#hasPodsToMove()) {
      metrics.gauge(provisioningMetrics.ignoredPods).set({}, 0);
      metrics.gauge(provisioningMetrics.unschedulablePods).set({ controller }, 0);
      return undefined;
    }
    const catalog = await this.#readCatalog(signal, log);
    // From here to the solver nothing is awaited: the problem is one state of the cluster.
    const now = clock.now();
    const hold = state.launchHold();
    // What a NodeClaim on its way holds, what spreads pods by default and who is still to be looked at is not compared.
    const isComparable = !hold && !defaultSpread && !arrivals?.areUnderWay;
    const seen = isComparable ? this.#unchanged.look(state, catalog, now) : [];
    const known = isComparable ? this.#unchanged.answerTo(seen, started) : undefined;
    if (known) return this.#again({ ...known, catalog, deferred: [] }, log);
    const { problem, pods, volumes } = passProblem({
      state,
      registry,
      catalog,
      settings,
      defaultSpread,
      arrivals,
      hold,
      now,
    });
    this.#recordZones(pods.valid, catalog, volumes);
    this.#recordIgnored(pods, log);
    if (settings.preferencePolicy === 'Respect') this.#hazards.tell(pods.valid, log);
    const solved = await this.#solve(problem, pods.valid.length, random.uuid(), signal);
    const deferred = hold ? solved.newNodeClaims.filter((plan) => hold.clouds.has(this.#cloudOf(plan))) : [];
    const newNodeClaims = solved.newNodeClaims.filter((plan) => !deferred.includes(plan));
    const result = deferred.length > 0 ? { ...solved, newNodeClaims } : solved;
    metrics
      .histogram(provisioningMetrics.schedulingDuration)
      .observe({ controller }, (clock.monotonic() - started) / 1000);
    if (result.newNodeClaims.length > 0)
      log.info('found provisionable pod(s)', () => ({
        Pods: formatList(podsOf(result), 5),
        duration: `${Math.round(clock.monotonic() - started)}ms`,
      }));
    const pass = { catalog, pods, result, deferred };
    this.#recordResult(pass, log);
    // What buys something changes the cluster; what ran out of time may get further next time.
    if (isComparable && result.newNodeClaims.length === 0 && !result.stats.timedOut)
      this.#unchanged.remember(seen, { pods, result }, started);
    return pass;
  }

  /** A pass about nothing new: its answer is told again, as that of another plan would be. */
  #again(pass: Pass, log: Logger): Pass {
    const { metrics, settings } = this.#options;
    this.#recordIgnored(pass.pods, log);
    if (settings.preferencePolicy === 'Respect') this.#hazards.tell(pass.pods.valid, log);
    metrics.histogram(provisioningMetrics.schedulingDuration).observe({ controller }, 0);
    this.#recordResult(pass, log);
    return pass;
  }

  async #solve(problem: Problem, depth: number, id: string, signal: AbortSignal): Promise<SolveResult> {
    const { executor, clock, metrics, passTimeoutMs = defaultPassTimeoutMs } = this.#options;
    const labels = { controller, scheduling_id: id };
    const queueDepth = metrics.gauge(provisioningMetrics.queueDepth);
    const unfinished = metrics.gauge(provisioningMetrics.unfinishedWork);
    const started = clock.monotonic();
    const stop = metrics.onScrape(() => unfinished.set(labels, (clock.monotonic() - started) / 1000));
    queueDepth.set(labels, depth);
    try {
      return await executor.run(solveTask, { problem, timeoutMs: passTimeoutMs }, signal);
    } finally {
      stop();
      queueDepth.delete(labels);
      unfinished.delete(labels);
    }
  }

  /** Whether a machine that goes away has pods that need another place. */
  #hasPodsToMove(): boolean {
    const { state, clock } = this.#options;
    const limits = new PdbLimits(state.sources.podDisruptionBudgets.list());
    for (const machine of state.nodes()) {
      if (!machine.markedForDeletion) continue;
      for (const pod of machine.runningPods()) if (limits.isCurrentlyReschedulable(pod, clock.now())) return true;
    }
    return false;
  }

  /** The pools that may buy now, with what their clouds sell. */
  async #readCatalog(signal: AbortSignal, log: Logger): Promise<PoolCatalog> {
    const { state, registry } = this.#options;
    const pools = state.sources.nodePools.list().filter((pool) => {
      const obstacle = buyingObstacle(pool, registry);
      if (obstacle === 'not ready') log.debug('ignoring nodepool, not ready', objectField(pool, 'NodePool'));
      return obstacle === undefined;
    });
    if (pools.length === 0) log.info('no nodepools found');
    const catalog = await this.#catalogs.read(pools, signal, this.#lifetime);
    for (const { pool, error } of catalog.failures) {
      if (!isUnevaluatedNodePool(error))
        log.error('skipping, unable to resolve instance types', { ...objectField(pool, 'NodePool'), error });
    }
    const failed = new Set(catalog.failures.map(({ pool }) => pool));
    const able = catalog.pools.filter((pool) => {
      if (failed.has(pool)) return false;
      const some = (catalog.instanceTypes[pool.metadata.name ?? '']?.length ?? 0) > 0;
      if (this.#emptyPools.hasChanged(pool.metadata.uid ?? '', some) && !some)
        log.info('skipping, no resolved instance types found', objectField(pool, 'NodePool'));
      return some;
    });
    return { ...catalog, pools: able };
  }

  #recordZones(pods: readonly Pod[], catalog: PoolCatalog, volumes: VolumeIndex): void {
    const { state, metrics } = this.#options;
    const rules = new ZoneRules({ nodes: () => state.nodes(), namespaces: state.sources.namespaces.list() });
    const counts = countByZone(pods, zonesOf(catalog), volumes, rules);
    const pending = metrics.gauge(provisioningMetrics.pendingByZone);
    pending.clear();
    for (const [zone, count] of counts) pending.set({ controller, zone }, count);
  }

  #recordIgnored({ ignored }: ValidatedPods, log: Logger): void {
    const { clusters, metrics } = this.#options;
    metrics.gauge(provisioningMetrics.ignoredPods).set({}, ignored.length);
    for (const { pod, reason, byChoice } of ignored) {
      if (byChoice) continue;
      log.debug('ignoring pod', { ...objectField(pod, 'Pod'), error: reason });
      clusters.workload.events.publish(failedScheduling(pod, reason));
    }
  }

  /** What users and the rest of the program learn from a plan, whether or not its machines can be bought. */
  #recordResult({ catalog, pods, result }: Pass, log: Logger): void {
    const { state, clusters, metrics } = this.#options;
    const { workload, karpenter } = clusters;
    const podOf = podFinder(state, pods.valid);
    let unschedulable = 0;
    const failed: string[] = [];
    for (const { pod: key, reason, detail, deferred } of result.errors) {
      const pod = podOf(key);
      if (!pod || deferred) continue;
      unschedulable++;
      failed.push(pod.metadata.uid ?? key);
      log.error('could not schedule pod', { ...objectField(pod, 'Pod'), error: reason, detail });
      workload.events.publish(failedScheduling(pod, reason));
    }
    metrics.gauge(provisioningMetrics.unschedulablePods).set({ controller }, unschedulable);
    for (const { object, reason } of result.objectErrors) {
      const [kind, name = ''] = object.split('/');
      const pool = kind === 'NodePool' ? catalog.pools.find(({ metadata }) => metadata.name === name) : undefined;
      if (pool) karpenter.events.publish(noCompatibleInstanceTypes(pool, reason));
      log.error('skipping, cannot be used', { object, error: reason });
    }
    this.#recordExisting(result, podOf, log);
    const waits = state.bookkeeping.decide({
      failed: [...failed, ...pods.ignored.map(({ pod }) => pod.metadata.uid ?? '')],
      placed: this.#placed(result, podOf),
    });
    const decision = metrics.histogram(provisioningMetrics.decisionDuration);
    for (const wait of waits) decision.observe({}, wait / 1000);
  }

  /** Pods that will fit on machines that are there or on their way: those are promised to them. */
  #recordExisting(result: SolveResult, podOf: PodFinder, log: Logger): void {
    const { state, clusters } = this.#options;
    let [unready, waiting] = [0, 0];
    for (const { name, pods } of result.existingNodes) {
      const machine = state.nodeByName(name) ?? state.nodeByClaim(name);
      if (!machine) continue;
      state.nominate(machine.key);
      if (!machine.initialized) {
        unready++;
        waiting += pods.length;
      }
      const target = { nodeClaim: machine.nodeClaim?.metadata.name, node: machine.node?.metadata.name };
      for (const key of pods) {
        const pod = podOf(key);
        if (!pod) continue;
        if (target.nodeClaim !== undefined && !machine.initialized)
          state.bookkeeping.assign(pod.metadata.uid ?? key, target.nodeClaim);
        clusters.workload.events.publish(nominated(pod, target, this.#nominations));
      }
    }
    if (unready > 0) log.info('computed unready node(s) will fit pod(s)', { nodes: unready, pods: waiting });
  }

  *#placed(result: SolveResult, podOf: PodFinder): Generator<{ uid: string; healthyPool: boolean }> {
    const { state } = this.#options;
    for (const { name, pods } of result.existingNodes) {
      const pool = (state.nodeByName(name) ?? state.nodeByClaim(name))?.nodePool;
      yield* this.#placedIn(pool, pods, podOf);
    }
    for (const { nodePool, pods } of result.newNodeClaims) yield* this.#placedIn(nodePool, pods, podOf);
  }

  *#placedIn(
    pool: string | undefined,
    keys: readonly string[],
    podOf: PodFinder,
  ): Generator<{ uid: string; healthyPool: boolean }> {
    const known = pool === undefined ? undefined : this.#options.state.nodePool(pool);
    const health = known && getCondition(known, nodePoolConditions.nodeRegistrationHealthy);
    // Nodes of nobody are there already; nothing has to register.
    const healthyPool = pool === undefined || health?.status === 'True';
    for (const key of keys) {
      const uid = podOf(key)?.metadata.uid;
      if (uid !== undefined) yield { uid, healthyPool };
    }
  }

  async #provision({ catalog, pods, result }: Pass, signal: AbortSignal, log: Logger): Promise<void> {
    const { newNodeClaims } = result;
    if (newNodeClaims.length === 0) return;
    const podOf = podFinder(this.#options.state, pods.valid);
    log.info('computed new nodeclaim(s) to fit pod(s)', {
      nodeclaims: newNodeClaims.length,
      pods: newNodeClaims.reduce((sum, plan) => sum + plan.pods.length, 0),
    });
    const outcomes = await this.#creator.create(newNodeClaims, { reason: 'provisioned', catalog, log, signal });
    for (const outcome of outcomes) {
      if ('claim' in outcome) this.#recordCreated(outcome, podOf);
      else log.error('failed creating nodeclaim', { NodePool: { name: outcome.plan.nodePool }, error: outcome.error });
    }
  }

  #recordCreated({ plan, claim }: Extract<CreateOutcome, { claim: unknown }>, podOf: PodFinder): void {
    const { clusters } = this.#options;
    const name = claim.metadata.name ?? '';
    for (const key of plan.pods) {
      const pod = podOf(key);
      if (!pod) continue;
      clusters.workload.events.publish(nominated(pod, { nodeClaim: name }, this.#nominations));
    }
  }
}

/** Everything the plan is about: pods that wait, and those of machines that go away. */
function podsOf({ newNodeClaims, existingNodes, errors }: SolveResult): string[] {
  return [...newNodeClaims, ...existingNodes].flatMap(({ pods }) => pods).concat(errors.map(({ pod }) => pod));
}

type PodFinder = (key: string) => Pod | undefined;

/** Pods by `namespace/name`: as they were planned for; those that move, as they are. */
function podFinder(state: ClusterState, planned: readonly Pod[]): PodFinder {
  const byKey = new Map(planned.map((pod) => [keyOf(pod), pod]));
  return (key) => byKey.get(key) ?? state.sources.pods.get(key);
}
