// SPDX-License-Identifier: Apache-2.0
// `karpenter snapshot`: writes the cluster as a problem file, for `karpenter solve`, a bug report or a what-if.
import { writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { RealClock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { SystemRandom } from '../base/random.ts';
import { ReadOnlyTransport } from '../kube/read-only-transport.ts';
import { parseSettings, renderSettingsHelp } from '../runtime/settings.ts';
import type { Problem } from '../scheduling/problem.ts';
import { connect } from './connect.ts';
import { type ProgramSettings, programSettings } from './program-settings.ts';
import { UsageError } from './usage-error.ts';

interface SnapshotFlags {
  readonly output: 'json' | 'yaml';
  readonly file?: string;
  readonly timeout: string;
}

/** The controller's settings that decide what it would plan for. Its others are understood as well, and mean nothing here. */
const telling = [
  'kubeconfig',
  'workloadKubeconfig',
  'providers',
  'instanceTypesFilePath',
  'preferencePolicy',
  'minValuesPolicy',
  'schedulerConfig',
] as const;

/** Adds the `snapshot` command. */
export function registerSnapshot(program: Command): void {
  program
    .command('snapshot')
    .description('write the cluster as a problem file; env values, secrets and foreign annotations stay behind')
    .addOption(new Option('-o, --output <format>', 'how to write it').choices(['json', 'yaml']).default('json'))
    .option('-f, --file <path>', 'where to write it; standard output unless told')
    .option('--timeout <seconds>', 'give up reading the cluster after this long', '60')
    // The settings table reads the others: the flags and variables of the controller, so that both see the same.
    .allowUnknownOption()
    .allowExcessArguments()
    .addHelpText('after', () => `\nAs for the controller:\n${settingsHelp()}`)
    .action((flags: SnapshotFlags, command: Command) => snapshot(flags, command.args));
}

function settingsHelp(): string {
  return renderSettingsHelp(Object.fromEntries(telling.map((name) => [name, programSettings[name]])));
}

async function snapshot(flags: SnapshotFlags, args: readonly string[]): Promise<void> {
  const timeoutMs = Number(flags.timeout) * 1000;
  if (!(timeoutMs > 0)) throw new UsageError('--timeout must be a positive number of seconds');
  const { settings, problems } = parseSettings(programSettings, args, process.env);
  if (!settings) throw new UsageError(problems.join('; '));
  const problem = await readLiveProblem(settings, timeoutMs);
  const text = await render(problem, flags.output);
  if (flags.file === undefined) {
    process.stdout.write(text);
    return;
  }
  try {
    writeFileSync(flags.file, text);
  } catch (error) {
    throw new KarpenterError('KRP_SNAPSHOT_FILE', `cannot write the snapshot: ${messageOf(error)}`, { cause: error });
  }
  console.error(`wrote ${problem.pods.length} pods and ${problem.nodes?.length ?? 0} nodes to ${flags.file}`);
}

async function render(problem: Problem, format: SnapshotFlags['output']): Promise<string> {
  if (format === 'json') return `${JSON.stringify(problem, undefined, 2)}\n`;
  const { stringify } = await import('yaml');
  // Anchors for what pods share would be shorter, and nobody could read them.
  return stringify(problem, { aliasDuplicateObjects: false });
}

/** Reads the clusters once, as a problem; nothing can be written to them meanwhile. Throws when that takes too long. */
export async function readLiveProblem(settings: ProgramSettings, timeoutMs: number): Promise<Problem> {
  const [
    { Cluster, Clusters },
    { Metrics },
    { slimTransforms },
    { snapshotCluster },
    { loadProviders },
    { createLogger },
  ] = await Promise.all([
    import('../runtime/clusters.ts'),
    import('../runtime/metrics.ts'),
    import('../state/slim.ts'),
    import('./snapshot-cluster.ts'),
    import('./providers.ts'),
    import('../runtime/pino-logger.ts'),
  ]);
  const clock = new RealClock();
  // Standard output is the snapshot's.
  const log = createLogger({ clock, level: 'error', outputs: [process.stderr] });
  const common = { clock, random: new SystemRandom(), log, transforms: slimTransforms() };
  const open = async (name: string, path: string | undefined) =>
    new Cluster({ ...common, name, transport: new ReadOnlyTransport(await connect(path, clock)) });
  const karpenter = await open('karpenter', settings.kubeconfig);
  const workload = settings.workloadKubeconfig ? await open('workload', settings.workloadKubeconfig) : karpenter;
  const clusters = new Clusters(karpenter, workload);
  const stop = new AbortController();
  const warn = (message: string): void => console.error(`karpenter: ${message}`);
  try {
    const { registry } = await loadProviders({ clusters, clock, log, metrics: new Metrics(), settings });
    return await snapshotCluster({ clusters, registry, settings, clock, timeoutMs, warn, signal: stop.signal });
  } finally {
    stop.abort(new Error('the snapshot is done'));
    for (const cluster of clusters.all) await cluster.close();
  }
}
