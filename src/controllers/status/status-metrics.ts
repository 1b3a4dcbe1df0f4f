// SPDX-License-Identifier: Apache-2.0
// Writes down what happens to the conditions of one kind's objects, and shows what holds of them now.
import type { Condition } from '../../api/conditions.ts';
import type { KubeObject, ResourceType } from '../../kube/object.ts';
import { type CollectedSample, labelText } from '../../runtime/collected-gauge.ts';
import type { Counter, Metrics, Observer } from '../../runtime/metrics.ts';
import { seconds, timeOf } from '../metrics/times.ts';
import { deprecatedStatusMetrics, metricLabel, type StatusMetrics } from './metrics.ts';

/** Objects with what is to be known about them. */
export interface StatusView<T extends KubeObject> {
  readonly list: () => Iterable<T>;
  readonly conditionsOf: (object: T) => readonly Condition[];
}

interface Recorders {
  readonly transitions: Counter<string>;
  readonly transitionTime: Observer<string>;
  readonly terminationDuration: Observer<string>;
  /** Labels of every series: those of the object, or those of its kind. */
  readonly labelsOf: (object: KubeObject) => Record<string, string>;
}

export interface StatusRecorderOptions<T extends KubeObject> {
  readonly metrics: Metrics;
  readonly declarations: StatusMetrics;
  readonly type: ResourceType<T>;
  /** Labels of the object that its series show. */
  readonly objectLabels: readonly string[];
  /** Also under the names that do not say the kind. */
  readonly deprecated: boolean;
  readonly now: () => number;
}

/** The metrics of one kind. */
export class StatusRecorder<T extends KubeObject> {
  readonly #options: StatusRecorderOptions<T>;
  readonly #recorders: readonly Recorders[];

  constructor(options: StatusRecorderOptions<T>) {
    this.#options = options;
    this.#recorders = this.#variants.map(({ declarations, labelsOf }) => ({
      transitions: options.metrics.counter(declarations.transitions),
      transitionTime: options.metrics.histogram(declarations.transitionTime),
      terminationDuration: options.metrics.histogram(declarations.terminationDuration),
      labelsOf,
    }));
  }

  /** A condition took on a status; `old` is what it was before, if it was there. */
  transitioned(object: T, { type, status, reason, lastTransitionTime }: Condition, old: Condition | undefined): void {
    for (const { transitions, transitionTime, labelsOf } of this.#recorders) {
      const labels = labelsOf(object);
      transitions.inc({ type, status, reason: reason ?? '', ...labels });
      if (!old) continue;
      const at = timeOf(lastTransitionTime, this.#options.now());
      const took = seconds(at - timeOf(old.lastTransitionTime, at));
      transitionTime.observe({ type, status: old.status, ...labels }, took);
    }
  }

  /** An object that was going away is gone. */
  terminated(object: T, deletionTimestamp: string): void {
    const took = this.#secondsSince(deletionTimestamp);
    for (const { terminationDuration, labelsOf } of this.#recorders)
      terminationDuration.observe(labelsOf(object), took);
  }

  /** Shows conditions and ends of these objects at each scrape. Returns the undos. */
  show(view: StatusView<T>): (() => void)[] {
    const { metrics } = this.#options;
    return this.#variants.flatMap(({ declarations: { count, currentStatus, terminationTime }, labelsOf }) => [
      metrics.collect(count, () => this.#conditions(view, labelsOf, () => 1)),
      metrics.collect(currentStatus, () =>
        this.#conditions(view, labelsOf, ({ lastTransitionTime }) => this.#secondsSince(lastTransitionTime)),
      ),
      metrics.collect(terminationTime, () => this.#terminating(view, labelsOf)),
    ]);
  }

  *#conditions(
    { list, conditionsOf }: StatusView<T>,
    labelsOf: Recorders['labelsOf'],
    valueOf: (condition: Condition) => number,
  ): Generator<CollectedSample, void, undefined> {
    for (const object of list()) {
      const own = labelText({ ...nameOf(object), ...labelsOf(object) });
      for (const condition of conditionsOf(object)) {
        const { type, status, reason } = condition;
        yield { labels: `${own},${labelText({ type, status, reason: reason ?? '' })}`, value: valueOf(condition) };
      }
    }
  }

  *#terminating({ list }: StatusView<T>, labelsOf: Recorders['labelsOf']): Generator<CollectedSample, void, undefined> {
    for (const object of list()) {
      const { deletionTimestamp } = object.metadata;
      if (deletionTimestamp)
        yield {
          labels: labelText({ ...nameOf(object), ...labelsOf(object) }),
          value: this.#secondsSince(deletionTimestamp),
        };
    }
  }

  get #variants(): { declarations: StatusMetrics; labelsOf: Recorders['labelsOf'] }[] {
    const { declarations, deprecated, objectLabels, type } = this.#options;
    const shown = objectLabels.map((key) => [key, metricLabel(key)] as const);
    const own = {
      declarations,
      labelsOf: ({ metadata }: KubeObject) =>
        Object.fromEntries(shown.map(([key, label]) => [label, metadata.labels?.[key] ?? ''])),
    };
    const kind = { group: type.group, kind: type.kind };
    return deprecated ? [own, { declarations: deprecatedStatusMetrics, labelsOf: () => kind }] : [own];
  }

  #secondsSince(time: string): number {
    const now = this.#options.now();
    return seconds(now - timeOf(time, now));
  }
}

function nameOf({ metadata }: KubeObject): Record<string, string> {
  return { namespace: metadata.namespace ?? '', name: metadata.name ?? '' };
}
