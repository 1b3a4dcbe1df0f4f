// SPDX-License-Identifier: Apache-2.0
// The loop of voluntary disruption: asks each method in turn what had better go, lets what it says stand the test of
// time, and has it carried out. Reads both clusters through the state.

import type { DisruptionReason, NodePool } from '../../api/node-pool.ts';
import { messageOf } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import { keyOf } from '../../kube/object.ts';
import { type Controller, type ReconcileContext, type Result, singleton } from '../../runtime/controller.ts';
import { ChangeMonitor, type Logger, objectField } from '../../runtime/logging.ts';
import { type GaugeSample, GaugeStore } from '../../runtime/metrics.ts';
import { PdbLimits } from '../../state/pdb-limits.ts';
import { type PoolCatalog, readPoolCatalog } from '../../state/pool-catalog.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { protectionEvents } from '../pod-protection.ts';
import { BudgetLedger, type PoolBudget, poolBudgets } from './budgets.ts';
import { type Candidate, findCandidates } from './candidates.ts';
import { isInWindow } from './cron-window.ts';
import { poolBlocked, tellBlocked, tellUnconsolidatable } from './events.ts';
import { DisruptionMarks } from './marks.ts';
import type { Method, MethodView, Proposal } from './method.ts';
import { disruptionMetrics } from './metrics.ts';
import { type DisruptionQueue, snakeCase } from './queue.ts';

const pollMs = 10_000;
const unsyncedRetryMs = 1000;
const abnormalMs = 15 * 60_000;

export interface DisruptionOptions {
  readonly context: ControllerContext;
  readonly queue: DisruptionQueue;
  readonly marks: DisruptionMarks;
  /** In the order they are asked. */
  readonly methods: readonly Method[];
  /** For the ids of commands. */
  readonly random: Random;
}

/** Proposals that must hold for a while before they are carried out. */
interface Waiting {
  readonly method: Method;
  readonly proposals: readonly Proposal[];
  /** Monotonic. */
  readonly dueAt: number;
}

/** The controller `disruption`. */
export class Disruption {
  readonly controller: Controller;
  readonly #options: DisruptionOptions;
  readonly #context: ControllerContext;
  readonly #clouds: CloudRegistry;
  readonly #budgetGauges = new Map<DisruptionReason, GaugeStore>();
  readonly #invalidBudgets: ChangeMonitor;
  /** When each method was last asked. Monotonic. */
  readonly #lastRuns = new Map<string, number>();
  #waiting: Waiting | undefined;

  constructor(options: DisruptionOptions) {
    const { context } = options;
    this.#options = options;
    this.#context = context;
    this.#clouds = context.cloudsFor('disruption');
    this.#invalidBudgets = new ChangeMonitor(context.clock);
    const { clock, log, metrics } = context;
    const reconcile = (signal: AbortSignal, run: ReconcileContext): Promise<Result> => this.#reconcile(signal, run);
    this.controller = singleton({ name: 'disruption', reconcile, clock, log, metrics });
  }

  async #reconcile(signal: AbortSignal, { log }: ReconcileContext): Promise<Result> {
    const { state, clock } = this.#context;
    this.#logAbnormalRuns(log);
    if (!state.isSynced()) return { requeueAfterMs: unsyncedRetryMs };
    this.#logInvalidBudgets(log);
    this.#tellProtection();
    await this.#takeBackLostCommands(signal, log);
    const catalog = await this.#readCatalog(signal, log);
    for (const method of this.#options.methods) {
      this.#lastRuns.set(method.name, clock.monotonic());
      if (await this.#disrupt(method, catalog, signal, log)) return { requeueAfterMs: 0 };
    }
    const dueInMs = this.#waiting ? this.#waiting.dueAt - clock.monotonic() : pollMs;
    return { requeueAfterMs: Math.min(pollMs, Math.max(0, dueInMs)) };
  }

  /** Asks one method, or looks again at what it proposed before. Gives whether a command began. */
  async #disrupt(method: Method, catalog: PoolCatalog, signal: AbortSignal, log: Logger): Promise<boolean> {
    const { clock, metrics } = this.#context;
    const waiting = this.#waiting;
    if (waiting && (waiting.method === method ? clock.monotonic() < waiting.dueAt : method.validateAfterMs > 0)) {
      // Proposals that must wait do so one after the other: each counts on a world that the others leave alone.
      return false;
    }
    const started = clock.monotonic();
    const view = this.#viewFor(method, catalog, signal);
    const proposals =
      waiting?.method === method ? await this.#validate(waiting, view, log) : await this.#propose(method, view);
    const reason = method.reason.toLowerCase();
    metrics
      .histogram(disruptionMetrics.evaluationDuration)
      .observe({ reason, consolidation_type: method.consolidationType }, (clock.monotonic() - started) / 1000);
    return this.#start(method, proposals, catalog, signal, log);
  }

  /** What the method may choose from, and what users should know about the rest. */
  #viewFor(method: Method, catalog: PoolCatalog, signal: AbortSignal): MethodView {
    const { state, clock, clusters, metrics } = this.#context;
    const now = clock.now();
    const { candidates, blocked } = findCandidates({
      state,
      catalog,
      pdbs: new PdbLimits(state.sources.podDisruptionBudgets.list()),
      now,
      disruptionClass: method.disruptionClass,
      isQueued: (key) => this.#options.queue.has(key),
    });
    for (const { machine, why } of blocked) tellBlocked(clusters, machine, why);
    const concerned = candidates.filter((candidate) => this.#concerns(method, candidate));
    metrics.gauge(disruptionMetrics.eligibleNodes).set({ reason: method.reason.toLowerCase() }, concerned.length);
    return { candidates: concerned, budgets: this.#budgetsFor(method.reason, now), catalog, signal };
  }

  #concerns(method: Method, candidate: Candidate): boolean {
    const concern = method.concerns(candidate);
    if (typeof concern === 'boolean') return concern;
    tellUnconsolidatable(this.#context.clusters, candidate.machine, concern.unconsolidatable);
    return false;
  }

  #budgetsFor(reason: DisruptionReason, now: number): BudgetLedger {
    const { state, clusters } = this.#context;
    const budgets = poolBudgets({ state, pools: this.#pools(), reason, now });
    this.#showBudgets(budgets, reason);
    for (const { pool, nodes, allowed } of budgets)
      if (nodes > 0 && allowed === 0) clusters.karpenter.events.publish(poolBlocked(pool, reason));
    return new BudgetLedger(budgets);
  }

  #showBudgets(budgets: readonly PoolBudget[], reason: DisruptionReason): void {
    const { metrics } = this.#context;
    let store = this.#budgetGauges.get(reason);
    if (!store) this.#budgetGauges.set(reason, (store = new GaugeStore()));
    const samples = new Map<string, GaugeSample[]>();
    for (const { pool, allowed, disrupting } of budgets) {
      const labels = { nodepool: keyOf(pool), reason };
      samples.set(keyOf(pool), [
        { gauge: metrics.gauge(disruptionMetrics.allowedDisruptions), labels, value: allowed },
        { gauge: metrics.gauge(disruptionMetrics.nodesConsumingBudgets), labels, value: disrupting },
      ]);
    }
    store.replaceAll(samples);
  }

  async #propose(method: Method, view: MethodView): Promise<readonly Proposal[]> {
    if (view.candidates.length === 0) return [];
    const proposals = await method.propose(view);
    if (method.validateAfterMs === 0 || proposals.length === 0) return proposals;
    this.#waiting = { method, proposals, dueAt: this.#context.clock.monotonic() + method.validateAfterMs };
    return [];
  }

  /** What of the proposals has stood the test of time. */
  async #validate({ method, proposals }: Waiting, view: MethodView, log: Logger): Promise<Proposal[]> {
    this.#waiting = undefined;
    const failures = this.#context.metrics.counter(disruptionMetrics.failedValidations);
    const valid: Proposal[] = [];
    for (const proposal of proposals) {
      const still = await method.validate(proposal, view);
      if (still) valid.push(still);
      const lost = proposal.candidates.length - (still?.candidates.length ?? 0);
      if (lost > 0) failures.inc({ consolidation_type: method.consolidationType }, lost);
      if (!still)
        log.debug(`abandoning ${method.name.toLowerCase()} attempt due to pod churn, command is no longer valid`, {
          'disrupted-node-count': proposal.candidates.length,
        });
    }
    return valid;
  }

  /** Begins the commands, each by itself. Gives whether any began. */
  async #start(
    method: Method,
    proposals: readonly Proposal[],
    catalog: PoolCatalog,
    signal: AbortSignal,
    log: Logger,
  ): Promise<boolean> {
    const { queue, random } = this.#options;
    const started = await Promise.all(
      proposals.map(async (proposal) => {
        try {
          await queue.start({ ...proposal, id: random.uuid(), method, catalog }, signal, log);
          return true;
        } catch (error) {
          signal.throwIfAborted();
          log.error('failed disrupting candidates', { reason: snakeCase(method.reason), error });
          return false;
        }
      }),
    );
    return started.includes(true);
  }

  /** Pods that protect themselves for a time, or try to and fail, hear what that means. */
  #tellProtection(): void {
    const { state, clock, clusters } = this.#context;
    const now = clock.now();
    for (const machine of state.nodes()) {
      if (!machine.managed) continue;
      for (const pod of machine.pods()) clusters.workload.events.publish(...protectionEvents(pod, now));
    }
  }

  /** A program that ended in the middle of a command left marks behind that nobody else takes off. */
  async #takeBackLostCommands(signal: AbortSignal, log: Logger): Promise<void> {
    const { state } = this.#context;
    const { queue, marks } = this.#options;
    const lost = [...state.nodes()].filter(
      (machine) =>
        machine.node !== undefined &&
        machine.nodeClaim !== undefined &&
        !machine.markedForDeletion &&
        !queue.has(machine.key) &&
        DisruptionMarks.on(machine),
    );
    await Promise.all(
      lost.map(async (machine) => {
        try {
          await marks.clear(machine, signal);
        } catch (error) {
          signal.throwIfAborted();
          log.error('failed removing taint from node', { Node: { name: machine.name }, error });
        }
      }),
    );
  }

  async #readCatalog(signal: AbortSignal, log: Logger): Promise<PoolCatalog> {
    const catalog = await readPoolCatalog(this.#clouds, this.#pools(), signal);
    for (const { pool, error } of catalog.failures)
      log.error('failed listing instance types', { ...objectField(pool, 'NodePool'), error: messageOf(error) });
    return catalog;
  }

  /** The NodePools that are ours. */
  #pools(): NodePool[] {
    return this.#context.pools.list().filter((pool) => this.#clouds.ofNodePool(pool));
  }

  /** Once for each that is wrong: its pool is not disrupted for the reasons it names. */
  #logInvalidBudgets(log: Logger): void {
    const now = this.#context.clock.now();
    for (const pool of this.#pools()) {
      for (const { schedule, duration } of pool.spec.disruption?.budgets ?? []) {
        if (schedule === undefined && duration === undefined) continue;
        try {
          isInWindow({ schedule: schedule ?? '', durationMs: 0 }, now);
        } catch (error) {
          if (this.#invalidBudgets.hasChanged(`${keyOf(pool)} ${schedule}`, schedule))
            log.error('detected disruption budget errors', { ...objectField(pool, 'NodePool'), error });
        }
      }
    }
  }

  #logAbnormalRuns(log: Logger): void {
    const now = this.#context.clock.monotonic();
    for (const [name, at] of this.#lastRuns)
      if (now - at > abnormalMs)
        log.debug('abnormal time between runs', { name, time_since: `${Math.round((now - at) / 1000)}s` });
  }
}
