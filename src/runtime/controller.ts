// SPDX-License-Identifier: Apache-2.0
// A controller: keys come in through its queue, a reconciler brings the world one step nearer to what each key wants,
// and what fails comes back later. Level-based: a key says what to look at, never what has happened.
import type { Clock } from '../base/clock.ts';
import { planted } from '../base/defects.ts';
import { causesOf, findCause, isBug, KarpenterError, messageOf } from '../base/errors.ts';
import { type Random, SystemRandom } from '../base/random.ts';
import { isConflict } from '../kube/api-error.ts';
import { ControllerMetrics } from './controller-metrics.ts';
import { LeadershipLostError } from './leader.ts';
import { type Logger, silentLogger } from './logging.ts';
import { Metrics } from './metrics.ts';
import { ExponentialBackoff, type RateLimiter } from './rate-limiters.ts';
import { type AddOptions, type QueueItem, WorkQueue } from './work-queue.ts';

/** What a reconciler wants next. Nothing: wait for the next change. */
export interface Result {
  /** Look again after this long, without counting it as a failure; 0 means as soon as others had their turn. */
  readonly requeueAfterMs?: number;
  /** Look again with the backoff of a failure, without it being one. */
  readonly requeue?: boolean;
  /** The priority of the next look; that of this one unless told. */
  readonly priority?: number;
}

/** What a reconciler may need to know about its run. */
export interface ReconcileContext {
  /** Carries the controller, the object and the reconcileID. */
  readonly log: Logger;
  readonly reconcileID: string;
  readonly priority: number;
  /**
   * Aborts at once when the controller is asked to stop: for waits that may be cut short. The reconciler's own signal
   * aborts later, when the time to finish is over: for calls that should not be torn.
   */
  readonly stopping: AbortSignal;
}

/** Brings one key nearer to its desired state. Throwing means: try again later, with backoff. */
export interface Reconciler {
  reconcile(key: string, signal: AbortSignal, context: ReconcileContext): Promise<Result | void>;
}

/** A failure that trying again cannot mend: logged and counted, not retried. */
export class TerminalError extends KarpenterError {
  constructor(message: string, options: { cause?: unknown; details?: Readonly<Record<string, unknown>> } = {}) {
    const cause = options.cause;
    super(cause instanceof KarpenterError ? cause.code : 'KRP_TERMINAL', message, options);
  }
}

export interface ControllerOptions {
  readonly name: string;
  readonly reconciler: Reconciler;
  readonly clock: Clock;
  readonly log?: Logger;
  readonly metrics?: Metrics;
  /** How many keys are worked on at once; 1 unless told. */
  readonly maxConcurrent?: number;
  readonly queue?: WorkQueue<string>;
  readonly limiter?: RateLimiter<string>;
  /** For reconcileIDs only. */
  readonly random?: Random;
  /** The kind of the objects the keys name, for the log. */
  readonly kind?: string;
  /** Aborts a reconcile that takes longer; no limit unless told. */
  readonly timeoutMs?: number;
  /** How long reconciles may go on after the controller was asked to stop before their signals abort; 10 s. */
  readonly stopGraceMs?: number;
}

/** Something a controller can watch: an informer, or anything that calls back on changes. */
export interface ChangeSource<T> {
  addHandler(handler: { added(object: T): void; updated(object: T, old: T): void; deleted(object: T): void }): unknown;
  waitForSync?(signal: AbortSignal): Promise<void>;
  /** Whether the first list is in. */
  readonly hasSynced?: boolean;
}

/** Something that must have been read once before decisions can be based on it: an informer. */
export interface Synced {
  waitForSync(signal: AbortSignal): Promise<void>;
}

export interface WatchOptions<T> extends AddOptions {
  /** The keys a change concerns; the object's own unless told. */
  readonly keys?: (object: T) => Iterable<string>;
  /** Whether a change matters; `old` is there for updates only. */
  readonly when?: (object: T, old?: T) => boolean;
  /** Whether it matters that an object is gone; it does unless told. */
  readonly whenGone?: boolean;
}

/** What is there at the start waits behind what changes meanwhile: after a restart, news must not queue for old news. */
export const initialPriority = -100;
/** The shortest requeue: a reconciler that always wants more must not keep everybody else from running. */
const shortestRequeueMs = 1;
/** How long a burst of reconciles may hold the process before its sockets and timers get their turn. */
const longestBurstMs = 10;

/** Mostly there is one key or none, and every change of every object asks. */
function distinct(keys: Iterable<string>): readonly string[] | ReadonlySet<string> {
  return Array.isArray(keys) && keys.length < 2 ? (keys as readonly string[]) : new Set(keys);
}

function isIn(key: string, keys: readonly string[] | ReadonlySet<string>): boolean {
  return keys instanceof Set ? keys.has(key) : (keys as readonly string[]).includes(key);
}

/** Runs a reconciler over keys: at most `maxConcurrent` at once, never the same key twice at once. */
export class Controller {
  readonly name: string;
  readonly queue: WorkQueue<string>;
  readonly maxConcurrent: number;
  readonly #reconciler: Reconciler;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metrics: ControllerMetrics;
  readonly #random: Random;
  readonly #kind: string | undefined;
  readonly #timeoutMs: number | undefined;
  readonly #stopGraceMs: number;
  readonly #running: AbortController[] = [];
  readonly #stopping = new AbortController();
  readonly #required: Synced[] = [];
  #started = false;
  #lastBreath = 0;
  #awake = false;

  constructor(options: ControllerOptions) {
    this.name = options.name;
    this.maxConcurrent = options.maxConcurrent ?? 1;
    const metrics = options.metrics ?? new Metrics();
    const { clock, name, limiter } = options;
    this.queue = options.queue ?? new WorkQueue({ clock, name, metrics, ...(limiter ? { limiter } : {}) });
    this.#reconciler = options.reconciler;
    this.#clock = clock;
    this.#log = (options.log ?? silentLogger).with({ controller: name });
    this.#metrics = new ControllerMetrics(metrics, name, this.maxConcurrent);
    this.#random = options.random ?? new SystemRandom();
    this.#kind = options.kind;
    this.#timeoutMs = options.timeoutMs;
    this.#stopGraceMs = options.stopGraceMs ?? 10_000;
  }

  /** Wants `key` reconciled. Keys may come before the start; they wait. */
  enqueue(key: string, options?: AddOptions): void {
    this.queue.add(key, options);
  }

  /**
   * Enqueues the keys of every change of `source`; what is there already comes with a low priority. Returns the
   * controller, for a chain of watches.
   */
  watch<T extends { readonly metadata: { readonly namespace?: string; readonly name?: string } }>(
    source: ChangeSource<T>,
    options: WatchOptions<T> = {},
  ): this {
    const { keys = ownKey, when = () => true, whenGone = true, ...add } = options;
    if (source.waitForSync) this.requires(source as Synced);
    const usual: AddOptions = { ...add, priority: add.priority ?? 0 };
    const first: AddOptions = { ...add, priority: add.priority ?? initialPriority };
    const enqueue = (object: T, initial: boolean): void => {
      if (when(object)) for (const key of keys(object)) this.queue.add(key, initial ? first : usual);
    };
    // What was there before this program looked is also `added`, at once or with the first list.
    let replaying = true;
    source.addHandler({
      added: (object) => enqueue(object, replaying || source.hasSynced === false),
      updated: (object, old) => {
        if (!when(object, old)) return;
        const concerned = distinct(keys(object));
        for (const key of concerned) this.queue.add(key, usual);
        // What the old version pointed to has changed as well.
        if (options.keys) for (const key of keys(old)) if (!isIn(key, concerned)) this.queue.add(key, usual);
      },
      deleted: (object) => {
        if (whenGone) enqueue(object, false);
      },
    });
    replaying = false;
    return this;
  }

  /** Reconciles nothing before these are synced. What a controller watches counts without being named. */
  requires(...sources: readonly Synced[]): this {
    this.#required.push(...sources);
    return this;
  }

  /** How many keys are being reconciled. */
  get active(): number {
    return this.#running.length;
  }

  /**
   * Waits for what it requires, works until `signal` aborts, then takes no new keys, waits for those in progress (their signals abort after the
   * stop grace) and resolves. Never rejects because of a reconciler. A controller starts once.
   */
  async start(signal: AbortSignal): Promise<void> {
    if (this.#started) throw new KarpenterError('KRP_CONTROLLER_STARTED', `controller ${this.name} was started twice`);
    this.#started = true;
    // Only aborting makes this fail; then there is nothing to start.
    await Promise.all(this.#required.map((source) => source.waitForSync(signal))).catch(() => undefined);
    if (!signal.aborted) {
      this.#log.debug('starting controller', { workers: this.maxConcurrent });
      this.queue.onReady(() => this.#wake());
      this.#lastBreath = this.#clock.monotonic();
      this.#wake();
    }
    await aborted(signal);
    this.#stopping.abort(signal.reason);
    const drained = this.queue.shutDown();
    // Without the lease, every further write may contradict those of the next leader.
    const graceMs = signal.reason instanceof LeadershipLostError ? 0 : this.#stopGraceMs;
    const grace = this.#clock.after(graceMs, () => {
      for (const run of this.#running) run.abort(signal.reason);
    });
    await drained;
    grace.cancel();
    this.#log.debug('controller stopped');
  }

  /** Pumps once the caller's turn is over: whoever enqueues a key must not run its reconcile in its own stack. */
  #wake(): void {
    if (this.#awake) return;
    this.#awake = true;
    queueMicrotask(() => {
      this.#awake = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#running.length < this.maxConcurrent) {
      const item = this.queue.take();
      if (!item) return;
      void this.#run(item);
    }
  }

  /** One reconcile from taking the key to handing it back. Never rejects. */
  async #run(item: QueueItem<string>): Promise<void> {
    const abort = new AbortController();
    this.#running.push(abort);
    this.#metrics.active(1);
    const started = this.#clock.monotonic();
    const context = new RunContext(this.#log, this.#random, this.#kind, item, this.#stopping.signal);
    const timeout =
      this.#timeoutMs === undefined
        ? undefined
        : this.#clock.after(this.#timeoutMs, () => abort.abort(new ReconcileTimeoutError(this.#timeoutMs!)));
    try {
      const result = await this.#reconciler.reconcile(item.key, abort.signal, context);
      this.#settle(item, result ?? {});
    } catch (thrown) {
      this.#fail(item, thrown, abort.signal, context);
    }
    timeout?.cancel();
    this.#metrics.took((this.#clock.monotonic() - started) / 1000);
    this.#metrics.active(-1);
    if (this.#clock.monotonic() - this.#lastBreath > longestBurstMs) {
      await this.#clock.breathe();
      this.#lastBreath = this.#clock.monotonic();
    }
    this.#running[this.#running.indexOf(abort)] = this.#running.at(-1)!;
    this.#running.pop();
    this.queue.done(item.key);
    this.#wake();
  }

  #settle({ key, priority }: QueueItem<string>, result: Result): void {
    const next = result.priority ?? priority;
    const { requeueAfterMs } = result;
    if (Number.isNaN(requeueAfterMs)) throw new TypeError('the reconciler asked to be run again after NaN ms');
    if (requeueAfterMs !== undefined && requeueAfterMs !== Number.POSITIVE_INFINITY) {
      this.queue.forget(key);
      this.queue.addAfter(key, Math.max(shortestRequeueMs, requeueAfterMs), next);
      this.#metrics.ended('requeue_after');
    } else if (result.requeue) {
      this.queue.addRateLimited(key, next);
      this.#metrics.ended('requeue');
    } else {
      this.queue.forget(key);
      this.#metrics.ended('success');
    }
  }

  #fail({ key, priority }: QueueItem<string>, thrown: unknown, signal: AbortSignal, context: RunContext): void {
    if (this.#stopping.signal.aborted && isAbort(thrown, [signal, this.#stopping.signal])) {
      context.log.debug('reconcile cut short by the shutdown');
      this.#metrics.ended('success');
      return;
    }
    if (isConflict(thrown)) {
      // Somebody else wrote first: the next look sees what they wrote.
      this.queue.addRateLimited(key, priority);
      this.#metrics.ended('requeue');
      context.log.debug('conflict, looking again', { error: thrown });
      return;
    }
    this.#metrics.ended('error');
    if (isBug(thrown)) this.#metrics.panicked();
    if (findCause(thrown, TerminalError)) {
      this.#metrics.failedForGood();
      this.queue.forget(key);
    } else if (!planted('drops-failed-items')) this.queue.addRateLimited(key, priority);
    context.log.error('Reconciler error', { error: thrown instanceof Error ? thrown : new Error(messageOf(thrown)) });
  }
}

/** Made for every run; what costs something is made when it is asked for. */
class RunContext implements ReconcileContext {
  readonly stopping: AbortSignal;
  readonly #item: QueueItem<string>;
  readonly #base: Logger;
  readonly #random: Random;
  readonly #kind: string | undefined;
  #id: string | undefined;
  #log: Logger | undefined;

  constructor(base: Logger, random: Random, kind: string | undefined, item: QueueItem<string>, stopping: AbortSignal) {
    this.#base = base;
    this.#random = random;
    this.#kind = kind;
    this.#item = item;
    this.stopping = stopping;
  }

  get priority(): number {
    return this.#item.priority;
  }

  get reconcileID(): string {
    this.#id ??= this.#random.uuid();
    return this.#id;
  }

  get log(): Logger {
    if (this.#log) return this.#log;
    const [namespace, name] = splitKey(this.#item.key);
    const object = namespace === '' ? { name } : { name, namespace };
    const where = name === '' ? {} : { ...(this.#kind ? { [this.#kind]: object } : {}), namespace, name };
    this.#log = this.#base.with({ ...where, reconcileID: this.reconcileID });
    return this.#log;
  }
}

/** A reconcile took longer than its controller allows. */
export class ReconcileTimeoutError extends KarpenterError {
  constructor(ms: number) {
    super('KRP_RECONCILE_TIMEOUT', `the reconcile did not finish within ${ms / 1000} s`);
  }
}

export interface SingletonOptions extends Omit<ControllerOptions, 'reconciler' | 'maxConcurrent' | 'kind'> {
  /** One turn of the loop. Without a `requeueAfterMs` the loop rests until somebody calls `enqueue`. */
  readonly reconcile: (signal: AbortSignal, context: ReconcileContext) => Promise<Result | void>;
}

/** The key of a singleton's only item. */
export const singletonKey = '';

/** A loop is the only one of its kind: after an outage everybody would wait for it. As long as a failed one rests at most. */
const longestFailureMs = 60_000;

/** A controller that is one loop: it runs at the start and again as each run says. */
export function singleton(options: SingletonOptions): Controller {
  const { reconcile, limiter = new ExponentialBackoff<string>(5, longestFailureMs), ...others } = options;
  const rest = { ...others, limiter };
  const reconciler: Reconciler = { reconcile: (_key, signal, context) => reconcile(signal, context) };
  const controller = new Controller({ ...rest, reconciler, maxConcurrent: 1 });
  controller.enqueue(singletonKey);
  return controller;
}

/** `['ns', 'name']` of a key; the namespace is empty for cluster-scoped objects. */
export function splitKey(key: string): [namespace: string, name: string] {
  const slash = key.indexOf('/');
  return slash < 0 ? ['', key] : [key.slice(0, slash), key.slice(slash + 1)];
}

function ownKey(object: { readonly metadata: { readonly namespace?: string; readonly name?: string } }): string[] {
  const { namespace, name = '' } = object.metadata;
  return [namespace ? `${namespace}/${name}` : name];
}

/** Whether what was thrown is the abort itself, possibly wrapped in what was being done. */
function isAbort(thrown: unknown, signals: readonly AbortSignal[]): boolean {
  const isReason = (at: unknown): boolean => signals.some((signal) => signal.aborted && signal.reason === at);
  return isReason(thrown) || causesOf(thrown).some((at) => at.name === 'AbortError' || isReason(at));
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
