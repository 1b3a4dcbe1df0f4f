// SPDX-License-Identifier: Apache-2.0
// Gives each NodeClaim that waits the Machine that came for it. A Machine is taken by writing the NodeClaim's UID onto
// it, on the condition that nobody wrote before: no Machine ever has two owners. Driven by what the management cluster
// shows, so a crash in the middle costs nothing.
import { type NodeClaim, nodeClaimKind } from '../../api/node-claim.ts';
import type { Clock } from '../../base/clock.ts';
import { messageOf } from '../../base/errors.ts';
import { ignoreNotFound, isConflict, isNotFound } from '../../kube/api-error.ts';
import type { Informer } from '../../kube/informer.ts';
import { keyOf, type ResourceType } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Counter, Metrics } from '../../runtime/metrics.ts';
import { madeFrom, templateHash } from './drift.ts';
import { type Hub, HubUnavailableError, ownersOf } from './hub.ts';
import { failureOf, isDeleting, type Machine, providerIDOf } from './kinds.ts';
import { isUnclaimed, oldestFirst, takeFirst } from './ledger.ts';
import { clusterApiMetrics } from './metrics.ts';
import { annotations, memberLabel } from './names.ts';
import type { Scaler } from './scaler.ts';

export interface BinderOptions {
  readonly metrics: Metrics;
  readonly hub: Hub;
  readonly scaler: Scaler;
  /** Where NodeClaims live. */
  readonly karpenter: Cluster;
  readonly clock: Clock;
  readonly log: Logger;
}

const byUid = 'clusterApiUid';
const byWaiting = 'clusterApiWaiting';
/** Changes come in swarms; they are looked at together. */
const settleMs = 20;
const retryMs = 1000;

export class Binder {
  readonly #options: BinderOptions;
  readonly #tries: Counter<'outcome'>;
  readonly #claims: Informer<NodeClaim>;
  /** What our own writes gave, by the Machine's UID, until the cache has it. */
  readonly #taken = new Map<string, Machine>();
  /** NodeClaims that this process was asked to launch. */
  readonly #wanted = new Map<string, NodeClaim>();
  readonly #taking = new Map<string, Promise<void>>();
  readonly #waiters = new Map<string, Set<() => void>>();
  readonly #poked = new Set<string>();
  readonly #never = new AbortController().signal;
  #scheduled = false;
  #running = false;

  constructor(options: BinderOptions) {
    this.#options = options;
    this.#tries = options.metrics.counter(clusterApiMetrics.claims);
    this.#claims = options.karpenter.informers.get(nodeClaimKind as ResourceType<NodeClaim>);
    this.#claims.addIndex(byUid, ({ metadata }) => metadata.uid);
    this.#claims.addIndex(byWaiting, (claim) => (isWaiting(claim) ? byWaiting : undefined));
    // Whoever goes without having been deleted by us waits no longer.
    this.#claims.addHandler({ deleted: ({ metadata }) => void this.#wanted.delete(metadata.uid ?? '') });
    // Machines change all the time, long after they were given out: that concerns nobody here.
    options.hub.onChange(() => {
      if (this.#isAwaited()) this.wake();
    });
  }

  #isAwaited(): boolean {
    return (
      this.#wanted.size > 0 ||
      this.#taken.size > 0 ||
      this.#waiters.size > 0 ||
      this.#claims.byIndex(byWaiting, byWaiting).length > 0
    );
  }

  /** A NodeClaim is to get a Machine once one has come for it. */
  want(claim: NodeClaim): void {
    this.#wanted.set(claim.metadata.uid ?? '', claim);
    this.wake();
  }

  /** A Machine that was made for its NodeClaim, until the cache has it. */
  remember(machine: Machine): void {
    this.#taken.set(machine.metadata.uid ?? '', machine);
  }

  /** It is to get none any more. Resolves when none is being given to it. */
  async forget(uid: string): Promise<void> {
    this.#wanted.delete(uid);
    await this.#taking.get(uid);
  }

  /** Looks at all that wait, soon. */
  wake(afterMs = settleMs): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    this.#options.clock.after(afterMs, () => {
      this.#scheduled = false;
      void this.#run();
    });
  }

  /** The Machine of a NodeClaim, our own last writes included. */
  machineOf(uid: string): Machine | undefined {
    const [cached] = this.#options.hub.machinesOfClaim(uid).sort(oldestFirst);
    if (cached) return cached;
    for (const machine of this.#taken.values()) {
      if (machine.metadata.annotations?.[annotations.claimUid] === uid) return machine;
    }
    return undefined;
  }

  /** Resolves when a NodeClaim's Machine has its provider id or has failed, or after a while. */
  async change(uid: string, withinMs: number, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const waiters = this.#waiters.get(uid) ?? new Set();
    this.#waiters.set(uid, waiters.add(resolve));
    const timer = this.#options.clock.after(withinMs, resolve);
    const onAbort = (): void => resolve();
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) resolve();
    await promise;
    timer.cancel();
    signal.removeEventListener('abort', onAbort);
    waiters.delete(resolve);
    if (waiters.size === 0) this.#waiters.delete(uid);
  }

  async #run(): Promise<void> {
    if (this.#running) return this.wake();
    this.#running = true;
    try {
      this.#forgetSeen();
      await this.#bindAll();
    } catch (error) {
      // It tells when it can be read: asking until then would fill the log and outlive the program.
      if (error instanceof HubUnavailableError) return;
      this.#options.log.warn('Machines could not be given out', { error: messageOf(error) });
      this.wake(retryMs);
    } finally {
      this.#running = false;
    }
    await this.#announce();
  }

  /** What the cache shows need not be remembered. */
  #forgetSeen(): void {
    const { machines } = this.#options.hub.view;
    for (const [uid, machine] of this.#taken) {
      const cached = machines.get(keyOf(machine));
      if (cached?.metadata.uid !== uid || cached.metadata.annotations?.[annotations.claimUid] !== undefined) {
        this.#taken.delete(uid);
      }
    }
  }

  async #bindAll(): Promise<void> {
    await Promise.all(this.#options.hub.scalableKeys().map((key) => this.#bindMember(key)));
  }

  async #bindMember(key: string): Promise<void> {
    const { hub, scaler } = this.#options;
    const { pending } = scaler.ledger(key);
    if (pending.length === 0) return;
    const free = hub
      .machinesOf(key)
      .filter((machine) => isUnclaimed(machine) && !this.#taken.has(machine.metadata.uid ?? ''))
      .sort(oldestFirst);
    const work: Promise<void>[] = [];
    for (const batch of pending) {
      for (const uid of batch.claims) {
        const claim = this.#wanted.get(uid);
        if (!claim || this.#isPast(uid) || this.machineOf(uid)) continue;
        const machine = takeFirst(free, batch);
        if (!machine) continue;
        const taking = this.#take(machine, claim).finally(() => this.#taking.delete(uid));
        this.#taking.set(uid, taking);
        work.push(taking);
      }
    }
    await Promise.all(work);
  }

  /** Whoever is going away gets nothing more, nor does who has had a Machine: it is known by its provider id. */
  #isPast(uid: string): boolean {
    const [claim] = this.#claims.byIndex(byUid, uid);
    return claim !== undefined && (isDeleting(claim) || Boolean(claim.status?.providerID));
  }

  /** Writes the NodeClaim onto the Machine, unless somebody wrote to it since it was seen. */
  async #take(machine: Machine, claim: NodeClaim): Promise<void> {
    const { hub, log } = this.#options;
    const { name = '', namespace = '', uid = '', resourceVersion } = machine.metadata;
    // Held against others of this process until the outcome is known.
    this.#taken.set(uid, machine);
    const made = madeFrom(machine, hub);
    const hash = await templateHash(hub, made, namespace, this.#never).catch(() => undefined);
    const metadata = {
      uid,
      resourceVersion,
      labels: { [memberLabel]: '' },
      annotations: {
        [annotations.claimUid]: claim.metadata.uid,
        [annotations.claimName]: claim.metadata.name,
        [annotations.claimCluster]: hub.identity,
        ...(hash === undefined ? {} : { [annotations.templateHash]: hash }),
      },
    };
    const machines = hub.cluster.client.resource(hub.view.kinds.machine);
    try {
      const taken = await machines.patch(name, { metadata }, { namespace });
      this.#taken.set(uid, taken);
      this.#tries.inc({ outcome: 'claimed' });
      log.info('claimed machine', { machine: keyOf(taken), NodeClaim: { name: claim.metadata.name } });
    } catch (error) {
      this.#taken.delete(uid);
      const isTaken = isConflict(error) || isNotFound(error);
      this.#tries.inc({ outcome: isTaken ? 'taken' : 'failed' });
      if (!isTaken) await this.#lookAgain(machine, error);
      // Somebody else was first, or wrote something else: the newest state decides.
      this.wake(settleMs);
    }
  }

  /** Nobody knows whether the write came through: the Machine itself is asked before another is taken. */
  async #lookAgain(machine: Machine, failure: unknown): Promise<void> {
    const { hub, log } = this.#options;
    const { name = '', namespace, uid = '' } = machine.metadata;
    log.warn('a Machine could not be claimed', { machine: keyOf(machine), error: messageOf(failure) });
    this.#taken.set(uid, machine);
    const current = await ignoreNotFound(
      hub.cluster.client.resource(hub.view.kinds.machine).get(name, { namespace }),
    ).catch(() => undefined);
    if (current?.metadata.annotations?.[annotations.claimUid] === undefined) this.#taken.delete(uid);
    else this.#taken.set(uid, current);
  }

  /** Tells those who wait; where nobody waits any more, the NodeClaim itself is told, so that it is looked at again. */
  async #announce(): Promise<void> {
    const { hub, karpenter, log } = this.#options;
    for (const [uid, waiters] of this.#waiters) {
      const machine = this.machineOf(uid);
      if (machine && (providerIDOf(machine) || failureOf(machine))) for (const resolve of waiters) resolve();
    }
    for (const claim of this.#claims.byIndex(byWaiting, byWaiting)) {
      const { uid = '', name = '' } = claim.metadata;
      if (this.#waiters.has(uid) || this.#poked.has(uid)) continue;
      const [machine] = hub.machinesOfClaim(uid);
      if (!machine || !providerIDOf(machine)) continue;
      this.#poked.add(uid);
      const metadata = { uid, annotations: { [annotations.machine]: keyOf(machine) } };
      try {
        await ignoreNotFound(karpenter.client.resource(this.#claims.type).patch(name, { metadata }));
      } catch (error) {
        log.debug('a NodeClaim was not told of its Machine', { NodeClaim: { name }, error: messageOf(error) });
      }
    }
    for (const uid of this.#poked) if (this.#claims.byIndex(byUid, uid).length === 0) this.#poked.delete(uid);
  }
}

/** A NodeClaim of this cloud that has no machine yet. */
function isWaiting(claim: NodeClaim): boolean {
  return !claim.status?.providerID && !isDeleting(claim) && claim.spec.nodeClassRef.kind === 'ClusterAPINodeClass';
}

/** The key of what a Machine's replicas are counted by: its MachineDeployment, else its MachineSet. */
export function ownerKeyOf(machine: Machine): string | undefined {
  return ownersOf(machine)[0];
}
