// SPDX-License-Identifier: Apache-2.0
// Runs one world from its seed and reports what came of it.
import type { Violation } from './contract.ts';
import { type Plan, planOf } from './plan.ts';
import { type ScenarioShape, scenarios } from './scenarios.ts';
import type { Summary } from './tally.ts';
import { World } from './world.ts';

export interface RunOptions {
  /** The name of a scenario, or one of one's own. */
  readonly scenario: string | ScenarioShape;
  readonly seed: number;
  readonly hours: number;
  /** Instead of the plan that follows from the seed: a shorter one. */
  readonly plan?: Plan;
  /** Is told how many minutes of its time have passed. Does not change the run. */
  readonly onMinute?: (minutes: number) => void;
}

export interface RunReport {
  readonly scenario: string;
  readonly seed: number;
  readonly hours: number;
  /** When the world began, by its own clock, in ms. */
  readonly startedAt: number;
  /** Over everything that happened: equal for equal runs. */
  readonly hash: string;
  readonly violations: readonly Violation[];
  readonly coverage: Readonly<Record<string, number>>;
  readonly summary: Summary;
  /** The last lines of the story. */
  readonly trace: readonly string[];
}

export function scenarioNamed(name: string): ScenarioShape | undefined {
  return scenarios.find((scenario) => scenario.name === name);
}

/** Runs a world until the end of its hours or its first violation. The same options give the same report. */
export async function runWorld(options: RunOptions): Promise<RunReport> {
  const { scenario, seed, hours } = options;
  const shape = typeof scenario === 'string' ? scenarioNamed(scenario) : scenario;
  if (!shape) throw new RangeError(`no scenario is named ${JSON.stringify(scenario)}`);
  const world = await World.build(shape, seed);
  try {
    await world.run(options.plan ?? planOf(shape, seed, hours), options.onMinute);
  } finally {
    await world.close();
  }
  return {
    scenario: shape.name,
    seed,
    hours,
    startedAt: world.startedAt,
    hash: world.trace.hash(),
    violations: world.judge.violations,
    coverage: Object.fromEntries(world.coverage.counts()),
    summary: world.tally.summary(),
    trace: world.trace.lines(),
  };
}
