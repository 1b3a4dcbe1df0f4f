// SPDX-License-Identifier: Apache-2.0
// The shortest story that still goes wrong: happenings and faults are taken from the end of the plan while the same
// promise is still broken.
import { planOf, prefixOf, sizeOf } from './plan.ts';
import { type RunOptions, type RunReport, runWorld, scenarioNamed } from './run.ts';

export interface Shrunk {
  /** How many happenings and faults are needed. */
  readonly events: number;
  /** Of how many. */
  readonly of: number;
  /** The run with only these. */
  readonly report: RunReport;
}

/**
 * Runs shorter and shorter prefixes of the plan that led to a violation. At most `attempts` worlds are run: each time
 * the half that is left is tried, so that ten find the end of a thousand events.
 */
export async function shortestPrefix(
  failed: RunReport,
  options: RunOptions,
  attempts = 10,
  onAttempt?: (attempt: number) => void,
): Promise<Shrunk> {
  const { scenario, seed, hours } = options;
  const shape = typeof scenario === 'string' ? scenarioNamed(scenario)! : scenario;
  const plan = options.plan ?? planOf(shape, seed, hours);
  const invariant = failed.violations[0]?.invariant;
  const since = plan.moments.filter(({ what, atMs }) => what !== 'quiet' && atMs <= elapsedMs(failed)).length;
  // What came after the violation has nothing to do with it.
  let [enough, tooFew, report] = [since, -1, failed];
  for (let i = 0; i < attempts && enough - tooFew > 1; i++) {
    const middle = Math.floor((enough + tooFew) / 2);
    onAttempt?.(i + 1);
    const run = await runWorld({ ...options, plan: prefixOf(plan, middle) });
    if (run.violations[0]?.invariant === invariant) [enough, report] = [middle, run];
    else tooFew = middle;
  }
  return { events: enough, of: sizeOf(plan), report };
}

function elapsedMs({ violations, startedAt }: RunReport): number {
  return (violations[0]?.at ?? Number.POSITIVE_INFINITY) - startedAt;
}
