// SPDX-License-Identifier: Apache-2.0
// The loop of voluntary disruption: asks each method in turn what had better go, lets what it says stand the test of
// time, and has it carried out. Reads both clusters through the state.

import { budgetProblem } from '../../api/budgets.ts';
import type { NodePool } from '../../api/node-pool.ts';
import { messageOf } from '../../base/errors.ts';
import type { Random } from '../../base/random.ts';
import { type Finished, finishInSlices } from '../../base/steps.ts';
import type { CloudRegistry } from '../../cloud/registry.ts';
import { keyOf } from '../../kube/object.ts';
import { type Controller, type ReconcileContext, type Result, singleton } from '../../runtime/controller.ts';
import { ChangeMonitor, type Logger, objectField } from '../../runtime/logging.ts';
import { type PoolCatalog, PoolCatalogReader } from '../../state/pool-catalog.ts';
import type { StateNode } from '../../state/state-node.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { protectionEvents } from '../pod-protection.ts';
import { BudgetGauges } from './budget-gauges.ts';
import { annotatedPodsOf, type Candidate } from './candidates.ts';
import { Clockwork } from './clockwork.ts';
import { isInWindow } from './cron-window.ts';
import { poolBlocked, tellApproved, tellBlocked, tellCandidate, tellRejected, tellUnconsolidatable } from './events.ts';
import { NodesBesideHeartbeats } from './heartbeats.ts';
import { LimitLedger } from './limit-ledger.ts';
import { DisruptionMarks } from './marks.ts';
import { type Method, type MethodView, type Proposal, savingsOf } from './method.ts';
import { countScore, disruptionMetrics } from './metrics.ts';
import { type Among, type Evaluation, Pass } from './plan.ts';
import { type DisruptionQueue, snakeCase } from './queue.ts';
import { Recurrences } from './recurrences.ts';
import { type DisruptionSettings, liveSnapshot } from './snapshot.ts';
import { Trial } from './trial.ts';
import { UnchangedPods } from './unchanged-pods.ts';
import { isSame, starvedOf, Waiting } from './waiting.ts';

const pollMs = 10_000;
/** While machines are on trial or wait for a budget: others should not join them late, and they should not wait for long. */
const trialPollMs = 5000;
const unsyncedRetryMs = 1000;
const abnormalMs = 15 * 60_000;
/** So many nodes at most carry the taint that asks pods to go elsewhere: in a large cluster it would be a flood of writes. */
const mostLeaving = 128;
/** For how long a search holds the process at a time. */
const sliceMs = 10;

export interface DisruptionOptions {
  readonly context: ControllerContext;
  readonly queue: DisruptionQueue;
  readonly marks: DisruptionMarks;
  /** In the order they are asked. */
  readonly methods: readonly Method[];
  /** For the ids of commands. */
  readonly random: Random;
  readonly settings: DisruptionSettings;
}

/** The controller `disruption`. */
export class Disruption {
  readonly controller: Controller;
  readonly #options: DisruptionOptions;
  readonly #context: ControllerContext;
  readonly #clouds: CloudRegistry;
  readonly #catalogs: PoolCatalogReader;
  readonly #budgetGauges: BudgetGauges;
  readonly #invalidBudgets: ChangeMonitor;
  /** When each method was last asked. Monotonic. */
  readonly #lastRuns = new Map<string, number>();
  readonly #trials = new Map<Method, Trial>();
  readonly #waiting: Waiting;
  readonly #recurrences = new Recurrences();
  /** Machines by key that consolidation leaves alone: the same led nowhere before. */
  #held: ReadonlySet<string> = none;
  /** What the last pass looked at, if it changed nothing: until something else is to be seen, or a trial is over, nor does the next. */
  #quiet: readonly unknown[] | undefined;
  /** When the last pass was that looked at everything. Monotonic. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  readonly #nodes = new NodesBesideHeartbeats();
  readonly #pods = new UnchangedPods();
  readonly #clockwork = new Clockwork();
  /** Whether a command of this pass could not begin. */
  #hasFailed = false;
  /** Whether a trial began or was decided in this pass: what other methods may choose from is another then. */
  #hasDecided = false;

  constructor(options: DisruptionOptions) {
    const { context } = options;
    this.#options = options;
    this.#context = context;
    this.#waiting = new Waiting((key) => context.state.nodeByProviderID(key) !== undefined);
    this.#clouds = context.cloudsFor('disruption');
    this.#catalogs = new PoolCatalogReader({ registry: this.#clouds, clock: context.clock });
    this.#invalidBudgets = new ChangeMonitor(context.clock);
    this.#budgetGauges = new BudgetGauges(context.metrics);
    const { clock, log, metrics } = context;
    const reconcile = (signal: AbortSignal, run: ReconcileContext): Promise<Result> => this.#reconcile(signal, run);
    this.controller = singleton({ name: 'disruption', reconcile, clock, log, metrics });
  }

  async #reconcile(signal: AbortSignal, { log, stopping }: ReconcileContext): Promise<Result> {
    const { state, clock } = this.#context;
    this.#logAbnormalRuns(log);
    if (!state.hasRead || this.#hold().everywhere) return { requeueAfterMs: unsyncedRetryMs };
    this.#logInvalidBudgets(log);
    const catalog = await this.#readCatalog(signal, stopping, log);
    this.#held = this.#recurrences.heldAt(clock.monotonic(), state.nodes());
    const seen = this.#whatMatters(catalog);
    for (const method of this.#options.methods) this.#lastRuns.set(method.name, clock.monotonic());
    const isQuiet = seen.every((part, i) => part === this.#quiet?.[i]);
    if (isQuiet && this.#decidesInMs() > 0) return { requeueAfterMs: this.#nextLookInMs() };
    this.#quiet = undefined;
    this.#lookedAt = clock.monotonic();
    this.#hasFailed = !(await this.#takeBackLostCommands(signal, log));
    this.#hasDecided = false;
    await this.#askPodsElsewhere(signal, log);
    this.#tellProtection();
    // Until a search pauses all methods look at one state of the cluster.
    let pass = this.#look(catalog);
    const waiting = this.#waiting.toString();
    for (const method of this.#options.methods) {
      const { hasBegun, hasPaused } = await this.#disrupt(method, pass, signal, log);
      if (hasBegun) return { requeueAfterMs: 0 };
      if (hasPaused) pass = this.#look(catalog);
    }
    // What a trial ended without may be another method's now.
    const isDone = !this.#hasDecided && waiting === this.#waiting.toString() && !this.#hasFailed;
    if (isDone && !this.#options.methods.some(({ hasMore }) => hasMore)) this.#quiet = seen;
    return { requeueAfterMs: this.#nextLookInMs() };
  }

  /** When there may be something new, of which there is no sign but time. */
  #nextLookInMs(): number {
    const changesInMs = Math.min(this.#promisesEndInMs(), this.#pausesEndInMs(), this.#decidesInMs());
    return Math.max(0, Math.min(this.#pollMs(), changesInMs));
  }

  /** When the first trial is decided, or a method that rests searches again; infinite where time alone brings nothing. */
  #decidesInMs(): number {
    const now = this.#context.clock.monotonic();
    let first = Number.POSITIVE_INFINITY;
    for (const method of this.#options.methods) {
      if (this.#trials.has(method)) first = Math.min(first, this.#dueAt(method) - now);
      // Whoever had nobody to ask about goes on resting, over time or not.
      else if ((method.restsUntil ?? 0) > this.#lookedAt) first = Math.min(first, method.restsUntil! - now);
    }
    return first;
  }

  #pollMs(): number {
    return this.#trials.size > 0 || this.#waiting.keys().size > 0 ? trialPollMs : pollMs;
  }

  /** Pods that come to a machine which goes soon would move twice: kube-scheduler is asked to leave it out. */
  async #askPodsElsewhere(signal: AbortSignal, log: Logger): Promise<void> {
    const { state } = this.#context;
    const all = this.#waiting.keys();
    const leaving = all.size > mostLeaving ? none : all;
    const changes: StateNode[] = [];
    for (const machine of state.nodes())
      if (
        machine.managed &&
        !machine.markedForDeletion &&
        DisruptionMarks.isLeaving(machine) !== leaving.has(machine.key)
      )
        changes.push(machine);
    await Promise.all(
      changes.map(async (machine) => {
        try {
          await this.#options.marks.setLeaving(machine, leaving.has(machine.key), signal);
        } catch (error) {
          signal.throwIfAborted();
          this.#hasFailed = true;
          log.debug('failed to change the taint of a node', { Node: { name: machine.name }, error: messageOf(error) });
        }
      }),
    );
  }

  /** The cluster as it is now. Valid until something is awaited. */
  #look(catalog: PoolCatalog): Pass {
    const { state, clock } = this.#context;
    const { queue, settings } = this.#options;
    const hold = this.#hold();
    return new Pass(
      liveSnapshot({
        state,
        registry: this.#clouds,
        catalog: { ...catalog, pools: catalog.pools.filter((pool) => !hold.ofPool(pool)) },
        settings,
        now: clock.now(),
        isQueued: (key) => queue.has(key) || queue.isPaused(key) || hold.ofMachine(key),
      }),
    );
  }

  /**
   * What NodeClaims without a machine keep from being disrupted: what they will hold is not known, so the machines of
   * their cloud stay, and nothing is bought there. Other clouds do not wait for them.
   */
  #hold(): { everywhere: boolean; ofPool(pool: NodePool): boolean; ofMachine(key: string): boolean } {
    const { state } = this.#context;
    const clouds = state.launchHold()?.clouds ?? new Set();
    const ofPool = (pool: NodePool): boolean => clouds.has(this.#clouds.ofNodePool(pool)?.name ?? '');
    const ofMachine = (key: string): boolean => {
      const claim = clouds.size > 0 ? state.nodeByProviderID(key)?.nodeClaim : undefined;
      return claim !== undefined && clouds.has(this.#clouds.ofNodeClaim(claim)?.name ?? '');
    };
    return { everywhere: clouds.size > 0 && this.#pools().every(ofPool), ofPool, ofMachine };
  }

  /** What a pass looks at. While all of it is the same a pass that found nothing finds nothing again. */
  #whatMatters(catalog: PoolCatalog): unknown[] {
    const { state, clock } = this.#context;
    const { nodes, pods, ...others } = state.sources;
    const lists = (Object.values(others) as { list(): unknown }[]).map((source) => source.list());
    const settledPods = this.#pods.settled(pods.list());
    lists.push(this.#nodes.settled(nodes.list()), settledPods);
    const isTimed = this.#clockwork.runs(this.#pools(), settledPods);
    const minute = isTimed ? Math.floor(clock.now() / 60_000) : 0;
    return [
      minute,
      state.consolidationStamp(),
      this.#options.queue.paused,
      this.#promised(),
      this.#held.size,
      ...lists,
      ...Object.values(catalog.instanceTypes),
    ];
  }

  /** The machines that are promised to pods. */
  #promised(): string {
    const { state } = this.#context;
    let keys = '';
    for (const { key } of state.nodes()) if (state.isNominated(key)) keys += `${key}\n`;
    for (const claim of state.awaitedClaims()) keys += `${claim}\n`;
    return keys;
  }

  /** When the first machine that is left alone may be tried again. */
  #pausesEndInMs(): number {
    const { clock } = this.#context;
    return Math.min(this.#options.queue.pausesEndInMs(), this.#recurrences.endInMs(clock.monotonic()));
  }

  /** When the first machine that is promised to pods is free again, of which there is no other sign; infinite without any. */
  #promisesEndInMs(): number {
    const { state } = this.#context;
    let first = Number.POSITIVE_INFINITY;
    for (const { key } of state.nodes()) {
      const forMs = state.nominatedForMs(key);
      if (forMs > 0) first = Math.min(first, forMs);
    }
    return first;
  }

  /** Asks one method, or looks again at what it proposed before. Gives whether a command began, and whether others had a turn. */
  async #disrupt(method: Method, pass: Pass, signal: AbortSignal, log: Logger): Promise<Outcome> {
    const { clock, metrics } = this.#context;
    const started = clock.monotonic();
    const among = this.#othersChoice(method);
    const all = pass.evaluate(method, among);
    const trial = this.#trials.get(method);
    if (!this.#isDue(method, all.view, started)) return { hasBegun: false, hasPaused: false };
    const first = trial?.proposals ?? [];
    const only = trial?.conclude(started);
    const evaluation = only ? pass.evaluate(method, { ...among, only }) : all;
    const isFinal = trial !== undefined || method.validateAfterMs === 0;
    const { result, paused: hasPaused } = await this.#search(method, evaluation, !isFinal);
    signal.throwIfAborted();
    const found =
      isFinal && method.proposeInSteps
        ? this.#stillStanding(method, result, { ...among, ...(only ? { only } : {}) }, pass)
        : result;
    const proposals = trial
      ? this.#validated(method, first, found, evaluation, log)
      : this.#tried(method, found, evaluation);
    if (isFinal || result.length === 0) this.#noteWaiting(method, all, evaluation, only);
    this.#tell(method, evaluation, trial !== undefined);
    const reason = method.reason.toLowerCase();
    metrics
      .histogram(disruptionMetrics.evaluationDuration)
      .observe({ reason, consolidation_type: method.consolidationType }, (clock.monotonic() - started) / 1000);
    const fresh = method.gathers ? this.#withinLimits(this.#withoutFutile(proposals, log), pass) : proposals;
    if (isFinal && fresh.length > 0) await this.#askPodsElsewhere(signal, log);
    const hasBegun = await this.#start(method, fresh, pass.snapshot.catalog, signal, log);
    // Where nothing could begin, nobody was left over for want of a budget.
    if (result.length > 0 && !hasBegun && isFinal) this.#waiting.restart(method);
    this.#endTrial(method, trial, all.view, started);
    return { hasBegun, hasPaused };
  }

  /** Whether a method is asked now: what it proposed before has stood the test of time, or there was nothing. */
  #isDue(method: Method, view: MethodView, now: number): boolean {
    const trial = this.#trials.get(method);
    if (!trial) return true;
    trial.look(keysOf(view), now, starvedOf(view));
    this.#keepWaiting(method, view, trial, now);
    return now >= this.#dueAt(method);
  }

  #noteWaiting(method: Method, all: Evaluation, { view }: Evaluation, stood: ReadonlySet<string> = none): void {
    if (all.view.candidates.length === 0) this.#waiting.forget(method);
    else this.#waiting.note(method, view, stood);
  }

  /** Unless somebody is on trial still. */
  #endTrial(method: Method, trial: Trial | undefined, view: MethodView, now: number): void {
    if (!trial) return;
    this.#keepWaiting(method, view, trial, now);
    this.#hasDecided = true;
    if (trial.isOver) this.#trials.delete(method);
  }

  #keepWaiting(method: Method, view: MethodView, trial: Trial, now: number): void {
    const { same, changed } = this.#waiting.look(method, view);
    for (const key of changed) trial.restart(key, now);
    trial.keep(same, now);
  }

  /**
   * When the trial of a method is decided. What others are about to remove still takes pods until they do: a method that
   * decides about many machines waits for them, so that its own pods do not go there.
   */
  #dueAt(method: Method): number {
    const trial = this.#trials.get(method)!;
    if (!method.gathers) return trial.dueAt;
    let latest = trial.dueAt;
    for (const [other, { dueAt }] of this.#trials) if (!other.gathers) latest = Math.max(latest, dueAt);
    return Math.min(latest, trial.dueAt + method.validateAfterMs);
  }

  /** What a method proposes. It searches in slices: whoever waits for a machine does not wait for it. */
  async #search(method: Method, evaluation: Evaluation, isGlance: boolean): Promise<Finished<readonly Proposal[]>> {
    const view = { ...evaluation.view, isGlance };
    if (view.candidates.length === 0) return { result: [], paused: false };
    const steps = method.proposeInSteps?.(view);
    if (!steps) return { result: method.propose(view), paused: false };
    return finishInSlices(steps, this.#context.clock, sliceMs);
  }

  /** While a search ran the cluster may have changed: what it found about machines that are no longer the same is dropped. */
  #stillStanding(
    method: Method,
    proposals: readonly Proposal[],
    among: Among,
    { snapshot }: Pass,
  ): readonly Proposal[] {
    if (proposals.length === 0) return proposals;
    const { state } = this.#context;
    const { view } = this.#look(snapshot.catalog).evaluate(method, among);
    const now = new Map(view.candidates.map((candidate) => [candidate.machine.key, candidate]));
    const stands = ({ candidates, destinations }: Proposal): boolean =>
      candidates.every((candidate) => isSame(candidate, now.get(candidate.machine.key))) &&
      destinations.every((key) => state.nodeByProviderID(key)?.markedForDeletion !== true) &&
      candidates.every(({ nodePool }) => view.budgets.take(nodePool));
    return proposals.filter(stands);
  }

  /** Those that were not done to the same before, to no effect: others have to wait, and their machines are left alone. */
  #withoutFutile(proposals: readonly Proposal[], log: Logger): readonly Proposal[] {
    if (proposals.length === 0) return proposals;
    const { state, clock, clusters } = this.#context;
    const { fresh, held } = this.#recurrences.judge(proposals, state.nodes(), clock.monotonic());
    for (const { proposal, waitMs } of held) {
      log.debug('not repeating a consolidation that led nowhere', {
        'disrupted-node-count': proposal.candidates.length,
        wait: `${Math.ceil(waitMs / 1000)}s`,
      });
      for (const { machine } of proposal.candidates)
        tellUnconsolidatable(clusters, machine, 'It was consolidated like this a short while ago, to no effect');
    }
    return fresh;
  }

  #withinLimits(proposals: readonly Proposal[], { snapshot }: Pass): readonly Proposal[] {
    if (proposals.length === 0) return proposals;
    return new LimitLedger({ snapshot, catalog: snapshot.catalog }).keeping(proposals);
  }

  /**
   * Machines that other methods have chosen and wait for. What methods have chosen that are asked later does not count against
   * budgets: they would keep those before them waiting.
   */
  #othersChoice(method: Method): Among {
    const { methods } = this.#options;
    const [not, spent] = [new Set<string>(), new Set<string>()];
    for (const [other, { proposals }] of this.#trials) {
      if (other === method) continue;
      const isBefore = methods.indexOf(other) < methods.indexOf(method);
      for (const { candidates } of proposals)
        for (const { machine } of candidates) {
          not.add(machine.key);
          if (isBefore) spent.add(machine.key);
        }
    }
    return { not, spent, closed: this.#waiting.keys(method), without: method.gathers ? this.#held : none };
  }

  /** What users and the metrics should know about machines that stay. */
  #tell(method: Method, { view, blocked, rejections, budgets }: Evaluation, isSecondLook: boolean): void {
    const { clusters, metrics } = this.#context;
    for (const { machine, why } of blocked) tellBlocked(clusters, machine, why);
    for (const { machine, kind, why } of rejections) {
      if (kind === 'blocked') tellBlocked(clusters, machine, why);
      else tellUnconsolidatable(clusters, machine, why);
    }
    if (!isSecondLook)
      metrics
        .gauge(disruptionMetrics.eligibleNodes)
        .set({ reason: method.reason.toLowerCase() }, view.candidates.length);
    this.#budgetGauges.show(budgets, method.reason);
    for (const { pool, nodes, allowed, problem } of budgets)
      if (nodes > 0 && allowed === 0) clusters.karpenter.events.publish(poolBlocked(pool, method.reason, problem));
  }

  /** What to begin with at once; what has to stand the test of time first is noted. */
  #tried(method: Method, proposals: readonly Proposal[], { view }: Evaluation): readonly Proposal[] {
    if (proposals.length === 0 || method.validateAfterMs === 0) return proposals;
    for (const proposal of proposals) this.#tellCandidates(proposal);
    const { validateAfterMs: lengthMs, gathers = false } = method;
    const now = this.#context.clock.monotonic();
    const { same: stood } = this.#waiting.look(method, view);
    this.#trials.set(method, new Trial(proposals, keysOf(view), now, { lengthMs, gathers }, stood));
    this.#hasDecided = true;
    return [];
  }

  #tellCandidates(proposal: Proposal): void {
    const { candidates, replacements } = proposal;
    if (replacements.length === 0) return;
    const savings = savingsOf(proposal).toFixed(4);
    const message = `${candidates.length} node(s) could be replaced by ${replacements.length}, saving $${savings} an hour`;
    for (const { machine } of candidates) tellCandidate(this.#context.clusters, machine, message);
  }

  /** The policy Balanced has let it pass. */
  #tellScores({ candidates, scores = [] }: Proposal): void {
    const { clusters, metrics } = this.#context;
    for (const { pool, score } of scores) {
      countScore(metrics, 'approved', { pool, score });
      for (const { machine, nodePool } of candidates)
        if (nodePool.metadata.name === pool) tellApproved(clusters, machine, score);
    }
  }

  /** What has stood the test of time: what the method proposes now about machines that concerned it all along. */
  #validated(
    method: Method,
    first: readonly Proposal[],
    valid: readonly Proposal[],
    { view }: Evaluation,
    log: Logger,
  ): readonly Proposal[] {
    const going = new Set(valid.flatMap(({ candidates }) => candidates.map(({ machine }) => machine.key)));
    const concerned = new Set(keysOf(view));
    // The first look was a glance: where a closer one found better, machines that could still go were not lost.
    const isLost = ({ machine: { key } }: Candidate): boolean =>
      !going.has(key) && (valid.length === 0 || !concerned.has(key));
    const { metrics, clusters } = this.#context;
    const lost: Candidate[] = [];
    for (const { candidates, consolidationType = method.consolidationType } of first) {
      const own = candidates.filter(isLost);
      lost.push(...own);
      const failures = metrics.counter(disruptionMetrics.failedValidations);
      if (own.length > 0) failures.inc({ consolidation_type: consolidationType }, own.length);
    }
    if (lost.length > 0) {
      log.debug(`abandoning ${method.name.toLowerCase()} attempt due to pod churn, command is no longer valid`, {
        'disrupted-node-count': lost.length,
      });
      if (method.reason === 'Underutilized')
        for (const { machine, nodePool } of lost) {
          const isOut = concerned.has(machine.key) && view.budgets.left(nodePool) === 0;
          tellRejected(clusters, machine, concerned.has(machine.key) ? (isOut ? 'budget' : 'scheduling') : 'churn');
        }
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
          this.#tellScores(proposal);
          return true;
        } catch (error) {
          signal.throwIfAborted();
          log.error('failed disrupting candidates', { reason: snakeCase(method.reason), error });
          return false;
        } finally {
          proposal.settled?.();
        }
      }),
    );
    this.#hasFailed ||= started.includes(false);
    return started.includes(true);
  }

  /** Pods that protect themselves for a time, or try to and fail, hear what that means. */
  #tellProtection(): void {
    const { state, clock, clusters } = this.#context;
    const now = clock.now();
    for (const machine of state.nodes()) {
      if (!machine.managed) continue;
      for (const pod of annotatedPodsOf(machine)) clusters.workload.events.publish(...protectionEvents(pod, now));
    }
  }

  /** A program that ended in the middle of a command left marks behind that nobody else takes off. Gives whether all went well. */
  async #takeBackLostCommands(signal: AbortSignal, log: Logger): Promise<boolean> {
    const { state } = this.#context;
    const { queue, marks } = this.#options;
    const lost: StateNode[] = [];
    for (const machine of state.nodes()) {
      const { node, nodeClaim, markedForDeletion, key } = machine;
      if (!node || !nodeClaim || markedForDeletion || !DisruptionMarks.on(machine) || queue.has(key)) continue;
      lost.push(machine);
    }
    const cleared = await Promise.all(
      lost.map(async (machine) => {
        try {
          await marks.clear(machine, signal);
          return true;
        } catch (error) {
          signal.throwIfAborted();
          log.error('failed removing taint from node', { Node: { name: machine.name }, error });
          return false;
        }
      }),
    );
    return !cleared.includes(false);
  }

  async #readCatalog(signal: AbortSignal, lifetime: AbortSignal, log: Logger): Promise<PoolCatalog> {
    const catalog = await this.#catalogs.read(this.#pools(), signal, lifetime);
    for (const { pool, error } of catalog.failures)
      log.error('failed listing instance types', { ...objectField(pool, 'NodePool'), error: messageOf(error) });
    return catalog;
  }

  /** The NodePools that are ours. */
  #pools(): NodePool[] {
    return this.#context.pools.list().filter((pool) => this.#clouds.ofNodePool(pool));
  }

  /** Once for each pool in which a budget cannot be understood: it is not disrupted. */
  #logInvalidBudgets(log: Logger): void {
    const now = this.#context.clock.now();
    for (const pool of this.#pools()) {
      const error = budgetProblem(pool.spec.disruption?.budgets, (window) => isInWindow(window, now));
      if (error !== undefined && this.#invalidBudgets.hasChanged(keyOf(pool), error))
        log.error('detected disruption budget errors', { ...objectField(pool, 'NodePool'), error });
    }
  }

  #logAbnormalRuns(log: Logger): void {
    const now = this.#context.clock.monotonic();
    for (const [name, at] of this.#lastRuns)
      if (now - at > abnormalMs)
        log.debug('abnormal time between runs', { name, time_since: `${Math.round((now - at) / 1000)}s` });
  }
}

/** What came of asking a method. */
interface Outcome {
  readonly hasBegun: boolean;
  readonly hasPaused: boolean;
}

const none: ReadonlySet<string> = new Set();

function keysOf({ candidates }: MethodView): string[] {
  return candidates.map(({ machine }) => machine.key);
}
