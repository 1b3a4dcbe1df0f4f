// SPDX-License-Identifier: Apache-2.0
// Loads the Cluster API provider: finds the management cluster, which may be the one with the NodePools, and wires what
// follows it.
import type { Clock } from '../base/clock.ts';
import { SystemRandom } from '../base/random.ts';
import type { Transport } from '../kube/transport.ts';
import { Hub } from '../providers/cluster-api/hub.ts';
import { nodeClassController } from '../providers/cluster-api/node-class-controller.ts';
import { ClusterApiProvider } from '../providers/cluster-api/provider.ts';
import { type HubAccess, hubAccess, syncedLabels } from '../providers/cluster-api/settings.ts';
import { Cluster } from '../runtime/clusters.ts';
import { connect } from './connect.ts';
import { homeDirectory } from './home.ts';
import type { LoadedProvider, ProviderParts } from './known-providers.ts';
import { version } from './version.ts';

/** The name of the management cluster among the clusters of the program. */
const hubName = 'cluster-api';

/** Throws when the settings contradict each other or name a kubeconfig that cannot be used. Nothing is asked yet. */
export async function loadClusterApi(parts: ProviderParts): Promise<LoadedProvider> {
  const { clusters, clock, log: all, metrics, settings } = parts;
  const log = all.with({ provider: 'clusterapi' });
  const access = hubAccess(settings);
  const cluster =
    access.kind === 'joined'
      ? clusters.karpenter
      : new Cluster({
          name: hubName,
          transport: await open(access, clock),
          clock,
          random: new SystemRandom(),
          log,
          metrics,
          qps: settings.kubeClientQps,
          burst: settings.kubeClientBurst,
        });
  if (access.kind !== 'joined') clusters.add(hubName, cluster);
  const { karpenter, workload } = clusters;
  const namespace = settings.clusterApiNamespace;
  const hub = new Hub({
    cluster,
    karpenter: karpenter.client,
    clock,
    log,
    metrics,
    ...(namespace ? { namespace } : {}),
  });
  const isSynced = syncedLabels(settings);
  const provider = new ClusterApiProvider({ hub, karpenter, workload, clock, log, metrics, isSynced });
  const { members } = provider;
  return { provider, runnables: [hub, nodeClassController({ hub, members, karpenter, clock, log, metrics })] };
}

async function open(access: Exclude<HubAccess, { kind: 'joined' }>, clock: Clock): Promise<Transport> {
  if (access.kind === 'file') return connect(access.path, clock);
  const [{ HttpTransport }, { findConnection, inCluster }, { machineIo }] = await Promise.all([
    import('../kube/http-transport.ts'),
    import('../kube/kubeconfig.ts'),
    import('../kube/credential-io.ts'),
  ]);
  const io = machineIo(process.env, process.stdin.isTTY);
  const path = 'the cluster-api settings';
  const connection =
    access.kind === 'in-cluster'
      ? inCluster({ env: process.env, io, clock })
      : findConnection({
          path,
          env: process.env,
          homeDirectory: homeDirectory(),
          io: { ...io, readFile: (file) => (file === path ? access.kubeconfig : io.readFile(file)) },
          clock,
        });
  return new HttpTransport({ ...connection, userAgent: `karpenter/${version}` });
}
