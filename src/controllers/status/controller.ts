// SPDX-License-Identifier: Apache-2.0
// operatorpkg.<kind>.status: tells as events, and measures, when a condition of an object changes, when a finalizer is
// done, and how long an object takes to go away.
import type { Condition } from '../../api/conditions.ts';
import type { Clock } from '../../base/clock.ts';
import type { Informer } from '../../kube/informer.ts';
import { type KubeObject, keyOf } from '../../kube/object.ts';
import type { Cluster } from '../../runtime/clusters.ts';
import type { Runnable } from '../../runtime/manager.ts';
import type { Metrics } from '../../runtime/metrics.ts';
import { conditionEvent, type EventKind, eventKinds, eventOf } from '../events.ts';
import { observer } from '../metrics/observer.ts';
import { type StatusMetrics } from './metrics.ts';
import { StatusRecorder } from './status-metrics.ts';

export interface StatusObserverOptions<T extends KubeObject> {
  /** Where the objects are, and the events about them go. */
  readonly cluster: Cluster;
  readonly informer: Informer<T>;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly declarations: StatusMetrics;
  readonly objectLabels?: readonly string[];
  /** Also under the names that do not say the kind. */
  readonly deprecated?: boolean;
  /** Whether an object is ours to speak about; all are unless told. */
  readonly manages?: (object: T) => boolean;
  /** The conditions of an object, which follow from those in its status; these themselves unless told. */
  readonly conditionsOf?: (object: T) => readonly Condition[];
}

/** The observer of a kind. */
export function statusObserver<T extends KubeObject>(options: StatusObserverOptions<T>): Runnable {
  const name = `operatorpkg.${options.informer.type.kind.toLowerCase()}.status`;
  return observer(name, () => new StatusFollower(options).begin());
}

class StatusFollower<T extends KubeObject> {
  readonly #options: StatusObserverOptions<T>;
  readonly #recorder: StatusRecorder<T>;
  readonly #manages: (object: T) => boolean;
  readonly #conditionsOf: (object: T) => readonly Condition[];
  /** The last state seen of each object: what a deletion brings may be older or newer. */
  readonly #last = new Map<string, T>();

  constructor(options: StatusObserverOptions<T>) {
    const { clock, declarations, metrics, informer, objectLabels = [], deprecated = false } = options;
    this.#options = options;
    this.#manages = options.manages ?? (() => true);
    this.#conditionsOf = options.conditionsOf ?? conditionsInStatus;
    this.#recorder = new StatusRecorder({
      metrics,
      declarations,
      type: informer.type,
      objectLabels,
      deprecated,
      now: () => clock.now(),
    });
  }

  begin(): (() => void)[] {
    const { informer } = this.#options;
    return [
      informer.addHandler({
        added: (object) => this.#put(object),
        updated: (object) => this.#put(object),
        deleted: (object) => this.#remove(object),
      }),
      ...this.#recorder.show({ list: () => [...this.#last.values()], conditionsOf: this.#conditionsOf }),
    ];
  }

  #put(object: T): void {
    if (!this.#manages(object)) return;
    const key = keyOf(object);
    const old = this.#last.get(key);
    this.#last.set(key, object);
    if (old) this.#finalized(object, without(old.metadata.finalizers, object.metadata.finalizers));
    // Most writes are about something else, and leave the very same list.
    if (old && conditionsInStatus(old) === conditionsInStatus(object)) return;
    const before = old ? this.#conditionsOf(old) : [];
    for (const condition of this.#conditionsOf(object)) {
      const was = before.find(({ type }) => type === condition.type);
      if (was?.status === condition.status) continue;
      this.#recorder.transitioned(object, condition, was);
      if (was) this.#tell(conditionEvent(condition.type), object, transition(was, condition));
    }
  }

  #remove(object: T): void {
    const last = this.#last.get(keyOf(object));
    if (!last) return;
    this.#last.delete(keyOf(object));
    const deletionTimestamp = last.metadata.deletionTimestamp ?? object.metadata.deletionTimestamp;
    if (deletionTimestamp) this.#recorder.terminated(last, deletionTimestamp);
    this.#finalized(last, last.metadata.finalizers ?? []);
  }

  #finalized(object: T, finalizers: readonly string[]): void {
    for (const finalizer of finalizers) this.#tell(eventKinds.finalized, object, `Finalized ${finalizer}`);
  }

  #tell(kind: EventKind, object: T, message: string): void {
    const { cluster, informer } = this.#options;
    const { group, version, kind: type } = informer.type;
    const named = { ...object, apiVersion: group === '' ? version : `${group}/${version}`, kind: type };
    cluster.events.publish(eventOf(kind, named, message));
  }
}

const none: readonly Condition[] = [];

function conditionsInStatus(object: KubeObject): readonly Condition[] {
  return (object as { status?: { conditions?: readonly Condition[] } }).status?.conditions ?? none;
}

function transition(was: Condition, { type, status, reason, message }: Condition): string {
  const because = message ? `, Message: ${message}` : '';
  return `Status condition transitioned, Type: ${type}, Status: ${was.status} -> ${status}, Reason: ${reason}${because}`;
}

function without(all: readonly string[] = [], left: readonly string[] = []): readonly string[] {
  return all === left ? [] : all.filter((one) => !left.includes(one));
}
