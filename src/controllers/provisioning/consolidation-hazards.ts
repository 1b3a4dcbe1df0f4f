// SPDX-License-Identifier: Apache-2.0
// Tells once a day which pods have preferences that later keep their nodes from being consolidated.
import type { Clock } from '../../base/clock.ts';
import type { Pod } from '../../kube/kinds.ts';
import { keyOf } from '../../kube/object.ts';
import { ChangeMonitor, formatList, type Logger } from '../../runtime/logging.ts';

/** Remembers what was told. */
export class ConsolidationHazards {
  readonly #monitor: ChangeMonitor;

  constructor(clock: Clock) {
    this.#monitor = new ChangeMonitor(clock);
  }

  /** Writes a line for pods that were not named within the last day. */
  tell(pods: readonly Pod[], log: Logger): void {
    this.#tell(
      pods,
      log,
      'anti-affinity',
      'pod(s) have a preferred Anti-Affinity which can prevent consolidation',
      (pod) => Boolean(pod.spec.affinity?.podAntiAffinity?.preferredDuringSchedulingIgnoredDuringExecution?.length),
    );
    this.#tell(
      pods,
      log,
      'topology-spread',
      'pod(s) have a preferred TopologySpreadConstraint which can prevent consolidation',
      (pod) =>
        pod.spec.topologySpreadConstraints?.some(({ whenUnsatisfiable }) => whenUnsatisfiable === 'ScheduleAnyway') ??
        false,
    );
  }

  #tell(pods: readonly Pod[], log: Logger, what: string, message: string, has: (pod: Pod) => boolean): void {
    const named = pods.filter((pod) => has(pod) && this.#monitor.hasChanged(`${what} ${pod.metadata.uid}`, true));
    if (named.length > 0) log.info(message, { pods: formatList(named.map(keyOf), 10) });
  }
}
