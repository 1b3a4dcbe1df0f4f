// SPDX-License-Identifier: Apache-2.0
// `karpenter cleanup`: deletes NodePools and NodeClaims and waits until they are gone, and with them every machine. The
// controller must still run: it is who removes machines. The chart's hook runs this before a release goes.
import { type Command, Option } from 'commander';
import { RealClock } from '../base/clock.ts';
import { connect } from './connect.ts';
import type { CleanupReport } from './remove-machines.ts';
import { columns } from './solve.ts';
import { UsageError } from './usage-error.ts';
import { version } from './version.ts';

interface CleanupFlags {
  readonly kubeconfig?: string;
  readonly timeout: string;
  readonly dryRun?: boolean;
  readonly output: 'json' | 'table';
}

/** Adds the `cleanup` command. Exit codes: 0 nothing is left (or it was a dry run), 1 something is, 2 it was asked wrongly. */
export function registerCleanup(program: Command): void {
  program
    .command('cleanup')
    .description(
      'delete all NodePools and NodeClaims and wait until every machine is gone; the controller must be running',
    )
    .option(
      '--kubeconfig <path>',
      'the cluster with NodePools; KUBECONFIG, the service account or ~/.kube/config unless told',
    )
    .option('--timeout <seconds>', 'give up after this long', '1800')
    .option('--dry-run', 'only say what would be deleted')
    .addOption(
      new Option('-o, --output <format>', 'what to print in the end').choices(['json', 'table']).default('table'),
    )
    .action((flags: CleanupFlags) => run(flags));
}

async function run(flags: CleanupFlags): Promise<void> {
  const timeoutMs = Number(flags.timeout) * 1000;
  if (!(timeoutMs > 0)) throw new UsageError('--timeout must be a positive number of seconds');
  const [{ KubeClient }, { cleanUp }, { stopOnSignals }, { silentLogger }] = await Promise.all([
    import('../kube/client.ts'),
    import('./remove-machines.ts'),
    import('../runtime/signals.ts'),
    import('../runtime/logging.ts'),
  ]);
  const clock = new RealClock();
  const transport = await connect(flags.kubeconfig, clock);
  const client = new KubeClient({ transport, clock, fieldManager: `karpenter-cleanup/${version}` });
  const { signal } = stopOnSignals(process, { log: silentLogger, exit: () => process.exit(1) });
  const report = await cleanUp({
    client,
    clock,
    timeoutMs,
    dryRun: flags.dryRun === true,
    // Progress beside the result: whoever reads JSON gets nothing else.
    tell: (line) => console.error(line),
    signal,
  });
  console.log(flags.output === 'json' ? JSON.stringify(report, undefined, 2) : table(report));
  // A connection that is still open must not hold up the end.
  process.exit(report.done || report.dryRun ? 0 : 1);
}

function table({ dryRun, done, nodePools, nodeClaims, left, seconds }: CleanupReport): string {
  const what = `${nodePools.length} NodePools and ${nodeClaims.length} NodeClaims`;
  if (dryRun) {
    const rows = [...nodePools.map((name) => ['NodePool', name]), ...nodeClaims.map((name) => ['NodeClaim', name])];
    const list = rows.length > 0 ? [...columns(['KIND', 'NAME'], rows), ''] : [];
    return [...list, `${what} would be deleted. A dry run: nothing was changed.`].join('\n');
  }
  if (done) return `${what} are gone, after ${seconds} s.`;
  return [
    ...columns(
      ['STILL THERE', 'NAME', 'WHY'],
      left.map(({ kind, name, why }) => [kind, name, why]),
    ),
    '',
    `Not everything is gone after ${seconds} s. What is left costs money until its machine is removed.`,
  ].join('\n');
}
