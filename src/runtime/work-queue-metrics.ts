// SPDX-License-Identifier: Apache-2.0
// The metrics of work queues, named as controller-runtime names them.
import {
  counter,
  exponentialBuckets,
  gauge,
  histogram,
  type MetricDeclaration,
  type Metrics,
  type Series,
} from './metrics.ts';

const labels = ['name', 'controller'] as const;
type QueueLabel = (typeof labels)[number];
const buckets = exponentialBuckets(1e-8, 10, 12);

const declared = {
  depth: gauge({
    name: 'workqueue_depth',
    help: 'Keys that wait for a worker, by queue and priority.',
    labels: [...labels, 'priority'],
  }),
  adds: counter({ name: 'workqueue_adds_total', help: 'Keys that became ready for a worker.', labels }),
  latency: histogram({
    name: 'workqueue_queue_duration_seconds',
    help: 'How long a key was ready before a worker took it.',
    labels,
    buckets,
  }),
  workDuration: histogram({
    name: 'workqueue_work_duration_seconds',
    help: 'How long a worker was busy with a key.',
    labels,
    buckets,
  }),
  unfinished: gauge({
    name: 'workqueue_unfinished_work_seconds',
    help: 'Time spent so far on the keys being worked on, summed. If it only grows, workers are stuck.',
    labels,
  }),
  longest: gauge({
    name: 'workqueue_longest_running_processor_seconds',
    help: 'How long the slowest worker has been busy with its key.',
    labels,
  }),
  retries: counter({ name: 'workqueue_retries_total', help: 'Keys that were put back with a delay.', labels }),
};

/**
 * Every metric of a work queue, for the reference, which finds it by loading the file.
 * @public
 */
export const workQueueMetrics: readonly MetricDeclaration[] = Object.values(declared);

/** The series of one queue. Counts are kept as plain numbers and written when somebody looks: adding is on hot paths. */
export class QueueMetrics {
  readonly #labels: Readonly<Record<QueueLabel, string>>;
  readonly #series: Series<typeof declared>;
  readonly #depths = new Map<number, number>();
  readonly #flushAndStop: () => void;
  #newAdds = 0;
  #newRetries = 0;

  constructor(metrics: Metrics, name: string, unfinishedWork: () => { totalMs: number; longestMs: number }) {
    this.#labels = Object.freeze({ name, controller: name });
    this.#series = metrics.all(declared);
    this.#depths.set(0, 0);
    const flush = (): void => {
      this.#flush();
      const { totalMs, longestMs } = unfinishedWork();
      this.#series.unfinished.set(this.#labels, totalMs / 1000);
      this.#series.longest.set(this.#labels, longestMs / 1000);
    };
    const stop = metrics.onScrape(flush);
    this.#flushAndStop = () => {
      flush();
      stop();
    };
  }

  added(priority: number): void {
    this.#newAdds++;
    this.#shift(priority, 1);
  }

  taken(priority: number, waitedMs: number): void {
    this.#shift(priority, -1);
    this.#series.latency.observe(this.#labels, waitedMs / 1000);
  }

  worked(ms: number): void {
    this.#series.workDuration.observe(this.#labels, ms / 1000);
  }

  retried(): void {
    this.#newRetries++;
  }

  reprioritized(from: number, to: number): void {
    this.#shift(from, -1);
    this.#shift(to, 1);
  }

  dropped(priority: number): void {
    this.#shift(priority, -1);
  }

  /** The queue has ended: writes the last numbers and lets go of the registry. */
  close(): void {
    this.#flushAndStop();
  }

  #shift(priority: number, by: number): void {
    this.#depths.set(priority, (this.#depths.get(priority) ?? 0) + by);
  }

  #flush(): void {
    for (const [priority, count] of this.#depths)
      this.#series.depth.set({ ...this.#labels, priority: String(priority) }, count);
    this.#series.adds.inc(this.#labels, this.#newAdds);
    this.#series.retries.inc(this.#labels, this.#newRetries);
    this.#newAdds = 0;
    this.#newRetries = 0;
  }
}
