// SPDX-License-Identifier: Apache-2.0
// `karpenter snapshot`: writes the cluster as a problem file, for `karpenter solve`, a bug report or a what-if.
import { writeFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import { type Clock, RealClock } from '../base/clock.ts';
import { KarpenterError, messageOf } from '../base/errors.ts';
import { SystemRandom } from '../base/random.ts';
import type { Problem } from '../scheduling/problem.ts';
import type { ClusterState } from '../state/cluster-state.ts';
import { connect } from './connect.ts';

interface SnapshotFlags {
  readonly output: 'json' | 'yaml';
  readonly file?: string;
  readonly kubeconfig?: string;
  readonly workloadKubeconfig?: string;
  readonly providers: string;
  readonly timeout: string;
}

/** Adds the `snapshot` command. */
export function registerSnapshot(program: Command): void {
  program
    .command('snapshot')
    .description('write the cluster as a problem file; env values, secrets and foreign annotations stay behind')
    .addOption(new Option('-o, --output <format>', 'how to write it').choices(['json', 'yaml']).default('json'))
    .option('-f, --file <path>', 'where to write it; standard output unless told')
    .option('--kubeconfig <path>', 'the cluster with NodePools; KUBECONFIG or ~/.kube/config unless told')
    .option('--workload-kubeconfig <path>', 'the cluster with Nodes and Pods, when it is another one')
    .option('--providers <names>', 'the clouds to ask what they sell, separated by commas; all unless told', '')
    .option('--timeout <seconds>', 'give up reading the cluster after this long', '60')
    .action(snapshot);
}

async function snapshot(flags: SnapshotFlags): Promise<void> {
  const timeoutMs = Number(flags.timeout) * 1000;
  if (!(timeoutMs > 0)) throw new KarpenterError('KRP_USAGE', '--timeout must be a positive number of seconds');
  const problem = await readProblem(flags, timeoutMs);
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

async function readProblem(flags: SnapshotFlags, timeoutMs: number): Promise<Problem> {
  const [{ Cluster, Clusters }, { Metrics }, { silentLogger }, { ClusterState }, { slimTransforms }, catalogs] =
    await Promise.all([
      import('../runtime/clusters.ts'),
      import('../runtime/metrics.ts'),
      import('../runtime/logging.ts'),
      import('../state/cluster-state.ts'),
      import('../state/slim.ts'),
      import('../state/pool-catalog.ts'),
    ]);
  const [{ snapshotProblem }, { sanitizeProblem }, { loadProviders }] = await Promise.all([
    import('../state/snapshot.ts'),
    import('../state/sanitize.ts'),
    import('./providers.ts'),
  ]);
  const clock = new RealClock();
  const common = { clock, random: new SystemRandom(), log: silentLogger, transforms: slimTransforms() };
  const open = async (name: string, path: string | undefined) =>
    new Cluster({ ...common, name, transport: await connect(path, clock) });
  const karpenter = await open('karpenter', flags.kubeconfig);
  const workload = flags.workloadKubeconfig ? await open('workload', flags.workloadKubeconfig) : karpenter;
  const clusters = new Clusters(karpenter, workload);
  const stop = new AbortController();
  try {
    const { registry } = await loadProviders({
      clusters,
      clock,
      log: silentLogger,
      metrics: new Metrics(),
      settings: { providers: flags.providers.split(',').filter(Boolean), clusterName: '', instanceTypesFilePath: '' },
    });
    const state = new ClusterState({ clusters, registry, clock });
    for (const cluster of clusters.all) cluster.start(stop.signal);
    await readAll(state, clock, timeoutMs);
    const pools = state.sources.nodePools.list().filter((pool) => registry.ofNodePool(pool));
    const catalog = await catalogs.readPoolCatalog(registry, pools, stop.signal);
    for (const { pool, error } of catalog.failures)
      console.error(`karpenter: NodePool ${pool.metadata.name} has no instance types: ${messageOf(error)}`);
    state.close();
    return sanitizeProblem(snapshotProblem(state, { catalog, registry, now: clock.now() }));
  } finally {
    stop.abort(new Error('the snapshot is done'));
    for (const cluster of clusters.all) await cluster.close();
  }
}

async function readAll(state: ClusterState, clock: Clock, timeoutMs: number): Promise<void> {
  const end = clock.monotonic() + timeoutMs;
  while (!state.hasRead) {
    if (clock.monotonic() > end) {
      const missing = Object.entries(state.sources)
        .filter(([, informer]: [string, { readonly hasSynced: boolean }]) => !informer.hasSynced)
        .map(([name]) => name);
      const seconds = timeoutMs / 1000;
      throw new KarpenterError('KRP_SNAPSHOT_TIMEOUT', `could not read ${missing.join(', ')} within ${seconds} s`);
    }
    await clock.sleep(20);
  }
}
