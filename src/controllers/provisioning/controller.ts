// SPDX-License-Identifier: Apache-2.0
// Provisioning as controllers: the triggers and the loop behind them.
import { singleton, singletonKey } from '../../runtime/controller.ts';
import type { Logger } from '../../runtime/logging.ts';
import type { Runnable } from '../../runtime/manager.ts';
import { DefaultSpread } from '../../state/default-spread.ts';
import { PodArrivals } from './arrivals.ts';
import { Batcher } from './batcher.ts';
import { Provisioner, type ProvisionerOptions } from './provisioner.ts';
import { nodeTrigger, podTrigger } from './triggers.ts';

export interface ProvisioningOptions extends Omit<ProvisionerOptions, 'batcher' | 'arrivals' | 'defaultSpread'> {
  readonly log: Logger;
}

export interface Provisioning {
  readonly provisioner: Provisioner;
  /** Others may ask for a pass, too. */
  readonly batcher: Batcher;
}

/** Adds the provisioner and its triggers to a manager. */
export function registerProvisioning(
  manager: { add(runnable: Runnable): unknown },
  options: ProvisioningOptions,
): Provisioning {
  const { clock, log, metrics, random, state, settings } = options;
  const { batchIdleDuration: idleMs, batchMaxDuration: maxMs } = settings;
  const arrivals = new PodArrivals({ clock, pods: state.sources.pods, countMs: maxMs });
  const batcher = new Batcher({ clock, idleMs, maxMs, isMoreComing: () => arrivals.areUnderWay });
  const { defaultConstraints } = settings.schedulerConfig.podTopologySpread;
  const defaultSpread = DefaultSpread.of(options.clusters.workload, defaultConstraints);
  const provisioner = new Provisioner({ ...options, batcher, arrivals, ...(defaultSpread ? { defaultSpread } : {}) });
  const triggers = { state, batcher, clock, log, metrics };
  manager.add(podTrigger(triggers));
  manager.add(nodeTrigger(triggers));
  const loop = singleton({
    name: 'provisioner',
    clock,
    log,
    metrics,
    random,
    reconcile: (signal, context) => provisioner.reconcile(signal, context),
  });
  batcher.onTrigger(() => loop.enqueue(singletonKey));
  manager.add(loop);
  return { provisioner, batcher };
}
