// SPDX-License-Identifier: Apache-2.0
// Leader election over a Lease: of many candidates, one leads; it says so again and again, and when it falls silent
// another takes over. The same protocol as client-go's, so both can take part in one election.
import type { Clock } from '../base/clock.ts';
import { planted } from '../base/defects.ts';
import { messageOf } from '../base/errors.ts';
import { deepEqual } from '../base/freeze.ts';
import type { Random } from '../base/random.ts';
import { ignoreNotFound, isConflict, isNotFound } from './api-error.ts';
import type { KubeClient } from './client.ts';
import { kinds, type Lease, type LeaseSpec } from './kinds.ts';
import { type Log, silent } from './log.ts';
import type { ResourceClient } from './resource-client.ts';
import { formatMicroTime } from './time.ts';

export interface LeaderElectionOptions {
  /** Best one of its own: a busy client's limiter must not cost the lease. */
  readonly client: KubeClient;
  readonly name: string;
  readonly namespace: string;
  /** Unique among the candidates: host name and something random. */
  readonly identity: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log?: Log;
  /** How long others wait after the last sign of life. */
  readonly leaseDurationMs?: number;
  /** How long the leader tries to renew before it gives up. Less than `leaseDurationMs`. */
  readonly renewDeadlineMs?: number;
  readonly retryPeriodMs?: number;
  /** On a regular end, let the next one in at once. */
  readonly releaseOnCancel?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
  /** The signal aborts when leadership ends. */
  readonly onStartedLeading?: (signal: AbortSignal) => void;
  readonly onStoppedLeading?: () => void;
  /** Somebody leads who did not before, this candidate included. */
  readonly onNewLeader?: (identity: string) => void;
}

// How much the pauses of those who wait are spread, so that they do not all come at once.
const jitterFactor = 1.2;

/**
 * One candidate. Whether another's lease has run out is judged by how long this candidate has seen it unchanged, never
 * by the times written in it: the clocks of machines differ.
 */
export class LeaderElector {
  readonly #options: LeaderElectionOptions;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #leases: ResourceClient<Lease>;
  readonly #leaseDurationMs: number;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  #observed: Lease | undefined;
  #observedAt = 0;
  #renewedAt = 0;
  #reportedLeader = '';
  #leading = false;

  /** Throws a RangeError unless leaseDuration > renewDeadline > 1.2 × retryPeriod > 0. */
  constructor(options: LeaderElectionOptions) {
    this.#options = options;
    this.#clock = options.clock;
    this.#log = options.log ?? silent;
    this.#leases = options.client.resource(kinds.Lease);
    this.#leaseDurationMs = options.leaseDurationMs ?? 15_000;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? 10_000;
    this.#retryPeriodMs = options.retryPeriodMs ?? 2000;
    if (!options.identity) throw new RangeError('a candidate needs an identity');
    if (!(this.#leaseDurationMs > this.#renewDeadlineMs))
      throw new RangeError('leaseDuration must exceed renewDeadline');
    if (!(this.#renewDeadlineMs > jitterFactor * this.#retryPeriodMs)) {
      throw new RangeError(`renewDeadline must exceed retryPeriod × ${jitterFactor}`);
    }
    if (!(this.#retryPeriodMs > 0)) throw new RangeError('retryPeriod must be positive');
  }

  /** Whether this candidate leads and its lease, by its own clock, has not run out. */
  get isLeader(): boolean {
    return this.#leading && this.#clock.monotonic() < this.#renewedAt + this.#leaseDurationMs;
  }

  /** Who was last seen leading; '' before anybody was. */
  get leader(): string {
    return this.#observed?.spec?.holderIdentity ?? '';
  }

  /**
   * Takes part: waits to lead, leads, and resolves when leadership was lost or the signal aborted. Rejects only with what
   * a callback throws. Run it again to stand again.
   */
  async run(signal: AbortSignal): Promise<void> {
    if (!(await this.#acquire(signal))) return;
    const { identity, onStartedLeading, onStoppedLeading, releaseOnCancel = true } = this.#options;
    const term = new AbortController();
    this.#leading = true;
    this.#log.info('became leader', { identity });
    try {
      onStartedLeading?.(term.signal);
      await this.#renew(signal);
    } finally {
      this.#leading = false;
      term.abort(new Error('leadership ended'));
      this.#log.info('stopped leading', { identity });
      // Whoever works under this lease stops first, then the next one may begin.
      onStoppedLeading?.();
      if (releaseOnCancel && signal.aborted) await this.#release();
    }
  }

  async #acquire(signal: AbortSignal): Promise<boolean> {
    while (!signal.aborted) {
      if (await this.#attempt(signal, this.#renewDeadlineMs)) return true;
      const pauseMs = this.#retryPeriodMs * (1 + jitterFactor * this.#options.random.next());
      await this.#clock.sleep(pauseMs, signal).catch(() => undefined);
    }
    return false;
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const clock = this.#clock;
    for (;;) {
      await clock.sleep(this.#retryPeriodMs, signal).catch(() => undefined);
      const deadline = Math.min(clock.monotonic() + this.#renewDeadlineMs, this.#renewedAt + this.#leaseDurationMs);
      while (!signal.aborted && !(await this.#attempt(signal, deadline - clock.monotonic()))) {
        const left = deadline - clock.monotonic();
        if (planted('leads-without-a-lease')) await clock.sleep(this.#retryPeriodMs, signal).catch(() => undefined);
        else if (left <= 0 || (this.leader !== '' && this.leader !== this.#options.identity)) {
          this.#log.error('failed to renew the lease in time', { lease: this.#options.name });
          return;
        }
        await clock.sleep(Math.min(this.#retryPeriodMs, left), signal).catch(() => undefined);
      }
      if (signal.aborted) return;
    }
  }

  /** One try to take or keep the lease, given up after `limitMs`. */
  async #attempt(signal: AbortSignal, limitMs: number): Promise<boolean> {
    if (limitMs <= 0) return false;
    const limit = new AbortController();
    const onAbort = (): void => limit.abort(signal.reason);
    const timer = this.#clock.after(limitMs, () => limit.abort(new Error('the API server took too long')));
    signal.addEventListener('abort', onAbort, { once: true });
    const started = this.#clock.monotonic();
    try {
      const held = await this.#tryToHold(limit.signal);
      // Counted from before the request: the server, and so everybody else, saw it later.
      if (held) this.#renewedAt = started;
      return held;
    } catch (error) {
      if (!signal.aborted) this.#log.warn('leader election failed, trying again', { error: messageOf(error) });
      return false;
    } finally {
      timer.cancel();
      signal.removeEventListener('abort', onAbort);
      this.#reportLeader();
    }
  }

  async #tryToHold(signal: AbortSignal): Promise<boolean> {
    const { name, namespace, identity } = this.#options;
    // Nobody writes to the lease of a living leader: one request does, and a conflict says otherwise.
    if (this.#leading && this.#observed?.spec?.holderIdentity === identity) {
      try {
        return await this.#write(this.#observed, signal);
      } catch (error) {
        if (!isConflict(error) && !isNotFound(error)) throw error;
      }
    }
    const current = await ignoreNotFound(this.#leases.get(name, { namespace, signal }));
    if (!current) return this.#write(undefined, signal);
    this.#observe(current);
    const { holderIdentity } = current.spec ?? {};
    if (holderIdentity && holderIdentity !== identity && !this.#hasExpired(current.spec ?? {})) return false;
    return this.#write(current, signal);
  }

  /** Writes our name into the lease as it was read; a conflict means that somebody was faster. */
  async #write(current: Lease | undefined, signal: AbortSignal): Promise<boolean> {
    const { name, namespace, identity, labels } = this.#options;
    const now = formatMicroTime(this.#clock.now());
    const { metadata = { name, namespace }, spec = {} } = current ?? {};
    const held = spec.holderIdentity === identity;
    const transitions = spec.leaseTransitions ?? 0;
    const lease: Lease = {
      ...current,
      metadata: { ...metadata, ...(labels ? { labels: { ...metadata.labels, ...labels } } : {}) },
      spec: {
        ...spec,
        holderIdentity: identity,
        leaseDurationSeconds: Math.ceil(this.#leaseDurationMs / 1000),
        acquireTime: held ? (spec.acquireTime ?? now) : now,
        renewTime: now,
        leaseTransitions: held || !current ? transitions : transitions + 1,
      },
    };
    this.#observe(await (current ? this.#leases.update(lease, { signal }) : this.#leases.create(lease, { signal })));
    return true;
  }

  #hasExpired(spec: LeaseSpec): boolean {
    const durationMs = (spec.leaseDurationSeconds ?? 0) * 1000;
    return this.#observedAt + durationMs <= this.#clock.monotonic();
  }

  /** A lease that says something new proves that its holder was alive just now. */
  #observe(lease: Lease): void {
    if (this.#observed && deepEqual(this.#observed.spec, lease.spec)) {
      this.#observed = lease;
      return;
    }
    this.#observed = lease;
    this.#observedAt = this.#clock.monotonic();
  }

  #reportLeader(): void {
    const { leader } = this;
    if (leader === '' || leader === this.#reportedLeader) return;
    this.#reportedLeader = leader;
    this.#options.onNewLeader?.(leader);
  }

  async #release(): Promise<void> {
    const { name, identity } = this.#options;
    const limit = new AbortController();
    const timer = this.#clock.after(this.#renewDeadlineMs, () =>
      limit.abort(new Error('the API server took too long')),
    );
    const lease = this.#observed;
    if (!lease || lease.spec?.holderIdentity !== identity) return timer.cancel();
    const now = formatMicroTime(this.#clock.now());
    try {
      // With the version last seen: if anybody wrote since, there is nothing of ours to release.
      const spec = { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1, acquireTime: now, renewTime: now };
      this.#observe(await this.#leases.update({ ...lease, spec }, { signal: limit.signal }));
    } catch (error) {
      this.#log.warn('failed to release the lease', { lease: name, error: messageOf(error) });
    } finally {
      timer.cancel();
    }
  }
}
