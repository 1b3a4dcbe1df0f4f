// SPDX-License-Identifier: Apache-2.0
// The end of a Machine: marked first, so that it is the one to go, then its NodeClaim is taken out of the member's ledger
// and the replicas come down in the same write. May be called any number of times; it lowers once.
import type { Clock } from '../../base/clock.ts';
import { planted } from '../../base/defects.ts';
import { ignoreNotFound, isConflict } from '../../kube/api-error.ts';
import { keyOf } from '../../kube/object.ts';
import type { Logger } from '../../runtime/logging.ts';
import { ownerKeyOf } from './binder.ts';
import { replicasOf } from './catalog.ts';
import type { Hub } from './hub.ts';
import { isDeleting, type Machine, rollsByItself } from './kinds.ts';
import { holds, isMarked } from './ledger.ts';
import { isTemplateKey } from './orphans.ts';
import type { Scaler } from './scaler.ts';

export interface Removal {
  readonly uid: string;
  readonly machine: Machine | undefined;
  /** The member whose ledger holds the NodeClaim. */
  readonly holder: string | undefined;
  /** Also in the middle of a rollout. */
  readonly now?: boolean;
}

/** How long a rollout of Cluster API is waited for: while it lasts, replicas may come down on the wrong side of it. */
const rolloutPatienceMs = 10 * 60_000;
const attempts = 10;

export class Remover {
  readonly #hub: Hub;
  readonly #scaler: Scaler;
  readonly #clock: Clock;
  readonly #log: Logger;
  /** Since when the end of a NodeClaim waits for a rollout. */
  readonly #deferred = new Map<string, number>();

  constructor(options: { hub: Hub; scaler: Scaler; clock: Clock; log: Logger }) {
    this.#hub = options.hub;
    this.#scaler = options.scaler;
    this.#clock = options.clock;
    this.#log = options.log;
  }

  /** One step towards the end; resolves when it is under way, with whether nothing is left to be done for the record. */
  async remove(removal: Removal, signal: AbortSignal): Promise<boolean> {
    const { uid, machine } = removal;
    const key = removal.holder ?? (machine && ownerKeyOf(machine));
    if (!machine || isDeleting(machine)) return this.#forget(removal, key);
    if (key === undefined || isTemplateKey(key) || !this.#scaler.object(key)) {
      await this.#deleteDirectly(machine, signal);
      return true;
    }
    const held = holds(this.#scaler.ledger(key), uid);
    const wasMarked = isMarked(machine) || (!held && (await this.#isPastMarking(machine, signal)));
    // Neither marked nor in the ledger: somebody took the record away. It comes back first, so that it counts once.
    if (!wasMarked && !held) await this.#scaler.enter(key, { kind: 'restore', uid });
    if (!wasMarked) await this.#mark(machine, signal);
    if (this.#mustWait(removal, key)) return false;
    if (held || !wasMarked || planted('cluster-api-lowers-again')) await this.#release(key, uid, false);
    // Replicas were lowered for it before. If they have come down without it, another Machine went in its place.
    else if (this.#isSettled(key)) await this.#deleteDirectly(machine, signal);
    return true;
  }

  /** The Machine is gone, or goes without us: only its record is left. */
  async #forget(removal: Removal, key: string | undefined): Promise<boolean> {
    const { uid } = removal;
    if (key === undefined || isTemplateKey(key)) return true;
    if (holds(this.#scaler.ledger(key), uid) && this.#mustWait(removal, key)) return false;
    await this.#release(key, uid, true);
    return true;
  }

  async #release(key: string, uid: string, lost: boolean): Promise<void> {
    this.#deferred.delete(uid);
    if (holds(this.#scaler.ledger(key), uid) || planted('cluster-api-lowers-again')) {
      await this.#scaler.enter(key, { kind: 'release', uid, lost });
    }
  }

  /** Asks the management cluster itself: what is told of a Machine may be older than our own mark on it. */
  async #isPastMarking({ metadata }: Machine, signal: AbortSignal): Promise<boolean> {
    const { name = '', namespace, uid } = metadata;
    const machines = this.#hub.cluster.client.resource(this.#hub.view.kinds.machine);
    const current = await ignoreNotFound(machines.get(name, { namespace, signal }));
    return !current || current.metadata.uid !== uid || isDeleting(current) || isMarked(current);
  }

  /** Marks the newest state of a Machine, whoever else writes to it. */
  async #mark(machine: Machine, signal: AbortSignal): Promise<void> {
    const { name = '', namespace, uid } = machine.metadata;
    const machines = this.#hub.cluster.client.resource(this.#hub.view.kinds.machine);
    let current: Machine | undefined = machine;
    for (let attempt = 1; current && current.metadata.uid === uid; attempt++) {
      try {
        return await this.#scaler.mark(current);
      } catch (error) {
        if (!isConflict(error) || attempt === attempts) throw error;
      }
      current = await ignoreNotFound(machines.get(name, { namespace, signal }));
    }
  }

  /** A MachineDeployment with Machines of several MachineSets is in the middle of a rollout. */
  #mustWait({ uid, now }: Removal, key: string): boolean {
    if (now || !key.startsWith('MachineDeployment/') || !this.#isRolling(key)) {
      this.#deferred.delete(uid);
      return false;
    }
    const since = this.#deferred.get(uid) ?? this.#clock.monotonic();
    this.#deferred.set(uid, since);
    return this.#clock.monotonic() - since < rolloutPatienceMs;
  }

  #isRolling(key: string): boolean {
    const owner = this.#scaler.object(key);
    if (!owner || !rollsByItself(owner)) return false;
    const sets = this.#hub
      .machinesOf(key)
      .map(({ metadata }) => metadata.ownerReferences?.find(({ kind }) => kind === 'MachineSet')?.name);
    return new Set(sets).size > 1;
  }

  /** Cluster API has seen the newest replicas, and there are no more Machines than that. */
  #isSettled(key: string): boolean {
    const owner = this.#scaler.object(key);
    if (!owner) return true;
    const { generation = 0 } = owner.metadata;
    const isSeen = (owner.status?.observedGeneration ?? generation) >= generation;
    return isSeen && this.#hub.machinesOf(key).length <= replicasOf(owner);
  }

  async #deleteDirectly(machine: Machine, signal: AbortSignal): Promise<void> {
    const { name = '', namespace, uid } = machine.metadata;
    this.#log.info('deleting machine', { machine: keyOf(machine) });
    await ignoreNotFound(
      this.#hub.cluster.client
        .resource(this.#hub.view.kinds.machine)
        .delete(name, { namespace, signal, ...(uid ? { preconditions: { uid } } : {}) }),
    );
  }
}
