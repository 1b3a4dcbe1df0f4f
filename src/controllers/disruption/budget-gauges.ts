// SPDX-License-Identifier: Apache-2.0
// What metrics say of budgets. Every pass looks at all of them, for each method, and nearly always they are what they were:
// then there is nothing to say.
import { keyOf } from '../../kube/object.ts';
import { type GaugeSample, GaugeStore, type Metrics } from '../../runtime/metrics.ts';
import type { PoolBudget } from './budgets.ts';
import { disruptionMetrics } from './metrics.ts';

/** Of one reason: what was shown last. */
interface Shown {
  readonly store: GaugeStore;
  budgets: readonly PoolBudget[];
}

/** The gauges of budgets, by reason. */
export class BudgetGauges {
  readonly #metrics: Metrics;
  readonly #byReason = new Map<string, Shown>();

  constructor(metrics: Metrics) {
    this.#metrics = metrics;
  }

  /** Shows the budgets for a reason; pools that are not among them are shown no longer. */
  show(budgets: readonly PoolBudget[], reason: string): void {
    let shown = this.#byReason.get(reason);
    if (!shown) this.#byReason.set(reason, (shown = { store: new GaugeStore(), budgets: [] }));
    else if (areAlike(shown.budgets, budgets)) return;
    shown.budgets = budgets;
    const allowedDisruptions = this.#metrics.gauge(disruptionMetrics.allowedDisruptions);
    const consuming = this.#metrics.gauge(disruptionMetrics.nodesConsumingBudgets);
    const samples = new Map<string, GaugeSample[]>();
    for (const { pool, allowed, disrupting } of budgets) {
      const labels = { nodepool: keyOf(pool), reason };
      samples.set(keyOf(pool), [
        { gauge: allowedDisruptions, labels, value: allowed },
        { gauge: consuming, labels, value: disrupting },
      ]);
    }
    shown.store.replaceAll(samples);
  }
}

function areAlike(a: readonly PoolBudget[], b: readonly PoolBudget[]): boolean {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) {
    const [was, is] = [a[i]!, b[i]!];
    if (was.allowed !== is.allowed || was.disrupting !== is.disrupting) return false;
    if (was.pool !== is.pool && keyOf(was.pool) !== keyOf(is.pool)) return false;
  }
  return true;
}
