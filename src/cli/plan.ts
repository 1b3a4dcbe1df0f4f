// SPDX-License-Identifier: Apache-2.0
// `karpenter plan`: says what disruption would do with a cluster, live or from a file, and why the other nodes stay. Reads
// only; nothing is ever written to a cluster.
import { type Command, Option } from 'commander';
import { RealClock } from '../base/clock.ts';
import type { DisruptionPlan, PlannedCommand } from '../controllers/disruption/plan.ts';
import { parseSettings } from '../runtime/settings.ts';
import { readProblem, refusingBadFiles } from './problem-file.ts';
import { type ProgramSettings, programSettings } from './program-settings.ts';
import { readLiveProblem } from './snapshot.ts';
import { columns } from './solve.ts';
import { UsageError } from './usage-error.ts';

interface PlanFlags {
  readonly live?: boolean;
  readonly output: 'json' | 'table';
  readonly all?: boolean;
  readonly kubeconfig?: string;
  readonly workloadKubeconfig?: string;
  readonly providers?: string;
  readonly timeout: string;
  readonly featureGates?: string;
  readonly consolidationSavingsThreshold?: string;
  readonly podMovePrice?: string;
}

/** Adds the `plan` command. Exit codes: 0 planned, 1 the cluster cannot be read, 2 the file is no problem or it was asked wrongly. */
export function registerPlan(program: Command): void {
  program
    .command('plan')
    .description('say which nodes disruption would remove or replace now, what that saves, and why others stay')
    .argument('[file]', 'a problem file (JSON or YAML, from `karpenter snapshot`); - reads standard input')
    .option('--live', 'read the cluster instead of a file')
    .addOption(new Option('-o, --output <format>', 'what to print').choices(['json', 'table']).default('table'))
    .option('--all', 'list every node that stays, not the first twenty')
    .option('--kubeconfig <path>', 'the cluster with NodePools; KUBECONFIG or ~/.kube/config unless told')
    .option('--workload-kubeconfig <path>', 'the cluster with Nodes and Pods, when it is another one')
    .option('--providers <names>', 'the clouds to ask what they sell, separated by commas')
    .option('--timeout <seconds>', 'give up reading the cluster after this long', '60')
    .option('--feature-gates <gates>', 'as for the controller, such as SpotToSpotConsolidation=true')
    .option('--consolidation-savings-threshold <percent>', 'as for the controller')
    .option('--pod-move-price <price>', 'as for the controller')
    .action((file: string | undefined, flags: PlanFlags) => refusingBadFiles(() => run(file, flags)));
}

async function run(file: string | undefined, flags: PlanFlags): Promise<void> {
  if ((file === undefined) === (flags.live !== true)) throw new UsageError('give either a problem file or --live');
  const timeoutMs = Number(flags.timeout) * 1000;
  if (!(timeoutMs > 0)) throw new UsageError('--timeout must be a positive number of seconds');
  const settings = settingsOf(flags);
  const problem = file === undefined ? await readLiveProblem(settings, timeoutMs) : readProblem(file);
  const [{ plan }, { fileSnapshot }, { planMethods }] = await Promise.all([
    import('../controllers/disruption/plan.ts'),
    import('../controllers/disruption/file-snapshot.ts'),
    import('../controllers/disruption/index.ts'),
  ]);
  const result = plan(
    fileSnapshot(problem, settings, new RealClock().now()),
    planMethods(problem.state?.disruptionReasons),
  );
  console.log(flags.output === 'json' ? JSON.stringify(result, undefined, 2) : table(result, flags.all === true));
}

/** The settings of the controller, as far as a plan depends on them: flags first, then the environment. */
function settingsOf(flags: PlanFlags): ProgramSettings {
  const given: readonly (readonly [string, string | undefined])[] = [
    ['kubeconfig', flags.kubeconfig],
    ['workload-kubeconfig', flags.workloadKubeconfig],
    ['providers', flags.providers],
    ['feature-gates', flags.featureGates],
    ['consolidation-savings-threshold', flags.consolidationSavingsThreshold],
    ['pod-move-price', flags.podMovePrice],
  ];
  const argv = given.flatMap(([flag, value]) => (value === undefined ? [] : [`--${flag}=${value}`]));
  const { settings, problems, warnings } = parseSettings(programSettings, argv, process.env);
  if (!settings) throw new UsageError(problems.join('; '));
  for (const warning of warnings) console.error(`karpenter: ${warning}`);
  return settings;
}

const mostStaying = 20;

function table(result: DisruptionPlan, all: boolean): string {
  const { commands, staying, budgets, price, priceAfter } = result;
  const lines: string[] = [];
  if (commands.length > 0)
    lines.push(
      ...columns(['REASON', 'DECISION', 'NODES', 'REPLACED BY', 'PODS MOVED', 'SAVES/H'], commands.map(commandRow)),
      '',
    );
  const tight = budgets.filter(({ nodes, allowed, disrupting }) => nodes > 0 && allowed - disrupting < nodes);
  if (tight.length > 0)
    lines.push(
      ...columns(
        ['NODEPOOL', 'BUDGET FOR', 'NODES', 'ALLOWED', 'DISRUPTING'],
        tight.map((one) => [one.nodePool, one.reason, ...[one.nodes, one.allowed, one.disrupting].map(String)]),
      ),
      '',
    );
  const broken = new Map(
    budgets.flatMap(({ nodePool, problem }) => (problem === undefined ? [] : [[nodePool, problem]])),
  );
  for (const [pool, problem] of broken)
    lines.push(`NodePool ${pool}: nothing of it is disrupted, for a budget cannot be understood: ${problem}`);
  if (broken.size > 0) lines.push('');
  const shown = all ? staying : staying.slice(0, mostStaying);
  if (shown.length > 0)
    lines.push(
      ...columns(
        ['NODE THAT STAYS', 'WHY'],
        shown.map(({ node, why }) => [node, why]),
      ),
      ...(shown.length < staying.length ? [`… and ${staying.length - shown.length} more (--all lists them)`] : []),
      '',
    );
  const going = commands.reduce((sum, { nodes }) => sum + nodes.length, 0);
  const bought = commands.reduce((sum, { replacements }) => sum + replacements.length, 0);
  const idle =
    price > 0
      ? `the nodes that may go cost ${price.toFixed(4)}/h, and nothing cheaper will do`
      : staying.length > 0
        ? 'every node stays'
        : 'there are no nodes of a NodePool';
  lines.push(
    commands.length === 0
      ? `Nothing to do: ${idle}.`
      : `${going} nodes go, ${bought} are bought: ${price.toFixed(4)}/h becomes ${priceAfter.toFixed(4)}/h. A dry run: nothing was changed.`,
  );
  return lines.join('\n');
}

function commandRow({ reason, decision, nodes, replacements, podsMoved, savings }: PlannedCommand): string[] {
  const types = replacements.map(({ instanceTypes }) => instanceTypes[0] ?? 'any');
  return [reason, decision, short(nodes), short(types), String(podsMoved.length), savings.toFixed(4)];
}

function short(names: readonly string[]): string {
  return names.length > 3 ? `${names.slice(0, 3).join(', ')} and ${names.length - 3} more` : names.join(', ') || '-';
}
