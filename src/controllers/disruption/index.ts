// SPDX-License-Identifier: Apache-2.0
// Puts disruption together: the queue that carries commands out, and the loop with its methods.
import type { Random } from '../../base/random.ts';
import type { Controller } from '../../runtime/controller.ts';
import { coreSettings, defaultSettings } from '../../runtime/settings.ts';
import type { ControllerContext } from '../nodeclaim/context.ts';
import { ClaimCreator } from '../provisioning/create-claims.ts';
import type { StaticNodes } from '../static/static-nodes.ts';
import { Consolidation, type ConsolidationOptions } from './consolidation.ts';
import { Disruption } from './controller.ts';
import { Drift, StaticDrift } from './drift.ts';
import { Emptiness } from './emptiness.ts';
import { DisruptionMarks } from './marks.ts';
import type { Method } from './method.ts';
import { countScore, disruptionMetrics } from './metrics.ts';
import { DisruptionQueue } from './queue.ts';
import type { DisruptionSettings } from './snapshot.ts';

export interface DisruptionControllersOptions {
  /** Makes the ids of commands. */
  readonly random: Random;
  readonly settings?: DisruptionSettings;
  /** Counts the machines of static pools; shared with those who make them. */
  readonly staticNodes?: StaticNodes;
  readonly methods?: readonly Method[];
}

/** Methods in the order they are asked. */
export function defaultMethods(
  staticNodes?: StaticNodes,
  consolidation?: ConsolidationOptions,
  declared: Iterable<string> = [],
): Method[] {
  const timed = consolidation?.clock ? { clock: consolidation.clock } : {};
  return [
    new Emptiness(),
    ...(staticNodes ? [new StaticDrift(staticNodes)] : []),
    new Drift(timed),
    ...Array.from(new Set(declared), (reason) => new Drift({ ...timed, reason })),
    new Consolidation(consolidation),
  ];
}

/**
 * Methods for a plan on paper, with what clouds declare as reasons. Static pools are left out: how many machines they have, and are
 * about to get, is only known to the controllers that make them.
 */
export function planMethods(declared: Iterable<string> = []): Method[] {
  return defaultMethods(undefined, undefined, declared);
}

/** The controllers `disruption.queue` and `disruption`, ready to be started. */
export function disruptionControllers(context: ControllerContext, options: DisruptionControllersOptions): Controller[] {
  const { random, settings = defaultSettings(coreSettings), staticNodes } = options;
  const { clock, metrics } = context;
  const timeouts = metrics.counter(disruptionMetrics.consolidationTimeouts);
  const methods =
    options.methods ??
    defaultMethods(
      staticNodes,
      {
        clock: () => clock.monotonic(),
        onTimeout: () => timeouts.inc({ consolidation_type: 'multi' }),
        onRejected: (score) => countScore(metrics, 'rejected', score),
      },
      context.cloudsFor('disruption').providers.flatMap(({ disruptionReasons = [] }) => disruptionReasons),
    );
  const marks = new DisruptionMarks(context);
  const creator = new ClaimCreator(context);
  const queue = new DisruptionQueue({ context, marks, creator, ...(staticNodes ? { staticNodes } : {}) });
  const disruption = new Disruption({ context, queue, marks, random, methods, settings });
  return [queue.controller, disruption.controller];
}
