// SPDX-License-Identifier: Apache-2.0
// `karpenter controller`: the autoscaler on a real cluster, with upstream's flags and environment variables.
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { nodeClaimKind } from '../api/node-claim.ts';
import { nodePoolKind } from '../api/node-pool.ts';
import { type Clock, RealClock } from '../base/clock.ts';
import { SystemRandom } from '../base/random.ts';
import { KubeClient } from '../kube/client.ts';
import { parseSettings, renderSettingsHelp } from '../runtime/settings.ts';
import { connect } from './connect.ts';
import { type ProgramSettings, programSettings } from './program-settings.ts';
import { commit, version } from './version.ts';

const usage = 2;

export function registerController(program: Command): void {
  program
    .command('controller')
    .description("run the autoscaler against a cluster, with upstream's flags and environment variables")
    // The settings table reads the flags: it knows their types, their variables and what is near a typo.
    .allowUnknownOption()
    .allowExcessArguments()
    .helpOption(false)
    .action((_options: unknown, command: Command) => controller(command.args));
}

async function controller(args: readonly string[]): Promise<void> {
  if (args.includes('--help') || args.includes('-h')) {
    console.log(`Usage: karpenter controller [flags]\n\n${renderSettingsHelp(programSettings)}`);
    return;
  }
  const { settings, problems, warnings } = parseSettings(programSettings, args, process.env);
  if (!settings) {
    for (const problem of problems) console.error(`karpenter: ${problem}`);
    process.exitCode = usage;
    return;
  }
  await run(settings, warnings);
}

/**
 * By how much the heap may grow beyond what is alive before it is collected. V8's own choice, up to four times as much,
 * suits short programs; this one holds a cluster for months.
 */
const heapGrowthPercent = 50;

async function run(settings: ProgramSettings, warnings: readonly string[]): Promise<void> {
  setFlagsFromString(`--heap-growing-percent=${heapGrowthPercent}`);
  const [
    { Cluster, Clusters },
    { Metrics, recordBuildInfo },
    { runAutoscaler },
    { stopOnSignals },
    leader,
    { slimTransforms },
  ] = await Promise.all([
    import('../runtime/clusters.ts'),
    import('../runtime/metrics.ts'),
    import('./autoscaler.ts'),
    import('../runtime/signals.ts'),
    import('../runtime/leader.ts'),
    import('../state/slim.ts'),
  ]);
  const clock = new RealClock();
  const random = new SystemRandom();
  const log = await loggerFor(settings, clock);
  for (const warning of warnings) log.warn('setting ignored', { warning });
  const metrics = new Metrics();
  metrics.collectProcess();
  recordBuildInfo(metrics, { version, commit, runtime: process.version, arch: process.arch });

  const transport = await connect(settings.kubeconfig, clock);
  const apart = settings.workloadKubeconfig ? await connect(settings.workloadKubeconfig, clock) : undefined;
  const common = {
    clock,
    random,
    log,
    metrics,
    qps: settings.kubeClientQps,
    burst: settings.kubeClientBurst,
    transforms: slimTransforms(),
  };
  const karpenter = new Cluster({ ...common, name: 'karpenter', transport });
  const workload = apart ? new Cluster({ ...common, name: 'workload', transport: apart }) : karpenter;

  const election = settings.disableLeaderElection
    ? undefined
    : {
        // A client of its own: throttling must not cost the lease.
        client: new KubeClient({
          transport: await connect(settings.kubeconfig, clock),
          clock,
          fieldManager: 'karpenter',
        }),
        name: settings.leaderElectionName,
        namespace: leader.leaseNamespace(settings, readText),
        identity: leader.candidateIdentity(hostname(), random),
        random,
      };
  const { signal } = stopOnSignals(process, { log, exit: () => process.exit(1) });
  await runAutoscaler(
    {
      clusters: new Clusters(karpenter, workload),
      settings,
      clock,
      random,
      log,
      metrics,
      election,
      required: [nodePoolKind, nodeClaimKind],
      // Whoever lost the lease must not finish what it began.
      onLost: () => process.exit(1),
    },
    signal,
  );
  // All has stopped, and the log is written as it comes: a timer that somebody forgot must not hold the pod until it is
  // killed.
  process.exit();
}

async function loggerFor(settings: ProgramSettings, clock: Clock) {
  const { createLogger, openOutputs, prettyOutput, productionSampling, wantsColors } = await import(
    '../runtime/pino-logger.ts'
  );
  const opened = openOutputs(settings.logOutputPaths, (error) => console.error(`karpenter: ${error.message}`));
  const isTerminal = process.stdout.isTTY;
  const outputs = isTerminal
    ? await Promise.all(opened.map((output) => prettyOutput(output, { colors: wantsColors(true, process.env) })))
    : opened;
  return createLogger({
    clock,
    level: settings.logLevel,
    outputs,
    sampling: productionSampling,
    fields: { logger: 'controller', commit },
  });
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not in a pod: the caller has other ways, and a clear word when none of them is left.
    return undefined;
  }
}
