// SPDX-License-Identifier: Apache-2.0
// Writes to members: what many NodeClaims want of one MachineDeployment goes into one conditional write. One write at a
// time per member; what comes meanwhile goes into the next.
import type { Clock } from '../../base/clock.ts';
import { KarpenterError } from '../../base/errors.ts';
import { ignoreNotFound, isConflict, isNotFound } from '../../kube/api-error.ts';
import type { ResourceType } from '../../kube/object.ts';
import { formatTime } from '../../kube/time.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Counter, Metrics, Observer } from '../../runtime/metrics.ts';
import { replicasOf, sizeLimit } from './catalog.ts';
import type { Hub } from './hub.ts';
import type { Machine, Scalable } from './kinds.ts';
import {
  type Entry,
  emptyLedger,
  formatLedger,
  isMarked,
  type Ledger,
  type Plan,
  parseLedger,
  planEntries,
} from './ledger.ts';
import { clusterApiMetrics } from './metrics.ts';
import { capi, ledgerAnnotation } from './names.ts';

/** A member was written to by others again and again. */
export class MemberBusyError extends KarpenterError {
  constructor(key: string) {
    super('KRP_MEMBER_BUSY', `${key} keeps changing while it is scaled`);
  }
}

/**
 * What became of an entry: done, refused for lack of room, refused because its ledger cannot grow any more, or the member is
 * gone.
 */
export type Outcome = 'done' | 'full' | 'overfull' | 'gone';

/** An API server takes no more than this of all annotations of an object; some is left for those of others. */
const annotationLimit = 256 * 1024 - 16 * 1024;

interface Waiting {
  readonly entry: Entry;
  readonly resolve: (outcome: Outcome) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  waiting: Waiting[];
  /** When the first of those that wait came. */
  since: number;
  timer: { cancel(): void } | undefined;
  writing: boolean;
}

type Written = { readonly isGone: true } | Pick<Plan, 'refused' | 'isOverfull'>;

function outcomeOf({ kind, uid }: Entry, written: Written): Outcome {
  if ('isGone' in written) return 'gone';
  if (kind !== 'raise' || !written.refused.has(uid)) return 'done';
  return written.isOverfull ? 'overfull' : 'full';
}

/** How many bytes one annotation of an object may have, its others being what they are. */
function roomIn({ metadata }: Scalable, annotation: string): number {
  let others = 0;
  for (const [key, value] of Object.entries(metadata.annotations ?? {})) {
    if (key !== annotation) others += Buffer.byteLength(key) + Buffer.byteLength(value);
  }
  return annotationLimit - annotation.length - others;
}

export interface ScalerOptions {
  readonly metrics: Metrics;
  readonly hub: Hub;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long a write waits for company: since the last one came, and in all. */
const idleMs = 100;
const longestMs = 1000;
const attempts = 20;
const conflictMs = 20;

export class Scaler {
  readonly #options: ScalerOptions;
  readonly #lines = new Map<string, Line>();
  /** Objects do not change: what was read from one stays true. */
  readonly #parsed = new WeakMap<Scalable, Ledger>();
  /** What our own last write gave, until the cache has it. */
  readonly #latest = new Map<string, Scalable>();

  readonly #writes: Counter<'outcome'>;
  readonly #sizes: Observer<never>;

  constructor(options: ScalerOptions) {
    this.#options = options;
    this.#writes = options.metrics.counter(clusterApiMetrics.scaleWrites);
    this.#sizes = options.metrics.histogram(clusterApiMetrics.batchSize);
  }

  /** Enters something into the ledger of a member. Resolves once it is written, or was before. */
  enter(key: string, entry: Entry): Promise<Outcome> {
    const { clock } = this.#options;
    return new Promise((resolve, reject) => {
      let line = this.#lines.get(key);
      if (!line) {
        line = { waiting: [], since: 0, timer: undefined, writing: false };
        this.#lines.set(key, line);
      }
      if (line.waiting.length === 0) line.since = clock.monotonic();
      line.waiting.push({ entry, resolve, reject });
      this.#schedule(key, line);
    });
  }

  /** The member as it is known, our own writes included. */
  object(key: string): Scalable | undefined {
    const cached = this.#options.hub.scalable(key);
    const written = this.#latest.get(key);
    if (!written || !cached || cached.metadata.uid !== written.metadata.uid) return cached;
    if ((cached.metadata.generation ?? 0) < (written.metadata.generation ?? 0)) return written;
    if (cached.metadata.resourceVersion === written.metadata.resourceVersion) this.#latest.delete(key);
    return cached;
  }

  ledger(key: string): Ledger {
    return this.#ledgerOf(this.object(key));
  }

  #ledgerOf(object: Scalable | undefined): Ledger {
    if (!object) return emptyLedger;
    let ledger = this.#parsed.get(object);
    if (!ledger) {
      ledger = parseLedger(object.metadata.annotations?.[ledgerAnnotation(this.#options.hub.identity)]);
      this.#parsed.set(object, ledger);
    }
    return ledger;
  }

  #schedule(key: string, line: Line): void {
    if (line.writing) return;
    const { clock } = this.#options;
    line.timer?.cancel();
    const left = Math.max(0, line.since + longestMs - clock.monotonic());
    line.timer = clock.after(Math.min(idleMs, left), () => void this.#flush(key, line));
  }

  async #flush(key: string, line: Line): Promise<void> {
    const batch = line.waiting;
    line.waiting = [];
    line.writing = true;
    try {
      const written = await this.#write(
        key,
        batch.map(({ entry }) => entry),
      );
      for (const { entry, resolve } of batch) resolve(outcomeOf(entry, written));
    } catch (error) {
      for (const { reject } of batch) reject(error);
    }
    line.writing = false;
    if (line.waiting.length > 0) this.#schedule(key, line);
    else this.#lines.delete(key);
  }

  async #write(key: string, entries: readonly Entry[]): Promise<Written> {
    const { hub, clock, log } = this.#options;
    const [kind = '', namespace = '', name = ''] = key.split('/');
    const type: ResourceType<Scalable> =
      kind === 'MachineSet' ? hub.view.kinds.machineSet : hub.view.kinds.machineDeployment;
    const client = hub.cluster.client.resource(type);
    let object = this.object(key);
    for (let attempt = 0; attempt < attempts; attempt++) {
      object ??= await ignoreNotFound(client.get(name, { namespace }));
      if (!object) return { isGone: true };
      const machines = hub.machinesOf(key);
      const before = replicasOf(object);
      const plan = planEntries(
        {
          ledger: this.#ledgerOf(object),
          replicas: before,
          min: sizeLimit(object, capi.minSize, 0),
          max: sizeLimit(object, capi.maxSize, Number.POSITIVE_INFINITY),
          machines,
          room: roomIn(object, ledgerAnnotation(hub.identity)),
        },
        entries,
      );
      if (plan.isOverfull) log.warn('the ledger of a member is full: split it', { member: key });
      if (!plan.changed) return plan;
      try {
        for (const machine of plan.marks) await this.mark(machine);
        const written = await client.patch(
          name,
          {
            metadata: {
              // Refused when anybody wrote since: then it is worked out anew.
              resourceVersion: object.metadata.resourceVersion,
              annotations: { [ledgerAnnotation(hub.identity)]: formatLedger(plan.ledger) ?? null },
            },
            spec: { replicas: plan.replicas },
          },
          { namespace },
        );
        this.#latest.set(key, written);
        this.#writes.inc({ outcome: 'written' });
        this.#sizes.observe({}, entries.length);
        if (plan.replicas !== before) {
          log.info('scaled', { member: key, from: before, to: plan.replicas, nodeclaims: entries.length });
        }
        return plan;
      } catch (error) {
        this.#writes.inc({ outcome: isConflict(error) ? 'conflict' : 'failed' });
        if (isNotFound(error)) return { isGone: true };
        if (!isConflict(error)) throw error;
        object = undefined;
        await clock.sleep(conflictMs * Math.min(attempt, 10));
      }
    }
    throw new MemberBusyError(key);
  }

  /** Makes a Machine the first to go. Only the state that was seen is marked: one that was claimed meanwhile is not. */
  async mark(machine: Machine): Promise<void> {
    if (isMarked(machine)) return;
    const { hub, clock } = this.#options;
    const { name = '', namespace, uid, resourceVersion } = machine.metadata;
    const value = formatTime(clock.now());
    await hub.cluster.client
      .resource(hub.view.kinds.machine)
      .patch(name, { metadata: { uid, resourceVersion, annotations: { [capi.deleteMachine]: value } } }, { namespace });
  }
}
