// SPDX-License-Identifier: Apache-2.0
// The metrics of controllers and of who leads them, named as controller-runtime names them.
import {
  type Counter,
  counter,
  type Gauge,
  gauge,
  histogram,
  type MetricDeclaration,
  type Metrics,
  type Observer,
} from './metrics.ts';

const labels = ['controller'] as const;

const reconcileTotal = counter({
  name: 'controller_runtime_reconcile_total',
  help: 'Reconciles by controller and by how they ended: success, error, requeue or requeue_after.',
  labels: ['controller', 'result'],
});
const reconcileErrors = counter({
  name: 'controller_runtime_reconcile_errors_total',
  help: 'Reconciles that failed.',
  labels,
});
const terminalErrors = counter({
  name: 'controller_runtime_terminal_reconcile_errors_total',
  help: 'Reconciles that failed in a way that trying again cannot mend.',
  labels,
});
const panics = counter({
  name: 'controller_runtime_reconcile_panics_total',
  help: 'Reconciles that failed because of a defect of the program.',
  labels,
});
const reconcileTime = histogram({
  name: 'controller_runtime_reconcile_time_seconds',
  help: 'How long a reconcile took.',
  labels,
});
const maxConcurrent = gauge({
  name: 'controller_runtime_max_concurrent_reconciles',
  help: 'How many keys a controller works on at once at most.',
  labels,
});
const activeWorkers = gauge({
  name: 'controller_runtime_active_workers',
  help: 'How many keys a controller is working on.',
  labels,
});

/** 1 while this process leads. */
export const leaderStatus: MetricDeclaration<'gauge', 'name'> = gauge({
  name: 'leader_election_master_status',
  help: 'Whether this process holds the Lease of that name.',
  labels: ['name'],
});

/**
 * Every metric of a controller, for the reference, which finds it by loading the file.
 * @public
 */
export const controllerMetrics: readonly MetricDeclaration[] = [
  reconcileTotal,
  reconcileErrors,
  terminalErrors,
  panics,
  reconcileTime,
  maxConcurrent,
  activeWorkers,
];

const results = ['success', 'error', 'requeue', 'requeue_after'] as const;
export type ReconcileResult = (typeof results)[number];

/** The series of one controller. All of them exist from the start, so that a rate over them has a beginning. */
export class ControllerMetrics {
  readonly #labels: { readonly controller: string };
  readonly #total: Counter<'controller' | 'result'>;
  readonly #errors: Counter<'controller'>;
  readonly #terminal: Counter<'controller'>;
  readonly #panics: Counter<'controller'>;
  readonly #time: Observer<'controller'>;
  readonly #active: Gauge<'controller'>;

  constructor(metrics: Metrics, controller: string, workers: number) {
    this.#labels = { controller };
    this.#total = metrics.counter(reconcileTotal);
    this.#errors = metrics.counter(reconcileErrors);
    this.#terminal = metrics.counter(terminalErrors);
    this.#panics = metrics.counter(panics);
    this.#time = metrics.histogram(reconcileTime);
    this.#active = metrics.gauge(activeWorkers);
    metrics.gauge(maxConcurrent).set(this.#labels, workers);
    for (const result of results) this.#total.inc({ controller, result }, 0);
    for (const series of [this.#errors, this.#terminal, this.#panics]) series.inc(this.#labels, 0);
    this.#active.set(this.#labels, 0);
  }

  ended(result: ReconcileResult): void {
    this.#total.inc({ ...this.#labels, result });
    if (result === 'error') this.#errors.inc(this.#labels);
  }

  failedForGood(): void {
    this.#terminal.inc(this.#labels);
  }

  panicked(): void {
    this.#panics.inc(this.#labels);
  }

  took(seconds: number): void {
    this.#time.observe(this.#labels, seconds);
  }

  active(by: 1 | -1): void {
    this.#active.add(this.#labels, by);
  }
}
