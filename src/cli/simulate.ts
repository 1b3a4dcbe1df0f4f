// SPDX-License-Identifier: Apache-2.0
// `karpenter simulate`: the whole program in a world of its own, on virtual time, from a seed. The same seed gives the
// same run; a broken promise is shown with the shortest story that leads to it.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { RealClock } from '../base/clock.ts';
import { ProgressLine } from './progress-line.ts';
import { UsageError } from './usage-error.ts';

interface SimulateFlags {
  readonly seed: number;
  readonly hours: number;
  readonly events?: number;
  readonly shrink: boolean;
  readonly output: 'json' | 'text';
}

/** Adds the `simulate` command. Exit codes: 0 every promise was kept, 1 one was broken, 2 it was asked wrongly. */
export function registerSimulate(program: Command): void {
  program
    .command('simulate')
    .description('run the autoscaler in a simulated world, with faults, and check what it promises')
    .argument(
      '[scenario]',
      'faults, busy, calm, small, crashes, storm, bad-cloud, cluster-api, several, apart, linode, linode-shared or linode-instance',
      'faults',
    )
    .option('--seed <n>', 'what the world follows from: the same seed gives the same run', wholeNumber, 1)
    .option('--hours <h>', 'how long it runs, in hours of its own time', positiveNumber, 2)
    .option('--events <n>', 'only the first n happenings and faults of the plan', wholeNumber)
    .option('--no-shrink', 'do not look for the shortest story that fails')
    .addOption(new Option('-o, --output <format>', 'what to print').choices(['json', 'text']).default('text'))
    .action((scenario: string, flags: SimulateFlags) => run(scenario, flags));
}

async function run(name: string, flags: SimulateFlags): Promise<void> {
  const [{ runWorld, scenarioNamed }, { scenarios }, { planOf, prefixOf }, { shortestPrefix }, text] =
    await Promise.all([
      import('../simulation/run.ts'),
      import('../simulation/scenarios.ts'),
      import('../simulation/plan.ts'),
      import('../simulation/shrink.ts'),
      import('../simulation/report-text.ts'),
    ]);
  const shape = scenarioNamed(name);
  if (!shape)
    throw new UsageError(`no scenario is named ${name}; there are ${scenarios.map((s) => s.name).join(', ')}`);
  const { seed, hours, events } = flags;
  const whole = planOf(shape, seed, hours);
  if (!whole.moments.some(({ what }) => what === 'happening'))
    console.error(
      `karpenter: note: nothing is changed and nothing fails in ${hours} h: a world fills up first, and rests for ` +
        `${Math.round(shape.restMs / 60_000)} minutes in the end; 2 h have it all`,
    );
  const plan = events === undefined ? whole : prefixOf(whole, events);
  const progress = new ProgressLine(process.stderr, new RealClock());
  let doing = `${name}, seed ${seed}`;
  const onMinute = (minutes: number): void =>
    progress.tell(`${doing}: ${hoursText(minutes)} of ${hoursText(hours * 60)}`);
  const options = { scenario: shape, seed, hours, plan, onMinute };
  const report = await runWorld(options);
  const failed = report.violations.length > 0;
  const attempts = 10;
  const onAttempt = (attempt: number): void => {
    doing = `a promise was broken; looking for the shortest story, try ${attempt} of at most ${attempts}`;
  };
  const shrunk = failed && flags.shrink ? await shortestPrefix(report, options, attempts, onAttempt) : undefined;
  progress.end();
  if (flags.output === 'json') {
    const shortest = shrunk && { events: shrunk.events, of: shrunk.of, violations: shrunk.report.violations };
    console.log(JSON.stringify({ ...report, ...(shortest ? { shortest } : {}) }, undefined, 2));
  } else {
    console.log(text.summaryText(report));
    if (failed) console.log(text.violationText(report, shrunk));
  }
  // Whatever is left of the world must not hold up the end.
  process.exitCode = failed ? 1 : 0;
}

/** `1:05 h`. */
function hoursText(minutes: number): string {
  return `${Math.floor(minutes / 60)}:${String(Math.floor(minutes % 60)).padStart(2, '0')} h`;
}

function wholeNumber(value: string): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number) || number < 0) throw new InvalidArgumentError('a whole number, please.');
  return number;
}

function positiveNumber(value: string): number {
  const number = Number(value);
  if (!(number > 0)) throw new InvalidArgumentError('a positive number, please.');
  return number;
}
