// SPDX-License-Identifier: Apache-2.0
// `karpenter demo [SCENARIO]`: plays a scenario on an embedded cluster in front of the user.
import { type Command, InvalidArgumentError, Option } from 'commander';
import { KarpenterError } from '../base/errors.ts';
import type { Show } from './demo/perform.ts';
import type { Scenario } from './demo/scenario.ts';
import type { EmbeddedCloud } from './embedded-clouds.ts';
import { UsageError } from './usage-error.ts';

interface DemoFlags {
  readonly output: 'text' | 'json';
  readonly provider: string;
  readonly mode?: string;
  readonly speed?: boolean;
  readonly pace?: number;
  readonly seed?: number;
  readonly twoClusters?: boolean;
  readonly list?: boolean;
}

const interrupted = 130;

/** Adds the `demo` command. Exit codes: 0 the scenario reached its end, 1 it did not, 2 there is no such scenario. */
export function registerDemo(program: Command): void {
  program
    .command('demo')
    .description('play a scenario on a cluster in this process: pods come, machines are bought, and go again')
    .argument('[scenario]', 'its name; --list shows them', 'inflate')
    .addOption(
      new Option('-o, --output <format>', 'text, or json: one event a line, the last one a summary')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option('--speed', 'on virtual time, as fast as it goes')
    .option('--pace <times>', 'on virtual time, so many times as fast as real time', parsePace)
    .option('--seed <number>', 'the seed of all chance; on virtual time the same seed prints the same bytes', parseSeed)
    .option('--provider <names>', 'the clouds to play on, separated by commas', 'kwok')
    .option('--mode <mode>', 'how a cloud makes nodes, where it knows several ways: for linode lke or instance')
    .option('--two-clusters', 'NodePools and NodeClaims in one cluster, Nodes and Pods in another')
    .option('--list', 'list the scenarios and leave')
    .action(demo);
}

function parsePace(text: string): number {
  const times = Number(text);
  if (!(times > 0)) throw new InvalidArgumentError('It is a positive number: 10 is ten times as fast.');
  return times;
}

function parseSeed(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('A seed is a whole number of up to nine digits.');
  return Number(text);
}

async function demo(name: string, flags: DemoFlags): Promise<void> {
  const { cloudsNamed } = await import('./embedded-clouds.ts');
  const clouds = cloudsNamed(flags.provider, flags.mode);
  // Clouds may share a scenario: it is played once, on all of them.
  const scenarios = [...new Set(clouds.flatMap((cloud) => cloud.scenarios))];
  if (flags.list) {
    console.log(listOf(scenarios));
    return;
  }
  const scenario = scenarios.find((one) => one.name === name);
  if (!scenario) {
    throw new UsageError(`there is no scenario ${name} for ${flags.provider}; there are:\n${listOf(scenarios)}`);
  }
  const stop = new AbortController();
  const interrupt = (): void => stop.abort(new KarpenterError('KRP_DEMO_STOPPED', 'the demo was stopped'));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt);
  try {
    await perform(scenario, clouds, flags, stop.signal);
  } catch (error) {
    if (!stop.signal.aborted) throw error;
    console.error('\nstopped');
    process.exitCode = interrupted;
  }
}

function listOf(scenarios: readonly Scenario[]): string {
  const width = Math.max(...scenarios.map(({ name }) => name.length));
  return scenarios.map(({ name, description }) => `  ${name.padEnd(width)}  ${description}`).join('\n');
}

async function perform(
  scenario: Scenario,
  clouds: readonly EmbeddedCloud[],
  flags: DemoFlags,
  signal: AbortSignal,
): Promise<void> {
  const { perform: performScenario } = await import('./demo/perform.ts');
  const { show, tickMs } = await audience(flags);
  await performScenario({
    scenario,
    clouds,
    signal,
    show,
    ...(tickMs === undefined ? {} : { tickMs }),
    twoClusters: flags.twoClusters === true,
    ...(flags.seed === undefined ? {} : { seed: flags.seed }),
    ...(flags.pace === undefined ? (flags.speed ? { virtual: {} } : {}) : { virtual: { times: flags.pace } }),
  });
}

/** Where events go: lines of JSON, lines of text, or a picture where somebody looks at a terminal. */
async function audience(flags: DemoFlags): Promise<{ readonly show: Show; readonly tickMs?: number }> {
  const { stdout } = process;
  if (flags.output === 'json') return { show: (event) => stdout.write(`${JSON.stringify(event)}\n`) };
  const { linesOf } = await import('./demo/text.ts');
  // As fast as it goes is too fast to look at.
  if (!stdout.isTTY || (flags.speed && flags.pace === undefined) || process.env['CI'] || process.env['TERM'] === 'dumb')
    return { show: (event) => linesOf(event).forEach((line) => stdout.write(`${line}\n`)) };
  const [{ Screen }, { wantsColors }] = await Promise.all([
    import('./demo/screen.ts'),
    import('../runtime/pino-logger.ts'),
  ]);
  const screen = new Screen({ terminal: stdout, colors: wantsColors(true, process.env) });
  return { show: (event, world) => screen.show(event, world), tickMs: 1000 };
}
