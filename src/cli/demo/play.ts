// SPDX-License-Identifier: Apache-2.0
// Plays a scenario to its end, and sums up.
import type { Clock } from '../../base/clock.ts';
import { KarpenterError } from '../../base/errors.ts';
import { type DemoEvent, dollars, type Summary, seconds } from './events.ts';
import type { Goal, Scenario } from './scenario.ts';
import type { Stage } from './stage.ts';
import type { World } from './world.ts';

/** What was reached is looked at for a while before the next act. */
const holdMs = 5000;

/** What should have come about did not. */
export class DemoFailedError extends KarpenterError {
  constructor(scenario: string, why: string) {
    super('KRP_DEMO_FAILED', `the scenario ${scenario} did not reach its end: ${why}`, { details: { scenario } });
  }
}

export interface PlayOptions {
  readonly scenario: Scenario;
  readonly providers: readonly string[];
  readonly stage: Stage;
  readonly clock: Clock;
  readonly emit: (event: DemoEvent) => void;
  readonly signal: AbortSignal;
}

/** Plays it, telling everything, the summary at last. Throws DemoFailedError, after the summary; and when the signal aborts. */
export async function play(options: PlayOptions): Promise<Summary> {
  const { scenario, providers, stage, emit } = options;
  const { watcher } = stage;
  const { name, description, acts } = scenario;
  emit({
    type: 'begin',
    at: watcher.at,
    scenario: name,
    description,
    providers,
    acts: acts.map(({ title }) => title),
  });
  const failure = await playActs(options);
  watcher.tellState();
  const summary = summaryOf(options, failure);
  emit(summary);
  if (failure !== undefined) throw new DemoFailedError(name, failure);
  return summary;
}

/** Why it failed; undefined when it did not. */
async function playActs({ scenario, stage, clock, emit, signal }: PlayOptions): Promise<string | undefined> {
  const { watcher, hands } = stage;
  for (const [number, act] of scenario.acts.entries()) {
    const began = watcher.at;
    const goal = act.goal?.(watcher.world);
    emit({ type: 'act', at: began, act: number, title: act.title, ...(goal ? { goal: goal.what } : {}) });
    await act.do(hands);
    if (!goal) continue;
    if (!(await watcher.until((world) => goal.holds(world), goal.withinMs, signal)))
      return missed(goal, watcher.world, stage);
    watcher.tellState();
    const { at } = watcher;
    emit({ type: 'reached', at, act: number, what: goal.what, afterSeconds: seconds((at - began) * 1000) });
    if (number < scenario.acts.length - 1) await clock.sleep(holdMs, signal);
  }
  return undefined;
}

function missed(goal: Goal, { pods, machines }: World, stage: Stage): string {
  const state = `${pods.running} pods running, ${pods.starting} starting, ${pods.pending} pending, ${pods.leaving} leaving; ${machines.length} machines`;
  const [complaint] = stage.complaints();
  const why = complaint === undefined ? '' : `; the autoscaler says: ${complaint}`;
  return `"${goal.what}" was not true within ${goal.withinMs / 1000} s (${state})${why}`;
}

function summaryOf({ scenario, providers, stage }: PlayOptions, failure: string | undefined): Summary {
  const { watcher } = stage;
  const { waits, purchases: bought, most, world, at } = watcher;
  return {
    type: 'summary',
    at,
    scenario: scenario.name,
    providers,
    succeeded: failure === undefined,
    ...(failure === undefined ? {} : { failure }),
    bought,
    pods: {
      started: waits.length,
      medianSeconds: waits[Math.floor(waits.length / 2)] ?? 0,
      slowestSeconds: waits.at(-1) ?? 0,
    },
    most,
    cost: dollars(bought.reduce((sum, { cost }) => sum + cost, 0)),
    left: {
      pods: world.pods.running + world.pods.starting + world.pods.pending + world.pods.leaving,
      machines: world.machines.length,
      pricePerHour: world.pricePerHour,
    },
  };
}
