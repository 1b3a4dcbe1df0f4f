// SPDX-License-Identifier: Apache-2.0
// Carries out commands: marks the machines, buys their replacements, waits until these are in service, and only then
// deletes. A command that fails is taken back. What is lost in a restart is taken back, too, by the loop.
// Writes NodeClaims of the cluster `karpenter` and Nodes of `workload`.
import { hasTrueConditions, nodeClaimConditions } from '../../api/conditions.ts';
import { labels } from '../../api/labels.ts';
import { planted } from '../../base/defects.ts';
import { KarpenterError, messageOf, wrap } from '../../base/errors.ts';
import { isConflict } from '../../kube/api-error.ts';
import { keyOf } from '../../kube/object.ts';
import type { Controller, ReconcileContext, Result } from '../../runtime/controller.ts';
import { type Logger, objectField } from '../../runtime/logging.ts';
import { BucketLimiter, ExponentialBackoff, MaxOfLimiter } from '../../runtime/rate-limiters.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { disruptedLabels, nodeClaimMetrics } from '../nodeclaim/metrics.ts';
import type { ClaimCreator } from '../provisioning/create-claims.ts';
import type { StaticNodes } from '../static/static-nodes.ts';
import type { Candidate } from './candidates.ts';
import { commandTimeoutMs } from './command-timeout.ts';
import { launching, tellTerminating, waitingOnReadiness } from './events.ts';
import type { DisruptionMarks } from './marks.ts';
import { type Command, decisionOf, describeCommand } from './method.ts';
import { disruptionMetrics } from './metrics.ts';

const pollMs = 1000;
/** How long machines are left alone whose command was given up: whatever stood in its way needs time to go. */
const pauseMs = 10_000;

export interface DisruptionQueueOptions {
  readonly context: ControllerContext;
  readonly marks: DisruptionMarks;
  /** Buys replacements. */
  readonly creator: ClaimCreator;
  /** Hears which machines of static pools are replaced. */
  readonly staticNodes?: StaticNodes;
}

/** A command cannot begin, or cannot go on. */
export class CommandError extends KarpenterError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super('KRP_DISRUPTION_COMMAND', message, options);
  }
}

/** A command under way. */
interface Running {
  readonly command: Command;
  /** Those that could be marked. */
  readonly candidates: readonly Candidate[];
  /** Names of NodeClaims that are not in service yet. */
  readonly awaited: Set<string>;
  /** Candidates whose deletion was accepted. */
  readonly deleted: Set<Candidate>;
  /** Monotonic. */
  readonly startedAt: number;
}

/** The controller `disruption.queue`. */
export class DisruptionQueue {
  readonly #context: ControllerContext;
  readonly #marks: DisruptionMarks;
  readonly #creator: ClaimCreator;
  readonly #static: StaticNodes | undefined;
  readonly controller: Controller;
  /** Keys of the machines that commands are about, those that are just beginning included. */
  readonly #machines = new Set<string>();
  /** By key: until when machines are left alone. Monotonic. */
  readonly #pauses = new Map<string, number>();
  /** By the name of the first candidate's NodeClaim. */
  readonly #running = new Map<string, Running>();

  constructor({ context, marks, creator, staticNodes }: DisruptionQueueOptions) {
    this.#static = staticNodes;
    this.#context = context;
    this.#marks = marks;
    this.#creator = creator;
    const { clock } = context;
    this.controller = context.controller({
      name: 'disruption.queue',
      kind: 'NodeClaim',
      reconciler: { reconcile: (key, signal, run) => this.#reconcile(key, signal, run) },
      concurrent: [100, 1000],
      limiter: new MaxOfLimiter(new ExponentialBackoff(1000, 10_000), new BucketLimiter(clock, 100, 1000)),
    });
  }

  /** Whether a command is about the machine. */
  has(key: string): boolean {
    return this.#machines.has(key);
  }

  /** Leaves machines alone for a while. */
  pause(keys: readonly string[], ms: number): void {
    const until = this.#context.clock.monotonic() + ms;
    for (const key of keys) this.#pauses.set(key, Math.max(until, this.#pauses.get(key) ?? until));
  }

  /** Whether the machine is left alone for a while. */
  isPaused(key: string): boolean {
    return (this.#pauses.get(key) ?? Number.NEGATIVE_INFINITY) > this.#context.clock.monotonic();
  }

  /** How many machines are left alone for a while. */
  get paused(): number {
    const now = this.#context.clock.monotonic();
    for (const [key, until] of this.#pauses) if (until <= now) this.#pauses.delete(key);
    return this.#pauses.size;
  }

  /** When the first of them may be tried again; infinite when there are none. */
  pausesEndInMs(): number {
    return Math.min(Number.POSITIVE_INFINITY, ...this.#pauses.values()) - this.#context.clock.monotonic();
  }

  /**
   * Begins a command: when it resolves, the machines are marked and their replacements asked for. When that
   * could not be done it rejects, and what was done is taken back.
   */
  async start(command: Command, signal: AbortSignal, log: Logger): Promise<void> {
    const keys = command.candidates.map(({ machine }) => machine.key);
    if (keys.some((key) => this.#machines.has(key))) throw new CommandError('candidate is being disrupted');
    // Before anybody sees a mark: of a pool that may not grow they would come and go for ever.
    this.#creator.check(command.replacements);
    for (const key of keys) this.#machines.add(key);
    log.info('disrupting node(s)', () => ({ command: describeCommand(command), ...logFields(command) }));
    try {
      const candidates = await this.#mark(command, signal, log);
      this.#setPending(candidates, true);
      const awaited = await this.#buyReplacements(command, signal, log);
      this.#run({ command, candidates, awaited, deleted: new Set(), startedAt: this.#context.clock.monotonic() });
    } catch (error) {
      await this.#unmark(command.candidates, signal, log);
      throw error;
    }
  }

  /** Gives the candidates that could be marked: where nothing is bought, each may go by itself. */
  async #mark({ candidates, method, replacements }: Command, signal: AbortSignal, log: Logger): Promise<Candidate[]> {
    const failed: { candidate: Candidate; error: unknown }[] = [];
    await Promise.all(
      candidates.map(async (candidate) => {
        try {
          await this.#marks.put(candidate.machine, method.reason, signal);
        } catch (error) {
          failed.push({ candidate, error });
        }
      }),
    );
    const marked = candidates.filter((candidate) => !failed.some((failure) => failure.candidate === candidate));
    if (failed.length === 0) return marked;
    const error = wrap('marking disrupted', failed[0]!.error);
    if (replacements.length > 0 || marked.length === 0) throw error;
    log.error('failed marking some nodes, going on with the others', { error, failed: failed.length });
    await this.#unmark(
      failed.map(({ candidate }) => candidate),
      signal,
      log,
    );
    return marked;
  }

  async #buyReplacements(command: Command, signal: AbortSignal, log: Logger): Promise<Set<string>> {
    const { replacements, catalog, method } = command;
    const reason = method.reason.toLowerCase();
    const plans = planted('replaces-twice') ? [...replacements, ...replacements] : replacements;
    const outcomes = await this.#creator.create(plans, { reason, catalog, log, signal });
    const names = new Set<string>();
    for (const outcome of outcomes) {
      if ('error' in outcome) throw wrap('launching replacement nodeclaim', outcome.error);
      names.add(keyOf(outcome.claim));
      this.#static?.wrote(outcome.claim);
    }
    return names;
  }

  /** Machines of static pools count as replaced, not as missing. */
  #setPending(candidates: readonly Candidate[], pending: boolean): void {
    for (const { nodeClaim, nodePool } of candidates)
      if (nodePool.spec.replicas !== undefined) this.#static?.setPending(nodeClaim, pending);
  }

  #run(running: Running): void {
    const { state, metrics } = this.#context;
    const { command, candidates } = running;
    // Only now: before its replacements are known, the provisioner would buy machines for the same pods.
    state.markForDeletion(candidates.map(({ machine }) => machine.key));
    for (const key of command.destinations) state.nominate(key);
    const key = keyOf(candidates[0]!.nodeClaim);
    this.#running.set(key, running);
    this.controller.enqueue(key);
    const counted = metricLabels(command);
    metrics.counter(disruptionMetrics.decisions).inc(counted);
    for (const nodepool of new Set(candidates.map(({ nodePool }) => nodePool.metadata.name ?? '')))
      metrics.counter(disruptionMetrics.decisionsByPool).inc({ ...counted, nodepool });
  }

  async #reconcile(key: string, signal: AbortSignal, run: ReconcileContext): Promise<Result> {
    const running = this.#running.get(key);
    if (!running) return {};
    const log = run.log.with({ 'command-id': running.command.id });
    const problem = this.#problemOf(running) ?? (await this.#proceed(running, signal, log));
    if (problem === 'wait') return { requeueAfterMs: pollMs };
    this.#running.delete(key);
    if (problem === undefined) {
      log.debug('command succeeded', () => logFields(running.command));
      for (const { machine } of running.candidates) this.#machines.delete(machine.key);
      return {};
    }
    log.error('failed terminating nodes while executing a disruption command', {
      error: problem,
      ...logFields(running.command),
    });
    this.#context.metrics
      .counter(disruptionMetrics.queueFailures)
      .inc(metricLabels(running.command), running.awaited.size);
    await this.#unmark(
      running.candidates.filter((candidate) => !running.deleted.has(candidate)),
      signal,
      log,
    );
    for (const { machine } of running.deleted) this.#machines.delete(machine.key);
    return {};
  }

  /** Why a command can never succeed. */
  #problemOf({ awaited, startedAt }: Running): CommandError | undefined {
    const { clock, state, claims } = this.#context;
    const timeoutMs = commandTimeoutMs(this.#machines.size);
    const took = clock.monotonic() - startedAt;
    if (took > timeoutMs) return new CommandError(`command reached timeout after ${Math.round(took / 1000)}s`);
    for (const name of awaited) {
      // One that is on its way out will not come into service either.
      const isGoing = claims.get(name)?.metadata.deletionTimestamp !== undefined;
      if (isGoing || !state.hasClaim(name)) return new CommandError(`replacement ${name} was deleted`);
    }
    return undefined;
  }

  /** Goes as far as it can now. */
  async #proceed(running: Running, signal: AbortSignal, log: Logger): Promise<'wait' | undefined> {
    this.#checkReplacements(running);
    if (running.awaited.size > 0) return 'wait';
    await Promise.all(
      running.candidates
        .filter((candidate) => !running.deleted.has(candidate))
        .map((candidate) => this.#delete(candidate, running, signal, log)),
    );
    return running.deleted.size === running.candidates.length ? undefined : 'wait';
  }

  #checkReplacements({ awaited, command }: Running): void {
    const { claims, clusters } = this.#context;
    for (const name of awaited) {
      const claim = claims.get(name);
      if (!claim) continue;
      clusters.karpenter.events.publish(launching(claim, command.method.reason));
      if (hasTrueConditions(claim, nodeClaimConditions.initialized)) awaited.delete(name);
      else clusters.karpenter.events.publish(waitingOnReadiness(claim));
    }
  }

  /** A failure is logged; the next round tries again, until the command's time is over. */
  async #delete(candidate: Candidate, running: Running, signal: AbortSignal, log: Logger): Promise<void> {
    const { claims, metrics, clusters } = this.#context;
    const { machine, nodeClaim, nodePool, reschedulablePods } = candidate;
    try {
      const wasThere = await claims.delete(nodeClaim, signal);
      running.deleted.add(candidate);
      if (!wasThere) return;
    } catch (error) {
      // Another of its name took its place.
      if (isConflict(error)) running.deleted.add(candidate);
      else log.error('failed deleting nodeclaim', { ...objectField(nodeClaim, 'NodeClaim'), error });
      return;
    }
    const { reason } = running.command.method;
    const counted = disruptedLabels(snakeCase(reason), nodeClaim, nodePool);
    tellTerminating(clusters, machine, reason);
    metrics.counter(nodeClaimMetrics.disrupted).inc(counted);
    metrics.counter(disruptionMetrics.podsDisrupted).inc(counted, reschedulablePods.length);
  }

  /** Takes back what was done to machines; what fails here the loop takes back when it comes around. */
  async #unmark(candidates: readonly Candidate[], signal: AbortSignal, log: Logger): Promise<void> {
    const { state } = this.#context;
    const keys = candidates.map(({ machine }) => machine.key);
    this.#setPending(candidates, false);
    await Promise.all(
      candidates.map(async ({ machine }) => {
        try {
          await this.#marks.clear(machine, signal);
        } catch (error) {
          log.debug('failed to unmark node', { Node: { name: machine.name }, error: messageOf(error) });
        }
      }),
    );
    state.unmarkForDeletion(keys);
    for (const key of keys) this.#machines.delete(key);
    this.pause(keys, pauseMs);
  }
}

function metricLabels(command: Command) {
  const { reason, consolidationType } = command.method;
  const consolidation_type = command.consolidationType ?? consolidationType;
  return { decision: decisionOf(command), reason: snakeCase(reason), consolidation_type };
}

/** `TooOld` → `too_old`, as reasons are written in metrics. */
export function snakeCase(text: string): string {
  return text.replace(/([a-z0-9])([A-Z])/g, '$1_$2').toLowerCase();
}

/** What logs say about a command: upstream's keys. */
function logFields(command: Command): Record<string, unknown> {
  const { candidates, replacements } = command;
  return {
    reason: command.method.reason.toLowerCase(),
    decision: decisionOf(command),
    'disrupted-node-count': candidates.length,
    'replacement-node-count': replacements.length,
    'pod-count': candidates.reduce((sum, { reschedulablePods }) => sum + reschedulablePods.length, 0),
    'disrupted-nodes': candidates.map(({ machine, node, nodeClaim }) => ({
      ...objectField(node, 'Node'),
      ...objectField(nodeClaim, 'NodeClaim'),
      'capacity-type': machine.labels[labels.capacityType] ?? '',
      'instance-type': machine.labels[labels.instanceType] ?? '',
    })),
    'replacement-nodes': replacements.map(({ nodePool, instanceTypes }) => ({
      NodePool: { name: nodePool },
      'instance-types': instanceTypes.slice(0, 5).join(', '),
    })),
  };
}
