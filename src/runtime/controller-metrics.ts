// SPDX-License-Identifier: Apache-2.0
// The metrics of controllers and of who leads them, named as controller-runtime names them.
import { counter, gauge, histogram, type MetricDeclaration, type Metrics, type Series } from './metrics.ts';

const labels = ['controller'] as const;

const declared = {
  total: counter({
    name: 'controller_runtime_reconcile_total',
    help: 'Reconciles by controller and by how they ended: success, error, requeue or requeue_after.',
    labels: ['controller', 'result'],
  }),
  errors: counter({
    name: 'controller_runtime_reconcile_errors_total',
    help: 'Reconciles that failed.',
    labels,
  }),
  terminal: counter({
    name: 'controller_runtime_terminal_reconcile_errors_total',
    help: 'Reconciles that failed in a way that trying again cannot mend.',
    labels,
  }),
  panics: counter({
    name: 'controller_runtime_reconcile_panics_total',
    help: 'Reconciles that failed because of a defect of the program.',
    labels,
  }),
  time: histogram({
    name: 'controller_runtime_reconcile_time_seconds',
    help: 'How long a reconcile took.',
    labels,
  }),
  maxConcurrent: gauge({
    name: 'controller_runtime_max_concurrent_reconciles',
    help: 'How many keys a controller works on at once at most.',
    labels,
  }),
  active: gauge({
    name: 'controller_runtime_active_workers',
    help: 'How many keys a controller is working on.',
    labels,
  }),
};

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
export const controllerMetrics: readonly MetricDeclaration[] = Object.values(declared);

const results = ['success', 'error', 'requeue', 'requeue_after'] as const;
export type ReconcileResult = (typeof results)[number];

/**
 * The series of one controller. All of them exist from the start, so that a rate over them has a beginning. What every
 * reconcile counts is kept as plain numbers and written when somebody looks.
 */
export class ControllerMetrics {
  readonly #labels: { readonly controller: string };
  readonly #series: Series<typeof declared>;
  /** Since somebody looked. */
  readonly #ended: Record<ReconcileResult, number> = { success: 0, error: 0, requeue: 0, requeue_after: 0 };
  #active = 0;

  constructor(metrics: Metrics, controller: string, workers: number) {
    this.#labels = Object.freeze({ controller });
    this.#series = metrics.all(declared);
    const { errors, terminal, panics, maxConcurrent } = this.#series;
    maxConcurrent.set(this.#labels, workers);
    for (const series of [errors, terminal, panics]) series.inc(this.#labels, 0);
    this.#flush();
    metrics.onScrape(() => this.#flush());
  }

  ended(result: ReconcileResult): void {
    this.#ended[result]++;
    if (result === 'error') this.#series.errors.inc(this.#labels);
  }

  failedForGood(): void {
    this.#series.terminal.inc(this.#labels);
  }

  panicked(): void {
    this.#series.panics.inc(this.#labels);
  }

  took(seconds: number): void {
    this.#series.time.observe(this.#labels, seconds);
  }

  active(by: 1 | -1): void {
    this.#active += by;
  }

  #flush(): void {
    const { total, active } = this.#series;
    for (const result of results) {
      total.inc({ ...this.#labels, result }, this.#ended[result]);
      this.#ended[result] = 0;
    }
    // Two controllers may share a name.
    active.add(this.#labels, this.#active);
    this.#active = 0;
  }
}
